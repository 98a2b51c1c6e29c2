"""Which columns of a file hold its vectors and its ids: those that are named, or the only ones there are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from leakboard.data.readers.vector_databases import Source
from leakboard.errors import RequestError, nearest

Kind = Literal["vector", "number", "other"]
"""What a column holds."""

DIMENSION = re.compile(r"(.*?)(\d+)")
"""The name of a column that holds one dimension: a prefix and a number."""
ID = "id"
"""The column of ids, unless another one is named."""


def id_column(path: Source, names: Sequence[str] | Mapping[str, Any], id: str | None) -> str | None:
    """Return the column of ids: the one that is asked for, else the one called ``id``, if there is one."""
    if id is None:
        return ID if ID in names else None
    if id not in names:
        raise RequestError(f"{path}: id {id!r} is not one of {_listed(names)}{nearest(id, names)}")
    return id


def vector_columns(path: Source, kinds: Mapping[str, Kind], column: str | None, id: str | None) -> list[str]:
    """Return the columns that hold the vectors: one of lists, or one a dimension in the order of their numbers."""
    names = [name for name in kinds if name != id]
    choices = _families([name for name in names if kinds[name] == "number"])
    choices |= {name: [name] for name in names if kinds[name] == "vector"}
    if column in choices:
        return choices[column]
    if column is None and len(choices) == 1:
        return next(iter(choices.values()))
    if column in kinds:
        raise RequestError(f"{path}: column {column!r} holds no vector in row 1; allowed: a list of numbers")
    taken = {name for family in choices.values() for name in family}
    raise no_column(path, column, [*(name for name in names if name not in taken), *choices], list(choices))


def _families(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names that share a prefix and end in a number, two or more, by their prefix."""
    families: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if match := DIMENSION.fullmatch(name):
            families.setdefault(match[1], []).append((int(match[2]), name))
    return {prefix: [name for _, name in sorted(found)] for prefix, found in families.items() if len(found) > 1}


def no_column(path: Source, column: str | None, names: Sequence[str], choices: Sequence[str]) -> RequestError:
    """Return the error of a column that is none, or of none that was named.

    Args:
        path: where it is looked for.
        column: that is asked for.
        names: that there are.
        choices: those of them that hold vectors.
    """
    if column is not None:
        return RequestError(f"{path}: column {column!r} is not one of {_listed(names)}{nearest(column, names)}")
    if choices:
        return RequestError(f"{path}: several columns may hold vectors: {_listed(choices)}; name one by `column`")
    return RequestError(f"{path}: no column holds vectors" + (f" (there are {_listed(names)})" if names else ""))


def _listed(names: Any) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
