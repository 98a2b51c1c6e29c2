"""Show what a task prints, up to a limit."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

LIMIT = 10_000
"""Largest part of a task's output that is shown (bytes)."""


@contextlib.contextmanager
def bounded_output() -> Iterator[None]:
    """Show on standard error what a block prints on either stream, C libraries included: the first `LIMIT` bytes."""
    try:
        before = os.dup(1), os.dup(2)
    except OSError:  # this process has no standard output or error
        yield
        return
    reading, writing = os.pipe()
    _flush()
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.close(writing)
    thread = threading.Thread(target=_pass_on, args=(reading, os.dup(before[1])), daemon=True)
    thread.start()
    try:
        yield
    finally:
        _flush()
        for number, kept in enumerate(before, 1):
            os.dup2(kept, number)
            os.close(kept)
        thread.join(1.0)  # a child process may keep the output open


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # a plugin has closed or replaced the stream
            stream.flush()


def _pass_on(reading: int, shown: int) -> None:
    left, is_cut = LIMIT, False
    while content := os.read(reading, 1 << 16):
        with contextlib.suppress(OSError):
            os.write(shown, content[:left])
            if len(content) > left and not is_cut:
                is_cut = True
                os.write(shown, b"\n... (more output of this task is not shown)\n")
        left = max(0, left - len(content))
    os.close(reading)
    os.close(shown)
