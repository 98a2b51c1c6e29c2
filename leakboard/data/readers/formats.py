"""The formats of tables: CSV, TSV, Parquet, Arrow and JSON Lines, each read row by row.

A name with dots (``payload.gender``) is looked up in nested objects and structs, unless a column has just that name.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakboard.data.readers.vector_databases import Row, Source, StoreAddress
from leakboard.errors import RequestError, nearest

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Row", "arrow_batches", "flat_types", "flattened", "look_up", "open_rows"]

OTHER_FORMATS = {
    b"\x1f\x8b": "compressed by gzip",
    b"PK\x03\x04": "a zip archive, as xlsx files are",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"PAR1": "Parquet",
}
"""What files are that are called CSV but begin with these bytes."""
RowReader = Callable[[Path, Sequence[str] | None], Iterator[Row | str]]


def open_rows(path: Source, columns: Sequence[str] | None, delimiter: str | None = None) -> Iterator[Row | str]:
    """Return the rows of a file in order, each with these columns; a row that is a string says why there is none.

    Args:
        path: the file, whose suffix tells the format, or a collection of a vector store.
        columns: names, with dots for nested ones; None: the rows as they are.
        delimiter: of CSV files, where it is not what the file's name says (a comma; of TSV files a tab).

    Raises:
        RequestError: unknown format, missing column, or malformed file.
    """
    if isinstance(path, StoreAddress):
        return (_chosen(row, columns) for row in path.rows())
    readers: dict[str, RowReader] = {
        ".csv": partial(_read_csv, delimiter=delimiter or ","),
        ".tsv": partial(_read_csv, delimiter=delimiter or "\t"),
        ".parquet": _read_arrow,
        ".arrow": _read_arrow,
        ".feather": _read_arrow,
        ".jsonl": _read_jsonl,
    }
    try:
        return readers[path.suffix.lower()](path, columns)
    except KeyError:
        raise RequestError(f"{path}: unknown format {path.suffix!r} (allowed: {', '.join(readers)})") from None


def flattened(row: Row, prefix: str = "") -> Row:
    """Return a row with the values of nested objects under names with dots."""
    flat: Row = {}
    for name, value in row.items():
        flat |= flattened(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def look_up(row: Row, name: str) -> Any:
    """Return a column of a row, or of the objects nested in it.

    Raises:
        KeyError: there is none.
    """
    if name in row:
        return row[name]
    for position in (position for position, letter in enumerate(name) if letter == "."):
        if isinstance(inner := row.get(name[:position]), dict):
            with suppress(KeyError):
                return look_up(inner, name[position + 1 :])
    raise KeyError(name)


def _require(path: Path, columns: Sequence[str], present: Iterable[str]) -> None:
    names = [str(name) for name in present]
    if not names:
        raise RequestError(f"{path}: empty, no column names")
    for column in columns:
        if names.count(column) > 1:
            raise RequestError(f"{path}: {names.count(column)} columns are named {column!r}")
        if column not in names:
            raise RequestError(f"{path}: no column {column!r} (there are: {', '.join(names)}){nearest(column, names)}")


def _read_csv(path: Path, columns: Sequence[str] | None, delimiter: str) -> Iterator[Row | str]:
    with path.open("rb") as beginning:
        first = beginning.read(1024)
    for bytes_, what in OTHER_FORMATS.items():
        if first.startswith(bytes_):
            raise RequestError(f"{path}: is {what}, not CSV in UTF-8")
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        reader = csv.DictReader(stream, delimiter=delimiter, strict=True)
        try:
            _require(path, columns or (), reader.fieldnames or ())
            for row in reader:
                extra = row.pop(None, None)  # type: ignore[call-overload]
                if extra:
                    yield f"{len(extra)} fields too many"
                elif None in row.values():
                    yield "too few fields"
                else:
                    yield row
        except csv.Error as error:
            # DictReader counts the lines of whole rows only: the row at fault begins on the next.
            raise RequestError(f"{path}: line {reader.line_num + 1}: {error}") from None


def _read_jsonl(path: Path, columns: Sequence[str] | None) -> Iterator[Row | str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
        for line in stream:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield f"not JSON ({error})"
                continue
            yield _chosen(row, columns) if isinstance(row, dict) else f"a JSON {type(row).__name__}, not an object"


def _chosen(row: Row, columns: Sequence[str] | None) -> Row | str:
    """Return these columns of a row, or say which is missing."""
    if columns is None:
        return row
    chosen = {}
    for column in columns:
        try:
            chosen[column] = look_up(row, column)
        except KeyError:
            return f"{column} is missing{nearest(column, flattened(row))}"
    return chosen


def _read_arrow(path: Path, columns: Sequence[str] | None) -> Iterator[Row | str]:
    import pyarrow

    kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
    try:
        schema, batches = arrow_batches(path, columns)
        nested = [name for name in flat_types(schema) if name not in schema.names]
        _require(path, columns or (), [*schema.names, *nested])
        for batch in batches:
            try:
                rows: list[Any] = batch.to_pylist()
            except UnicodeDecodeError:
                rows = [_one_row(batch.slice(i, 1)) for i in range(batch.num_rows)]
            yield from (row if isinstance(row, str) else _chosen(row, columns) for row in rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise RequestError(f"{path}: not a readable {kind} file ({' '.join(str(error).split())[:120]})") from None


def _one_row(batch: pyarrow.RecordBatch) -> Row | str:
    """Return the one row of a batch."""
    try:
        return batch.to_pylist()[0]  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return "bytes that are not UTF-8"


def arrow_batches(path: Path, columns: Sequence[str] | None) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
    """Return the schema of a Parquet or Arrow file (IPC file, Feather or stream), and its batches in order.

    The batches have the outermost columns that these names lie in; None: all.
    """
    import pyarrow
    import pyarrow.parquet

    def outermost(schema: pyarrow.Schema) -> list[str]:
        tops = [name for name in schema.names for c in columns or () if c == name or c.startswith(f"{name}.")]
        return schema.names if columns is None else list(dict.fromkeys(tops))

    if path.suffix.lower() == ".parquet":
        file = pyarrow.parquet.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(columns=outermost(file.schema_arrow))
    source = pyarrow.memory_map(str(path))
    try:
        reader = pyarrow.ipc.open_file(source)
        batches: Iterable[pyarrow.RecordBatch] = map(reader.get_batch, range(reader.num_record_batches))
    except pyarrow.ArrowInvalid:
        source.seek(0)
        batches = reader = pyarrow.ipc.open_stream(source)
    return reader.schema, (batch.select(outermost(reader.schema)) for batch in batches)


def flat_types(schema: pyarrow.Schema) -> dict[str, pyarrow.DataType]:
    """Return the types of a schema's columns, those in structs under names with dots."""
    import pyarrow

    flat: dict[str, pyarrow.DataType] = {}
    for field in schema:
        nested = flat_types(pyarrow.schema(list(field.type))) if pyarrow.types.is_struct(field.type) else None
        flat |= {f"{field.name}.{n}": t for n, t in nested.items()} if nested else {field.name: field.type}
    return flat
