"""Long work that goes on after an interruption: a folder for its state, which the engine keeps until it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_folder: ContextVar[Path | None] = ContextVar("state of unfinished work", default=None)


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Let the work inside keep its state in ``folder``, which is made when it is first asked for."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def state_folder() -> Path | None:
    """Return where the running work may keep its state; None where nobody keeps it (tests, an attacker's own models).

    What is found there was left by the same work: same revision, options, data and seed.
    """
    if folder := _folder.get():
        folder.mkdir(parents=True, exist_ok=True)
    return folder
