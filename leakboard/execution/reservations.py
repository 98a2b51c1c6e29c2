"""Decide which of several runs in one folder does a piece of work.

A reservation is a small file, named by the identity of the work's result. If several processes try to create the file,
one of them succeeds (O_EXCL works on local file systems, NFS and Lustre). The holder locks the file, touches it while
working, and removes it at the end. Another process may take over an abandoned reservation. A reservation counts as
abandoned in three cases:

- The process that asks belongs to the same run (`Reservation.run`). A run asks for a reservation twice only after it
  lost the worker that held the reservation.
- On Linux, the process that asks is on the holder's machine, and the lock is free: the system releases a dead
  process's locks.
- The reservation was not touched for `ABANDONED_SECONDS`.

The lock does not show every death: the file system may have no locks, or a child of the dead process may still hold the
lock.

Reservations only save time. Every process writes artefacts and records whole or not at all. Two processes may still do
the same work, for instance if one of them only hung. Then both results are complete, and it does not matter which of
them stays.
"""

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
"""Interval between two touches of a reservation by its holder."""
ABANDONED_SECONDS = 60.0
"""A reservation that was not touched for this long is abandoned."""


class ReservedError(Exception):
    """Another run, or another process of this run, is doing this work."""


@dataclass(frozen=True)
class Reservation:
    """The right to do a piece of work. One holder has it at a time."""

    path: Path
    run: str
    """Identity of the run that asks for the reservation or holds it.

    A run starts the same task again only after it lost the worker that had the task. So a reservation with the asker's
    own ``run`` was left by a lost worker, and counts as abandoned. For an artefact of `leakboard.pipeline.shared`,
    ``run`` is a random text, new for each request: several processes of one run may need the same artefact, and must
    not take each other for lost workers.
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
                if os.path.samestat(os.fstat(file), os.stat(self.path)):  # else another process has taken over
                    os.unlink(self.path)
            os.close(file)

    def holder(self) -> str:
        """Return host and process of the holder; empty if the reservation is free or abandoned.

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
        """Create the reservation and return its open file; None if a reservation exists already."""
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
                # Locked before it is written, so that a process that can read the whole file finds it locked.
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
        """Remove the reservation if it is abandoned.

        A second reservation gives the right to remove the first. Without it, two processes could see the same abandoned
        reservation, and the slower process would remove the new reservation of the faster.
        """
        if self._read()[1]:
            removal = Reservation(self.path.with_name(f"{self.path.name}.cleared"), self.run)
            with suppress(ReservedError), removal.held():
                if self._read()[1]:
                    self.path.unlink(missing_ok=True)

    def _read(self) -> tuple[str, bool]:
        """Return the holder (empty if there is none), and whether the reservation is abandoned."""
        with _storage(self.path, "read"):
            try:
                with self.path.open("rb") as file:  # opening makes NFS fetch the modification time
                    content, touched = file.read(), os.fstat(file.fileno()).st_mtime
                    try:
                        fields: dict[str, Any] = json.loads(content)
                        holder = f"{fields['host']}, process {fields['process']}"
                        sees_lock = fields["is_locked"] and fields["seen_by"] == _observers(file.fileno()) != ""
                        if fields["run"] == self.run or (sees_lock and _lock(file.fileno(), fcntl.LOCK_SH)):
                            return holder, True
                    except (ValueError, KeyError, TypeError):  # the file is incomplete or damaged
                        holder = "another run"
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
                    return "", False
                raise
        return holder, file_clock(self.path.parent) - touched > ABANDONED_SECONDS


def file_clock(folder: Path) -> float:
    """Return the current time by the clock of a folder's file system (seconds), since clocks of machines may differ.

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
    """Lock an open file without waiting; return False if another process has the lock or files cannot be locked."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _observers(file: int) -> str:
    """Name the running kernel and the file's mount; return an empty text if unknown, as outside Linux.

    Processes that get the same text see each other's locks on the file. A host's name would not do: two hosts may have
    the same name, and a folder that is mounted twice on one machine may have separate locks.
    """
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.fstat(file).st_dev}"
    except OSError:
        return ""


@contextmanager
def _touched(file: int) -> Iterator[None]:
    """Touch an open file (update its time of change) while a block runs.

    One thread touches all files, since a thread for each file would be slow.
    """
    global _toucher
    try:
        with _files_lock:
            _files.add(file)
            if not (_toucher and _toucher.is_alive()):  # a forked process lacks its parent's threads
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
