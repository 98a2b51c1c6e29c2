"""Find published files that may be packed in another way, or unpacked to a folder."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from leakboard.data.downloads import PublicFile, availability, data_paths
from leakboard.store import digest, file_checksum


def first_present(file: PublicFile, names: Iterable[str]) -> PublicFile:
    """Return the public file, or the same file under the first of these names that is present if only that is."""
    others = [dataclasses.replace(file, name=name, checksum="") for name in names]
    return next((candidate for candidate in [file, *others] if candidate.local_path()), file)


@dataclass(frozen=True)
class ZipOrFolder:
    """A published zip, or the folder that it was unpacked to in ``LEAKBOARD_DATA``."""

    file: PublicFile
    folder: str
    """Name of the folder, which is where the zip would be."""
    suffix: str
    """End of the names of the files that are read."""

    def availability(self) -> str:
        """Return one line for ``list``."""
        return "there" if self._unpacked() else availability([self.file])

    def identity(self) -> str:
        """Return the checksum of the zip, or a digest of names and contents of the files in the folder."""
        if not (folder := self._unpacked()):
            return self.file.identity()
        files = sorted(folder.rglob(f"*{self.suffix}"))
        return "folder:" + digest({file.relative_to(folder).as_posix(): file_checksum(file) for file in files})

    def fetch(self) -> Path:
        """Return the folder, or the zip with the right checksum."""
        return self._unpacked() or self.file.fetch()

    def _unpacked(self) -> Path | None:
        return next((path for path in data_paths(self.file.folder, self.folder) if path.is_dir()), None)
