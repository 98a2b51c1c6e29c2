"""Make the console that commands print on: a terminal, or a file of 100 columns unless ``COLUMNS`` is set."""

from __future__ import annotations

import os
import sys

from rich.console import Console

WIDTH = 100
"""Columns of output into a file."""


def screen() -> Console:
    """Return the console for standard output."""
    return Console(emoji=False, width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH)
