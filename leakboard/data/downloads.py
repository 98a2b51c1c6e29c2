"""Fetching a public file with its checksum, or finding it in the folder that ``LEAKBOARD_DATA`` names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from leakboard.errors import RequestError, one_line
from leakboard.store import file_checksum

_network = ContextVar("network", default=True)


@contextmanager
def without_network() -> Iterator[None]:
    """Fetch nothing in this block: for what only looks at what is there."""
    token = _network.set(False)
    try:
        yield
    finally:
        _network.reset(token)


def data_paths(folder: str, name: str) -> list[Path]:
    """Return where ``LEAKBOARD_DATA`` may hold something: in the folder of that name, or beside it."""
    root = os.environ.get("LEAKBOARD_DATA")
    return [Path(root, folder, name), Path(root, name)] if root else []


@dataclass(frozen=True)
class PublicFile:
    """A file that others publish, pinned by its checksum where that is known."""

    folder: str
    """Folder under ``LEAKBOARD_DATA`` and in the download cache."""
    name: str
    url: str
    """Where it is published; a page where it cannot be fetched without an account or a form."""
    checksum: str = ""
    """``sha256:...``, or ``git:...`` for the id of a git blob (SHA-1 of its header and content).

    Empty where the publisher changes the file: what is found is taken, and its own checksum is what identifies it.
    """
    by_hand: bool = False
    """Whether somebody must fetch it: it is behind a form, or no longer published."""

    def local_path(self) -> Path | None:
        """Return the file in ``LEAKBOARD_DATA`` or in the download cache, if it is there; nothing is checked."""
        cached = self._cache / self.name
        return self._supplied() or (cached if cached.is_file() else None)

    def _supplied(self) -> Path | None:
        return next((path for path in data_paths(self.folder, self.name) if path.is_file()), None)

    def fetch(self) -> Path:
        """Return the verified local file, downloaded if need be; a damaged one in the cache is fetched anew.

        Raises:
            RequestError: the file cannot be reached, or its checksum is another.
        """
        supplied = self._supplied()
        path = supplied or self._download()
        if self.checksum and (actual := _checksum(path, self.checksum.partition(":")[0])) != self.checksum:
            if not supplied:
                path.unlink()
            raise RequestError(f"{path}: checksum {actual}, expected {self.checksum}; not the published file")
        return path

    def identity(self) -> str:
        """Return the checksum of the published file, or of the file that is found where none is pinned.

        Raises:
            RequestError: none is pinned, and the file cannot be reached.
        """
        if self.checksum:
            return self.checksum
        path = self.fetch()
        status = path.stat()
        return _identity(path, status.st_mtime_ns, status.st_size)

    @property
    def how(self) -> str:
        """How to get it, as part of a sentence."""
        instruction = f"put the file at {self.folder}/{self.name} in a folder and set LEAKBOARD_DATA to that folder"
        return f"get it from {self.url} and {instruction}" if self.by_hand else instruction

    @property
    def _cache(self) -> Path:
        return platformdirs.user_cache_path("leakboard") / self.folder

    def _download(self) -> Path:
        import pooch

        if self.by_hand:
            raise RequestError(f"{self.folder}/{self.name} cannot be fetched without you: {self.how}")
        expected = self.checksum if self.checksum.startswith("sha256:") else None
        if not _network.get():
            if cached := self.local_path():
                return cached
            raise RequestError(f"{self.folder}/{self.name} is not here: `run` fetches it; elsewhere {self.how}")
        try:
            return Path(pooch.retrieve(self.url, expected, fname=self.name, path=self._cache, progressbar=True))
        except Exception as error:  # pooch passes on whatever its transport raises
            raise RequestError(f"{self.url}: cannot be fetched ({one_line(error)[:200]}); {self.how}") from error


def _checksum(path: Path, kind: str) -> str:
    if kind == "git":
        content = path.read_bytes()
        return "git:" + hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return f"sha256:{file_checksum(path)}"


@cache
def _identity(path: Path, modified: int, size: int) -> str:
    return _checksum(path, "sha256")


def availability(files: Sequence[PublicFile]) -> str:
    """Return one line for ``list``: which files are there, and how to get those that are not."""
    missing = [file for file in files if not file.local_path()]
    if not missing:
        return "there"
    first = missing[0]
    names = f"missing {', '.join(file.name for file in missing)}" if len(files) > 1 else "missing"
    if first.by_hand:
        return f"{names}: {first.how}"
    return f"{names}: fetched from {urlsplit(first.url).hostname} when first used; elsewhere {first.how}"
