"""Run a suite from Python: by default inside this process, which a notebook needs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from leakboard.api.arguments import FilePath, Whole, require
from leakboard.errors import RequestError, nearest

if TYPE_CHECKING:
    from leakboard.api.estimate import Estimate
    from leakboard.api.report import Report
    from leakboard.suite.cells import Cell
    from leakboard.suite.registry import Registry
    from leakboard.suite.suite_file import Device
    from leakboard.suite.suites import Suite


def run(
    suite: str | Path | Mapping[str, Any],
    *,
    out: str | Path = "runs",
    only: Mapping[str, str | Sequence[str]] | None = None,
    seeds: Sequence[int] | None = None,
    jobs: int = 0,
    device: Device | None = None,
    force: bool = False,
    plugins: Sequence[str | Path] = (),
    progress: bool = True,
) -> Report:
    """Compute a suite, except its finished cells, and return its report.

    Args:
        suite: a name under ``leaderboards/``, a YAML file, or a mapping with the content of such a file. A mapping may
            have plugin instances in place of names, as in ``"attacks": [MyAttack(k=3)]``.
        out: folder of the run's tables and of the parts that suites share.
        only: plugin names or labels to keep, as in ``{"victim": "lsa"}``; keys are dataset, victim and attack.
        seeds: replace the suite's seeds.
        jobs: processes that compute at once. 0 computes in this process, one task after another; then no timeout of the
            suite is enforced. More need a script with ``if __name__ == "__main__":``, and plugins that have files.
        device: ``cpu``, ``cuda`` or ``auto``; replaces the suite's device.
        force: compute finished cells again.
        plugins: files of further plugins.
        progress: show a bar on standard error, in a terminal or a notebook.

    Raises:
        RequestError: the suite or another argument is wrong; one line says where and what is allowed.
    """
    require(FilePath, out=out)
    require(FilePath | Mapping[str, Any], suite=suite)
    require(Sequence[FilePath], plugins=plugins)
    require(Annotated[Sequence[Whole], Field(min_length=1)] | None, seeds=seeds)
    require(Whole, jobs=jobs)
    chosen = _only(only or {})
    from leakboard.suite.registry import Registry
    from leakboard.suite.suites import load_suite

    registry = Registry([Path(file) for file in plugins])
    loaded = load_suite(suite, registry).on(device)
    if jobs and registry.local:
        raise RequestError(
            f"jobs: {jobs} is not allowed with {registry.local[0].__name__}: workers cannot import this class; "
            "allowed: 0, or plugins=[...] with the file of the class"
        )
    return compute(loaded, loaded.cells(seeds, chosen), registry, Path(out), jobs, force, progress)


def compute(
    suite: Suite,
    cells: Sequence[Cell],
    registry: Registry,
    out: Path,
    jobs: int = 0,
    force: bool = False,
    progress: bool = True,
    keeps_guesses: bool = False,
    estimated: Estimate | None = None,
    releases: Sequence[str] = (),
) -> Report:
    """Compute cells of a suite that was read, write the run's files, and return the report.

    With ``keeps_guesses`` the run and the report also have the guesses of each test row. The estimate of the time is
    shown before the first task. Victims that are ``releases`` of the same rows are compared with the first.
    """
    from leakboard.api.report import Report
    from leakboard.board.kept_neighbours import kept_neighbours
    from leakboard.board.published_numbers import read_reference
    from leakboard.board.run_files import write_files
    from leakboard.board.schema import require_new_names
    from leakboard.execution.engines import InProcess
    from leakboard.execution.local import Local
    from leakboard.pipeline.guess_files import read_guesses
    from leakboard.pipeline.runner import execute, open_run

    require_new_names(suite.cells())
    opened = open_run(suite, cells, out, registry, not force, keeps_guesses)
    display = _Bar(progress, estimated)
    execute(opened, display, Local(jobs) if jobs else InProcess(), force)
    records = opened.records()
    write_files(opened, records)
    guesses = {}
    for job in opened.jobs if keeps_guesses else ():
        if of_cell := read_guesses(opened.cells / job.folder, job.key):
            guesses[job.key] = of_cell
    return Report(
        name=suite.name,
        description=suite.file.description,
        suite=suite.file.model_dump(exclude_unset=True),
        records=records,
        stage_costs={job.key: opened.costs(job) for job in (*opened.jobs, *opened.others)},
        reference=read_reference(suite.home),
        names=suite.names,
        guesses=guesses,
        releases=releases,
        kept=kept_neighbours(opened, releases[:1], display.print),
        notes=tuple(display.notes),  # after all that may add one
    )


def _only(only: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    from leakboard.suite.names import KINDS

    require(Mapping[str, str | list[str] | tuple[str, ...]], only=only)
    for key, names in only.items():
        if key not in KINDS:
            raise RequestError(f"only: {key!r} is not one of {', '.join(KINDS)}{nearest(key, KINDS)}")
        if not names:
            raise RequestError(f"only: {key}: {names!r} is not allowed: at least one name")
    return {key: [names] if isinstance(names, str) else list(names) for key, names in only.items()}


class _Bar:
    """Progress bar on standard error, and the warnings of a run.

    The bar is one line that rewrites itself, which terminals and notebooks show. Of an evaluation of own vectors a log
    file gets a line at the start, and one for each attack that has ended.
    """

    def __init__(self, is_wanted: bool, estimated: Estimate | None = None):
        self.is_wanted, self.estimated = is_wanted, estimated
        self.notes: list[str] = []

    def print(self, line: str) -> None:
        """Keep a line for the report."""
        self.notes.append(line)

    def begin(self, kinds: dict[str, str], processes: int) -> Self:
        """Make the bar."""
        from rich.console import Console
        from rich.progress import Progress

        self.kinds = kinds
        # A notebook shows what a terminal would; rich's own display there needs ipywidgets.
        console = Console(
            stderr=True, emoji=False, force_jupyter=False, force_terminal="ipykernel" in sys.modules or None
        )
        is_seen = self.is_wanted and console.is_terminal
        self.log = console if self.is_wanted and self.estimated and not is_seen else None
        self.attacks = [name for name, kind in kinds.items() if " " not in kind]  # as in "fit precomputed"
        self.attacks_ended = 0
        sentence = self.estimated.sentence(kinds.values()) if self.estimated else ""
        if is_seen and sentence:
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)
        elif self.log and self.estimated:
            self._log(sentence or f"attacks on {self.estimated.size or 'vectors'}: how long they take is not estimated")
        given: Any = {"transient": True, "disable": not is_seen, "redirect_stdout": False, "redirect_stderr": False}
        self.bar = Progress(*Progress.get_default_columns(), console=console, **given)
        self.total = self.bar.add_task("", total=len(kinds))
        return self

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.bar.stop()

    def listen(self, name: str, event: str, text: str) -> None:
        """Show the task that runs, and keep its warnings."""
        if event == "warning":
            self.notes.append(f"{name}: {text}")
        elif event != "reserved":
            from rich.markup import escape

            shown = ": ".join(filter(None, (self._kind(name), text)))
            self.bar.update(self.total, description=escape(shown))

    def end(self, name: str, seconds: float, failure: str, skipped: str = "") -> None:
        """Count a task, and keep why it failed."""
        self.bar.advance(self.total)
        if name in self.attacks:
            self.attacks_ended += 1
            result = (
                f"failed: {failure}" if failure else f"skipped: {skipped}" if skipped else f"done in {seconds:.0f} s"
            )
            self._log(f"[{self.attacks_ended}/{len(self.attacks)}] {name}: {result}")
        if failure:
            self.notes.append(f"{name} failed: {failure}")

    def _log(self, line: str) -> None:
        """Print a line into a log file; nothing elsewhere."""
        if self.log:
            self.log.print(line, markup=False, highlight=False, soft_wrap=True)

    def _kind(self, name: str) -> str:
        """Return the plugin of a task, without its options."""
        return self.kinds[name].partition("(")[0]
