"""How long work tells how far it is: a plugin calls `note`, the runner decides who listens."""

from __future__ import annotations

from collections.abc import Callable

_listener: Callable[[str], None] | None = None


def note(text: str) -> None:
    """Tell the user one short line about the running stage, such as ``epoch 2/3``."""
    if _listener:
        _listener(text)


def listen(listener: Callable[[str], None] | None) -> None:
    """Send the notes of this process to ``listener``; None for nobody."""
    global _listener
    _listener = listener
