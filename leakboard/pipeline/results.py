"""Where a cell's result is found, whoever computed it: its own suite, another suite of the run's folder, a leaderboard.

Results are found by identity alone. What is found elsewhere is read there and never changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from leakboard.pipeline.records import (
    PUBLISHED,
    SUBMISSIONS,
    Record,
    checked_costs,
    published_records,
    read_published,
    read_record,
)
from leakboard.suite.plan import Job
from leakboard.suite.suites import suite_folder

Origin = Literal["own", "other suites", "published leaderboards"]


@dataclass(frozen=True)
class Result:
    """A cell's record, what its stages took, and where it was found."""

    record: Record
    read_costs: Callable[[], Sequence[Mapping[str, Any]] | None]
    """Returns None where they were altered."""
    origin: Origin

    @property
    def costs(self) -> Sequence[Mapping[str, Any]]:
        """What each stage took, as far as that was not altered; read when it is asked for."""
        return self.read_costs() or ()

    @property
    def is_done(self) -> bool:
        """Whether the cell need not be tried."""
        return self.record.status != "failed"


@dataclass(frozen=True)
class Results:
    """The results that a suite's cells may have.

    Each leaderboard's file of records is opened at most once, and none while what is asked for is found nearer. Only
    `outdated` opens the suite's own once more, whole.
    """

    cells: Path
    """The suite's own cells."""
    home: Path
    """Where the suite is published."""
    jobs: Sequence[Job]
    """Whatever will be asked for."""
    others: Sequence[Path] = ()
    """Folders of other suites' cells."""
    take_published: bool = True
    _read: dict[str, tuple[int, Result | None]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def find(self, job: Job) -> Result | None:
        """Return a cell's result; its own failure where nobody has finished it; None where it was never tried."""
        local = self._in_folder(self.cells, job, "own")
        if local and local.is_done:
            return local
        for folder in self._folders.get(job.folder, ()):
            if (result := self._in_folder(folder, job, "other suites")) and result.is_done:
                return result
        return (self.published(job) if self.take_published else None) or local

    def published_at_home(self, job: Job) -> Result | None:
        """Return a cell's result as the suite's own leaderboard has it."""
        entry = self._home_board.get(job.key)
        return _published(*entry) if entry else None

    def published(self, job: Job) -> Result | None:
        """Return a cell's published result, of its own leaderboard or another."""
        for board in (self._home_board, self._boards) if job.key not in self._home_board else (self._home_board,):
            if job.key in board:
                return _published(*board[job.key])
        return None

    def outdated(self, jobs: Sequence[Job]) -> int:
        """Return how many of these cells have a published result under their labels, but not under their identity."""
        missing = {_labels(job) for job in jobs if job.key not in self._home_board}
        records = published_records(self.home) if missing else ()
        return len(missing & {(r.dataset, r.victim, r.attack, r.seed) for r in records})

    def _in_folder(self, cells: Path, job: Job, origin: Origin) -> Result | None:
        """Return what a cell's folder holds; it is read again when something was written there since."""
        folder = os.path.join(cells, job.folder)
        try:
            changed = os.stat(folder).st_mtime_ns
        except OSError:
            return None
        known = self._read.get(folder)
        if known is None or known[0] != changed:
            record = read_record(Path(folder), job.key)
            known = changed, Result(record, partial(checked_costs, Path(folder)), origin) if record else None
            self._read[folder] = known
        return known[1]

    @cached_property
    def _folders(self) -> dict[str, list[Path]]:
        """Other suites' folders of cells, by the name of a cell's folder."""
        folders: dict[str, list[Path]] = {}
        for cells in self.others:
            with suppress(OSError):
                for name in os.listdir(cells):
                    folders.setdefault(name, []).append(cells)
        return folders

    @cached_property
    def _home_board(self) -> dict[str, tuple[Record, list[dict[str, Any]]]]:
        return read_published(self.home, {job.key for job in self.jobs})

    @cached_property
    def _boards(self) -> dict[str, tuple[Record, list[dict[str, Any]]]]:
        """The other leaderboards' records of the cells that the own one lacks."""
        wanted = {job.key for job in self.jobs} - set(self._home_board)
        here = self.home.resolve()
        homes = [home for home in published_homes() if home.resolve() != here]
        return {key: entry for home in homes for key, entry in read_published(home, wanted).items()}


def _published(record: Record, costs: Sequence[Mapping[str, Any]]) -> Result:
    return Result(record, lambda: costs, "published leaderboards")


def published_homes() -> list[Path]:
    """Return the folders of the leaderboards that come with LeakBoard, without what others submitted to them."""
    homes = [path.parent for path in sorted(suite_folder().rglob(PUBLISHED))]
    return [home for home in homes if home.parent.name != SUBMISSIONS]


def _labels(job: Job) -> tuple[str, str, str, int]:
    cell = job.cell
    return cell.source.label, cell.victim.label, cell.attack.label, cell.seed
