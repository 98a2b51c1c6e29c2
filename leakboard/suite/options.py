"""Make the fields of a plugin's class its options: strict, named and described.

`dataset`, `victim` and `attack` turn a class into a frozen, keyword-only pydantic dataclass. It refuses unknown fields,
wrong types and values out of range, from Python and from YAML. The string beneath a field is its documentation.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

import pydantic.dataclasses
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError, WithJsonSchema

from leakboard.errors import RequestError, nearest, plain
from leakboard.suite.suite_file import ENTRY_KEYS

STRICT = ConfigDict(extra="forbid", strict=True)

Strings = Annotated[tuple[str, ...], Field(strict=False)]
"""Several strings, written as a list in YAML."""
Count = Annotated[int, Field(ge=1)]
"""A whole number from 1."""
ALWAYS_NAMED = object()
"""Marks an option, as in ``Annotated[type, ALWAYS_NAMED]``: labels and identities always contain its value.

So a later version can change the default without changing the identity of old results.
"""

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def shared(cls: type[T]) -> type[T]:
    """Make a class of options that several plugins inherit.

    Raises:
        TypeError: an option hides a method or another member of a base class, or has the name of a key of entries.
    """
    for name, annotation in _own_options(cls).items():
        if name in ENTRY_KEYS and name != "name":  # a name is written next to the plugin, not among its options
            raise TypeError(f"the option {name!r} is a key of entries of a suite: rename it")
        for base in cls.__mro__[1:]:
            is_option = name in getattr(base, "__dataclass_fields__", _own_options(base))
            if name in {*vars(base), *vars(base).get("__annotations__", {})} and not is_option:
                raise TypeError(f"the option {name!r} hides {base.__name__}.{name}: rename it")
        cls.__annotations__[name] = _as_written(annotation)
    decorated: Any = pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=STRICT)(cls)
    return decorated


def _own_options(cls: type) -> dict[str, Any]:
    """Return the types of the options that a class itself declares; a type that is not known yet stays a text."""
    declared = vars(cls).get("__annotations__", {})
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        hints = {}
    types = {name: hints.get(name, annotation) for name, annotation in declared.items()}
    return {name: kind for name, kind in types.items() if "ClassVar" not in str(kind)}


def _as_written(annotation: Any) -> Any:
    """Return a type that also accepts its form in YAML: a list for a tuple, text for an Enum, a Path or a date."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return Union[tuple(map(_as_written, arguments))]  # noqa: UP007 (its members are not known yet)
    is_written_otherwise = isinstance(annotation, type) and issubclass(annotation, (Enum, Path, date))
    return Annotated[annotation, Field(strict=False)] if is_written_otherwise or origin is tuple else annotation


def _plugin(cls: type | None, kind: str, revision: int | None) -> Any:
    if revision is not None and (type(revision) is not int or revision < 1):
        raise TypeError(f"revision={revision!r} is not allowed: a whole number from 1 on")

    def decorate(cls: type) -> Any:
        decorated: Any = shared(cls)
        decorated.__leakboard_kind__, decorated.__leakboard_revision__ = kind, revision
        return decorated

    return decorate(cls) if cls else decorate


@dataclass_transform(frozen_default=True, kw_only_default=True)
def dataset(cls: type | None = None, /, *, revision: int | None = None) -> Any:
    """Make a class a dataset plugin.

    Args:
        cls: the class, if the decorator is written without brackets.
        revision: the version of the plugin's results. Add 1 if a change gives other results for the same options. None:
            the plugin's code is its identity, and its results cannot be published.
    """
    return _plugin(cls, "datasets", revision)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def victim(cls: type | None = None, /, *, revision: int | None = None) -> Any:
    """Make a class a victim plugin; for ``revision`` see `dataset`."""
    return _plugin(cls, "victims", revision)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def attack(cls: type | None = None, /, *, revision: int | None = None) -> Any:
    """Make a class an attack plugin; for ``revision`` see `dataset`."""
    return _plugin(cls, "attacks", revision)


def part(allowed: Mapping[str, type]) -> Any:
    """Return the type of an option whose value is itself a recipe with options.

    ``allowed`` maps the names of the possible recipes to their classes. In YAML the option is written like a plugin: a
    name, or a name with options.
    """

    def parse(value: Any) -> Any:
        if isinstance(value, tuple(allowed.values())):
            return value
        name, written = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (value, None)
        if not isinstance(name, str) or name not in allowed:
            raise ValueError(f"allowed is one of {', '.join(allowed)}, or one with its options{nearest(name, allowed)}")
        if written is not None and not isinstance(written, dict):
            raise ValueError(f"{name}: {written!r} is not a mapping of options")
        return build(allowed[name], written or {}, name)

    def dump(value: Any) -> dict[str, Any]:
        return {next(name for name, cls in allowed.items() if type(value) is cls): as_dict(value)}

    schema = WithJsonSchema({"enum": list(allowed)})
    return Annotated[Any, BeforeValidator(parse), PlainSerializer(dump), schema]


def build(cls: type[T], options: Mapping[str, Any], location: str) -> T:
    """Construct a plugin from the options that a user wrote.

    Raises:
        RequestError: one line with ``location``, the option, its value, what is allowed and the nearest name.
    """
    try:
        return cls(**{str(name): value for name, value in options.items()})
    except ValidationError as error:
        raise RequestError(explain(error, location, field_names(cls))) from None


def explain(error: ValidationError, location: str, allowed: Iterable[str]) -> str:
    """Return the first complaint of a validation as one line that begins with ``location``."""
    complaints = error.errors(include_url=False)
    complaints.sort(key=lambda c: c["type"] in ("missing", "missing_argument"))  # a wrong name explains a missing one
    first = complaints[0]
    option = _with_path(location, first["loc"])
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        names = list(allowed)
        unknown = first["loc"][-1]
        return f"{option}: unknown name {unknown!r} (allowed: {', '.join(names)}){nearest(unknown, names)}"
    if first["type"] in ("missing", "missing_argument"):
        return f"{option}: required, but missing"
    if not first["loc"] and first["type"] == "value_error":  # options that do not go together
        return f"{location}: {first['msg'].removeprefix('Value error, ')}"
    same = [c for c in complaints if c["loc"][:1] == first["loc"][:1]]
    texts = [c["msg"].removeprefix("Value error, ") for c in same]
    messages = dict.fromkeys(text[0].lower() + text[1:] for text in texts)
    hint = nearest(first["input"], _literals(same)) if isinstance(first["input"], str) else ""
    return f"{option}: {plain(repr(first['input']), 200)} is not allowed: {', or '.join(messages)}{hint}"


_BRANCHES = {"str", "int", "float", "bool", "list", "tuple", "dict"}


def _with_path(location: str, path: tuple[int | str, ...]) -> str:
    for part in path:
        if isinstance(part, int):
            location += f"[{part}]"
        elif part.isidentifier() and part not in _BRANCHES:  # not a union's branch, as in literal['a','b']
            location += f".{part}"
    return location


def _literals(complaints: list[Any]) -> list[str]:
    expected = " ".join(str(c.get("ctx", {}).get("expected", "")) for c in complaints)
    return expected.split("'")[1::2]


def field_names(cls: type) -> list[str]:
    """Return the names of a plugin's options."""
    return [field.name for field in dataclasses.fields(cls)]


def as_dict(instance: Any) -> dict[str, Any]:
    """Return every option of a plugin, defaults included, as JSON values."""
    adapter, _ = _form(instance)
    return adapter.dump_python(instance, mode="json")  # type: ignore[no-any-return]


def named(instance: Any) -> dict[str, Any]:
    """Return the options of a plugin that differ from their defaults or are always named, as JSON values."""
    _, defaults = _form(instance)
    always, values = always_named(type(instance)), as_dict(instance)
    return {key: value for key, value in values.items() if key in always or getattr(instance, key) != defaults[key]}


def always_named(cls: Any) -> set[str]:
    """Return the options of a plugin that are marked `ALWAYS_NAMED`."""
    return {name for name, field in cls.__pydantic_fields__.items() if ALWAYS_NAMED in field.metadata}


def parts(instance: Any) -> dict[str, tuple[str, Any]]:
    """Return the options that are plugins themselves, and the name of each in YAML."""
    values = {name: getattr(instance, name) for name in field_names(type(instance))}
    nested = {key: value for key, value in values.items() if hasattr(value, "__leakboard_kind__")}
    written = as_dict(instance) if nested else {}
    return {key: (next(iter(written[key])), value) for key, value in nested.items()}


def _form(instance: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Return the adapter that writes a plugin's options as JSON, and their defaults."""
    cls: Any = type(instance)
    return _form_of(cls)


@cache
def _form_of(cls: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    fields = cls.__pydantic_fields__
    return TypeAdapter(cls), {name: field.get_default(call_default_factory=True) for name, field in fields.items()}


def reset(instance: T, *names: str) -> T:
    """Return a plugin with these options at their defaults."""
    _, defaults = _form(instance)
    return dataclasses.replace(instance, **{name: defaults[name] for name in names})  # type: ignore[type-var]


def label(name: str, instance: Any) -> str:
    """Return ``name(option=value, ...)`` with the options that differ from their defaults or are always named."""
    values = written(instance)
    return f"{name}({', '.join(f'{key}={value}' for key, value in sorted(values.items()))})" if values else name


def written(instance: Any, names: Sequence[str] | None = None) -> dict[str, str]:
    """Return options as a label writes them: the options in ``names``, or all options of the label."""
    values = named(instance) if names is None else {key: as_dict(instance)[key] for key in names}
    values |= {key: label(inner, part) for key, (inner, part) in parts(instance).items() if key in values}
    return {key: _plain(value) for key, value in values.items()}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclasses.dataclass(frozen=True)
class OptionDescription:
    """One option as ``show`` prints it."""

    name: str
    allowed: str
    default: str
    text: str


def describe(cls: type) -> list[OptionDescription]:
    """Return the options of a plugin with their types, ranges, defaults and documentation."""
    schema = TypeAdapter(cls).json_schema()
    required, named_types = set(schema.get("required", ())), schema.get("$defs", {})
    return [
        OptionDescription(
            name,
            _allowed(entry, named_types),
            "required" if name in required else _default(cls, name, entry.get("default")),
            _documentation(cls, name),
        )
        for name, entry in schema.get("properties", {}).items()
    ]


def _default(cls: type, name: str, value: Any) -> str:
    """Return a default as users write it; the default of a `part` is the name of its recipe."""
    fields: Any = getattr(cls, "__pydantic_fields__", {})
    chosen = fields[name].default if name in fields else value
    return type(chosen).__module__.rpartition(".")[2] if hasattr(chosen, "__leakboard_kind__") else _plain(value)


def _documentation(cls: type, name: str) -> str:
    """Return the string beneath a field, in the class or in a base class."""
    texts = (_texts(base).get(name) for base in cls.__mro__ if base.__module__ != "builtins")
    return next(filter(None, texts), "")


@cache
def _texts(cls: type) -> dict[str, str]:
    """Return the string beneath each field of a class's body; no string if its source cannot be read.

    Pydantic can keep these strings, but would read the source of every class at every start.
    """
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError):
        return {}
    texts = {}
    for field, below in itertools.pairwise(getattr(node, "body", ())):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = " ".join(text.split())
    return texts


_RANGES = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def _allowed(entry: Mapping[str, Any], named_types: Mapping[str, Any]) -> str:
    """Return the values that a JSON schema allows, in words; ``named_types`` are the types that it refers to."""
    entry = named_types.get(str(entry.get("$ref", "")).rpartition("/")[2], entry)
    if "anyOf" in entry:
        return " | ".join(_allowed(branch, named_types) for branch in entry["anyOf"])
    if "enum" in entry:
        return " | ".join(map(str, entry["enum"]))
    if "const" in entry:
        return str(entry["const"])
    kind = str(entry.get("format") or entry.get("type", "mapping"))
    if "prefixItems" in entry:
        kind = f"list of {', '.join(_allowed(item, named_types) for item in entry['prefixItems'])}"
    elif kind == "array":
        kind = f"list of {_allowed(entry.get('items', {}), named_types)}"
    if "minimum" in entry and "maximum" in entry:
        return f"{kind} from {entry['minimum']} to {entry['maximum']}"
    limits = [f"{sign} {entry[key]}" for key, sign in _RANGES.items() if key in entry]
    return f"{kind} {' and '.join(limits)}".rstrip()
