"""Public files that lie around in more than one form: packed otherwise, or unpacked to a folder."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from leakboard.data.downloads import PublicFile, data_paths
from leakboard.store import digest, file_checksum


def first_present(file: PublicFile, names: Iterable[str]) -> PublicFile:
    """Return the public file, or the same under another of these names where only that one is there."""
    others = [dataclasses.replace(file, name=name, checksum="") for name in names]
    return next((candidate for candidate in [file, *others] if candidate.local_path()), file)


def unpacked(file: PublicFile, name: str) -> Path | None:
    """Return the folder ``name`` beside where the file would lie in ``LEAKBOARD_DATA``, if it is there."""
    return next((folder for folder in data_paths(file.folder, name) if folder.is_dir()), None)


def folder_checksum(folder: Path, suffix: str) -> str:
    """Identify the files of a folder whose names end in ``suffix`` by their names and contents."""
    files = sorted(folder.rglob(f"*{suffix}"))
    return "folder:" + digest({file.relative_to(folder).as_posix(): file_checksum(file) for file in files})
