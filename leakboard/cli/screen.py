"""Where commands print: a terminal as wide as it is, or a file 100 columns wide unless ``COLUMNS`` says otherwise."""

from __future__ import annotations

import os
import sys

from rich.console import Console

WIDTH = 100
"""Columns of what is printed into a file."""


def screen() -> Console:
    """Return the console for standard output."""
    return Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH)
