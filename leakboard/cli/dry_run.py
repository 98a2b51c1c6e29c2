"""List the cells of a suite with their cached parts (``run --dry-run``), without importing anything that computes."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakboard.pipeline.runner import AGAIN, Run
from leakboard.suite.plan import Job


def print_plan(console: Console, run: Run) -> None:
    """List the cells and the cached parts of each."""
    table = Table("cell", "cached", box=None, pad_edge=False)
    undone: list[Job] = []
    published = 0
    for job in run.jobs:
        cached = run.cached(job)
        if "result" not in cached:
            undone.append(job)
            published += AGAIN in cached
        table.add_row(Text(job.cell.label), Text(job.problem or job.skip or ", ".join(cached) or "nothing"))
    console.print(table)
    again = f" ({published} are published, and computed again as the suite says reuse: false)" if published else ""
    cells = "1 cell" if len(run.jobs) == 1 else f"{len(run.jobs)} cells"
    console.print(f"{cells}, {len(run.jobs) - len(undone)} done, {len(undone)} to compute{again}")
    if outdated := run.results.outdated(undone):
        console.print(
            f"{outdated} cells are published under another identity: since then a revision, an option's default, the "
            "data or the suite has changed"
        )
