"""``run --dry-run``: the cells of a suite, and what of each is there already. It imports nothing that computes."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakboard.pipeline.runner import Run


def print_plan(console: Console, run: Run) -> None:
    """List the cells and what of each is cached."""
    table = Table("cell", "cached", box=None, pad_edge=False)
    done = 0
    for job in run.jobs:
        cached = run.cached(job)
        done += "result" in cached
        table.add_row(Text(job.cell.label), Text(job.problem or job.skip or ", ".join(cached) or "nothing"))
    console.print(table)
    console.print(f"{len(run.jobs)} cells, {done} done, {len(run.jobs) - done} to compute")
