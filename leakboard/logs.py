"""Log the progress of long work in short lines, such as ``epoch 2/3``; the runner decides where they are shown."""

from __future__ import annotations

import logging

PROGRESS = logging.getLogger("leakboard.progress")
"""Logs lines about the running stage; without a handler they are dropped."""
PROGRESS.addHandler(logging.NullHandler())
PROGRESS.propagate = False
PROGRESS.setLevel(logging.INFO)


def log_progress(text: str) -> None:
    """Show the user one short line about the running stage."""
    PROGRESS.info("%s", text)


def log_warning(text: str) -> None:
    """Show the user one line that matters for reading the results; it stays on the screen."""
    PROGRESS.warning("%s", text)
