"""Find the result of a cell by its identity: in its suite, in another suite, or on a leaderboard."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Literal

from leakboard.pipeline.records import (
    PUBLISHED,
    SUBMISSIONS,
    Record,
    checked_costs,
    published_labels,
    read_published,
    read_record,
)
from leakboard.suite.plan import Job
from leakboard.suite.suites import suite_folder

Origin = Literal["own", "other suites", "published leaderboards"]
Published = dict[str, tuple[Record, list[dict[str, Any]]]]
"""Records of leaderboards with their costs, by identity."""


@dataclass(frozen=True)
class Result:
    """A cell's record, its costs, and its origin."""

    record: Record
    checked_costs: Callable[[], Sequence[Mapping[str, Any]] | None]
    """Returns None if the costs were altered."""
    origin: Origin

    @property
    def costs(self) -> Sequence[Mapping[str, Any]]:
        """Costs of the stages fit, publish and attack; empty if altered or not written."""
        return self.checked_costs() or ()

    @property
    def is_done(self) -> bool:
        """Whether the cell did not fail."""
        return self.record.status != "failed"


@dataclass(frozen=True)
class Results:
    """Looks up results of a suite's cells."""

    cells: Path
    """Folder of the suite's own cells."""
    home: Path
    """Folder of the suite's leaderboard."""
    jobs: Sequence[Job]
    """All cells whose results may be looked up."""
    others: Sequence[Path] = ()
    """Folders of other suites' cells."""
    take_published: bool = True
    """Whether `find` returns published results."""
    _read: dict[str, tuple[int, Result | None]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _environments: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def find(self, job: Job) -> Result | None:
        """Return a cell's result, else its failure in the suite's own folder, else None."""
        local = self._in_folder(self.cells, job, "own")
        if local and local.is_done:
            return local
        for folder in self._others_with_cell.get(job.folder, ()):
            if (result := self._in_folder(folder, job, "other suites")) and result.is_done:
                return result
        return (self.published(job) if self.take_published else None) or local

    def published_at_home(self, job: Job) -> Result | None:
        """Return a cell's result on the suite's own leaderboard."""
        return _published(self._home_board, job)

    def published(self, job: Job) -> Result | None:
        """Return a cell's published result, on the suite's own leaderboard or another."""
        return self.published_at_home(job) or _published(self._other_boards, job)

    def outdated(self, jobs: Sequence[Job]) -> int:
        """Return how many cells have a published result of the same labels but not of the same identity."""
        missing = {_labels(job) for job in jobs if job.key not in self._home_board}
        return len(missing & published_labels(self.home)) if missing else 0

    def _in_folder(self, cells: Path, job: Job, origin: Origin) -> Result | None:
        folder = os.path.join(cells, job.folder)
        try:
            changed = os.stat(folder).st_mtime_ns
        except OSError:
            return None
        known = self._read.get(folder)  # cached until the folder changes
        if known is None or known[0] != changed:
            record = read_record(Path(folder), job.key)
            known = changed, Result(record, cache(partial(self._costs_in, Path(folder))), origin) if record else None
            self._read[folder] = known
        return known[1]

    def _costs_in(self, folder: Path) -> list[dict[str, Any]] | None:
        costs = checked_costs(folder)
        for cost in costs or ():
            if "environment" in cost:  # one copy in memory: it is long, and most cells have the same
                text = json.dumps(cost["environment"], sort_keys=True)
                cost["environment"] = self._environments.setdefault(text, cost["environment"])
        return costs

    @cached_property
    def _others_with_cell(self) -> dict[str, list[Path]]:
        folders: dict[str, list[Path]] = {}
        for cells in self.others:
            with suppress(OSError):
                for name in os.listdir(cells):
                    folders.setdefault(name, []).append(cells)
        return folders

    @cached_property
    def _home_board(self) -> Published:
        return read_published(self.home, {job.key for job in self.jobs})

    @cached_property
    def _other_boards(self) -> Published:
        wanted = {job.key for job in self.jobs} - set(self._home_board)
        homes = [home for home in published_homes() if home.resolve() != self.home.resolve()]
        return {key: entry for home in homes for key, entry in read_published(home, wanted).items()}


def _published(board: Published, job: Job) -> Result | None:
    if job.key not in board:
        return None
    record, costs = board[job.key]
    return Result(record, lambda: costs, "published leaderboards")


def published_homes() -> list[Path]:
    """Return the folders of LeakBoard's own leaderboards with published records, without submissions."""
    root = suite_folder()
    homes = [path.parent for path in sorted(root.rglob(PUBLISHED))]
    return [home for home in homes if SUBMISSIONS not in home.relative_to(root).parts]


def make_record(job: Job, status: str, reason: str = "", **fields: Any) -> Record:
    """Return the record of a cell with these fields."""
    revisions = {name: revision for name, revision in job.revisions.items() if revision is not None}
    return Record(*_labels(job), status, reason, job.key, revisions=revisions, **fields)


def _labels(job: Job) -> tuple[str, str, str, int]:
    cell = job.cell
    return cell.source.label, cell.victim.label, cell.attack.label, cell.seed
