"""Artefacts on disk: a folder that is whole or not there, and whose files are checked where they were touched.

An artefact (a corpus, a fitted victim, publications) is written into a temporary folder, its checksums last, and
renamed into place. A crash leaves only a temporary folder; an altered or truncated file is found by its checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from leakboard.disk import cannot_be_written, is_cut_short
from leakboard.errors import RequestError, StorageError

T = TypeVar("T")

SCHEMA = 2
"""Version of everything the engine writes; part of every identity."""

INFINITE = "Infinity"  # as it is written in strict JSON

SETTLED = 5.0
"""Age (seconds) from which a file's time of change tells whether it changed: clocks of file systems are coarse."""

ARRAYS = "arrays"
"""Kind of the artefacts that are large, and soon computed again."""
CHECKSUMS = "checksums.json"
"""Of an artefact's files, beside them."""


def digest(identity: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of an identity."""
    canonical = json.dumps({"schema": SCHEMA, **identity}, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def finite(value: Any) -> Any:
    """Replace what strict JSON has not: NaN by null, infinity by its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else INFINITE if value > 0 else f"-{INFINITE}"
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    return [finite(entry) for entry in value] if isinstance(value, list | tuple) else value


def numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a metric's or a claim's fields with infinity as a number again."""
    names = {INFINITE: math.inf, f"-{INFINITE}": -math.inf}
    return {key: names.get(value, value) if isinstance(value, str) else value for key, value in content.items()}


def folder_name(readable: str, key: str) -> str:
    """Return a readable slug plus 8 hex digits."""
    slug = re.sub(r"[^A-Za-z0-9.=]+", "-", readable).strip("-.")[:80]
    return f"{slug}-{key[:8]}"


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file; one that has not changed for a while is read once.

    Raises:
        RequestError: it cannot be read.
    """
    try:
        status = path.stat()
        settled = time.time() - status.st_mtime > SETTLED
        return _known_checksum(path, status.st_mtime_ns, status.st_size) if settled else _checksum(path)
    except OSError as error:
        raise RequestError(f"{path}: cannot be read ({error.strerror})") from None


@cache
def _known_checksum(path: Path, modified: int, size: int) -> str:
    return _checksum(path)


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file through a temporary one, so that a reader sees the old bytes or the new, never half.

    Raises:
        StorageError: the folder cannot be written, or the disk is full.
    """
    temporary, content = _beside(path), content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"{path}: cannot be written ({error.strerror}); what was finished before is kept") from error


def save_fields(instance: Any, folder: Path) -> None:
    """Write a dataclass into an empty folder: arrays as NumPy, numbers, text, lists of these and None as JSON.

    Raises:
        TypeError: a field is none of these.
    """
    import numpy as np

    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for name in (entry.name for entry in fields(instance)):
        value = getattr(instance, name)
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "O" and all(isinstance(entry, str) for entry in value.flat):
                value = value.astype(np.str_)
            if value.dtype.kind not in "biufU":
                raise TypeError(f"{type(instance).__name__}.{name}: arrays of {value.dtype} cannot be saved")
            arrays[name] = value
        elif value is None or isinstance(value, bool | int | float | str | list):
            plain[name] = finite(value)
        else:
            raise TypeError(
                f"{type(instance).__name__}.{name} is a {type(value).__name__}: fields that are no array, number or "
                "text need a `save` and a `load` of their own"
            )
    np.savez(folder / "arrays.npz", **arrays)
    (folder / "fields.json").write_text(json.dumps(plain), encoding="utf-8")


def load_fields(cls: type[T], folder: Path) -> T:
    """Return the instance that `save_fields` wrote."""
    import numpy as np

    with np.load(folder / "arrays.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return cls(**arrays, **numbers(json.loads((folder / "fields.json").read_text("utf-8"))))


@dataclass(frozen=True)
class Store:
    """A folder of artefacts, found by identity."""

    root: Path

    def path(self, kind: str, readable: str, key: str) -> Path:
        """Return where an artefact is or would be."""
        return self.root / kind / folder_name(readable, key)

    def obtain(
        self,
        kind: str,
        readable: str,
        key: str,
        make: Callable[[Path], None],
        report: Callable[[str], None],
        code: Mapping[str, str] = MappingProxyType({}),
    ) -> Path:
        """Return the folder of an artefact, made by ``make(folder)`` if it is not there or not intact.

        ``code`` says what code makes it: no part of its identity, but noted with it (`made_by`).

        Raises:
            StorageError: the store cannot be written, or the disk is full.
        """
        path = self.path(kind, readable, key)
        if path.exists():
            if not (fault := self._fault(path, key)):
                return path
            report(f"{path.name}: {fault}; computed again")
            self.discard(path)
        temporary = _beside(path)
        try:
            temporary.mkdir(parents=True)
            make(temporary)
            files = {str(f.relative_to(temporary)): f for f in _files(temporary)}
            if cut := [name for name, f in files.items() if f.suffix == ".npy" and is_cut_short(f)]:
                raise StorageError(f"{path}: cannot be written ({', '.join(cut)} lacks its end: the disk is full)")
            sums = {name: _checksum(f) for name, f in files.items()}
            noted = {"key": key, "files": sums, "stats": {n: _stat(f) for n, f in files.items()}, "code": dict(code)}
            write_file(temporary / CHECKSUMS, json.dumps(noted, indent=1, sort_keys=True))
            _move(temporary, path)
        except OSError as error:
            if not cannot_be_written(self.root, error):  # the maker's: network, missing file, a disk of its own
                raise
            raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return path

    def discard(self, path: Path) -> None:
        """Remove an artefact; no harm where another process was faster, even to its successor."""
        doomed = _beside(path)
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def unfinished(self, readable: str, key: str) -> Path:
        """Return where the state of unfinished work is kept; `discard` removes it."""
        return self.root / "unfinished" / folder_name(readable, key)

    def sweep(self, age: float = 7 * 86_400.0) -> None:
        """Remove what interrupted runs left half written or unfinished, and what nobody has used, for ``age`` seconds.

        Of what is used, that is done with large arrays alone, which can be computed again.
        """
        swept = ("*/.*", "unfinished/*", "reservations/*", f"{ARRAYS}/*")
        for path in [path for pattern in swept for path in self.root.glob(pattern)]:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > age:
                    self.discard(path) if path.is_dir() else path.unlink()

    def has(self, kind: str, readable: str, key: str, since: float = 0.0) -> bool:
        """Return whether an artefact is there, made at this time or later (its bytes are checked when it is read)."""
        try:
            return (self.path(kind, readable, key) / CHECKSUMS).stat().st_mtime >= since
        except OSError:
            return False

    def made_by(self, kind: str, readable: str, key: str) -> dict[str, str]:
        """Return what code an artefact was made by; empty where it is not there or does not tell."""
        try:
            noted = json.loads((self.path(kind, readable, key) / CHECKSUMS).read_text("utf-8"))
            return dict(noted["code"]) if noted["key"] == key else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    @staticmethod
    def _fault(path: Path, key: str) -> str:
        try:
            noted = json.loads((path / CHECKSUMS).read_text("utf-8"))
            if noted["key"] != key:
                return "belongs to another identity"
            present = {str(f.relative_to(path)) for f in _files(path)}
            if present != set(noted["files"]):
                return "files are missing or added"
            touched = [name for name in noted["files"] if _stat(path / name) != noted.get("stats", {}).get(name)]
            altered = [name for name in touched if _checksum(path / name) != noted["files"][name]]
            return f"checksum mismatch in {', '.join(altered)}" if altered else ""
        except (OSError, ValueError, KeyError, TypeError, RequestError):
            return "its checksums cannot be read"


def _beside(path: Path) -> Path:
    """Return a new hidden name in the same folder."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != CHECKSUMS)


def _stat(path: Path) -> list[int]:
    """Return a file's size and its time of change: where both are as written, the bytes are taken to be so too."""
    return [(status := path.stat()).st_size, status.st_mtime_ns]


def _move(source: Path, target: Path) -> None:
    """Rename a finished folder into place; where another process was faster, keep its equal one."""
    try:
        os.rename(source, target)
    except OSError:
        if not (target / CHECKSUMS).is_file():
            raise
