"""Find a public file in the folder that ``LEAKBOARD_DATA`` names, or fetch it, and compare its checksum."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from leakboard.errors import RequestError, one_line
from leakboard.store import file_checksum
from leakboard.workspace import in_force

_network = ContextVar("network", default=True)


def without_network() -> AbstractContextManager[None]:
    """Fetch nothing in a block, for commands that only show a suite."""
    return in_force(_network, False)


def data_paths(folder: str, name: str) -> list[Path]:
    """Return the two paths in ``LEAKBOARD_DATA`` where a file or folder may be: inside ``folder``, or next to it."""
    root = os.environ.get("LEAKBOARD_DATA")
    return [Path(root, folder, name), Path(root, name)] if root else []


@dataclass(frozen=True)
class PublicFile:
    """A file of another publisher, with its checksum if that is known."""

    folder: str
    """Folder under ``LEAKBOARD_DATA`` and in the download cache."""
    name: str
    url: str
    """Address of the file, or of a page if the file needs an account or a form."""
    checksum: str = ""
    """``sha256:...``, or ``git:...`` for the id of a git blob (SHA-1 of its header and content).

    Empty if the publisher may change the file: then every file is accepted, and identified by its own checksum.
    """
    by_hand: bool = False
    """Whether users must fetch the file themselves: it is behind a form, or no longer published."""

    def local_path(self) -> Path | None:
        """Return the file in ``LEAKBOARD_DATA`` or in the download cache, unchecked; None: it is in neither."""
        cached = self._cache / self.name
        return self._supplied() or (cached if cached.is_file() else None)

    def _supplied(self) -> Path | None:
        return next((path for path in data_paths(self.folder, self.name) if path.is_file()), None)

    def fetch(self) -> Path:
        """Return the local file with the right checksum; fetch it if it is missing, or damaged in the cache.

        Raises:
            RequestError: the file cannot be fetched, or has another checksum.
        """
        supplied = self._supplied()
        path = supplied or self._download()
        if self.checksum and (actual := _checksum(path, self.checksum.partition(":")[0])) != self.checksum:
            if not supplied:
                path.unlink()
            raise RequestError(f"{path}: checksum {actual}, expected {self.checksum}; not the published file")
        return path

    def identity(self) -> str:
        """Return the published checksum, or that of the local file if none is published.

        Raises:
            RequestError: none is published, and the file cannot be fetched.
        """
        if self.checksum:
            return self.checksum
        path = self.fetch()
        status = path.stat()
        return _identity(path, status.st_mtime_ns, status.st_size)

    @property
    def how(self) -> str:
        """How to get the file, as part of a sentence."""
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
            raise RequestError(f"{self.folder}/{self.name} is not here: `run` fetches it; without internet, {self.how}")
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
    """Return one line for ``list``: ``there``, or the missing files and how to get them."""
    missing = [file for file in files if not file.local_path()]
    if not missing:
        return "there"
    first = missing[0]
    names = f" {', '.join(file.name for file in missing)}" if len(files) > 1 else ""
    if first.by_hand:
        return f"missing{names}: {first.how}"
    return f"not fetched yet{names}: from {urlsplit(first.url).hostname} when first used; without internet, {first.how}"
