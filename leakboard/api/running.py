"""Running a suite from Python: by default inside this process, which a notebook needs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from leakboard.errors import RequestError, nearest

if TYPE_CHECKING:
    from leakboard.api.report import Report
    from leakboard.suite.keys import Device

KINDS = ("dataset", "victim", "attack")


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
) -> Report:
    """Compute a suite, or take over what is computed already, and return what it found.

    Args:
        suite: a name under ``leaderboards/``, a YAML file, or a mapping of what such a file would hold.
        out: folder of the run's tables and of what suites share.
        only: plugin names or labels to keep, as in ``{"victim": "lsa"}``; keys are dataset, victim and attack.
        seeds: instead of the suite's.
        jobs: processes that compute at once. 0 computes in this process, one task after another; then no timeout of the
            suite is enforced. More need a script with ``if __name__ == "__main__":``.
        device: ``cpu``, ``cuda`` or ``auto``, instead of the suite's.
        force: compute again what is done.
        plugins: files of plugins besides the installed ones.

    Raises:
        RequestError: the suite, or another argument, is wrong: one line says where and what is allowed.
    """
    chosen = _only(only or {})
    for name, values in {"seeds": list(seeds or ()), "jobs": [jobs]}.items():
        if wrong := [value for value in values if type(value) is not int or value < 0]:
            raise RequestError(f"{name}: {wrong[0]!r} is not allowed: a whole number from 0")
    from leakboard.api.report import Report
    from leakboard.board.reference import read_reference
    from leakboard.board.run_files import write_files
    from leakboard.execution.engines import Here
    from leakboard.execution.local import Local
    from leakboard.pipeline.runner import execute, open_run
    from leakboard.suite.registry import Registry
    from leakboard.suite.suites import load_suite

    registry = Registry([Path(file) for file in plugins])
    loaded = load_suite(suite, registry).on(device)
    opened = open_run(loaded, loaded.cells(seeds, chosen), Path(out), registry, reuse=not force)
    display = _Notes()
    execute(opened, display, Local(jobs) if jobs else Here(), force)
    records = opened.records()
    write_files(opened, records)
    return Report(
        name=loaded.name,
        description=loaded.file.description,
        suite=loaded.file.model_dump(exclude_unset=True),
        records=records,
        stage_costs={job.key: opened.costs(job) for job in (*opened.jobs, *opened.others)},
        reference=read_reference(loaded.home),
        names=loaded.names,
        notes=tuple(display.notes),
    )


def _only(only: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    for key in only:
        if key not in KINDS:
            raise RequestError(f"only: {key!r} is not one of {', '.join(KINDS)}{nearest(key, KINDS)}")
    return {key: [names] if isinstance(names, str) else list(names) for key, names in only.items()}


class _Notes:
    """Shows a bar on standard error while a run lasts, and keeps what a reader of its results must know."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def print(self, line: str) -> None:
        """Keep a line."""
        self.notes.append(line)

    def begin(self, kinds: dict[str, str], processes: int) -> Self:
        """Make the bar; a terminal or a notebook shows it, a log file does not."""
        from tqdm import tqdm

        self.kinds = kinds
        is_seen = sys.stderr.isatty() or "ipykernel" in sys.modules
        self.bar = tqdm(total=len(kinds), leave=False, disable=not is_seen, unit="task")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.bar.close()

    def listen(self, name: str, event: str, text: str) -> None:
        """Show which task runs, and keep its warnings."""
        if event == "warning":
            self.notes.append(f"{name}: {text}")
        elif event != "reserved":
            self.bar.set_description(": ".join(filter(None, (self.kinds[name].partition("(")[0], text))))

    def end(self, name: str, seconds: float, failure: str) -> None:
        """Count a task, and keep why it failed."""
        self.bar.update()
        if failure:
            self.notes.append(f"{name} failed: {failure}")
