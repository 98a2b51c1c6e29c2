"""Count the neighbours that victims keep of an undefended victim: what a search in their vectors loses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from leakboard.board.schema import Row
from leakboard.board.tables import read_table
from leakboard.data.corpora import load_corpus
from leakboard.interfaces import Floats
from leakboard.logs import log_warning
from leakboard.metrics.kept_neighbours import neighbours_kept
from leakboard.metrics.measures import authors
from leakboard.pipeline.publications import load_publications
from leakboard.pipeline.runner import Run
from leakboard.randomness import stream
from leakboard.suite.plan import Job

NEIGHBOURS_FILE = "neighbours.csv"
HEAD = ("dataset", "victim", "undefended")
COLUMNS = ("neighbours_kept", "neighbours_kept_low", "neighbours_kept_high")
"""The share that is kept, and its 95 % interval."""
UNREADABLE = OSError, EOFError, ValueError, KeyError
"""Errors of files that are lost, cut or damaged."""


def kept_neighbours(run: Run, undefended: Sequence[str], warn: Callable[[str], None] = log_warning) -> list[Row]:
    """Return how many neighbours each victim keeps of the undefended victim that the suite lists before it.

    The rows are of the first seed whose vectors are in the run's store. If a victim's results were published before and
    taken over, its vectors are not there, and its published row is kept. All victims of a dataset have the same test
    texts. The interval is over users or documents, if the texts have them.

    Args:
        run: the run.
        undefended: names of victims.
        warn: takes a line about a file that cannot be read.
    """
    if not undefended:
        return []
    names, jobs, load = run.suite.names, _published_jobs(run), lru_cache(maxsize=2)(_documents)
    rows: list[Row] = []
    known = {tuple(row[name] for name in HEAD): row for row in read_table(run.suite.home / NEIGHBOURS_FILE)}
    for source in run.suite.sources:
        dataset, before = names.name("dataset", source.label), ""
        for victim in (names.name("victim", choice.label) for choice in run.suite.victims):
            if victim in undefended:
                before = victim
                continue
            first, other = jobs.get((dataset, before), {}), jobs.get((dataset, victim), {})
            head = dataset, victim, before
            try:
                made = next((_measured(run, first[seed], other[seed], load) for seed in other if seed in first), {})
            except UNREADABLE as error:
                warn(f"{victim}: the neighbours that it keeps are not counted: a file cannot be read ({error})")
                made = {}
            if made or head in known:
                rows.append({**dict(zip(HEAD, head, strict=True)), **made} if made else known[head])
    return rows


def _published_jobs(run: Run) -> dict[tuple[str, str], dict[int, Job]]:
    """Return a job of each publication in the run's store, by dataset and victim, then by seed."""
    names = run.suite.names
    jobs: dict[tuple[str, str], dict[int, Job]] = {}
    for job in (*run.jobs, *run.others):
        if run.store.has("publications", job.victim_slug, job.victim_key):
            key = names.name("dataset", job.cell.source.label), names.name("victim", job.cell.victim.label)
            jobs.setdefault(key, {}).setdefault(job.cell.seed, job)
    return jobs


def _measured(run: Run, before: Job, after: Job, load: Callable[[Path], Mapping[str, Floats]]) -> Row:
    """Return the share of neighbours that a publication keeps of another, with its interval; empty without vectors."""
    corpus = load_corpus(run.store.path("corpora", before.cell.source.corpus.name, before.corpus_key))
    old, new = (load(run.store.path("publications", job.victim_slug, job.victim_key)) for job in (before, after))
    if not old or not new:
        return {}
    rng = stream(before.cell.seed, corpus.name, "kept neighbours")
    kept = neighbours_kept(old, new, rng, authors(corpus, "test"))
    return dict(zip(COLUMNS, kept, strict=True))


def _documents(folder: Path) -> Mapping[str, Floats]:
    """Return the vectors of a publication by split, float32 (n, d); empty if it has words or texts alone."""
    return load_publications(folder).documents
