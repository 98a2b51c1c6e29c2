"""Read a file as it is, or through a zip, gzip, bzip2 or xz archive, without unpacking anything to disk.

Python's own readers do this. fsspec uses the same readers but does not know ``.bz``, cannot open a member whose name
begins with a slash, and reports no encrypted or damaged archive.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from leakboard.data.readers.memory import check_expanded
from leakboard.errors import RequestError, one_line

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".bz": bz2.open, ".xz": lzma.open}
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)
"""Errors of a truncated or unknown archive, when it is opened or read."""


@contextmanager
def open_bytes(path: Path, member: str = "") -> Iterator[IO[bytes]]:
    """Open a file for reading; a compressed file is decompressed while it is read.

    Args:
        path: the file, or an archive: ``.zip``, ``.gz``, ``.bz2`` (also ``.bz``) or ``.xz``.
        member: the file to read in a zip; empty: its only file.

    Raises:
        RequestError: there is no such file or member, the archive is truncated or damaged (also raised while reading),
            or the member would expand to more than memory holds (`check_expanded`).
    """
    try:
        if path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as archive:
                entry = archive.getinfo(_member(path, _entries(path, archive), member))
                check_expanded(path, entry.file_size, entry.compress_size)
                with archive.open(entry) as stream:
                    yield stream
        else:
            with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as stream:
                yield stream
    except FileNotFoundError:
        raise RequestError(f"{path}: no such file") from None
    except PermissionError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None
    except _BROKEN as error:
        raise _damaged(path, error) from None


def members(path: Path, suffix: str) -> list[str]:
    """Return the names of a zip's files that end in ``suffix``, sorted.

    Raises:
        RequestError: the archive is truncated or damaged, or holds no such file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(suffix))
    except _BROKEN as error:
        raise _damaged(path, error) from None
    if not names:
        raise RequestError(f"{path}: no file in it ends in {suffix}")
    return names


def read_members(path: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file of a zip or folder whose name ends in ``suffix``, sorted by name.

    Hidden files are left out, also those that a Macintosh adds to a zip.

    Raises:
        RequestError: the archive is truncated or damaged, holds no such file, or a file would expand to more than
            memory holds. It may be raised while reading.
    """
    try:
        if path.is_dir():
            files = {str(file.relative_to(path).as_posix()): file for file in path.rglob(f"*{suffix}")}
            names = _visible(files)
            yield from ((name, files[name].read_bytes()) for name in names)
        else:
            with zipfile.ZipFile(path) as archive:
                names = _visible(name for name in _entries(path, archive) if name.endswith(suffix))
                for entry in map(archive.getinfo, names):
                    check_expanded(path, entry.file_size, entry.compress_size)
                    yield entry.filename, archive.read(entry)
    except _BROKEN as error:
        raise _damaged(path, error) from None
    if not names:
        raise RequestError(f"{path}: no file in it ends in {suffix}")


def _damaged(path: Path, error: Exception) -> RequestError:
    return RequestError(f"{path}: truncated or damaged ({one_line(error)[:120]})")


def _visible(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not PurePosixPath(name).name.startswith("."))


def _entries(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """Return the names of an archive's entries, or refuse it if one needs a password."""
    if any(entry.flag_bits & 1 for entry in archive.infolist()):
        raise RequestError(f"{path}: encrypted; allowed: archives without a password")
    return archive.namelist()


def _member(path: Path, entries: list[str], member: str) -> str:
    names = [name for name in entries if not name.endswith("/")]
    if not member and len(names) == 1:
        return names[0]
    if member not in names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise RequestError(f"{path}: no file {member!r} in it (there are: {shown})")
    return member
