"""Read the rows of tables: CSV, TSV, Parquet, Arrow, JSON Lines, and collections of vector databases.

A name with dots (``payload.gender``) is looked up in nested objects and structs, unless a column has exactly this name.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from leakboard.data.readers.arrow import flat_types, read_batches, rows_of
from leakboard.data.readers.vector_databases import CollectionAddress, InputRow, Source
from leakboard.errors import RequestError, nearest

if TYPE_CHECKING:
    import pyarrow

Reader = TypeVar("Reader")

NOT_CSV = {
    b"\x1f\x8b": "compressed by gzip",
    b"PK\x03\x04": "a zip archive, as xlsx files are",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
    b"PAR1": "Parquet",
}
"""The true formats of files that are named ``.csv``, by their first bytes."""


def open_rows(path: Source, columns: Sequence[str] | None, delimiter: str | None = None) -> Iterator[InputRow | str]:
    """Yield the rows of a file in order, each with these columns; for an unreadable row, yield the reason as a string.

    Args:
        path: the file, whose suffix names the format, or a collection of a vector database.
        columns: names, with dots for nested ones; None: the rows as they are.
        delimiter: of CSV files; None: a comma, in TSV files a tab.

    Raises:
        RequestError: unknown format, missing column, or malformed file.
    """
    if isinstance(path, CollectionAddress):
        return (_choose(row, columns) for row in path.rows())
    readers: dict[str, Callable[[Path, Sequence[str] | None], Iterator[InputRow | str]]] = {
        ".csv": partial(_read_csv, delimiter=delimiter or ","),
        ".tsv": partial(_read_csv, delimiter=delimiter or "\t"),
        ".parquet": _read_arrow,
        ".arrow": _read_arrow,
        ".feather": _read_arrow,
        ".jsonl": _read_jsonl,
    }
    return reader_of(path, readers)(path, columns)


def reader_of(path: Path, readers: Mapping[str, Reader]) -> Reader:
    """Return the reader for a file's suffix.

    Raises:
        RequestError: there is none.
    """
    if reader := readers.get(path.suffix.lower()):
        return reader
    raise RequestError(f"{path}: unknown format {path.suffix!r} (allowed: {', '.join(readers)})")


def flattened(row: InputRow, prefix: str = "") -> InputRow:
    """Return a row with the values of nested objects under names with dots."""
    flat: InputRow = {}
    for name, value in row.items():
        flat |= flattened(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _look_up(row: InputRow, name: str) -> Any:
    """Return a column of a row, or of the objects nested in it.

    Raises:
        KeyError: there is none.
    """
    if name in row:
        return row[name]
    for position in (position for position, letter in enumerate(name) if letter == "."):
        if isinstance(inner := row.get(name[:position]), dict):
            with suppress(KeyError):
                return _look_up(inner, name[position + 1 :])
    raise KeyError(name)


def _choose(row: InputRow, columns: Sequence[str] | None) -> InputRow | str:
    """Return these columns of a row, or a string that names a missing one."""
    if columns is None:
        return row
    chosen = {}
    for column in columns:
        try:
            chosen[column] = _look_up(row, column)
        except KeyError:
            return f"{column} is missing{nearest(column, flattened(row))}"
    return chosen


def other_separator(names: Iterable[str]) -> str:
    """Return ``; they are separated by ';'`` if one name holds several; else an empty string."""
    joined, *others = names
    separator = next((sign for sign in ";\t|," if sign in joined), None)
    return f"; they are separated by {separator!r}" if separator and not others else ""


def _require(path: Path, columns: Sequence[str], present: Iterable[str]) -> None:
    """Raise a RequestError unless each of these columns is present once."""
    names = [str(name) for name in present]
    if not names:
        raise RequestError(f"{path}: empty, no column names")
    for column in columns:
        if names.count(column) > 1:
            raise RequestError(f"{path}: {names.count(column)} columns are named {column!r}")
        if column not in names:
            hint = other_separator(names) or nearest(column, names)
            raise RequestError(f"{path}: no column {column!r} (there are: {', '.join(names)}){hint}")


def _noted(stream: Iterable[str], lines: list[str]) -> Iterator[str]:
    """Yield the lines, and append them to a list."""
    for line in stream:
        lines.append(line)
        yield line


def _looks_like_rows(lines: Sequence[str], delimiter: str, fields: int) -> bool:
    """Return whether the lines of one row look like several rows, which two unpaired double quotes have joined.

    Each line has the delimiters of a row. In texts with line breaks this occurs by chance, but hardly with tabs, and
    hardly in ten lines.
    """
    written = [line for line in lines if line.strip()]
    fewest = 2 if delimiter == "\t" else 10
    return fields > 1 and len(written) >= fewest and all(line.count(delimiter) == fields - 1 for line in written)


def _read_csv(path: Path, columns: Sequence[str] | None, delimiter: str) -> Iterator[InputRow | str]:
    with path.open("rb") as stream:
        start = stream.read(4)
    for signature, format_name in NOT_CSV.items():
        if start.startswith(signature):
            raise RequestError(f"{path}: is {format_name}, not CSV in UTF-8")
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        lines: list[str] = []
        reader = csv.DictReader(_noted(stream, lines), delimiter=delimiter, strict=True)
        try:
            _require(path, columns or (), reader.fieldnames or ())
            lines.clear()
            for row in reader:
                if _looks_like_rows(lines, delimiter, len(reader.fieldnames or ())):
                    raise RequestError(
                        f"{path}: lines {reader.line_num - len(lines) + 1} to {reader.line_num} are one row, since a "
                        "quote opens a field in the first, and each looks like a row; allowed: quoted fields with "
                        'inner quotes doubled, as in "say ""yes"""'
                    )
                lines.clear()
                extra = row.pop(None, None)  # type: ignore[call-overload]
                if extra:
                    yield f"{len(extra)} fields too many"
                elif None in row.values():
                    yield "too few fields"
                else:
                    yield row
        except csv.Error as error:
            # DictReader counts the lines of complete rows only: the bad row begins on the next line.
            raise RequestError(f"{path}: line {reader.line_num + 1}: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, in which no key may be given twice."""
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return row


def _read_jsonl(path: Path, columns: Sequence[str] | None) -> Iterator[InputRow | str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
        for line in filter(str.strip, stream):
            try:
                row = json.loads(line, object_pairs_hook=_once)
            except (ValueError, RecursionError) as error:
                yield f"not JSON ({error})"
            else:
                yield _choose(row, columns) if isinstance(row, dict) else f"a JSON {type(row).__name__}, not an object"


def _read_arrow(path: Path, columns: Sequence[str] | None) -> Iterator[InputRow | str]:
    import pyarrow

    format_name = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
    try:
        schema, batches = read_batches(path, columns)
        nested = [name for name in flat_types(schema) if name not in schema.names]
        _require(path, columns or (), [*schema.names, *nested])
        for batch in batches:
            for row in _rows_of(batch):
                yield row if isinstance(row, str) else _choose(row, columns)
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise RequestError(f"{path}: not a readable {format_name} file ({reason})") from None


def _rows_of(batch: pyarrow.RecordBatch) -> Iterable[InputRow | str]:
    try:
        return [
            dict(zip(batch.schema.names, row, strict=True)) for row in zip(*map(rows_of, batch.columns), strict=True)
        ]
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            return ["bytes that are not UTF-8"]
        return [row for i in range(batch.num_rows) for row in _rows_of(batch.slice(i, 1))]
