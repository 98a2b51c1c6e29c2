"""Say after Ctrl-C what is kept, how to see it, and how to go on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

STATUS = 130
"""Exit status of an interrupted command: 128 and the number of SIGINT."""


def end_interrupted(folder: Path | None, report: Sequence[str | Path]) -> typer.Exit:
    """Print one line on standard error, and return the exception that ends the command.

    Args:
        folder: of the run's tables; None: the run was not opened yet.
        report: arguments of the command that shows the finished cells.
    """
    from leakboard.pipeline.records import RESULT

    count = sum(1 for _ in folder.glob(f"cells/*/{RESULT}")) if folder else 0
    kept = (
        f"{count} finished {'cell is' if count == 1 else 'cells are'} kept in {folder}"
        if count
        else "no cell is finished"
    )
    shown = f"; `{_command(report)}` shows {'it' if count == 1 else 'them'}" if count else ""
    line = f"interrupted: {kept}{shown}; `{_command(sys.argv[1:])}` {'goes on' if count else 'starts again'}"
    Console(stderr=True, emoji=False).print(line, markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(STATUS)


def _command(arguments: Sequence[str | Path]) -> str:
    """Return a command of this program as a user types it."""
    script = Path(sys.argv[0])
    called = ["python", "-m", "leakboard"] if script.name == "__main__.py" else ["python", str(script)]
    return shlex.join([*(called if script.suffix == ".py" else ["leakboard"]), *map(str, arguments)])
