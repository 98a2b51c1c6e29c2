"""Compute the metrics of a victim that need no attack: utility, coverage, and signs of faulty vectors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from leakboard.interfaces import Coverage, PublishedWords
from leakboard.metrics.measures import Metric, authors
from leakboard.metrics.near_copies import near_copy_metrics
from leakboard.metrics.neighbours import QUERIES, neighbour_metrics
from leakboard.metrics.regression import regression_metrics
from leakboard.metrics.retrieval import retrieval_metrics
from leakboard.metrics.row_match import row_match_metrics
from leakboard.metrics.task import task_metrics
from leakboard.threats.threat import VictimSide

FAULTS = {
    "fresh_noise": "noise is claimed, but two publications of the same texts are equal: does it come from `rng`?",
    "order_kept": "do the vectors belong to their texts? The same texts in another order have other vectors",
}
"""Promises that a victim may break when texts are published again, each with the warning."""


@dataclass(frozen=True)
class Gold:
    """A reference word table, usually of another victim.

    A neighbour of a word counts as right if it is a neighbour of this word in this table, too.
    """

    words: PublishedWords
    queries: tuple[str, ...]
    """Words whose neighbours are compared; empty: `QUERIES`."""


def victim_metrics(side: VictimSide, gold: Gold | None) -> list[Metric]:
    """Return the metrics of the published vectors that need no attack."""
    published = side.published
    metrics = task_metrics(side.corpus, published.predicted, published.probabilities)
    if published.ranks is not None:
        rows, ranks = published.ranks.T
        units = authors(side.corpus, "test")
        metrics += retrieval_metrics(ranks, None if units is None else units[rows])
    metrics += regression_metrics(side.corpus, published.documents)
    if published.documents and not side.victim.encodes_texts:
        metrics += row_match_metrics(side.corpus, published.documents)
        metrics += near_copy_metrics(published.documents)
    if gold and published.words:
        metrics += neighbour_metrics(published.words, gold.words, gold.queries or QUERIES)
    metrics += [Metric(name, 0.0, status=FAULTS[name]) for name in published.faults]
    return metrics + _coverage_metrics(published.coverage, len(side.corpus.splits["test"]))


def _coverage_metrics(coverage: Coverage, n: int) -> list[Metric]:
    shares = {f"{name}_texts": share for name, share in dataclasses.asdict(coverage).items() if share is not None}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"coverage: {name}={share!r} is not allowed: a share of texts, from 0 to 1")
    return [Metric(name, share, n=n) for name, share in shares.items()]
