"""Running a suite: which cells are done, running the others, and writing the tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from leakboard.errors import DataError, RequestError
from leakboard.pipeline.records import (
    Record,
    is_altered,
    read_costs,
    read_published,
    read_record,
    write_failure,
    write_record,
)
from leakboard.store import Store
from leakboard.suite.plan import Identities, Job, plan
from leakboard.suite.plugins import Registry
from leakboard.suite.suites import Cell, Suite


@dataclass(frozen=True)
class Run:
    """A suite with its cells, planned, and where they are kept.

    ``out/SUITE/cells`` holds the records, ``out/.cache`` what suites share (corpora, fitted victims, publications).
    """

    suite: Suite
    jobs: Sequence[Job]
    """The cells that were asked for."""
    others: Sequence[Job]
    """The suite's other cells."""
    out: Path
    plugin_files: tuple[Path, ...] = ()
    reuse: bool = True
    """Whether published records count as results."""

    @property
    def folder(self) -> Path:
        """Where the run's tables are."""
        return self.out / self.suite.name

    @property
    def cells(self) -> Path:
        """Where the cells' folders are."""
        return self.folder / "cells"

    @property
    def store(self) -> Store:
        """What suites share."""
        return Store(self.out / ".cache")

    def record(self, job: Job) -> Record | None:
        """Return a cell's record, if it has one: its own, or one that is published and has the same identity."""
        own, published = read_record(self.cells / job.folder, job.key), self.published.get(job.key)
        return published[0] if published and not _is_done(own) else own

    def costs(self, job: Job) -> list[dict[str, Any]]:
        """Return what each stage of a cell took."""
        return read_costs(self.cells / job.folder) or list(self.published.get(job.key, (None, ()))[1])

    @cached_property
    def published(self) -> dict[str, tuple[Record, list[dict[str, Any]]]]:
        """The published records with their costs, by identity."""
        return read_published(self.suite.home) if self.reuse and self.suite.file.records else {}

    def records(self) -> list[Record]:
        """Return the records of all cells that have one."""
        return [record for job in (*self.jobs, *self.others) if (record := self.record(job))]

    @property
    def unfinished(self) -> list[Job]:
        """The cells that were asked for and have no result."""
        return [job for job in self.jobs if not _is_done(self.record(job))]

    @property
    def taken_over(self) -> list[Job]:
        """The cells that were asked for and whose result is the published one."""
        records = [(job, self.published.get(job.key)) for job in self.jobs]
        return [job for job, published in records if published and self.record(job) is published[0]]

    @property
    def altered(self) -> list[Job]:
        """The cells that were asked for and whose result does not match its checksum."""
        return [job for job in self.jobs if is_altered(self.cells / job.folder)]

    def cached(self, job: Job) -> list[str]:
        """Return which parts of a cell are there: result, published result, publications, victim, corpus."""
        record = self.record(job)
        parts = {
            "result": _is_done(record),
            "published": job.key in self.published,
            "publications": self.store.has("publications", job.victim_slug, job.victim_key),
            "victim": self.store.has("victims", job.victim_slug, job.fit_key),
            "corpus": self.store.has("corpora", job.cell.source.corpus.name, job.corpus_key),
        }
        return [name for name, there in parts.items() if there]


def open_run(suite: Suite, chosen: Sequence[Cell], out: Path, registry: Registry, reuse: bool = True) -> Run:
    """Plan the chosen cells, and the suite's others, whose records stand in its tables too where there are any.

    Raises:
        RequestError: a file that a chosen cell needs is missing.
    """
    identities = Identities(registry)
    jobs = plan(suite, chosen, identities)
    labels = {cell.label for cell in chosen}
    others = []
    for cell in suite.cells():
        if cell.label not in labels:
            with suppress(RequestError):
                others += plan(suite, [cell], identities)
    return Run(suite, jobs, others, out, registry.files, reuse)


def execute(run: Run, console: Console, processes: int, force: bool) -> None:
    """Run every cell that was asked for and has no result yet; failures are recorded, and the others go on.

    Raises:
        StopRun: the output folder cannot be written, the disk is full, or a dataset is not as the suite asks.
    """
    pending = list(run.jobs) if force else run.unfinished
    if not force and run.taken_over:
        told = f"{len(run.taken_over)} of {len(run.jobs)} cells are taken from the published leaderboard"
        console.print(f"{told}; --force computes them", markup=False, highlight=False)
    if not pending:
        return
    for job in [job for job in run.altered if job in pending]:
        console.print(f"{job.folder}: its result does not match its checksum; computed again", markup=False)
    for job in [job for job in pending if job.problem or job.skip]:
        _record_without_trying(run, job)
    tried = [job for job in pending if not (job.problem or job.skip)]
    if tried:
        run.store.sweep()
        try:
            _run_tasks(run, tried, console, processes, force)
        except DataError as error:
            raise DataError(f"{run.suite.path}: {error}") from None


def _is_done(record: Record | None) -> bool:
    return record is not None and record.status != "failed"


def _record_without_trying(run: Run, job: Job) -> None:
    status, reason = ("failed", job.problem) if job.problem else ("skipped", job.skip)
    labels = (job.cell.source.label, job.cell.victim.label, job.cell.attack.label)
    record = Record(*labels, job.cell.seed, status, reason, job.key)
    if job.problem:
        write_failure(run.cells / job.folder, record, job.problem)
    else:
        write_record(run.cells / job.folder, record)


def _run_tasks(run: Run, pending: Sequence[Job], console: Console, processes: int, force: bool) -> None:
    from leakboard.cli.progress import RunProgress
    from leakboard.pipeline.engines import Outcome, Task, run_local
    from leakboard.pipeline.worker import Workplace, fit_victim, load_dataset, publish_victim, record_failure, run_cell

    place, timeout = Workplace(run.store.root.resolve(), run.cells.resolve(), run.plugin_files), run.suite.file.timeout
    loading: list[Task] = []
    tasks: list[Task] = []
    kinds: dict[str, str] = {}
    loads: dict[str, str] = {}
    fits: dict[str, str] = {}
    publications: dict[str, str] = {}
    cells: dict[str, Job] = {}
    for job in pending:
        source, victim, attack, seed = job.cell.source, job.cell.victim, job.cell.attack, job.cell.seed
        for choice, key, of_attacker in ((source.corpus, job.corpus_key, False), (source.other, job.other_key, True)):
            if choice and key not in loads:
                name = loads[key] = kinds[f"load {choice.label}"] = f"load {choice.label}"
                loading.append(Task(name, load_dataset, (job, place, of_attacker), timeout=timeout))
        fitting = f"{source.label} / fit {job.fit_label} / seed {seed}"
        publishing = f"{source.label} / {victim.label} / seed {seed}"
        attacking = f"{publishing} / {attack.label}"
        if job.fit_key not in fits:
            tasks.append(Task(fitting, fit_victim, (job, place, force), loads[job.corpus_key], timeout))
            fits[job.fit_key], kinds[fitting] = fitting, f"fit {job.fit_label}"
        if job.victim_key not in publications:
            tasks.append(Task(publishing, publish_victim, (job, place, force), fits[job.fit_key], timeout))
            publications[job.victim_key], kinds[publishing] = publishing, f"publish {victim.label}"
        tasks.append(Task(attacking, run_cell, (job, place), publications[job.victim_key], timeout))
        cells[attacking], kinds[attacking] = job, attack.name

    def finish(outcome: Outcome) -> str:
        """Return the failure of a task in one line, recorded for a cell; empty when it went well."""
        name = outcome.task.name
        if (failure := outcome.failure) is None:
            return str(outcome.value or "") if name in cells else ""
        if name not in cells:
            return failure.reason
        return record_failure(cells[name], place, failure.reason, failure.lines)

    with (
        RunProgress(console, kinds, processes) as progress,
        closing(run_local([*loading, *tasks], processes, progress.listen)) as outcomes,
    ):
        for outcome in outcomes:
            progress.end(outcome.task.name, outcome.seconds, finish(outcome))
