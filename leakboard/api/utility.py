"""Measure what a change of vectors costs: neighbours that a search no longer finds, and accuracy of the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from leakboard.board.schema import Row

if TYPE_CHECKING:
    from leakboard.metrics.kept_neighbours import Kept
    from leakboard.pipeline.runner import Run

COLUMNS = (
    "release",
    *(f"neighbours_kept{end}" for end in ("", "_low", "_high")),
    *(f"task_accuracy{end}" for end in ("", "_low", "_high")),
    "task_majority",
)
"""Columns of `Report.utility`."""


def kept_neighbours(run: Run, releases: Sequence[str]) -> dict[str, Kept]:
    """Return how many neighbours each release but the first keeps, with the first seed; empty for lost publications.

    Args:
        run: has the releases as victims.
        releases: their names.
    """
    from leakboard.metrics.kept_neighbours import neighbours_kept
    from leakboard.pipeline.publications import load_publications

    published = {}
    for job in run.jobs:
        name = run.suite.names.name("victim", job.cell.victim.label)
        if name not in published and run.store.has("publications", job.victim_slug, job.victim_key):
            published[name] = load_publications(
                run.store.path("publications", job.victim_slug, job.victim_key)
            ).documents
    if not releases or releases[0] not in published:
        return {}
    first = published[releases[0]]
    return {name: neighbours_kept(first, published[name]) for name in releases[1:] if name in published}


def utility_rows(rows: Sequence[Row], releases: Sequence[str], kept: Mapping[str, Kept]) -> list[Row]:
    """Return a row with `COLUMNS` for each release.

    Args:
        rows: of a leaderboard; its victims are the releases.
        releases: their names.
        kept: neighbours that releases keep.
    """
    made = []
    for release in releases:
        of_release: Row = next((row for row in rows if row["victim"] == release), {})
        neighbours = dict(zip(COLUMNS[1:4], kept[release], strict=True)) if release in kept else {}
        made.append({name: ({"release": release} | of_release | neighbours).get(name) for name in COLUMNS})
    return made
