"""Decide which of several runs in one folder does a piece of work (`docs/scale.md`)."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakboard.errors import StorageError

TOUCH_SECONDS = 5.0
"""Interval at which a holder touches its reservation."""
ABANDONED_SECONDS = 60.0
"""Age from which an untouched reservation counts as abandoned."""


class ReservedError(Exception):
    """Another process holds the reservation."""


@dataclass(frozen=True)
class Reservation:
    """The right to do a piece of work. One holder has it at a time."""

    path: Path
    run: str
    """Identity of the run.

    A run gives a task to one worker at a time. If a worker finds a reservation of its own run, an earlier worker died
    and left it. So it counts as abandoned.

    In `pipeline.shared`, living workers of one run compete. So each `Reservation` there has a random text here, and no
    living worker's reservation counts as abandoned.
    """

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the reservation while a block runs.

        Raises:
            ReservedError: the reservation is held and not abandoned.
            StorageError: the reservation cannot be read or written.
        """
        file = self._create()
        if file is None:
            self._remove_abandoned()
            file = self._create()
        if file is None:
            raise ReservedError
        try:
            with _touched(file):
                yield
        finally:
            with suppress(OSError):
                if os.path.samestat(os.fstat(file), os.stat(self.path)):  # false after another process took over
                    os.unlink(self.path)
            os.close(file)

    def holder(self) -> str:
        """Return host and process of the holder; empty if the reservation is free or abandoned.

        If the file is incomplete or damaged, the holder is ``another run``.

        Raises:
            StorageError: the reservation cannot be read, or its folder cannot be written.
        """
        holder, is_abandoned = self._read()
        return "" if is_abandoned else holder

    def clear_own(self) -> None:
        """Remove the reservation if a lost worker of this run left it."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            if json.loads(self.path.read_bytes())["run"] == self.run:
                self.path.unlink()

    def _create(self) -> int | None:
        """Return the open file of a new reservation; None if the reservation exists."""
        with _storage(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            except FileExistsError:
                return None
            content = {
                "host": socket.gethostname(),
                "process": os.getpid(),
                "seen_by": _observers(file),
                "run": self.run,
                # locked before it is written: who can read the content and lock the file knows that the holder died
                "is_locked": _lock(file, fcntl.LOCK_EX),
            }
            try:
                os.write(file, json.dumps(content).encode())
            except OSError:
                os.close(file)
                self.path.unlink()
                raise
        return file

    def _remove_abandoned(self) -> None:
        if self._read()[1]:
            # Without this second reservation, a slow process might remove the new reservation of a fast one.
            removal = Reservation(self.path.with_name(f"{self.path.name}.cleared"), self.run)
            with suppress(ReservedError), removal.held():
                if self._read()[1]:
                    self.path.unlink(missing_ok=True)

    def _read(self) -> tuple[str, bool]:
        """Return the holder, empty if there is none, and whether the reservation is abandoned."""
        with _storage(self.path, "read"):
            try:
                with self.path.open("rb") as file:  # opening makes NFS fetch the modification time
                    content, touched = file.read(), os.fstat(file.fileno()).st_mtime
                    try:
                        fields: dict[str, Any] = json.loads(content)
                        holder = f"{fields['host']}, process {fields['process']}"
                        # the system releases the locks of dead processes
                        lock_is_visible = fields["is_locked"] and fields["seen_by"] == _observers(file.fileno()) != ""
                        if fields["run"] == self.run or (lock_is_visible and _lock(file.fileno(), fcntl.LOCK_SH)):
                            return holder, True
                    except (ValueError, KeyError, TypeError):  # the file is incomplete or damaged
                        holder = "another run"
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
                    return "", False
                raise
        return holder, file_clock(self.path.parent) - touched > ABANDONED_SECONDS


def file_clock(folder: Path) -> float:
    """Return the time of a folder's file system (seconds): clocks of machines may differ.

    Raises:
        StorageError: the folder cannot be written.
    """
    with _storage(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            return os.fstat(probe.fileno()).st_mtime


@contextmanager
def _storage(path: Path, done: str = "written") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be {done} ({error.strerror}); finished work is kept") from error


def _lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _observers(file: int) -> str:
    """Describe the kernel and the mount of a file. Processes that get the same text see each other's locks."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.fstat(file).st_dev}"
    except OSError:
        return ""


@contextmanager
def _touched(file: int) -> Iterator[None]:
    global _toucher
    try:
        with _files_lock:
            _files.add(file)
            # one thread for all files; a forked process lacks its parent's threads
            if not (_toucher and _toucher.is_alive()):
                _toucher = threading.Thread(target=_touch, daemon=True)
                _toucher.start()
        yield
    finally:
        with _files_lock:
            _files.discard(file)


def _touch() -> None:
    while True:
        time.sleep(TOUCH_SECONDS)
        with _files_lock:
            for file in _files:
                with suppress(OSError):
                    os.utime(file)


_files: set[int] = set()
_toucher: threading.Thread | None = None
_files_lock = threading.Lock()
