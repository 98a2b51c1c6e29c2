"""What people see of a run: the plan, the leaderboard as a table, the paths of its files, and a plugin's options."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from leakboard import options
from leakboard.provenance import describe, write_meta
from leakboard.records import Record
from leakboard.runner import Run
from leakboard.tables import leaderboard, write_tables


def write(run: Run, records: Sequence[Record]) -> list[Path]:
    """Write a run's tables and ``meta.json``; return their paths."""
    paths = write_tables(run.folder, records, [run.cells / job.folder for job in run.jobs])
    write_meta(run.folder / "meta.json", describe(run.suite, run.jobs, records))
    return [*paths, run.folder / "meta.json"]


def print_plan(console: Console, run: Run) -> None:
    """List the cells and what of each is cached."""
    table = Table("cell", "cached", box=None, pad_edge=False)
    done = 0
    for job in run.jobs:
        cached = run.cached(job)
        done += "result" in cached
        table.add_row(job.cell.label, job.problem or job.skip or ", ".join(cached) or "nothing")
    console.print(table)
    console.print(f"{len(run.jobs)} cells, {done} done, {len(run.jobs) - done} to compute")


def warn_about_threads(console: Console, run: Run, jobs: int) -> None:
    """Warn when more threads are asked for than there are cores."""
    wanted, cores = jobs * run.suite.file.threads, os.cpu_count() or 1
    if wanted > cores:
        console.print(f"warning: {jobs} jobs x {run.suite.file.threads} threads on {cores} cores: slower, not faster")


COLUMNS = {
    "dataset": "dataset",
    "victim": "victim",
    "attack": "attack",
    "task_accuracy": "task",
    "attack_score": "attack score",
    "empirical_privacy": "privacy",
    "privacy_majority": "ceiling",
    "privacy_floor": "floor",
    "privacy_bayes": "bayes",
    "fairness_gap": "gap",
    "status": "status",
}


def print_leaderboard(console: Console, run: Run, records: Sequence[Record]) -> None:
    """Print the leaderboard, most important columns only, and what a reader must be warned of."""
    ordered = sorted(records, key=lambda r: (r.dataset, r.victim, r.attack, r.seed))
    table = Table(*COLUMNS.values(), title=f"{run.suite.name}: {run.suite.file.description}", title_justify="left")
    for row in leaderboard(ordered):
        table.add_row(*(_cell(row, name) for name in COLUMNS))
    console.print(table)
    console.print(
        "privacy: 1 - the better of attack and best constant guess [95 % interval]; ceiling: what the constant leaves; "
        "floor: what a classifier on the text leaves; bayes: what the best possible attacker leaves, where known",
        style="dim",
        highlight=False,
    )
    for dataset, checks in {record.dataset: record.checks for record in ordered}.items():
        if checks.get("test_copies"):
            share = f"{100 * checks['test_copies']:.1f} %"
            console.print(f"warning: {dataset}: {share} of the test texts occur verbatim in train", highlight=False)


def _cell(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if name == "attack_score":
        return f"{value:.3f} {row['attack_metric']}"
    if name == "empirical_privacy" and row.get("empirical_privacy_low") is not None:
        return f"{value:.3f} [{row['empirical_privacy_low']:.3f}, {row['empirical_privacy_high']:.3f}]"
    if name == "fairness_gap":
        return f"{value:.3f} {row['fairness_variable']}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def print_paths(console: Console, paths: Sequence[Path]) -> None:
    """Print where files are."""
    for path in paths:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)


def print_plugin(console: Console, name: str, plugin: type) -> None:
    """Print a plugin's description and its options."""
    module = inspect.getmodule(plugin)
    console.print(f"{name}: {inspect.getdoc(module) or ''}", markup=False, highlight=False)
    console.print()
    table = Table("option", "allowed", "default", "what it does", box=None, pad_edge=False)
    for option in options.describe(plugin):
        table.add_row(option.name, option.allowed, option.default, option.text)
    console.print(table)
