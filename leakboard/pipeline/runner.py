"""Run a suite: look up which cells have a result, and run the others."""

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
from leakboard.execution.resources import check_process_limits
from leakboard.pipeline.records import Record, is_altered, is_finished, read_record, write_failure, write_record
from leakboard.pipeline.results import Result, Results, make_record
from leakboard.store import Store
from leakboard.suite.cells import Cell
from leakboard.suite.plan import Identities, Job, plan
from leakboard.suite.registry import Registry
from leakboard.suite.suites import Suite

AGAIN = "published, will be computed again"
"""Entry of `Run.cached` for a published cell that a run computes anyway, because the suite has ``reuse: false``."""

NO_COSTS = "its costs do not match their checksum and are left out; `run --force` measures them again"


@dataclass(frozen=True)
class Run:
    """A suite with its planned cells and its folders.

    Records are in ``out/SUITE/cells``. Corpora, fitted victims and publications are in ``out/.cache``.
    """

    suite: Suite
    jobs: Sequence[Job]
    """The selected cells."""
    others: Sequence[Job]
    """The suite's other cells."""
    out: Path
    plugin_files: tuple[Path, ...] = ()
    reuse: bool = True
    """Whether cells may take over results of other suites, and published results."""
    salt: str = ""
    """Salt of random streams that plugins must not foresee; usually empty."""
    keeps_guesses: bool = False
    """Whether the folder of each cell keeps the guesses of each test row, for the owner of the rows."""

    @property
    def folder(self) -> Path:
        """Folder of the run's tables."""
        return self.out / self.suite.name

    @property
    def cells(self) -> Path:
        """Folder that has a folder for each cell."""
        return self.folder / "cells"

    @property
    def store(self) -> Store:
        """Store of the artefacts that suites share."""
        return Store(self.out / ".cache")

    @cached_property
    def results(self) -> Results:
        """Looks up the results of the cells."""
        others: list[Path] = []
        if self.reuse:
            others = sorted(path for path in self.out.glob("*/cells") if path != self.cells)
        take_published = self.reuse and self.suite.file.reuse
        return Results(self.cells, self.suite.home, [*self.jobs, *self.others], others, take_published)

    def record(self, job: Job) -> Record | None:
        """Return a cell's record: of this suite, of another suite, or of a leaderboard; None if there is none."""
        result = self.results.find(job)
        return result.record if result else None

    def costs(self, job: Job) -> list[dict[str, Any]]:
        """Return the costs of a cell's stages fit, publish and attack."""
        result = self.results.find(job)
        return [dict(cost) for cost in result.costs] if result else []

    def records(self) -> list[Record]:
        """Return the records of all cells that have one."""
        return [record for job in (*self.jobs, *self.others) if (record := self.record(job))]

    @property
    def unfinished(self) -> list[Job]:
        """The selected cells without a result, failed cells included."""
        return [job for job in self.jobs if not ((result := self.results.find(job)) and result.is_done)]

    @property
    def altered(self) -> list[Job]:
        """The selected cells with a result that is unreadable or does not match its checksum."""
        return [job for job in self.jobs if is_altered(self.cells / job.folder)]

    @property
    def without_costs(self) -> list[Job]:
        """All cells whose costs do not match their checksum."""
        jobs = (*self.jobs, *self.others)
        return [job for job in jobs if (result := self.results.find(job)) and result.checked_costs() is None]

    def is_done(self, job: Job, result: Result | None) -> bool:
        """Return whether a result is all that the run needs of a cell: with guesses, the suite's own one with them."""
        if result is None or not result.is_done:
            return False
        return not self.keeps_guesses or is_finished(self.cells / job.folder, job.key, 0.0, True)

    def cached(self, job: Job) -> list[str]:
        """Return which parts of a cell exist: result and its origin, publications, victim, corpus."""
        result = self.results.find(job)
        is_done = result is not None and result.is_done
        parts = {
            "result": is_done,
            f"from {result.origin}" if result else "": is_done and result is not None and result.origin != "own",
            AGAIN: not is_done and self.reuse and bool(self.results.published(job)),
            "publications": self.store.has("publications", job.victim_slug, job.victim_key),
            "victim": self.store.has("victims", job.victim_slug, job.fit_key),
            "corpus": self.store.has("corpora", job.cell.source.corpus.name, job.corpus_key),
        }
        return [name for name, is_present in parts.items() if is_present]


def open_run(
    suite: Suite, chosen: Sequence[Cell], out: Path, registry: Registry, reuse: bool, keeps_guesses: bool = False
) -> Run:
    """Plan the selected cells of a suite, and the other cells for the tables.

    Raises:
        RequestError: a file that a selected cell reads is missing.
    """
    identities = Identities()
    jobs = plan(suite, chosen, identities)
    labels = {cell.label for cell in chosen}
    others = []
    for cell in suite.cells():
        if cell.label not in labels:
            with suppress(RequestError):
                others += plan(suite, [cell], identities)
    return Run(suite, jobs, others, out, registry.files, reuse, keeps_guesses=keeps_guesses)


class Display(Protocol):
    """Shows the user a run's progress."""

    def print(self, line: str) -> None:
        """Show a line permanently."""

    def begin(self, kinds: dict[str, str], processes: int) -> Self:
        """Show that tasks begin.

        Args:
            kinds: kind of each task, by its name.
            processes: number of single-threaded tasks that may run at once.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def listen(self, name: str, event: str, text: str) -> None:
        """Show an event of a task; the arguments are those of `leakboard.execution.engines.Listen`."""

    def end(self, name: str, seconds: float, failure: str, skipped: str = "") -> None:
        """Show that a task has ended.

        Args:
            name: of the task.
            seconds: that it took.
            failure: why it failed; empty if it did not.
            skipped: why its attack does not apply; empty if it does.
        """


def execute(run: Run, display: Display, engine: Engine, force: bool) -> None:
    """Run every selected cell without a result; with ``force``, every selected cell.

    If a cell fails, the failure is recorded and the others go on.

    Raises:
        RequestError: the suite asks for a GPU and the engine has none, or the address space is too small.
        StopRun: as for `leakboard.execution.engines.Engine.run`.
    """
    results = [] if force else [(job, run.results.find(job)) for job in run.jobs]
    done = {job.key: result for job, result in results if result and run.is_done(job, result)}
    pending = [job for job in run.jobs if job.key not in done]
    for origin, count in Counter(result.origin for result in done.values() if result.origin != "own").items():
        display.print(f"{count} of {len(run.jobs)} cells are taken from {origin}; --force computes them")
    if not force:
        _report_other_code(run, done, display)
        for job in run.without_costs:
            display.print(f"{job.folder}: {NO_COSTS}")
    if not pending:
        return
    check_process_limits()
    for job in [job for job in run.altered if job in pending]:
        display.print(f"{job.folder}: its result does not match its checksum; computed again")
    to_run = []
    for job in pending:
        if job.problem:
            write_failure(run.cells / job.folder, make_record(job, "failed", job.problem), job.problem)
        elif job.skip:
            write_record(run.cells / job.folder, make_record(job, "skipped", job.skip))
        else:
            to_run.append(job)
    if to_run:
        run.store.sweep()
        try:
            _run_tasks(run, to_run, display, engine, force)
        except DataError as error:
            raise DataError(f"{run.suite.path}: {error}") from None


def _report_other_code(run: Run, done: Mapping[str, Result], display: Display) -> None:
    counts: Counter[str] = Counter()
    for job in run.jobs:
        if job.key in done:
            made_by = dict(done[job.key].record.code)
        else:
            made_by = run.store.made_by("corpora", job.cell.source.corpus.name, job.corpus_key)
            made_by |= run.store.made_by("victims", job.victim_slug, job.fit_key)
        counts.update(name for name, code in made_by.items() if code != job.code.get(name, code))
    for name, count in sorted(counts.items()):
        message = f"{name}: the code has changed, the revision has not; results or artefacts of {count} cells"
        display.print(f"{message} are from other code; --force computes them again")


def _run_tasks(run: Run, jobs: Sequence[Job], display: Display, engine: Engine, force: bool) -> None:
    from leakboard.execution.reservations import ReservedError, file_clock
    from leakboard.execution.tasks import Outcome, Task
    from leakboard.pipeline.schedule import Schedule, chosen_device
    from leakboard.pipeline.stages import RunFolders
    from leakboard.pipeline.task_functions import record_failure

    files = tuple(path.resolve() for path in run.plugin_files)
    device = chosen_device(run.suite.file.device, jobs, engine)
    since = file_clock(run.cells) if force else 0.0
    folders = RunFolders(
        run.store.root.resolve(), run.cells.resolve(), files, device, since, run.salt, run.keeps_guesses
    )
    schedule = Schedule(run.suite, folders)
    for job in jobs:
        schedule.add(job)
    jobs_of, kinds = schedule.job_of_task, {task.name: task.kind for task in schedule.tasks}

    def is_done(task: Task) -> bool:
        job = jobs_of.get(task.name)
        return job is not None and is_finished(
            folders.cells / job.folder, job.key, folders.since, folders.keeps_guesses
        )

    def recorded_failure(outcome: Outcome) -> str:
        """Record and return the failure of a task; empty for a success."""
        name, failure = outcome.task.name, outcome.failure
        if failure is None:
            return str(outcome.value or "") if name in jobs_of else ""
        if name in jobs_of:
            reservation = outcome.task.reservation
            with suppress(ReservedError), reservation.held() if reservation else nullcontext():
                return record_failure(jobs_of[name], folders, failure.reason, failure.lines)
        return failure.reason

    def why_skipped(name: str) -> str:
        """Return why the attack of a task was skipped; empty for other tasks."""
        record = read_record(folders.cells / jobs_of[name].folder, jobs_of[name].key) if name in jobs_of else None
        return record.reason if record and record.status == "skipped" else ""

    with (
        display.begin(kinds, engine.jobs) as progress,
        closing(engine.run(schedule.tasks, is_done, progress.listen)) as outcomes,
    ):
        for outcome in outcomes:
            name, failure = outcome.task.name, recorded_failure(outcome)
            progress.end(name, outcome.seconds, failure, why_skipped(name))
