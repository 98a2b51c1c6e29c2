"""Check arrays, frames, series, tables, tensors and lists that a user gives, and join them row by row.

Row i of everything belongs together. Pandas objects with an index of their own must have the same one: frames that
were sorted or filtered differently would silently be joined wrongly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakboard.data.classes import about_kind, about_spelling, check_names, is_measurement, listed
from leakboard.data.readers.tabular import clean_category, clean_id, clean_text
from leakboard.data.readers.vector_columns import DIMENSION
from leakboard.data.readers.vectors import require_digits
from leakboard.errors import RequestError, one_line

ROLES = ("text", "label", "user", "document", "id")
"""Columns of the table that are not secrets."""
RESERVED = (*ROLES, "row", "split", "file")


@dataclass(frozen=True)
class Column:
    """An argument of the user, with its name in messages."""

    name: str
    values: Any
    index: pd.Index | None = None
    """Index of a pandas object."""

    def __len__(self) -> int:
        return len(self.values)

    def at(self, rows: NDArray[np.int64]) -> Column:
        """Return these rows; an index that only numbers rows is gone."""
        values = self.values[rows] if isinstance(self.values, np.ndarray) else [self.values[row] for row in rows]
        return Column(self.name, values, self.index[rows] if self.index is not None and _is_own(self) else None)


def matrix(name: str, given: Any, rows: int) -> NDArray[np.float32]:
    """Return numbers, float32 (rows, e), that a user's function gave.

    Raises:
        RequestError: they are no finite numbers, or have another number of rows.
    """
    column = _matrix(name, given, {})
    if len(column) != rows:
        raise RequestError(f"{name}: {len(column)} rows, but there are {rows} texts")
    return _finite(column, None)


class Gathered(NamedTuple):
    """What a user gives, joined row by row."""

    vectors: dict[str, NDArray[np.float32]]
    """float32 (n, d) each."""
    frame: pd.DataFrame
    """The secrets and the given `ROLES`, as strings."""
    dropped: int
    """Number of rows that were left out."""
    names: list[str]
    """Id of each row, else its label in a pandas index, else its number in what was given."""


def gather(
    vectors: Mapping[str, Any],
    secrets: Any,
    *,
    labels: Any = None,
    texts: Any = None,
    users: Any = None,
    documents: Any = None,
    ids: Any = None,
    drop_missing: bool = False,
) -> Gathered:
    """Join what a user gives, row by row.

    Args:
        vectors: of one or several releases, by the name that messages use.
        secrets: as `leakboard.evaluate` takes them, and all others likewise; None: there are none.
        labels: of the task.
        texts: of the rows.
        users: who wrote each text.
        documents: the document that each text is a part of.
        ids: of the rows.
        drop_missing: leave out rows that lack a secret or a role, instead of refusing them.

    Raises:
        RequestError: lengths or indexes differ, a number or a class is missing, or a secret cannot be guessed.
    """
    named = _secrets(secrets) if secrets is not None else {}
    matrices = [_matrix(name, given, named) for name, given in vectors.items()]
    arguments = {
        "label": ("labels", labels),
        "text": ("texts", texts),
        "user": ("users", users),
        "id": ("ids", ids),
        "document": ("documents", documents),
    }
    given = {
        role: _column(name, value, role == "label") for role, (name, value) in arguments.items() if value is not None
    }
    rows = [*matrices, *named.values(), *given.values()]
    _check_lengths(rows)
    total = len(matrices[0])
    numbers = np.arange(total)
    if drop_missing and (kept := _complete([*named.values(), *given.values()])) is not None:
        numbers = kept
        matrices = [matrix.at(kept) for matrix in matrices]
        named, given = ({name: column.at(kept) for name, column in part.items()} for part in (named, given))
        rows = [*matrices, *named.values(), *given.values()]
    if "id" in given:
        identifiers = _classes(given["id"], None, clean_id)
        rows.append(Column("ids", identifiers, pd.Index(identifiers)))
        _check_unique(identifiers)
    _check_indexes(rows, "id" in given)
    names = rows[-1].index if "id" in given else next((row.index for row in rows if _is_own(row)), None)
    finite = {matrix.name: _finite(matrix, names) for matrix in matrices}
    cleaners = {"text": clean_text, "document": clean_id, "id": clean_id}
    columns = {role: _classes(column, names, cleaners.get(role, clean_category)) for role, column in given.items()}
    if "label" in given and (complaint := about_kind(set(columns["label"]), "label", True)):
        raise RequestError(f"labels: {complaint}")
    columns |= {name: _secret(column, names) for name, column in named.items()}
    labels = numbers if names is None else names
    return Gathered(finite, pd.DataFrame(columns), total - len(numbers), list(map(str, labels)))


def _complete(columns: Sequence[Column]) -> NDArray[np.int64] | None:
    """Return the rows in which no column lacks a value, int64; None if there is no column.

    Raises:
        RequestError: there is no such row.
    """
    if not columns:
        return None
    lacks = np.any([[bool(np.all(pd.isna(value))) for value in column.values] for column in columns], axis=0)
    if lacks.all():
        raise RequestError(f"drop_missing: each of the {len(lacks)} rows lacks a value; allowed: rows that lack none")
    return np.flatnonzero(~lacks)


def _matrix(name: str, given: Any, secrets: Mapping[str, Column]) -> Column:
    plain = _plain(name, given)
    index = _index(plain)
    if isinstance(plain, pd.DataFrame):
        _require_dimensions(name, plain, secrets)
    if isinstance(plain, pd.DataFrame) and plain.shape[1] == 1 and pd.api.types.is_object_dtype(plain.dtypes.iloc[0]):
        plain = plain.iloc[:, 0]  # a column of lists
    if isinstance(plain, pd.Series):
        plain = plain.tolist()
    if np.ma.is_masked(plain):
        row = int(np.argwhere(np.ma.getmaskarray(plain))[0, 0])
        raise RequestError(f"{name}: row {row} has masked numbers; allowed: numbers")
    if isinstance(plain, np.ndarray) and plain.dtype == object and plain.ndim == 1:
        plain = plain.tolist()
    if isinstance(plain, list | tuple):
        plain = [_plain(name, row) for row in plain]
    try:
        values = np.asarray(plain)
        if values.dtype == object and isinstance(plain, pd.DataFrame):
            values = plain.to_numpy(np.float64, na_value=np.nan)
        elif values.dtype == object:
            values = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise RequestError(
            f"{name}: {_kind(given)} does not hold one vector of numbers a row, all of one length"
        ) from None
    if values.ndim != 2 or not values.size or values.dtype.kind not in "fiub":
        raise RequestError(f"{name}: {values.dtype} of shape {values.shape} is not allowed: numbers of shape (rows, d)")
    return Column(name, values, index)


def _require_dimensions(name: str, frame: pd.DataFrame, secrets: Mapping[str, Column]) -> None:
    """Refuse a frame of vectors with a column that is no dimension: a role, a date, or one beside numbered dimensions.

    Next to ``e0``, ``e1``, ... the columns ``index`` and ``Unnamed: 0`` are numbers of rows. They may tell a secret by
    which the table is sorted.
    """
    prefixes = [match[1] if (match := DIMENSION.fullmatch(str(column))) else None for column in frame.columns]
    (family, size), *_ = Counter(filter(lambda prefix: prefix is not None, prefixes)).most_common(1) or [(None, 0)]
    if taken := [column for column in frame.columns if isinstance(column, str) and column in secrets]:
        raise RequestError(f"{name}: the column {taken[0]!r} is a secret and would be a dimension, too; drop it")
    for column, prefix, dtype in zip(frame.columns, prefixes, frame.dtypes, strict=True):
        if column in RESERVED or dtype.kind in "mM" or (size > 1 and prefix != family):
            raise RequestError(
                f"{name}: the column {column!r} is no dimension; drop it, or give it as an argument of its own"
            )


def _secrets(given: Any) -> dict[str, Column]:
    plain = _plain("secrets", given)
    if isinstance(plain, pd.Series):
        plain = plain.to_frame(str(plain.name) if plain.name is not None else "secret")
    if isinstance(plain, Mapping | pd.DataFrame):
        columns = {str(name): _column(f"secrets[{str(name)!r}]", plain[name], True) for name in plain}
        if len(columns) < len(list(plain)):
            raise RequestError(f"secrets: two columns have one name: {', '.join(map(str, plain))}")
    else:
        raise RequestError(
            f"secrets: {_kind(given)} is not allowed: a frame, a mapping of names to columns, or a named series"
        )
    if not columns:
        raise RequestError("secrets: there is no column; allowed: at least one column of classes")
    check_names(columns, "secrets")
    if taken := [name for name in columns if name in RESERVED]:
        raise RequestError(
            f"secrets: {taken[0]!r} has another meaning in a table; rename the column (not {', '.join(RESERVED)})"
        )
    return columns


def _column(name: str, given: Any, are_classes: bool = False) -> Column:
    plain = _plain(name, given)
    if isinstance(plain, pd.DataFrame) and plain.shape[1] == 1:
        plain = plain.iloc[:, 0]
    if isinstance(plain, str | bytes | Mapping | set | frozenset | pd.DataFrame) or not hasattr(plain, "__len__"):
        raise RequestError(f"{name}: {_kind(given)} is not one column")
    values = plain.tolist() if hasattr(plain, "tolist") else list(plain)
    if are_classes and isinstance(values, list) and getattr(plain, "ndim", 1) == 1:
        values = [listed(value) for value in values]
    if not isinstance(values, list) or any(isinstance(value, list) for value in values[:1]):
        raise RequestError(f"{name}: {_kind(given)} of shape {np.shape(given)} is not one column")
    return Column(name, values, _index(plain))


def _plain(name: str, given: Any) -> Any:
    """Return pandas for Arrow and Polars, NumPy for tensors and sparse matrices, and anything else as it is."""
    if all(hasattr(given, name) for name in ("detach", "cpu", "to_dense", "numpy")):
        return _array(name, given)
    convert = getattr(given, "toarray", None) or getattr(given, "to_pandas", None)
    return convert() if convert else given


def _array(name: str, tensor: Any) -> NDArray[Any]:
    """Return a torch tensor as an array, also one with gradients, a sparse one, or one of a type that NumPy lacks."""
    try:
        dense = tensor.detach().cpu().to_dense()
        try:
            return np.asarray(dense.numpy())
        except TypeError:  # bfloat16
            return np.asarray(dense.float().numpy())
    except RuntimeError as error:  # of the device "meta", or quantised
        shown = f"a tensor of {tensor.dtype} on {tensor.device} has no plain numbers"
        raise RequestError(f"{name}: {shown} ({one_line(error)})") from None


def _index(plain: Any) -> pd.Index | None:
    index = getattr(plain, "index", None)
    return index if isinstance(index, pd.Index) else None


def _kind(given: Any) -> str:
    return f"a {type(given).__name__}"


def _check_lengths(rows: list[Column]) -> None:
    first = rows[0]
    for column in rows[1:]:
        if len(column) != len(first):
            raise RequestError(f"{column.name}: {len(column)} rows, but {first.name} has {len(first)}")


def _check_indexes(rows: list[Column], last_is_ids: bool) -> None:
    """Refuse pandas objects with other rows, or with the same in another order.

    An index that only numbers the rows in order says nothing, unless another one has numbers, too, and other ones.
    """
    of_pandas = rows[:-1] if last_is_ids else rows  # ids may be any numbers
    is_moved = any(_is_own(row) and _has_numbers(row.index) for row in of_pandas)
    compared = [row for row in rows if _is_own(row) or (is_moved and row.index is not None)]
    indexed = [(row.name, list(map(str, row.index))) for row in compared if row.index is not None]
    for name, labels in indexed[1:]:
        first, expected = indexed[0]
        if labels == expected:
            continue
        row = next(i for i, (a, b) in enumerate(zip(expected, labels, strict=True)) if a != b)
        same = sorted(expected) == sorted(labels)
        advice = "the same rows in another order: bring both into one" if same else "they hold other rows"
        advice += "; if row i belongs to row i, call reset_index(drop=True)"
        raise RequestError(f"{name}: row {row} is {labels[row]!r}, but in {first} it is {expected[row]!r}; {advice}")


def _is_own(row: Column) -> bool:
    """Return whether an object has an index that does not only number its rows in order."""
    return row.index is not None and not row.index.equals(pd.RangeIndex(len(row.index)))


def _has_numbers(index: pd.Index | None) -> bool:
    """Return whether a label of an index is a number; of an index with several levels, a part of a label."""
    if index is None:
        return False
    levels = index.levels if isinstance(index, pd.MultiIndex) else [index]
    return any(isinstance(label, Number) or str(label).isdecimal() for level in levels for label in level)


def _check_unique(ids: list[str]) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if (earlier := first.setdefault(name, row)) != row:
            raise RequestError(f"ids: rows {earlier} and {row} have the same id, {name!r}")


def _finite(matrix: Column, names: pd.Index | None) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        vectors = np.asarray(matrix.values, np.float32)
    bad = ~np.isfinite(vectors)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        number, count = matrix.values[row, column], int(bad.any(axis=1).sum())
        raise RequestError(
            f"{matrix.name}: {_row(row, names)}: {number} in column {column}; {count} rows are not finite as float32"
        )
    require_digits(matrix.values, vectors, matrix.name)
    return vectors


def _secret(column: Column, names: pd.Index | None) -> list[str]:
    values = _classes(column, names)
    classes = sorted(set(values))
    if complaint := about_kind(classes, column.name.removeprefix("secrets['").removesuffix("']")):
        raise RequestError(f"{column.name}: {complaint}")
    if len(classes) == 1:
        raise RequestError(f"{column.name}: it has one value only, {classes[0]!r}: nothing can be guessed")
    if complaint := about_spelling(classes):
        raise RequestError(f"{column.name}: {complaint}")
    if is_measurement(classes):
        raise RequestError(
            f"{column.name}: {len(classes)} values, most of them numbers; make classes of them first, as "
            "pandas.cut(ages, [0, 30, 45, 120]) does"
        )
    return values


def _classes(column: Column, names: pd.Index | None, clean: Any = clean_category) -> list[str]:
    result = []
    for row, value in enumerate(column.values):
        value = None if pd.api.types.is_scalar(value) and pd.isna(value) else value
        value = value.item() if isinstance(value, np.generic) else value
        value = str(value) if isinstance(value, pd.Interval) else value
        try:
            result.append(str(clean(value, "it")))
        except ValueError as error:
            hint = "; drop_missing=True leaves such rows out" if value is None else ""
            raise RequestError(f"{column.name}: {_row(row, names)}: {error}{hint}") from None
    return result


def _row(row: int, names: pd.Index | None) -> str:
    return f"row {row}" if names is None else f"row {row} ({names[row]!r})"
