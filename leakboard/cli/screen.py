"""Make the console that commands print on: a terminal, or a file of 100 columns unless ``COLUMNS`` is set.

Warnings that are logged between the tasks of a run appear there, too; a task's own are shown with its progress.
"""

from __future__ import annotations

import logging
import os
import sys

from rich.console import Console
from rich.text import Text

from leakboard.errors import plain

WIDTH = 100
"""Columns of output into a file."""


def screen() -> Console:
    """Return the console for standard output."""
    return Console(emoji=False, width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH)


class WarningLines(logging.Handler):
    """Prints each logged warning as a line."""

    def __init__(self, console: Console):
        super().__init__(logging.WARNING)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning."""
        self.console.print(Text(f"warning: {plain(record.getMessage())}"))
