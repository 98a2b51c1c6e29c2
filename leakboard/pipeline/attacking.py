"""Run one attack and return its result."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Attack
from leakboard.metrics.measures import Metric
from leakboard.randomness import seed_libraries
from leakboard.threats.threat import AttackResult, VictimSide, why_no_attack

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
