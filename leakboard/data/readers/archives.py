"""Reading a file as it is, or through a zip, gzip, bzip2 or xz archive: nothing is ever unpacked to disk.

Python's own readers are used as they are. fsspec stands on the same ones and would save no line: it has no name for
``.bz``, cannot open a member whose name begins with a slash, and reports no encrypted or damaged one.
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
"""What a truncated or unknown archive raises, when it is opened or anywhere later."""


@contextmanager
def open_bytes(path: Path, member: str = "") -> Iterator[IO[bytes]]:
    """Open a file for reading, through its archive where it is one.

    Args:
        path: the file; ``.zip``, ``.gz``, ``.bz2`` (also ``.bz``) and ``.xz`` are read through.
        member: of a zip, the file in it; may be left out where there is but one.

    Raises:
        RequestError: no such file or member, the archive is truncated or damaged (raised while reading, too), or the
            file in a zip would expand to more than memory holds (`check_expanded`).
    """
    try:
        if path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as archive:
                name = _member(path, _plain(path, archive), member)
                _check(path, archive.getinfo(name))
                with archive.open(name) as stream:
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
    """Yield name and content of every file of a zip or of a folder whose name ends in ``suffix``, sorted by name.

    Hidden files, and those that a Macintosh adds to a zip, are passed over.

    Raises:
        RequestError: the archive is truncated or damaged, holds no such file, or one that would expand to more than
            memory holds (raised while reading).
    """
    try:
        if path.is_dir():
            files = {str(file.relative_to(path).as_posix()): file for file in path.rglob(f"*{suffix}")}
            names = _shown(files)
            yield from ((name, files[name].read_bytes()) for name in names)
        else:
            with zipfile.ZipFile(path) as archive:
                names = _shown(name for name in _plain(path, archive) if name.endswith(suffix))
                for name in names:
                    _check(path, archive.getinfo(name))
                    yield name, archive.read(name)
    except _BROKEN as error:
        raise _damaged(path, error) from None
    if not names:
        raise RequestError(f"{path}: no file in it ends in {suffix}")


def _check(path: Path, entry: zipfile.ZipInfo) -> None:
    check_expanded(path, entry.file_size, entry.compress_size)


def _damaged(path: Path, error: Exception) -> RequestError:
    return RequestError(f"{path}: truncated or damaged ({one_line(error)[:120]})")


def _shown(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not PurePosixPath(name).name.startswith("."))


def _plain(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """Return the names of an archive's entries, all of which can be read without a password."""
    if any(entry.flag_bits & 1 for entry in archive.infolist()):
        raise RequestError(f"{path}: encrypted; allowed are archives without a password")
    return archive.namelist()


def _member(path: Path, entries: list[str], member: str) -> str:
    names = [name for name in entries if not name.endswith("/")]
    if not member and len(names) == 1:
        return names[0]
    if member not in names:
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise RequestError(f"{path}: no file {member!r} in it (there are: {shown})")
    return member
