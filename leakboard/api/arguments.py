"""Check the types of arguments in Python, as a suite's options are checked."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from leakboard.errors import RequestError, plain
from leakboard.suite.options import explain


def _usable(path: str | Path) -> str | Path:
    if not str(path) or "\0" in str(path) or not str(path).isprintable():
        raise ValueError("a path that is not empty, without control characters and lone surrogates")
    return path


FilePath = Annotated[str | Path, AfterValidator(_usable)]
"""A path of a file or a folder."""
Whole = Annotated[int, Field(ge=0)]
"""A whole number from 0."""


def as_int(value: Any) -> Any:
    """Return a whole number of NumPy as one of Python, and anything else as it is."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def require(kind: Any, **arguments: Any) -> None:
    """Refuse an argument of another type.

    Args:
        kind: type that all arguments must have; nothing is converted.
        arguments: by name.

    Raises:
        RequestError: one line names the argument, its value and what is allowed.
    """
    adapter = TypeAdapter(kind, config=ConfigDict(strict=True))
    for name, value in arguments.items():
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            first = error.errors()[0]
            if not first["loc"]:  # no part of the value, but all of it
                allowed = first["msg"].removeprefix("Value error, ")
                raise RequestError(f"{name}: {plain(repr(value), 200)} is not allowed: {allowed}") from None
            raise RequestError(explain(error, name, ())) from None


def check(name: str, value: object, good: bool, allowed: str) -> None:
    """Refuse an argument.

    Raises:
        RequestError: the value is not good; the message says what is allowed.
    """
    if not good:
        raise RequestError(f"{name}: {value!r} is not allowed: {allowed}")
