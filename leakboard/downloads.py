"""Fetching a public file with its checksum, or finding it in the folder that ``LEAKBOARD_DATA`` names."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from leakboard.errors import RequestError, one_line
from leakboard.store import file_checksum


@dataclass(frozen=True)
class PublicFile:
    """A file of somebody else's, pinned by its checksum."""

    folder: str
    """Folder under ``LEAKBOARD_DATA`` and in the download cache."""
    name: str
    url: str
    checksum: str
    """``sha256:...``, or ``git:...`` for the id of a git blob (SHA-1 of its header and content)."""

    def local(self) -> Path | None:
        """Return the file in ``LEAKBOARD_DATA``, if it is there."""
        root = os.environ.get("LEAKBOARD_DATA")
        candidates = [Path(root, self.folder, self.name), Path(root, self.name)] if root else []
        return next((path for path in candidates if path.is_file()), None)

    def fetch(self) -> Path:
        """Return the verified local file, downloaded if need be.

        Raises:
            RequestError: the file cannot be reached, or its checksum is another.
        """
        path = self.local() or self._download()
        if (found := self._checksum(path)) != self.checksum:
            raise RequestError(f"{path}: checksum {found}, expected {self.checksum}; not the published file")
        return path

    def _checksum(self, path: Path) -> str:
        if self.checksum.startswith("sha256:"):
            return f"sha256:{file_checksum(path)}"
        content = path.read_bytes()
        return "git:" + hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()

    def _download(self) -> Path:
        import pooch

        known = self.checksum if self.checksum.startswith("sha256:") else None
        cache = Path(pooch.os_cache("leakboard")) / self.folder
        try:
            return Path(pooch.retrieve(self.url, known, fname=self.name, path=cache, progressbar=True))
        except Exception as error:  # pooch passes on whatever its transport raises
            raise RequestError(
                f"{self.url}: cannot be fetched ({one_line(error)[:200]}); put the file at "
                f"{self.folder}/{self.name} in a folder and set LEAKBOARD_DATA to that folder"
            ) from error
