"""Define a promise of the contract, and the errors of its check: the promise is broken, or cannot be checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Check = Callable[[Any], "str | None"]
"""Takes a `leakboard.conformance.subjects.Subject`; raises `Broken` or `NotChecked`; may return a remark."""


@dataclass(frozen=True)
class Promise:
    """A promise of plugins of some kinds, with the function that checks it."""

    name: str
    kinds: tuple[str, ...]
    text: str
    """The promise in a sentence."""
    check: Check
    is_required: bool
    """Whether the promises after it can only be checked if this one is kept."""


def promise(*kinds: str, is_required: bool = False) -> Callable[[Check], Promise]:
    """Turn a function into the check of a promise; its name and docstring become the promise's name and text."""

    def decorate(function: Any) -> Promise:
        text = " ".join((function.__doc__ or "").split())
        return Promise(function.__name__.replace("_", " "), kinds, text, function, is_required)

    return decorate


class Broken(AssertionError):
    """A plugin breaks a promise."""

    def __init__(self, message: str, part: Any = None):
        super().__init__(message)
        self.part = part
        """The class or function of the plugin that is at fault; None: the whole plugin."""


class NotChecked(Exception):
    """A promise cannot be checked; the message is the reason."""


def expect(holds: Any, message: str, part: Any = None) -> None:
    """Report a broken promise unless a condition holds.

    Raises:
        Broken: ``holds`` is not true.
    """
    if not holds:
        raise Broken(message, part)
