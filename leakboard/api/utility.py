"""Measure what a change of vectors costs: neighbours that a search no longer finds, and accuracy of the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from leakboard.board.means import interval
from leakboard.board.schema import Row

if TYPE_CHECKING:
    from leakboard.interfaces import Floats
    from leakboard.metrics.kept_neighbours import Kept
    from leakboard.pipeline.records import Record
    from leakboard.pipeline.runner import Run
    from leakboard.suite.plan import Job

COLUMNS = (
    "release",
    *(f"neighbours_kept{end}" for end in ("", "_low", "_high")),
    *(f"task_accuracy{end}" for end in ("", "_low", "_high")),
    "task_majority",
)
"""Columns of `Report.utility`."""
UNREADABLE = OSError, EOFError, ValueError, KeyError
"""Errors of files that are lost, cut or damaged."""


def kept_neighbours(run: Run, releases: Sequence[str], warn: Callable[[str], None]) -> dict[str, Kept]:
    """Return how many neighbours each release but the first keeps, with the first seed; empty for lost publications.

    All releases are searched with the same test texts. The interval is over users or documents, if the texts have them.

    Args:
        run: has the releases as victims.
        releases: their names.
        warn: takes a line about a file that cannot be read; its release and later ones are left out.
    """
    if not releases:
        return {}
    from leakboard.data.corpora import load_corpus
    from leakboard.metrics.kept_neighbours import neighbours_kept
    from leakboard.metrics.measures import authors
    from leakboard.randomness import stream

    jobs: dict[str, Job] = {}
    for job in run.jobs:
        name = run.suite.names.name("victim", job.cell.victim.label)
        if name in releases and run.store.has("publications", job.victim_slug, job.victim_key):
            jobs.setdefault(name, job)
    kept: dict[str, Kept] = {}
    if not (first := jobs.pop(releases[0], None)):
        return kept
    name = releases[0]
    try:
        corpus = load_corpus(run.store.path("corpora", first.cell.source.corpus.name, first.corpus_key))
        units, before = authors(corpus, "test"), _documents(run, first)
        for name, job in jobs.items():
            rng = stream(first.cell.seed, corpus.name, "kept neighbours")
            kept[name] = neighbours_kept(before, _documents(run, job), rng, units)
    except UNREADABLE as error:
        warn(f"{name}: the neighbours that releases keep are not counted: a file cannot be read ({error})")
    return kept


def _documents(run: Run, job: Job) -> Mapping[str, Floats]:
    """Return the vectors of a publication by split, float32 (n, d)."""
    from leakboard.pipeline.publications import load_publications

    return load_publications(run.store.path("publications", job.victim_slug, job.victim_key)).documents


def utility_rows(
    rows: Sequence[Row],
    releases: Sequence[str],
    kept: Mapping[str, Kept],
    records_of: Callable[[Row], Sequence[Record]],
) -> list[Row]:
    """Return a row with `COLUMNS` for each release.

    Args:
        rows: of a leaderboard; its victims are the releases.
        releases: their names.
        kept: neighbours that releases keep.
        records_of: returns the records that a row averages over.
    """
    made = []
    for release in releases:
        of_release: Row = next((row for row in rows if row["victim"] == release), {})
        accuracy = dict(zip(COLUMNS[5:7], interval(records_of(of_release), "task_accuracy"), strict=True))
        neighbours = dict(zip(COLUMNS[1:4], kept[release], strict=True)) if release in kept else {}
        made.append({name: ({"release": release} | of_release | accuracy | neighbours).get(name) for name in COLUMNS})
    return made
