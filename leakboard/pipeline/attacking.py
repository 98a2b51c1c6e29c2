"""Run one attack and return its metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Attack, Coverage, PublishedWords
from leakboard.metrics.measures import Metric
from leakboard.metrics.near_copies import near_copy_metrics
from leakboard.metrics.neighbours import QUERIES, neighbour_metrics
from leakboard.metrics.regression import regression_metrics
from leakboard.metrics.row_match import row_match_metrics
from leakboard.metrics.task import task_metrics
from leakboard.randomness import seed_libraries
from leakboard.threats.threat import AttackResult, VictimSide, why_no_attack


@dataclass(frozen=True)
class Gold:
    """A reference word table, usually of another victim. Neighbours of words are right if this table has them, too."""

    words: PublishedWords
    queries: tuple[str, ...]
    """Words whose neighbours are compared; empty: `QUERIES`."""


EXPECTED_METRICS = ("attack_score", "empirical_privacy", "privacy_best_constant")
"""Metrics that each threat must return; a threat that bounds an epsilon, only the first."""


def evaluate_attack(attack: Attack, side: VictimSide, of_victim: Sequence[Metric] = ()) -> AttackResult:
    """Fit an attack, and score its answer by the attack's threat.

    Args:
        attack: the attacker.
        side: the victim with its corpus and publications, and the attacker's texts.
        of_victim: metrics of the victim, which come first in the result.

    Raises:
        NotApplicable: the attack does not apply to the corpus or the publications.
        RequestError: the threat leaves out a metric of `EXPECTED_METRICS`.
    """
    if reason := why_no_attack(attack, side.corpus, side.auxiliary, side.published):
        raise NotApplicable(reason)
    seed_libraries(side.streams.seed_for("attack"))
    result: AttackResult = attack.threat.evaluate(attack, side)
    require_expected(attack, result)
    return dataclasses.replace(result, metrics=[*of_victim, *result.metrics])


def require_expected(attack: Attack, result: AttackResult) -> None:
    """Raise a RequestError if the threat left out a metric of `EXPECTED_METRICS`."""
    returned = {metric.name for metric in result.metrics if not metric.variable}
    for name in EXPECTED_METRICS[:1] if attack.threat.bounds_epsilon else EXPECTED_METRICS:
        if name not in returned:
            raise RequestError(f"{type(attack.threat).__name__}.evaluate: the result has no metric {name!r}")


def victim_metrics(side: VictimSide, gold: Gold | None) -> list[Metric]:
    """Return the utility of the published vectors: task, fairness, regressions, neighbours of words, and coverage."""
    published = side.published
    metrics = task_metrics(side.corpus, published.predicted)
    metrics += regression_metrics(side.corpus, published.documents)
    if published.documents and not side.victim.encodes_texts:
        metrics += row_match_metrics(side.corpus, published.documents)
        metrics += near_copy_metrics(published.documents)
    if gold and published.words:
        metrics += neighbour_metrics(published.words, gold.words, gold.queries or QUERIES)
    if published.repeats:
        status = "noise is claimed, but two publications of the same texts are equal: does the noise come from `rng`?"
        metrics.append(Metric("fresh_noise", 0.0, status=status))
    return metrics + _coverage_metrics(published.coverage, len(side.corpus.splits["test"]))


def _coverage_metrics(coverage: Coverage, n: int) -> list[Metric]:
    shares = {f"{name}_texts": share for name, share in dataclasses.asdict(coverage).items() if share is not None}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"coverage: {name}={share!r} is not allowed: a share of texts, from 0 to 1")
    return [Metric(name, share, n=n) for name, share in shares.items()]
