"""Publishing a finished run beside its suite, and verifying what is published by computing some of it again."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from leakboard.board import reports
from leakboard.errors import RequestError
from leakboard.pipeline import runner
from leakboard.pipeline.records import PUBLISHED as RECORDS
from leakboard.pipeline.records import pack
from leakboard.pipeline.runner import Run
from leakboard.store import write_file
from leakboard.suite.plan import Job

WITHHELD = ("sentences.csv",)
"""Recovered sentences are left out: they are other people's texts."""


def publish(run: Run) -> list[Path]:
    """Write a finished run's tables and copy them where its suite is at home, with the records they are made of.

    Whoever extends the suite later starts from those records: what has the same identity is not computed again.

    Raises:
        RequestError: cells are missing or failed, or are of plugins that declare no revision.
        StorageError: the folder cannot be written, or the disk is full.
    """
    if left := len(run.unfinished):
        raise RequestError(
            f"{run.suite.name}: {left} of {len(run.jobs)} cells have no result; only a finished run is published"
        )
    records = run.records()
    keys = {record.key for record in records}
    asked = [job for job in (*run.jobs, *run.others) if job.key in keys]
    if undeclared := {name for job in asked for name in job.undeclared}:
        name = min(undeclared)
        raise RequestError(
            f"{run.suite.name}: {name} declares no revision, so its results are not published; "
            f"write @{name.partition('/')[0][:-1]}(revision=1) above its class and run it"
        )
    if lost := _published_rows(run) - {(r.dataset, r.victim, r.attack) for r in records if r.status != "failed"}:
        raise RequestError(
            f"{run.suite.name}: {len(lost)} published rows that the suite asks for have no result of the present code "
            f"and data, as {' / '.join(min(lost))}; run them too"
        )
    paths = reports.write(run, records)
    targets = [run.suite.home / path.name for path in paths if path.name not in WITHHELD]
    for target in targets:
        write_file(target, (run.folder / target.name).read_text("utf-8"))
    jobs = {job.key: job for job in (*run.jobs, *run.others)}
    packed = pack((record, run.costs(jobs[record.key])) for record in records if record.status != "failed")
    write_file(run.suite.home / RECORDS, packed)
    return [*targets, run.suite.home / RECORDS]


def _published_rows(run: Run) -> set[tuple[str, str, str]]:
    """Return the rows of the published leaderboard that the suite still asks for."""
    path = run.suite.home / "leaderboard.csv"
    if not path.is_file():
        return set()
    table = pd.read_csv(path, keep_default_na=False, usecols=["dataset", "victim", "attack"])
    asked = {_cell_key(job)[:3] for job in (*run.jobs, *run.others)}
    return set(table.itertuples(index=False, name=None)) & asked


def verify(run: Run, console: Console, count: int, tolerance: float, seed: int) -> bool:
    """Compute ``count`` random published cells from nothing and compare every metric; return whether all agree.

    Raises:
        RequestError: the suite has no published cells.
    """
    path = run.suite.home / "cells.csv"
    if not path.is_file():
        raise RequestError(f"{path}: nothing is published for this suite")
    published = pd.read_csv(path, keep_default_na=False, dtype={"seed": str}).set_index(
        ["dataset", "victim", "attack", "seed"]
    )
    by_cell = {_cell_key(job): job for job in run.jobs}
    present = [key for key in dict.fromkeys(published.index) if key in by_cell]
    if not present:
        raise RequestError(f"{path}: none of its cells is asked for by {run.suite.path}")
    order = np.random.default_rng(seed).permutation(len(present))[:count]
    chosen = [by_cell[present[i]] for i in sorted(order)]
    with tempfile.TemporaryDirectory() as folder:
        again = dataclasses.replace(run, jobs=chosen, others=(), out=Path(folder), reuse=False)
        runner.execute(again, console, processes=1, force=False)
        agree = [_compare(console, again, job, published.loc[[_cell_key(job)]], tolerance) for job in chosen]
        return all(agree)


def _cell_key(job: Job) -> tuple[str, str, str, str]:
    cell = job.cell
    return cell.source.label, cell.victim.label, cell.attack.label, str(cell.seed)


def _compare(console: Console, run: Run, job: Job, published: pd.DataFrame, tolerance: float) -> bool:
    record = run.record(job)
    metrics = [] if record is None else [metric for metric in record.metrics if metric.value is not None]
    found = {(m.name, m.variable, m.group): m.value for m in metrics}
    unseen = set(found)
    worst, place, missing = 0.0, "", 0
    for row in published.itertuples():
        if row.value == "":
            continue
        name = (str(row.metric), str(row.variable), str(row.group))
        unseen.discard(name)
        if (value := found.get(name)) is None:
            missing += 1
        elif (difference := abs(value - float(str(row.value)))) > worst:
            worst, place = difference, f" in {row.metric} {row.variable} {row.group}".rstrip()
    missing += len(unseen)
    good = worst <= tolerance and not missing and record is not None and record.status != "failed"
    verdict = "agrees" if good else "DIFFERS"
    gone = f", {missing} metrics are missing" if missing else ""
    console.print(
        f"{verdict}: {job.cell.label}: largest difference {worst:.6f}{place}{gone}", markup=False, highlight=False
    )
    return good
