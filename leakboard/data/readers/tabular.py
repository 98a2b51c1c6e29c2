"""Read tables and plain lines into clean rows; refuse bad rows with their reasons, or drop and count them."""

from __future__ import annotations

import glob
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from leakboard.data.readers.archives import open_bytes
from leakboard.data.readers.formats import InputRow, open_rows
from leakboard.data.readers.vector_databases import Source, collection_address
from leakboard.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd

Cleaner = Callable[[InputRow], InputRow]
"""Turns a raw row into a clean one; raises ValueError with the reason if the row is bad."""

OnBadRows = Literal["error", "drop"]
MAX_FILES = 10_000
"""Most files and folders that a glob may match."""
MISSING = {"na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none"}
"""Names of a missing value, in lower case, in tables that pandas, R, spreadsheets and databases write."""


@dataclass
class Rows:
    """The good rows of one or several files, each with its number among all rows."""

    rows: list[InputRow] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Number of each good row, counted over all files from 0."""
    dropped: int = 0
    """Number of bad rows that were dropped."""
    files: list[tuple[int, Source]] = field(default_factory=list)
    """Number of the first row of each file, and the file."""

    @property
    def total(self) -> int:
        """Number of rows that were read, good and bad."""
        return len(self.rows) + self.dropped

    def location(self, number: int) -> str:
        """Return the file of a row, and its number in the file, counted from 1."""
        first, path = [entry for entry in self.files if entry[0] <= number][-1]
        return f"{path}: row {number - first + 1}"

    def frame(self, first: int = 0, columns: list[str] | None = None) -> pd.DataFrame:
        """Return the good rows as a frame, with their numbers, counted from ``first``, in the column ``row`` (int64).

        ``columns`` are those of the frame; None: those of the rows.
        """
        import pandas as pd

        return pd.DataFrame(self.rows, columns=columns).assign(row=[first + number for number in self.numbers])


def expand(pattern: str | Source) -> Sequence[Source]:
    """Return the files of a path or glob, sorted, or the one collection of a vector database or in memory.

    A path that exists is no glob, even with brackets in it. In a glob, brackets of the longest existing folder are no
    pattern either.

    Raises:
        RequestError: there is no such file, or more than `MAX_FILES`; or it is a folder.
    """
    if not isinstance(pattern, str):
        return [pattern]
    if address := collection_address(pattern):
        return [address]
    if (path := Path(pattern)).is_file():
        return [path]
    if path.is_dir():
        raise RequestError(f"{pattern}: a folder; allowed: a file, or a glob of files")
    folder = next((parent for parent in path.parents if parent.is_dir()), Path())
    matches = glob.iglob(str(path.relative_to(folder)), root_dir=folder, recursive=True)
    found = [folder / name for name in itertools.islice(matches, MAX_FILES + 1)]
    if len(found) > MAX_FILES:
        raise RequestError(f"{pattern}: matches more than {MAX_FILES:,} files and folders")
    if not (files := sorted((match for match in found if match.is_file()), key=str)):
        raise RequestError(f"{pattern}: no such file")
    return files


def read_rows(
    pattern: str | Source, columns: Sequence[str], clean: Cleaner, on_bad_rows: OnBadRows, delimiter: str | None = None
) -> Rows:
    """Read all rows of the files that match ``pattern``.

    Args:
        pattern: a path or glob, the address of a collection (`leakboard.data.readers.vector_databases`), or rows in
            memory.
        columns: that every file must have, with dots for nested ones.
        clean: applied to every row.
        on_bad_rows: ``error`` refuses the file and names its first bad rows, counted from 1 after the header;
            ``drop`` drops and counts them.
        delimiter: of CSV files; None: a comma, in TSV files a tab.

    Raises:
        RequestError: no file, unknown format, missing column, malformed file, or bad rows.
    """
    result = Rows()
    for path in expand(pattern):
        _take(result, path, "row", open_rows(path, columns, delimiter), clean, on_bad_rows)
    if not result.rows:
        raise RequestError(f"{pattern}: no usable rows")
    return result


def read_lines(path: Path, clean: Callable[[str], InputRow], on_bad_rows: OnBadRows | None, member: str = "") -> Rows:
    """Read all lines of a UTF-8 file, also of a compressed one.

    Args:
        path: the file or archive.
        clean: applied to every line, without its line break.
        on_bad_rows: ``error`` refuses the file and names its first bad lines, counted from 1; ``drop`` drops and counts
            them; None refuses the file without mentioning the option.
        member: the file to read in a zip.

    Raises:
        RequestError: no file, damaged archive, bad lines, or no good one.
    """
    result = Rows()
    with open_bytes(path, member) as stream:
        _take(result, path, "line", map(_line, stream), lambda row: clean(row["line"]), on_bad_rows)
    if not result.rows:
        raise RequestError(f"{path}: no usable lines")
    return result


def _line(line: bytes) -> InputRow | str:
    try:
        return {"line": line.decode().removeprefix("\ufeff").rstrip("\r\n")}
    except UnicodeDecodeError:
        return "bytes that are not UTF-8"


def _take(
    result: Rows, path: Source, noun: str, rows: Iterable[InputRow | str], clean: Cleaner, on_bad_rows: OnBadRows | None
) -> None:
    """Add a file's good rows to the result; a row that is a string is the reason why it is bad."""
    first = result.total
    result.files.append((first, path))
    faults: list[tuple[int, str]] = []
    for in_file, row in enumerate(rows):
        try:
            if isinstance(row, str):
                raise ValueError(row)
            result.rows.append(clean(row))
            result.numbers.append(first + in_file)
        except ValueError as error:
            faults.append((in_file + 1, str(error)))
    if faults and on_bad_rows != "drop":
        shown = "; ".join(f"{noun} {n}: {reason}" for n, reason in faults[:3])
        more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
        advice = "; on_bad_rows: drop, in `evaluate` --drop-missing, leaves them out" if on_bad_rows else ""
        raise RequestError(f"{path}: {len(faults)} bad {noun}s ({shown}{more}){advice}")
    result.dropped += len(faults)


def clean_text(value: Any, column: str) -> str:
    """Return a text with at least one character that is not blank.

    Raises:
        ValueError: the text is missing or blank, of another type, or has undecodable bytes.
    """
    if value is None:
        raise ValueError(f"{column} is missing")
    if not isinstance(value, str):
        raise ValueError(f"{column} is {type(value).__name__}, not text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{column} has bytes that are not UTF-8") from None
    if not value.strip():
        raise ValueError(f"{column} is empty")
    return value


def clean_category(value: Any, column: str) -> str:
    """Return a class name, as `clean_id` does.

    Raises:
        ValueError: the value is missing, under any of its names (`MISSING`), or of another type.
    """
    return _category_of_text(value, column) if type(value) is str else _category(value, column)


def _category(value: Any, column: str) -> str:
    name = clean_id(value, column)
    if name.lower() in MISSING:
        raise ValueError(f"{column} is {name!r}, which names a missing value; a class needs another name")
    return name


_category_of_text = lru_cache(maxsize=4_096)(_category)


def clean_id(value: Any, column: str) -> str:
    """Convert an identifier to text: text, a whole number, a truth value, a UUID, a date or bytes.

    ``1`` and ``1.0`` are one name, and a date with and without midnight is one. Bytes are read
    as UTF-8; if they are none, 16 bytes become a UUID, and others hexadecimal digits.

    Raises:
        ValueError: the value is missing or of another type.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes | bytearray | memoryview):
        value = _from_bytes(bytes(value))
    if isinstance(value, float | Decimal) and not (math.isfinite(value) and value == int(value)):
        raise ValueError(f"{column} is {value}; allowed: text, a whole number or a truth value")
    if isinstance(value, int | float | Decimal):
        return str(int(value))
    name = clean_text(str(value) if isinstance(value, UUID | date) else value, column).strip()
    return match[1] if (match := _WHOLE.fullmatch(name) or _MIDNIGHT.fullmatch(name)) else name


_WHOLE = re.compile(r"([+-]?\d+)\.0+", re.ASCII)
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00(?::00(?:\.0+)?)?", re.ASCII)


def _from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return str(UUID(bytes=value)) if len(value) == 16 else value.hex()
