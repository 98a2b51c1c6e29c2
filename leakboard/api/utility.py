"""Measure what a change of vectors costs: neighbours that a search no longer finds, and accuracy of the task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from leakboard.board.kept_neighbours import COLUMNS as OF_NEIGHBOURS
from leakboard.board.means import interval
from leakboard.board.schema import Row

if TYPE_CHECKING:
    from leakboard.pipeline.records import Record

OF_TASK = ("task_accuracy", "task_accuracy_low", "task_accuracy_high")
COLUMNS = ("release", *OF_NEIGHBOURS, *OF_TASK, "task_majority")
"""Columns of `Report.utility`."""


def utility_rows(
    rows: Sequence[Row],
    releases: Sequence[str],
    kept: Sequence[Row],
    records_of: Callable[[Row], Sequence[Record]],
) -> list[Row]:
    """Return a row with `COLUMNS` for each release.

    Args:
        rows: of a leaderboard; its victims are the releases.
        releases: their names.
        kept: the neighbours that they keep (`leakboard.board.kept_neighbours`).
        records_of: returns the records that a row averages over.
    """
    made = []
    for release in releases:
        of_release, neighbours = (
            next((row for row in table if row["victim"] == release), {}) for table in (rows, kept)
        )
        accuracy = dict(zip(OF_TASK[1:], interval(records_of(of_release), "task_accuracy"), strict=True))
        row = {"release": release} | of_release | accuracy | {name: neighbours.get(name) for name in OF_NEIGHBOURS}
        made.append({name: row.get(name) for name in COLUMNS})
    return made
