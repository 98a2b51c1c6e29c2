"""Progress of long work: whoever does it logs one short line, as ``epoch 2/3``; the runner decides who hears it."""

from __future__ import annotations

import logging

PROGRESS = logging.getLogger("leakboard.progress")
"""Its records are lines about the running stage; without a handler they go nowhere."""
PROGRESS.addHandler(logging.NullHandler())
PROGRESS.propagate = False
PROGRESS.setLevel(logging.INFO)


def log_progress(text: str) -> None:
    """Tell the user one short line about the running stage."""
    PROGRESS.info("%s", text)


def log_warning(text: str) -> None:
    """Tell the user one line that matters to whoever reads the results; it stays on the screen."""
    PROGRESS.warning("%s", text)
