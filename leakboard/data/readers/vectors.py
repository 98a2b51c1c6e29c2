"""Read the user's own vectors: NumPy arrays, and tables of every format with a vector in each row.

In a table the vectors are a column of lists (in CSV a JSON list in a field), or one column for each dimension: names
with the same prefix that end in a number, as ``e0`` to ``e383``. Values that are not finite numbers are refused with
file and row: a dimension is never left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from leakboard.data.readers.arrow import column_of, flat_types, read_batches, rows_of
from leakboard.data.readers.formats import flattened, open_rows, reader_of
from leakboard.data.readers.in_memory import InMemory
from leakboard.data.readers.memory import check_expanded, free_memory
from leakboard.data.readers.vector_columns import Kind, find_columns, numbers_left_out
from leakboard.data.readers.vector_databases import Source
from leakboard.errors import RequestError, one_line
from leakboard.interfaces import Floats

Result = tuple[Sequence[Any] | None, np.ndarray]
"""Ids as they are in the file, and numbers (n, d)."""

LOST = 0.01
"""Largest rounding error of a number as float32, as a share of its column's range."""
NO_ARRAY = ("magic string", "Python objects", "pickle")
"""Parts of NumPy's messages about a file without an array of numbers; they would advise to unpickle it."""

LIST = re.compile(r"\s*\[\s*[-+.\d]")
"""Start of a list of numbers."""


def read_vectors(path: Source, column: str | None = None, id: str | None = None) -> tuple[Sequence[Any] | None, Floats]:
    """Return the ids of a file's vectors, as they are in the file, and the vectors, float32 (n, d).

    Args:
        path: npy, npz, Parquet, Arrow, Feather, CSV, TSV or JSON Lines, a collection of a vector database, or an array
            in memory.
        column: array of an npz, column of lists, or prefix of columns of one dimension each; None: the only possible
            one.
        id: column or array of the ids; None: the one called ``id``, or no ids if there is none.

    Raises:
        RequestError: the file is missing or malformed, lacks the column, has a row without a finite vector, or would
            expand to more than memory holds.
    """
    read = reader_of(path, READERS) if isinstance(path, Path) else _read_rows
    try:
        ids, vectors = (None, path.content) if isinstance(path, InMemory) else read(path, column, id)
    except RequestError:
        raise
    except FileNotFoundError:
        raise RequestError(f"{path}: no such file") from None
    except (
        OSError,
        ValueError,
        EOFError,
        TypeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
        BadZipFile,
    ) as error:
        has_no_array = any(part in str(error) for part in NO_ARRAY)
        reason = "no array of numbers" if has_no_array else one_line(error)
        if "Object arrays" in str(error):
            reason = "an array holds Python objects; allowed: numbers, and text for ids, as in ids.to_numpy(dtype=str)"
        raise RequestError(f"{path}: cannot be read ({reason})") from None
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not vectors.shape[1]:
        raise RequestError(
            f"{path}: {vectors.dtype} array of shape {vectors.shape}; allowed: numbers of shape (rows, d), d from 1 on"
        )
    if ids is not None and len(ids) != len(vectors):
        raise RequestError(f"{path}: {len(ids)} ids of {len(vectors)} vectors")
    given = vectors
    with np.errstate(over="ignore"):
        vectors = np.asarray(vectors, np.float32)
    finite = np.isfinite(vectors).all(1)
    if not finite.all():
        count = int((~finite).sum())
        raise RequestError(
            f"{path}: {count} of {len(vectors)} vectors hold NaN, infinity or numbers beyond float32; the first is "
            f"row {finite.argmin() + 1}"
        )
    require_digits(given, vectors, str(path))
    return ids, vectors


def require_digits(given: NDArray[Any], vectors: Floats, place: str) -> None:
    """Refuse numbers that are hardly different from each other as float32: a large offset, or a scale near 0.

    Args:
        given: the numbers as they were given, (n, d).
        vectors: the same as float32, finite.
        place: name for the message.

    Raises:
        RequestError: a column's rounding errors exceed `LOST` of its range.
    """
    if (given.dtype.kind == "f" and given.dtype.itemsize <= 4) or not len(given):
        return
    for column in range(given.shape[1]):
        numbers = given[:, column].astype(np.float64)
        error = float(np.abs(numbers - vectors[:, column]).max())
        if error > LOST * (numbers.max() - numbers.min()) > 0:
            raise RequestError(
                f"{place}: column {column}: numbers from {numbers.min():.6g} to {numbers.max():.6g} lose their digits "
                "as float32; subtract their mean, or scale them"
            )


def shape_of(path: Source) -> tuple[int, int] | None:
    """Return the number of vectors and dimensions of a file, without reading all of it; None: unknown.

    Of a table, each line is a vector, and each number of the first row a dimension; so both may be a few too many.
    """
    try:
        if isinstance(path, InMemory):
            rows, dimensions = path.content.shape
        elif not isinstance(path, Path) or path.suffix.lower() not in (".npy", ".parquet", ".csv", ".tsv", ".jsonl"):
            return None
        elif path.suffix.lower() == ".npy":
            rows, dimensions = np.lib.format.open_memmap(path, "r").shape
        else:
            first = next(open_rows(path, None))
            values = first.values() if isinstance(first, dict) else ()
            parts = map(_parsed, values)
            dimensions = sum(len(part) if isinstance(part, list) else _kind(part) == "number" for part in parts)
            rows = _count_rows(path)
    except (OSError, ValueError, StopIteration):
        return None
    return int(rows), int(dimensions)


def _count_rows(path: Path) -> int:
    if path.suffix.lower() == ".parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            return int(file.metadata.num_rows)
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def column_names(path: Source) -> Sequence[str]:
    """Return the names of a table's columns, or of an npz file's arrays; none if the file is an npy or unreadable.

    Raises:
        RequestError: the format is unknown, or the vector database cannot be read.
    """
    if isinstance(path, Path) and path.suffix.lower() == ".npy":
        return ()
    try:
        if isinstance(path, Path) and path.suffix.lower() == ".npz":
            with _open_npz(path) as file:
                return list(file.files)
        first = next(open_rows(path, None), None)
    except (OSError, ValueError, EOFError, BadZipFile):
        return ()
    return list(flattened(first)) if isinstance(first, dict) else ()


def columns_of_numbers(path: Source, column: str | None, id: str | None) -> tuple[list[str], list[str]]:
    """Return the columns that `read_vectors` reads as vectors, and other columns of numbers next to several such.

    The file is one that `read_vectors` has read. There are none in arrays, which have no columns.
    """
    if isinstance(path, InMemory) or (isinstance(path, Path) and path.suffix.lower() in (".npy", ".npz")):
        return [], []
    if isinstance(path, Path) and READERS.get(path.suffix.lower()) is _read_arrow:
        kinds = _arrow_kinds(flat_types(read_batches(path, None)[0]))
    else:
        kinds = _kinds(path)
    dimensions, id = find_columns(path, kinds, column, id)
    return dimensions, numbers_left_out(kinds, dimensions, id)


def _read_npy(path: Path, column: str | None, id: str | None) -> Result:
    if (name := id if column is None else column) is not None:
        raise RequestError(f"{path}: a npy file has no column {name!r}")
    mapped = np.lib.format.open_memmap(path, "r")  # refuses a header that claims more than the file has
    if path.stat().st_size > mapped.offset + mapped.nbytes:
        raise RequestError(f"{path}: more follows its array of shape {mapped.shape}; write one array to a file")
    check_expanded(path, mapped.nbytes)
    return None, np.array(mapped)


def _open_npz(path: Path) -> Any:
    file = np.load(path, mmap_mode="r", allow_pickle=False)  # an npy file is mapped, not read
    if isinstance(file, np.ndarray):
        raise RequestError(f"{path}: an npy file; name it .npy")
    return file


def _read_npz(path: Path, column: str | None, id: str | None) -> Result:
    with _open_npz(path) as file:
        (name,), id = find_columns(path, dict.fromkeys(file.files, "vector"), column, id)
        entries = file.zip.namelist()
        if len({*entries}) < len(entries):
            raise RequestError(f"{path}: two of its arrays have one name: {', '.join(sorted(file.files))}")
        members = [file.zip.getinfo(n if n in entries else f"{n}.npy") for n in (name, id) if n]
        check_expanded(path, sum(m.file_size for m in members), sum(m.compress_size for m in members))
        return (file[id].tolist() if id else None), np.asarray(file[name])


def _read_rows(path: Source, column: str | None, id: str | None) -> Result:
    columns, id = find_columns(path, _kinds(path), column, id)
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
        ValueError: a field has no number, or no list of numbers.
    """
    if len(columns) == 1:
        values = _parsed(values[0])
        if not isinstance(values, list) or not values:
            raise ValueError(f"{columns[0]} is {_shown(values)}; allowed: a list of numbers")
    names = columns if len(columns) > 1 else [columns[0]] * len(values)
    return np.array([_number(name, value) for name, value in zip(names, values, strict=True)])


def _number(name: str, value: Any) -> float:
    limit = ""
    try:
        if not isinstance(value, bool):
            return float(value)
    except OverflowError:
        limit = " up to 1e308"
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} holds {_shown(value)}; allowed: numbers{limit}")


def _parsed(value: Any) -> Any:
    """Return the JSON value in a text; a text that is not JSON, and any other value, as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _kinds(path: Source) -> dict[str, Kind]:
    """Return the kind of every column that occurs in some row: that of its first value that is not empty.

    Raises:
        RequestError: a row cannot be read, or there is none.
    """
    kinds: dict[str, Kind] = {}
    empty: list[str] = []
    for number, row in enumerate(open_rows(path, None), 1):
        if isinstance(row, str):
            raise RequestError(f"{path}: row {number}: {row}")
        values = flattened(row)
        empty += [name for name in values if name not in kinds] if values.keys() - kinds.keys() else []
        if empty:
            kinds |= {name: _kind(values.get(name)) for name in empty}
            empty = [name for name in empty if kinds[name] == "empty"]
    if not kinds:
        raise RequestError(f"{path}: no rows")
    return kinds


def _kind(value: Any) -> Kind:
    parsed = _parsed(value)
    if isinstance(parsed, list):
        kinds = {_kind(entry) for entry in parsed}
        return "empty" if kinds <= {"empty"} else "vector" if kinds <= {"number", "empty"} else "other"
    if parsed is None or parsed == "":
        return "empty"
    if isinstance(parsed, str) and LIST.match(parsed):
        return "vector"  # not JSON: refused with its row
    return "other" if isinstance(parsed, bool) or not _is_number(parsed) else "number"


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return True


def _arrow_kinds(types: Mapping[str, Any]) -> dict[str, Kind]:
    return {name: _arrow_kind(arrow_type) for name, arrow_type in types.items()}


def _read_arrow(path: Path, column: str | None, id: str | None) -> Result:
    import pyarrow

    try:
        types = flat_types(read_batches(path, None)[0])
        kinds = _arrow_kinds(types)
        columns, id = find_columns(path, kinds, column, id)
        _, batches = read_batches(path, [*columns, *([id] if id else [])])
        if not (kept := list(_within_memory(path, batches))):
            raise RequestError(f"{path}: no rows")
        table = pyarrow.Table.from_batches(kept)
        ids = rows_of(column_of(table, id)) if id else None
        arrays = [column_of(table, name) for name in columns]
        if kinds[columns[0]] == "vector":
            return ids, _from_lists(path, columns[0], arrays[0])
        for name in columns:
            if kinds[name] != "number":
                raise RequestError(f"{path}: column {name!r} holds {types[name]}; allowed: numbers")
        return ids, np.stack([_numbers(array) for array in arrays], axis=1)
    except pyarrow.ArrowException as error:
        raise ValueError(error) from None


def _within_memory(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches as long as memory holds them."""
    size, free = 0, free_memory()
    for batch in batches:
        size += batch.nbytes
        check_expanded(path, size, free=free)
        yield batch


def _arrow_kind(arrow_type: Any) -> Kind:
    from pyarrow import types

    def is_number(arrow_type: Any) -> bool:
        return bool(types.is_floating(arrow_type) or types.is_integer(arrow_type) or types.is_decimal(arrow_type))

    if types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type):
        return "vector" if is_number(arrow_type.value_type) else "other"
    return "number" if is_number(arrow_type) else "empty" if types.is_null(arrow_type) else "other"


def _numbers(array: Any) -> np.ndarray:
    """Return the numbers of an array of Arrow; NaN where one is missing."""
    import pyarrow

    is_decimal = pyarrow.types.is_decimal(array.type)
    return np.asarray((array.cast(pyarrow.float64()) if is_decimal else array).to_numpy(zero_copy_only=False))


def _from_lists(path: Path, name: str, lists: Any) -> np.ndarray:
    import pyarrow.compute

    widths = pyarrow.compute.fill_null(pyarrow.compute.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    if not len(widths):
        raise RequestError(f"{path}: no rows")
    if (widths == 0).any():
        raise RequestError(f"{path}: row {(widths == 0).argmax() + 1}: {name} is empty; allowed: a list of numbers")
    if (differs := widths != widths[0]).any():
        row = int(differs.argmax())
        raise _other_width(path, row + 1, int(widths[row]), int(widths[0]))
    return _numbers(lists.flatten()).reshape(len(widths), widths[0])


def _other_width(path: Source, row: int, width: int, first: int) -> RequestError:
    return RequestError(f"{path}: row {row} has a vector of {width} numbers, row 1 one of {first}")


READERS: Mapping[str, Callable[[Any, str | None, str | None], Result]] = {
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
