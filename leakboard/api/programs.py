"""Run a program that reads lines and prints a line for each, so that its outputs can be audited.

The program is started once and is fed lines in batches. It must answer each line without waiting for the end of its
input. Python programs get ``PYTHONUNBUFFERED``, so that they print each line at once.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import numpy as np

from leakboard.errors import RequestError, plain

BATCH = 1_000
"""Number of lines that are written before the program must have answered them."""
SECONDS_TO_END = 2.0
"""How long a program may go on after its input has ended."""


class Program:
    """A running program. `release` has the form that `leakboard.audit` takes with ``inputs``."""

    def __init__(self, command: str, timeout: float, progress: Callable[[int], None] = lambda lines: None):
        """Start the program, without a shell.

        Args:
            command: program and arguments, split as a shell splits them.
            timeout: seconds in which it must answer a batch.
            progress: called with the number of lines answered so far.

        Raises:
            RequestError: the command is empty or cannot be started.
        """
        self.command, self.timeout, self.progress = command, timeout, progress
        self.answered = 0
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise RequestError(f"--command {command}: {error}") from None
        if not arguments:
            raise RequestError("--command: empty; allowed: a program and its arguments")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the program)
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise RequestError(f"--command {command}: {error.strerror}") from None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def release(self, texts: Sequence[str], generator: np.random.Generator) -> list[str]:
        """Return the program's output for each text; it draws its own noise.

        Raises:
            RequestError: the program ended, answered too slowly, or printed another number of lines.
        """
        outputs: list[str] = []
        for start in range(0, len(texts), BATCH):
            outputs += self._batch(texts[start : start + BATCH])
        return outputs

    def _batch(self, texts: Sequence[str]) -> list[str]:
        if not self._lines.empty():
            self._require_no_more()
        content = "".join(f"{text}\n" for text in texts).encode()
        threading.Thread(target=self._write, args=(content,), daemon=True).start()
        deadline, outputs = time.monotonic() + self.timeout, list[str]()
        while len(outputs) < len(texts):
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                waited = f"printed {len(outputs)} of {len(texts)} lines in {self.timeout:g} s"
                raise self._failure(f"{waited}; it must print and flush a line for each line that it reads") from None
            if line is None:
                raise self._failure(f"ended after {self.answered + len(outputs)} lines{self._status()}")
            outputs.append(line.rstrip(b"\r\n").decode(errors="backslashreplace"))
        self.answered += len(outputs)
        self.progress(self.answered)
        return outputs

    def _require_no_more(self) -> None:
        if self._lines.get() is None:
            raise self._failure(f"ended after {self.answered} lines{self._status()}")
        raise self._failure(f"printed more than the {self.answered} lines that it was given; allowed: one for each")

    def _failure(self, what: str) -> RequestError:
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        last = f" (its last line on standard error: {plain(said[-1], 200)})" if said else ""
        return RequestError(f"--command {self.command}: it {what}{last}")

    def _status(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f" with exit status {self._process.wait(SECONDS_TO_END)}"
        return ""

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _write(self, content: bytes) -> None:
        assert self._process.stdin is not None
        # a program that has ended is reported by the missing lines
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(content)
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the program, and the programs that it has started."""
        if kind is None:
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(SECONDS_TO_END)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        self._errors.close()
