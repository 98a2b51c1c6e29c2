"""Running a suite: which cells are done, running the others, and writing the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from leakboard.errors import DataError, RequestError
from leakboard.execution.engines import Engine
from leakboard.pipeline.records import Record, is_altered, is_finished, write_failure, write_record
from leakboard.pipeline.results import Result, Results
from leakboard.store import Store
from leakboard.suite.cells import Cell
from leakboard.suite.plan import Identities, Job, plan
from leakboard.suite.registry import Registry
from leakboard.suite.suites import Suite

AGAIN = "published, computed again"
"""Of a cell whose published result is not taken over, since its suite is there to be computed."""

NO_COSTS = "its costs do not match their checksum and are left out; `run --force` measures them again"
"""Of a cell whose result is kept."""


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
    """Whether results count that are not the suite's own: of other suites, and published ones."""

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

    @cached_property
    def results(self) -> Results:
        """Where results are looked for."""
        others: list[Path] = []
        if self.reuse:
            others = sorted(path for path in self.out.glob("*/cells") if path != self.cells)
        take_published = self.reuse and self.suite.file.reuse
        return Results(self.cells, self.suite.home, [*self.jobs, *self.others], others, take_published)

    def record(self, job: Job) -> Record | None:
        """Return a cell's record, if it has one, whoever computed it."""
        result = self.results.find(job)
        return result.record if result else None

    def costs(self, job: Job) -> list[dict[str, Any]]:
        """Return what each stage of a cell took."""
        result = self.results.find(job)
        return [dict(cost) for cost in result.costs] if result else []

    def records(self) -> list[Record]:
        """Return the records of all cells that have one."""
        return [record for job in (*self.jobs, *self.others) if (record := self.record(job))]

    @property
    def unfinished(self) -> list[Job]:
        """The cells that were asked for and have no result."""
        return [job for job in self.jobs if not ((result := self.results.find(job)) and result.is_done)]

    @property
    def altered(self) -> list[Job]:
        """The cells that were asked for and whose result does not match its checksum."""
        return [job for job in self.jobs if is_altered(self.cells / job.folder)]

    @property
    def without_costs(self) -> list[Job]:
        """The cells that have a result, but whose costs do not match their checksum and are left out."""
        jobs = (*self.jobs, *self.others)
        return [job for job in jobs if (result := self.results.find(job)) and result.read_costs() is None]

    def cached(self, job: Job) -> list[str]:
        """Return which parts of a cell are there: its result and where from, publications, victim, corpus."""
        result = self.results.find(job)
        done = result is not None and result.is_done
        taken = done and result is not None and result.origin != "own"
        parts = {
            "result": done,
            f"from {result.origin}" if result else "": taken,
            AGAIN: not done and self.reuse and bool(self.results.published(job)),
            "publications": self.store.has("publications", job.victim_slug, job.victim_key),
            "victim": self.store.has("victims", job.victim_slug, job.fit_key),
            "corpus": self.store.has("corpora", job.cell.source.corpus.name, job.corpus_key),
        }
        return [name for name, is_present in parts.items() if is_present]


def open_run(suite: Suite, chosen: Sequence[Cell], out: Path, registry: Registry, reuse: bool) -> Run:
    """Plan the chosen cells, and the suite's others, whose records stand in its tables too where there are any.

    Raises:
        RequestError: a file that a chosen cell needs is missing.
    """
    identities = Identities()
    jobs = plan(suite, chosen, identities)
    labels = {cell.label for cell in chosen}
    others = []
    for cell in suite.cells():
        if cell.label not in labels:
            with suppress(RequestError):
                others += plan(suite, [cell], identities)
    return Run(suite, jobs, others, out, registry.files, reuse)


class Display(Protocol):
    """Shows the user how far a run is."""

    def print(self, line: str) -> None:
        """Show a line that stays."""

    def begin(self, kinds: dict[str, str], processes: int) -> Self:
        """Show that tasks begin: for each task's name what it is like, and how many run at once."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def listen(self, name: str, event: str, text: str) -> None:
        """Take in an event of a task: its name, ``start``, ``progress``, ``warning`` or ``reserved``, and a text."""

    def end(self, name: str, seconds: float, failure: str) -> None:
        """Show that a task has ended."""


def execute(run: Run, display: Display, engine: Engine, force: bool) -> None:
    """Run every cell that was asked for and has no result yet; failures are recorded, and the others go on.

    Raises:
        StopRun: the output folder cannot be written, the disk is full, or a dataset is not as the suite asks.
    """
    results = [] if force else [(job, run.results.find(job)) for job in run.jobs]
    done = {job.key: result for job, result in results if result and result.is_done}
    pending = [job for job in run.jobs if job.key not in done]
    for origin, count in Counter(result.origin for result in done.values() if result.origin != "own").items():
        message = f"{count} of {len(run.jobs)} cells are taken from {origin}; --force computes them"
        display.print(message)
    if not force:
        _tell_of_other_code(run, done, display)
        for job in run.without_costs:
            display.print(f"{job.folder}: {NO_COSTS}")
    if not pending:
        return
    for job in [job for job in run.altered if job in pending]:
        display.print(f"{job.folder}: its result does not match its checksum; computed again")
    for job in [job for job in pending if job.problem or job.skip]:
        _record_without_trying(run, job)
    tried = [job for job in pending if not (job.problem or job.skip)]
    if tried:
        run.store.sweep()
        try:
            _run_tasks(run, tried, display, engine, force)
        except DataError as error:
            raise DataError(f"{run.suite.path}: {error}") from None


def _tell_of_other_code(run: Run, done: Mapping[str, Result], display: Display) -> None:
    """Tell once a plugin whose results or parts were computed by other code that declares the same revision."""
    counts: Counter[str] = Counter()
    for job in run.jobs:
        if job.key in done:
            made_by = dict(done[job.key].record.code)
        else:
            made_by = run.store.made_by("corpora", job.cell.source.corpus.name, job.corpus_key)
            made_by |= run.store.made_by("victims", job.victim_slug, job.fit_key)
        counts.update(name for name, code in made_by.items() if code != job.code.get(name, code))
    for name, count in sorted(counts.items()):
        message = f"{name}: results that {count} cells take over were computed by other code of the same revision"
        display.print(f"{message}; --force computes them again")


def _record_without_trying(run: Run, job: Job) -> None:
    status, reason = ("failed", job.problem) if job.problem else ("skipped", job.skip)
    labels = (job.cell.source.label, job.cell.victim.label, job.cell.attack.label)
    record = Record(*labels, job.cell.seed, status, reason, job.key)
    if job.problem:
        write_failure(run.cells / job.folder, record, job.problem)
    else:
        write_record(run.cells / job.folder, record)


def _run_tasks(run: Run, pending: Sequence[Job], display: Display, engine: Engine, force: bool) -> None:
    from leakboard.execution.reservations import ReservedError, file_clock
    from leakboard.execution.tasks import Outcome, Task
    from leakboard.pipeline.schedule import Schedule, chosen_device
    from leakboard.pipeline.stages import RunFolders
    from leakboard.pipeline.worker import record_failure

    files = tuple(path.resolve() for path in run.plugin_files)
    device = chosen_device(run.suite.file.device, pending, engine)
    since = file_clock(run.cells) if force else 0.0
    folders = RunFolders(run.store.root.resolve(), run.cells.resolve(), files, device, since)
    schedule = Schedule(run.suite, folders)
    for job in pending:
        schedule.add(job)
    cells, kinds = schedule.cells, {task.name: task.kind for task in schedule.tasks}

    def finish(outcome: Outcome) -> str:
        """Return the failure of a task in one line, recorded for a cell; empty when it went well."""
        name = outcome.task.name
        if (failure := outcome.failure) is None:
            return str(outcome.value or "") if name in cells else ""
        if name not in cells:
            return failure.reason
        with suppress(ReservedError), outcome.task.reservation.held() if outcome.task.reservation else nullcontext():
            return record_failure(cells[name], folders, failure.reason, failure.lines)
        return failure.reason

    def is_done(task: Task) -> bool:
        """Return whether a cell has its result, of a process that was lost or of another run."""
        job = cells.get(task.name)
        return job is not None and is_finished(folders.cells / job.folder, job.key, folders.since)

    with (
        display.begin(kinds, engine.jobs) as progress,
        closing(engine.run(schedule.tasks, is_done, progress.listen)) as outcomes,
    ):
        for outcome in outcomes:
            progress.end(outcome.task.name, outcome.seconds, finish(outcome))
