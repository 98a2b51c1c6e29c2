"""Fetching a public file with its checksum, or finding it in the folder that ``LEAKBOARD_DATA`` names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from leakboard.errors import RequestError, one_line
from leakboard.store import file_checksum


@dataclass(frozen=True)
class PublicFile:
    """A file of somebody else's, pinned by its checksum where that is known."""

    folder: str
    """Folder under ``LEAKBOARD_DATA`` and in the download cache."""
    name: str
    url: str
    """Where it is published; a page where it cannot be fetched without an account or a form."""
    checksum: str = ""
    """``sha256:...``, ``md5:...``, or ``git:...`` for the id of a git blob (SHA-1 of its header and content).

    Empty where the publisher changes the file: what is found is taken, and its own checksum is what identifies it.
    """
    by_hand: bool = False
    """Whether somebody must fetch it: it is behind a form, or no longer published."""

    def found(self) -> Path | None:
        """Return the file in ``LEAKBOARD_DATA`` or in the download cache, if it is there; nothing is checked."""
        root = os.environ.get("LEAKBOARD_DATA")
        candidates = [Path(root, self.folder, self.name), Path(root, self.name)] if root else []
        return next((path for path in [*candidates, self._cache / self.name] if path.is_file()), None)

    def fetch(self) -> Path:
        """Return the verified local file, downloaded if need be.

        Raises:
            RequestError: the file cannot be reached, or its checksum is another.
        """
        path = self.found() or self._download()
        if self.checksum and (found := self._checksum(path)) != self.checksum:
            raise RequestError(f"{path}: checksum {found}, expected {self.checksum}; not the published file")
        return path

    def identity(self) -> str:
        """Return the checksum of the published file, or of the file that is found where none is pinned.

        Raises:
            RequestError: none is pinned, and the file cannot be reached.
        """
        return self.checksum or f"sha256:{file_checksum(self.fetch())}"

    @property
    def how(self) -> str:
        """How to get it, as part of a sentence."""
        place = f"put the file at {self.folder}/{self.name} in a folder and set LEAKBOARD_DATA to that folder"
        return f"get it from {self.url} and {place}" if self.by_hand else place

    def _checksum(self, path: Path) -> str:
        kind = self.checksum.partition(":")[0]
        if kind == "git":
            content = path.read_bytes()
            return "git:" + hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        return f"{kind}:{file_checksum(path, kind)}"

    @property
    def _cache(self) -> Path:
        import pooch

        return Path(pooch.os_cache("leakboard")) / self.folder

    def _download(self) -> Path:
        import pooch

        if self.by_hand:
            raise RequestError(f"{self.folder}/{self.name} cannot be fetched without you: {self.how}")
        known = None if self.checksum.startswith("git:") else self.checksum or None
        try:
            return Path(pooch.retrieve(self.url, known, fname=self.name, path=self._cache, progressbar=True))
        except Exception as error:  # pooch passes on whatever its transport raises
            raise RequestError(f"{self.url}: cannot be fetched ({one_line(error)[:200]}); {self.how}") from error


def state(files: Sequence[PublicFile]) -> str:
    """Return one line for ``list``: which files are there, and how to get those that are not."""
    missing = [file for file in files if not file.found()]
    if not missing:
        return "there"
    first = missing[0]
    count = f"{len(missing)} of {len(files)} files missing" if len(files) > 1 else "missing"
    if first.by_hand:
        return f"{count}: {first.how}"
    return f"{count}: fetched from {urlsplit(first.url).hostname} when first used; elsewhere {first.how}"
