"""Find the columns of a file that hold its vectors and its ids: the named ones, or the only possible ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from leakboard.data.readers.formats import other_separator
from leakboard.data.readers.vector_databases import Source
from leakboard.errors import RequestError, nearest

Kind = Literal["vector", "number", "other", "empty"]
"""Content of a column; ``empty``: no row has a value."""

DIMENSION = re.compile(r"(.*?)(\d+)")
"""Name of a column that holds one dimension: a prefix and a number."""
EDGES = re.compile(r"^\W+|\W+$")
"""Signs and spaces around a name."""
FRACTION = re.compile(r"\s*[-+]?\d*\.\d{3,}(e[-+]?\d+)?\s*", re.IGNORECASE)
"""Name that is a coordinate of a vector rather than a name."""
ID = "id"
"""Default name of the column of ids."""


def find_columns(
    path: Source, kinds: Mapping[str, Kind], column: str | None, id: str | None
) -> tuple[list[str], str | None]:
    """Return the columns of the vectors and the column of the ids.

    Args:
        path: of the file, for messages.
        kinds: content of each column.
        column: the column of lists, or the prefix of columns of one dimension each; None: the only possible one.
        id: the column of ids; None: the column ``id``, if there is one.

    Returns:
        One column of lists, or one column for each dimension in the order of their numbers: all columns of the prefix,
        also those that hold no number. Then the column of ids.

    Raises:
        RequestError: a column is missing or holds no vectors, several may hold them, or a dimension seems to be
            missing.
    """
    if 2 * sum(FRACTION.fullmatch(name) is not None for name in kinds) > len(kinds):
        raise RequestError(
            f"{path}: no header: the columns are named {_listed([*kinds][:3])}; allowed: names as e0, e1"
        )
    if id is not None and id not in kinds:
        raise RequestError(f"{path}: id {id!r} is not one of {_listed(kinds)}{nearest(id, kinds)}")
    id = ID if id is None and ID in kinds else id
    names = [name for name in kinds if name != id]
    choices = _families({name: kinds[name] for name in names})
    choices |= {name: [name] for name in names if kinds[name] == "vector"}
    if column is None and len(choices) == 1:
        (column,) = choices
    if column in choices:
        others = {name for prefix, family in choices.items() if prefix != column for name in family}
        _require_all_dimensions(path, choices[column], [name for name in names if name not in others])
        return choices[column], id
    if column in names:
        raise RequestError(f"{path}: column {column!r} holds no vectors; allowed: a list of numbers in each row")
    members = {name for family in choices.values() for name in family}
    names = [*(name for name in names if name not in members), *choices]
    if column is not None:
        raise RequestError(f"{path}: column {column!r} is not one of {_listed(names)}{nearest(column, names)}")
    if choices:
        raise RequestError(f"{path}: several columns may hold vectors: {_listed(choices)}; name one by `column`")
    raise RequestError(
        f"{path}: no column holds vectors" + (f" (there are {_listed(names)}){other_separator(names)}" if names else "")
    )


def numbers_left_out(kinds: Mapping[str, Kind], dimensions: Sequence[str], id: str | None) -> list[str]:
    """Return the columns of numbers next to columns of one dimension each, without the ids and other families."""
    if len(dimensions) == 1:
        return []
    known = {id, *dimensions, *(name for family in _families(kinds).values() for name in family)}
    return [name for name, kind in kinds.items() if kind == "number" and name not in known]


def _families(kinds: Mapping[str, Kind]) -> dict[str, list[str]]:
    """Group the names that end in a number by their prefix; leave out groups of one name.

    At least half of the columns of a group hold numbers. The others are members, too: a dimension with other values is
    an error, and must not be dropped.
    """
    families: dict[str, list[tuple[int, str]]] = {}
    for name, kind in kinds.items():
        if kind != "vector" and (parts := _parts(name)):
            families.setdefault(parts[0], []).append((parts[1], name))
    return {
        prefix: [name for _, name in sorted(family)]
        for prefix, family in families.items()
        if len(family) > 1 and 2 * sum(kinds[name] == "number" for _, name in family) >= len(family)
    }


def _require_all_dimensions(path: Source, chosen: Sequence[str], names: Sequence[str]) -> None:
    """Refuse columns of dimensions if a dimension seems to be missing, or a column seems to be none.

    `e2019` beside `e0` to `e7` is a year. Without `e3`, or with `# e0` in place of `e0`, a dimension is lost.
    """
    if len(chosen) == 1:
        return
    numbers = [parts[1] for name in chosen if (parts := _parts(name))]
    for name in names:
        if name not in chosen and _bare_prefix(name) == _bare_prefix(chosen[0]):
            raise RequestError(f"{path}: is {name!r} one of the dimensions {chosen[0]} to {chosen[-1]}? rename it")
    for before, number, name in zip(numbers, numbers[1:], chosen[1:], strict=False):
        if number != before + 1:
            raise RequestError(
                f"{path}: the dimensions {chosen[0]} to {chosen[-1]} have no consecutive numbers: {name} comes after "
                f"{before}; rename the columns that are no dimensions, or number all dimensions"
            )


def _bare_prefix(name: str) -> str | None:
    """Return the prefix of a dimension's name, without case and signs around the name: `e` of ``# E0``."""
    parts = _parts(EDGES.sub("", name).casefold())
    return parts[0] if parts else None


def _parts(name: str) -> tuple[str, int] | None:
    """Return the prefix and the number of a dimension's name; None of another name."""
    match = DIMENSION.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
