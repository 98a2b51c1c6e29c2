"""Reading vectors that somebody already has: arrays of NumPy, and tables of every format, each row with its vector.

In a table the vectors are a column of lists (in CSV a JSON list in a field), or one column a dimension: names that
share a prefix and end in a number, as ``e0`` to ``e383``. What is no finite number is refused with file and row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from leakboard.data.readers.formats import arrow_batches, flat_types, flattened, open_rows
from leakboard.data.readers.in_memory import InMemory
from leakboard.data.readers.memory import check_expanded, free_memory
from leakboard.data.readers.vector_columns import Kind, id_column, no_column, vector_columns
from leakboard.data.readers.vector_databases import Source, StoreAddress
from leakboard.errors import RequestError, one_line
from leakboard.interfaces import Floats

Read = tuple[Sequence[Any] | None, np.ndarray]
"""Ids as they are written, and numbers (n, d)."""

NO_ARRAY = ("magic string", "Python objects", "pickle")
"""What NumPy says of a file that holds no array of numbers; it would advise to unpickle it."""


def read_vectors(path: Source, column: str | None = None, id: str | None = None) -> tuple[Sequence[Any] | None, Floats]:
    """Return the ids of a file's vectors, as they are written, and the vectors, float32 (n, d).

    Args:
        path: npy, npz, Parquet, Arrow, Feather, CSV, TSV or JSON Lines, or a collection of a vector store.
        column: array of an npz, column of lists, or prefix of columns of one dimension each; None: the one there is.
        id: column or array of the ids; None: the one called ``id``, and no ids where there is none.

    Raises:
        RequestError: the file is missing or malformed, has no such column, not one finite vector a row, or would
            expand to more than memory holds.
    """
    if isinstance(path, Path) and path.suffix.lower() not in READERS:
        raise RequestError(f"{path}: unknown format {path.suffix!r} (allowed: {', '.join(READERS)})")
    try:
        if isinstance(path, InMemory):
            ids, vectors = None, path.content
        elif isinstance(path, StoreAddress):
            ids, vectors = _read_rows(path, column, id)
        else:
            ids, vectors = READERS[path.suffix.lower()](path, column, id)
    except RequestError:
        raise
    except FileNotFoundError:
        raise RequestError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError, TypeError, MemoryError, BadZipFile) as error:
        is_none = any(word in str(error) for word in NO_ARRAY)
        reason = "no array of numbers" if is_none else one_line(error)
        raise RequestError(f"{path}: cannot be read ({reason})") from None
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise RequestError(
            f"{path}: {vectors.dtype} array of shape {vectors.shape}; allowed: numbers of shape (rows, d), d from 1 on"
        )
    if ids is not None and len(ids) != len(vectors):
        raise RequestError(f"{path}: {len(ids)} ids of {len(vectors)} vectors")
    with np.errstate(over="ignore"):
        vectors = np.asarray(vectors, np.float32)
    finite = np.isfinite(vectors).all(1)
    if not finite.all():
        count = int((~finite).sum())
        raise RequestError(
            f"{path}: {count} of {len(vectors)} vectors hold NaN or infinity; the first is row {finite.argmin() + 1}"
        )
    return ids, vectors


def column_names(path: Source) -> Sequence[str]:
    """Return the names of a table's columns, or of an npz file's arrays; none of a bare or unreadable file.

    Raises:
        RequestError: the format is unknown, or the vector store cannot be read.
    """
    if isinstance(path, Path) and path.suffix.lower() == ".npy":
        return ()
    try:
        if isinstance(path, Path) and path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as file:
                return list(file.files)
        first = next(open_rows(path, None), None)
    except (OSError, ValueError, EOFError, BadZipFile):
        return ()
    return list(flattened(first)) if isinstance(first, dict) else ()


def _read_npy(path: Path, column: str | None, id: str | None) -> Read:
    if column or id:
        raise RequestError(f"{path}: a npy file has no column {column or id!r}")
    mapped = np.lib.format.open_memmap(path, "r")  # its header claims no more than the file has
    check_expanded(path, mapped.nbytes)
    return None, np.array(mapped)


def _read_npz(path: Path, column: str | None, id: str | None) -> Read:
    with np.load(path, allow_pickle=False) as file:
        id = id_column(path, file.files, id)
        names = [name for name in file.files if name != id]
        name = names[0] if column is None and len(names) == 1 else column
        if name not in names:
            raise no_column(path, name, names, names)
        members = [_member(file, each) for each in (name, id) if each]
        check_expanded(path, sum(m.file_size for m in members), sum(m.compress_size for m in members))
        return (file[id].tolist() if id else None), np.asarray(file[name])


def _member(file: Any, name: str) -> ZipInfo:
    """Return what the directory of an npz says of an array."""
    archive: ZipFile = file.zip
    return archive.getinfo(name if name in archive.namelist() else f"{name}.npy")


def _read_rows(path: Source, column: str | None, id: str | None) -> Read:
    first = next(open_rows(path, None), None)
    if not isinstance(first, dict):
        raise RequestError(f"{path}: row 1: {first}" if first else f"{path}: no rows")
    flat = flattened(first)
    id = id_column(path, flat, id)
    columns = vector_columns(path, {name: _kind(value) for name, value in flat.items()}, column, id)
    ids: list[Any] = []
    vectors: list[np.ndarray] = []
    for number, row in enumerate(open_rows(path, [*columns, *([id] if id else [])]), 1):
        if isinstance(row, str):
            raise RequestError(f"{path}: row {number}: {row}")
        try:
            vectors.append(_vector([row[name] for name in columns], columns))
        except ValueError as error:
            raise RequestError(f"{path}: row {number}: {error}") from None
        if vectors[-1].shape != vectors[0].shape:
            raise _other_width(path, number, len(vectors[-1]), len(vectors[0]))
        ids.append(row[id] if id else None)
    return (ids if id else None), np.stack(vectors)


def _vector(values: Sequence[Any], columns: Sequence[str]) -> np.ndarray:
    """Return the vector in a row's fields, float64 (d,).

    Raises:
        ValueError: says what is there instead.
    """
    if len(columns) == 1:
        values = _parsed(values[0])
        if not isinstance(values, list) or not values:
            raise ValueError(f"{columns[0]} is {_shown(values)}; allowed: a list of numbers")
    names = columns if len(columns) > 1 else [columns[0]] * len(values)
    return np.array([_number(name, value) for name, value in zip(names, values, strict=True)])


def _number(name: str, value: Any) -> float:
    if value is None or isinstance(value, bool | list | dict):
        raise ValueError(f"{name} holds {_shown(value)}; allowed: numbers")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} holds {_shown(value)}; allowed: numbers up to 1e308") from None
    except ValueError:
        raise ValueError(f"{name} holds {_shown(value)}; allowed: numbers") from None


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _kind(value: Any) -> Kind:
    parsed = _parsed(value)
    if isinstance(parsed, list):
        is_vector = bool(parsed) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in parsed)
        return "vector" if is_vector else "other"
    return "number" if isinstance(parsed, int | float) and not isinstance(parsed, bool) else "other"


def _read_arrow(path: Path, column: str | None, id: str | None) -> Read:
    import pyarrow

    try:
        schema, _ = arrow_batches(path, None)
        types = flat_types(schema)
        id = id_column(path, types, id)
        columns = vector_columns(path, {name: _arrow_kind(kind) for name, kind in types.items()}, column, id)
        schema, batches = arrow_batches(path, [*columns, *([id] if id else [])])
        table = pyarrow.Table.from_batches(list(_within_memory(path, batches)))
        ids = _arrow_column(table, id).to_pylist() if id else None
        arrays = [_arrow_column(table, name) for name in columns]
        if _arrow_kind(types[columns[0]]) == "vector":
            return ids, _from_lists(path, columns[0], arrays[0])
        return ids, np.stack([array.to_numpy(zero_copy_only=False) for array in arrays], axis=1)
    except pyarrow.ArrowException as error:
        raise ValueError(error) from None


def _within_memory(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches as long as memory holds them."""
    size, free = 0, free_memory()
    for batch in batches:
        size += batch.nbytes
        check_expanded(path, size, free=free)
        yield batch


def _arrow_kind(kind: Any) -> Kind:
    from pyarrow import types

    def is_number(kind: Any) -> bool:
        return bool(types.is_floating(kind) or types.is_integer(kind))

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "vector" if is_number(kind.value_type) else "other"
    return "number" if is_number(kind) else "other"


def _arrow_column(table: Any, name: str) -> Any:
    """Return a column of a table, or of the structs in it, as one array."""
    import pyarrow.compute

    if name in table.column_names:
        return table[name].combine_chunks()
    top = max((top for top in table.column_names if name.startswith(f"{top}.")), key=len)
    array = _arrow_column(table, top)
    return pyarrow.compute.struct_field(array, name.removeprefix(f"{top}.").split("."))


def _from_lists(path: Path, name: str, lists: Any) -> np.ndarray:
    import pyarrow.compute

    widths = pyarrow.compute.fill_null(pyarrow.compute.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    if not len(widths):
        raise RequestError(f"{path}: no rows")
    if (widths == 0).any():
        raise RequestError(f"{path}: row {(widths == 0).argmax() + 1}: {name} is empty; allowed: a list of numbers")
    if (other := widths != widths[0]).any():
        raise _other_width(path, int(other.argmax()) + 1, int(widths[other.argmax()]), int(widths[0]))
    return np.asarray(lists.flatten().to_numpy(zero_copy_only=False)).reshape(len(widths), widths[0])


def _other_width(path: Source, row: int, width: int, first: int) -> RequestError:
    return RequestError(f"{path}: row {row} has a vector of {width} numbers, row 1 one of {first}")


READERS: Mapping[str, Callable[[Path, str | None, str | None], Read]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_arrow,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".csv": _read_rows,
    ".tsv": _read_rows,
    ".jsonl": _read_rows,
}
"""The reader of each format, by the file's suffix."""
