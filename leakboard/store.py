"""Store artefacts on disk: corpora, fitted victims, publications. Each is a folder that is complete or absent.

An artefact is written into a temporary folder, its checksums last; then this folder is renamed. A crash leaves only a
temporary folder. A file that was touched later is compared with its checksum before it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args, get_type_hints

from leakboard.disk import cannot_be_written, is_cut_short
from leakboard.errors import RequestError, StorageError

T = TypeVar("T")

SCHEMA = 2
"""Version of all formats that the engine writes; part of every identity."""
INFINITE = "Infinity"
"""Infinity in strict JSON."""
_INFINITIES: Mapping[str, float] = {INFINITE: math.inf, f"-{INFINITE}": -math.inf}
SETTLED = 5.0
"""Age (seconds) from which a file's time of change is reliable: clocks of file systems are coarse."""
ARRAYS = "arrays"
"""Kind of the artefacts that are large but quickly computed again."""
CHECKSUMS = "checksums.json"
"""File with the checksums of an artefact's other files."""


def digest(identity: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of an identity."""
    canonical = json.dumps({"schema": SCHEMA, **identity}, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def finite(value: Any) -> Any:
    """Replace the numbers that strict JSON lacks: NaN by null, infinity by its name."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None if math.isnan(value) else INFINITE if value > 0 else f"-{INFINITE}"
    if isinstance(value, dict | Mapping):  # the check for `Mapping` alone is slow
        return {key: finite(entry) for key, entry in value.items()}
    return [finite(entry) for entry in value] if isinstance(value, list | tuple) else value


LATER: Mapping[str, bool] = MappingProxyType({"later": True})
"""Metadata of a dataclass field that earlier versions lack."""


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without later fields at their defaults."""
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if not (is_later(field) and getattr(value, field.name) == field.default)
    }


def is_later(field: Field[Any]) -> bool:
    """Return whether earlier versions lack a field."""
    return "later" in field.metadata


def numbers(content: Mapping[str, Any], cls: type) -> dict[str, Any]:
    """Turn the names of infinity back into numbers, in the fields of a dataclass that are numbers."""
    numeric = _numeric(cls)
    return {
        key: _INFINITIES.get(value, value) if isinstance(value, str) and key in numeric else value
        for key, value in content.items()
    }


@cache
def _numeric(cls: type) -> frozenset[str]:
    """Return the names of a dataclass's fields that are floats, or floats or None."""
    hints = get_type_hints(cls).items()
    return frozenset(name for name, hint in hints if float in (hint, *get_args(hint)))


def folder_name(readable: str, key: str) -> str:
    """Return a readable name for a folder, with 8 hexadecimal digits of its key."""
    slug = re.sub(r"[^A-Za-z0-9.=]+", "-", readable).strip("-.")[:80]
    return f"{slug}-{key[:8]}"


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file; a file that has not changed for `SETTLED` seconds is read once.

    Raises:
        RequestError: the file cannot be read, or it is a device or a pipe, which may never end.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise RequestError(f"{path}: a device or a pipe; allowed: a file")
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


def write_file(path: Path, content: str | bytes, is_private: bool = False) -> None:
    """Write a file through a temporary one, so that a reader sees the old content or the new, never a part.

    A private file can be read by its owner alone, from the moment it exists (mode 0600).

    Raises:
        StorageError: the path is a folder, its folder cannot be written, or the disk is full.
    """
    if path.is_dir():
        raise StorageError(f"{path}: a folder; allowed: a file")
    temporary, content = _temporary(path), content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb", opener=_private if is_private else None) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(f"{path}: cannot be written ({error.strerror}); finished work is kept") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def save_fields(instance: Any, folder: Path) -> None:
    """Write a dataclass into an empty folder: arrays of numbers as NumPy, all else as JSON.

    Other fields are None, numbers, text, arrays of text, and lists of these.

    Raises:
        TypeError: a field has another type.
    """
    import numpy as np

    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for name in (entry.name for entry in fields(instance)):
        value, place = getattr(instance, name), f"{type(instance).__name__}.{name}"
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            arrays[name] = value
        else:
            plain[name] = _as_json(value, place)
    np.savez(folder / "arrays.npz", **arrays)
    (folder / "fields.json").write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")


def _as_json(value: Any, place: str) -> Any:
    """Return a field's value as strict JSON; an object stands for what JSON lacks."""
    import numpy as np

    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "OU" or not all(isinstance(entry, str) for entry in value.flat):
            raise TypeError(f"{place}: arrays of {value.dtype} cannot be saved")
        # in NumPy's files each text has the size of the longest
        return {"array": value.tolist(), "type": value.dtype.kind}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list):
        return [_as_json(entry, place) for entry in value]
    raise TypeError(
        f"{place} is or has a {type(value).__name__}: fields that are no array, number or text need a `save` and a "
        "`load` of their own"
    )


def load_fields(cls: type[T], folder: Path) -> T:
    """Return the instance that `save_fields` wrote."""
    import numpy as np

    with np.load(folder / "arrays.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    plain = json.loads((folder / "fields.json").read_text("utf-8"))
    return cls(**arrays, **{name: _from_json(value) for name, value in plain.items()})


def _from_json(value: Any) -> Any:
    """Return the value that `_as_json` was given."""
    import numpy as np

    if isinstance(value, list):
        return [_from_json(entry) for entry in value]
    if isinstance(value, dict):
        return float(value["float"]) if "float" in value else np.array(value["array"], value["type"])
    return value


@dataclass(frozen=True)
class Store:
    """A folder of artefacts, each found by its key, the digest of its identity."""

    root: Path

    def path(self, kind: str, readable: str, key: str) -> Path:
        """Return the folder of an artefact, whether or not it exists."""
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
        """Return the folder of an artefact, made by ``make(folder)`` if it is missing or damaged.

        Args:
            kind: of the artefact, such as ``corpora``.
            readable: the readable part of the folder's name.
            key: digest of the artefact's identity.
            make: writes the artefact into an empty folder.
            report: is called with one line if the artefact is damaged.
            code: digests of the code that makes it, recorded for `made_by`; not part of its identity.

        Raises:
            StorageError: the store cannot be written, or the disk is full.
        """
        path = self.path(kind, readable, key)
        if path.exists():
            if not (fault := self._fault(path, key)):
                return path
            report(f"{path.name}: {fault}; computed again")
            self.discard(path)
        temporary = _temporary(path)
        try:
            temporary.mkdir(parents=True)
            make(temporary)
            files = {str(f.relative_to(temporary)): f for f in _files(temporary)}
            if cut := [name for name, f in files.items() if f.suffix == ".npy" and is_cut_short(f)]:
                raise StorageError(f"{path}: cannot be written ({', '.join(cut)} lacks its end: the disk is full)")
            sums = {name: _checksum(f) for name, f in files.items()}
            stats = {name: _stat(f) for name, f in files.items()}
            content = {"key": key, "files": sums, "stats": stats, "code": dict(code)}
            write_file(temporary / CHECKSUMS, json.dumps(content, indent=1, sort_keys=True))
            _move(temporary, path)
        except OSError as error:
            if not cannot_be_written(self.root, error):  # an error of ``make``: network, missing file, another disk
                raise
            raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return path

    def discard(self, path: Path) -> None:
        """Remove an artefact; harmless if another process has removed or replaced it."""
        renamed = _temporary(path)
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, renamed)
        shutil.rmtree(renamed, ignore_errors=True)

    def unfinished(self, readable: str, key: str) -> Path:
        """Return the folder for the state of unfinished work; `discard` removes it."""
        return self.root / "unfinished" / folder_name(readable, key)

    def sweep(self, age: float = 7 * 86_400.0) -> None:
        """Remove files that were not touched for ``age`` seconds: leftovers of interrupted runs, and large arrays.

        Other finished artefacts are kept.
        """
        patterns = ("*/.*", "unfinished/*", "reservations/*", f"{ARRAYS}/*")
        for path in [path for pattern in patterns for path in self.root.glob(pattern)]:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > age:
                    self.discard(path) if path.is_dir() else path.unlink()

    def has(self, kind: str, readable: str, key: str, since: float = 0.0) -> bool:
        """Return whether an artefact exists that was made at this time or later; `obtain` checks its files."""
        try:
            return (self.path(kind, readable, key) / CHECKSUMS).stat().st_mtime >= since
        except OSError:
            return False

    def made_by(self, kind: str, readable: str, key: str) -> dict[str, str]:
        """Return the digests of the code that made an artefact; empty: not known."""
        try:
            content = json.loads((self.path(kind, readable, key) / CHECKSUMS).read_text("utf-8"))
            return dict(content["code"]) if content["key"] == key else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    @staticmethod
    def _fault(path: Path, key: str) -> str:
        """Return why an artefact is damaged; empty: it is intact."""
        try:
            content = json.loads((path / CHECKSUMS).read_text("utf-8"))
            sums, stats = content["files"], content.get("stats", {})
            if content["key"] != key:
                return "belongs to another identity"
            if {str(f.relative_to(path)) for f in _files(path)} != set(sums):
                return "files are missing or added"
            touched = [name for name in sums if _stat(path / name) != stats.get(name)]
            altered = [name for name in touched if _checksum(path / name) != sums[name]]
            return f"checksum mismatch in {', '.join(altered)}" if altered else ""
        except (OSError, ValueError, KeyError, TypeError, RequestError):
            return "its checksums cannot be read"


def _temporary(path: Path) -> Path:
    """Return an unused hidden name in the same folder."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != CHECKSUMS)


def _stat(path: Path) -> list[int]:
    """Return a file's size and time of change; if neither has changed, the content is assumed unchanged."""
    return [(status := path.stat()).st_size, status.st_mtime_ns]


def _move(source: Path, target: Path) -> None:
    """Rename a finished folder into place; if another process was faster, keep its equal folder."""
    try:
        os.rename(source, target)
    except OSError:
        if not (target / CHECKSUMS).is_file():
            raise
