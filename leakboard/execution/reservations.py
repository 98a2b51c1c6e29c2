"""Reservations: which of several runs in one folder does a piece of work.

A reservation is a small file, named by the identity of what its holder makes. Of several that create it one succeeds
(O_EXCL: on local file systems, NFS and Lustre). The holder touches it while it works, and removes it in the end. One
that was not touched for long, or whose process is gone, is abandoned, and another may take it over.

Reservations save time, and nothing else rests on them: artefacts and records are whole or not there, whoever writes
them, and two that do the same work all the same, as where a process only hung, write the same bytes.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from leakboard.errors import StorageError

TOUCH = 5.0
"""How often a holder touches its reservation (seconds)."""
UNKNOWN = "unknown"
"""Instead of when a process began: it runs, and the system tells no more of it."""
ABANDONED = 60.0
"""A reservation that was not touched for so long is abandoned (seconds)."""


class ReservedError(Exception):
    """Another run does this work."""


@dataclass(frozen=True)
class Reservation:
    """The right to do a piece of work, which one of several runs has at a time."""

    path: Path
    run: str
    """Identity of the run; what its own lost workers have left is abandoned."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the reservation while what is inside runs.

        Raises:
            ReservedError: another run holds it.
            StorageError: its folder cannot be written.
        """
        file = self._create()
        if file is None:
            self._clear()
            file = self._create()
        if file is None:
            raise ReservedError
        try:
            with _touched(file):
                yield
        finally:
            with suppress(OSError):
                if os.path.samestat(os.fstat(file), os.stat(self.path)):  # else it was taken over
                    os.unlink(self.path)
            os.close(file)

    def holder(self) -> str:
        """Return who does the work, as host and process; empty where nobody does, or nobody any more."""
        holder, is_abandoned = self._look()
        return "" if is_abandoned else holder

    def clear_own(self) -> None:
        """Remove the reservation if it is of this run, whose worker was lost."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            if json.loads(self.path.read_bytes())["run"] == self.run:
                self.path.unlink()

    def _create(self) -> int | None:
        """Return the open file of a new reservation; None where there is one."""
        me = {"host": socket.gethostname(), "process": os.getpid(), "machine": _machine(), "run": self.run}
        me |= {"started": _started(os.getpid()), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        with _storage(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            except FileExistsError:
                return None
            try:
                os.write(file, json.dumps(me).encode())
            except OSError:
                os.close(file)
                self.path.unlink()
                raise
        return file

    def _clear(self) -> None:
        """Remove the reservation if it is abandoned: who does that holds another one, lest a successor's be removed."""
        if self._look()[1]:
            with (
                suppress(ReservedError),
                Reservation(self.path.with_name(f"{self.path.name}.cleared"), self.run).held(),
            ):
                if self._look()[1]:
                    self.path.unlink(missing_ok=True)

    def _look(self) -> tuple[str, bool]:
        """Return who holds the reservation, empty where nobody does, and whether it is abandoned."""
        with _storage(self.path):
            try:
                with self.path.open("rb") as file:  # opened, since NFS then asks the server when it was touched
                    content, touched = file.read(), os.fstat(file.fileno()).st_mtime
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ESTALE):
                    return "", False
                raise
        try:
            it: dict[str, Any] = json.loads(content)
            holder = f"{it['host']}, process {it['process']}"
            is_gone = it["machine"] == _machine() != "" and _started(it["process"]) not in (it["started"], UNKNOWN)
            if it["run"] == self.run or is_gone:
                return holder, True
        except (ValueError, KeyError, TypeError):  # it is being written, or damaged
            holder = "another run"
        return holder, file_clock(self.path.parent) - touched > ABANDONED


def file_clock(folder: Path) -> float:
    """Return what time it is where a folder is (seconds): machines that share it may have other clocks.

    Raises:
        StorageError: it cannot be written.
    """
    with _storage(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            return os.fstat(probe.fileno()).st_mtime


@contextmanager
def _storage(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror}); what was finished before is kept") from error


@contextmanager
def _touched(file: int) -> Iterator[None]:
    """Let a thread of this process touch an open file meanwhile: one for all, since starting one takes its time."""
    global _toucher
    try:
        with _touching:
            _files.add(file)
            if not (_toucher and _toucher.is_alive()):  # as in a process that was forked
                _toucher = threading.Thread(target=_touch, daemon=True)
                _toucher.start()
        yield
    finally:
        with _touching:
            _files.discard(file)


def _touch() -> None:
    while True:
        time.sleep(TOUCH)
        with _touching:
            for file in _files:
                with suppress(OSError):
                    os.utime(file)


_files: set[int] = set()
_toucher: threading.Thread | None = None
_touching = threading.Lock()


@cache
def _machine() -> str:
    """Return what tells this machine since its start, or a container on it, from others; empty where unknown."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(process: int) -> str:
    """Return when a process of this machine began (ticks since the machine did); empty where it does not run."""
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return "" if state in "ZX" else fields[18]
    except OSError:
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except OSError:  # of another user, whose processes the system hides
        pass
    return UNKNOWN
