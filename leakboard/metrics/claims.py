"""Judging an audit: the referee draws fresh releases, or tosses the coins of canaries, and counts what is told."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Distinguisher, FittedAudit, Floats, PrivacyClaim, ReleaseMechanism, Texts, Unit
from leakboard.metrics.measures import Metric
from leakboard.privacy.auditing.bound import lower_bound
from leakboard.privacy.auditing.one_run import SHARES, audit_scores, one_run_bound
from leakboard.privacy.auditing.sanity import PlugIn, plug_in
from leakboard.privacy.auditing.trials import counts

BOUND, HITS, MISSES, DELTA = "attack_score", "audit_hits", "audit_misses", "audit_delta"
"""Names of the metrics from which a bound is worked out again, for a share of the error."""
CANARIES, GUESSES, RIGHT, TRIED, GROUP = "canaries", "canary_guesses", "canary_right", "canary_tried", "canary_group"
"""Likewise, of a bound from one training run."""
CEILING = "audit_ceiling"
"""The bound that as many canaries give where every guess is right: a larger claim they cannot refute."""
PLUG_IN = "plug_in_loss"
UNSEEN = "infinite: one kind of error was never seen"
ERROR = 0.05
"""Probability that the bound of a victim, all of its audits together, may be wrong."""
AUDITED: tuple[Unit, ...] = ("word", "document", "vector", "coordinate")
"""Units whose neighbours are two texts or two vectors; a user or a pair of words is neither."""


def judge_claim(
    audit: FittedAudit,
    claim: PrivacyClaim,
    mechanism: ReleaseMechanism,
    publish: Callable[[Texts, np.random.Generator], Floats],
    rng: np.random.Generator,
) -> list[Metric]:
    """Return the bound on epsilon with its counts and, where it is asked for, the plug-in estimate.

    Args:
        audit: fitted.
        claim: what is audited; its delta enters the bound, and its unit says what neighbours are.
        mechanism: releases vectors.
        publish: publishes texts.
        rng: of the referee's draws.

    Raises:
        ValueError: the inputs are not neighbours, the event is not one bool a release, or a release is not finite.
    """
    event = audit.distinguisher
    if isinstance(event.first, str) and isinstance(event.second, str):
        _check_texts(event.first, event.second, claim.unit)
        inputs = (np.array([event.first], object), np.array([event.second], object))

        def release(values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
            return publish(Texts(values[:, 0].tolist()), generator)
    else:
        inputs, release = _checked_vectors(event, mechanism.dimension, claim.unit), mechanism.release
    hits, misses = counts(release, inputs, event.holds, event.draws, rng)
    metrics = [
        Metric(BOUND, lower_bound(hits, misses, event.draws, claim.delta, ERROR), n=event.draws),
        Metric(HITS, hits, n=event.draws),
        Metric(MISSES, misses, n=event.draws),
        Metric(DELTA, claim.delta, n=event.draws),
    ]
    if audit.repeats and claim.unit != "coordinate":  # zeros and ones differ in all
        metrics.append(_plug_in(plug_in(mechanism, mechanism.dimension, audit.repeats, rng)))
    return metrics


def canary_metrics(
    scores: NDArray[Any], planted: NDArray[np.bool_], delta: float, group: int, unit: Unit
) -> list[Metric]:
    """Return the bound on epsilon that scores of canaries prove, with what it is worked out from.

    Args:
        scores: float64 (m,), higher where a canary was likelier planted; their order does not depend on the coins.
        planted: bool (m,), the coins.
        delta: of the claim.
        group: units of the claim that a canary is made of.
        unit: of the claim, or of the audit where nothing is claimed; it stands as the variable of `GROUP`.
    """
    found, m = audit_scores(scores, planted, delta, ERROR, group=group), len(planted)
    most = max(round(share * m) for share in SHARES)
    counts = {GUESSES: found.guesses, RIGHT: found.right, TRIED: found.tried, DELTA: delta}
    return [
        Metric(BOUND, found.epsilon, n=m),
        Metric(CEILING, one_run_bound(m, most, most, delta, ERROR / found.tried, group=group), n=m),
        Metric(CANARIES, m, n=m),
        Metric(GROUP, group, unit, n=m),
        *(Metric(name, value, n=m) for name, value in counts.items()),
    ]


def _check_texts(first: str, second: str, unit: Unit) -> None:
    """Refuse texts that the claim does not call neighbours.

    Raises:
        ValueError: says in how many words they differ.
    """
    if unit == "document":
        return
    words = first.split(), second.split()
    differing = sum(a != b for a, b in zip(*words, strict=False)) + abs(len(words[0]) - len(words[1]))
    if unit != "word" or differing != 1:
        raise ValueError(f"the audited texts differ in {differing} words; the claim is about one {unit}")


def _checked_vectors(event: Distinguisher, dimension: int, unit: Unit) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two vectors that the claim calls neighbours.

    Raises:
        ValueError: they are of another width, outside the cube, or differ in more than the claim says.
    """
    first, second = np.asarray(event.first), np.asarray(event.second)
    for vector in (first, second):
        if vector.shape != (dimension,) or not ((vector >= 0) & (vector <= 1)).all():
            raise ValueError(f"an audited vector of shape {vector.shape} is not one of [0, 1]^{dimension}")
    if unit == "coordinate" and np.count_nonzero(first != second) > 1:
        raise ValueError("the audited vectors differ in more than the one coordinate that the claim is about")
    return first, second


def _plug_in(found: PlugIn) -> Metric:
    """Return Habernal's estimate with its 95 % interval by the delta method."""
    if math.isinf(found.loss):
        return Metric(PLUG_IN, math.inf, n=found.repeats, status=UNSEEN)
    margin = 1.959964 * found.error
    return Metric(PLUG_IN, found.loss, low=found.loss - margin, high=found.loss + margin, n=found.repeats)


def composed(claim: PrivacyClaim, times: int) -> PrivacyClaim:
    """Return the claim for publishing the same input so many times (Dwork and Roth 2014, theorem 3.16: sums).

    One about training data is not touched: what is made from published vectors costs nothing more.
    """
    if claim.protects == "training":
        return claim
    return dataclasses.replace(
        claim,
        epsilon=times * claim.epsilon,
        proved=times * claim.proved,
        delta=min(times * claim.delta, math.nextafter(1.0, 0.0)),
        releases=times,
    )


def corrected_bound(cells: Sequence[Sequence[Metric]], error: float = ERROR) -> float | None:
    """Return the largest bound of several audits of one claim that holds with probability 1 - ``error`` for all.

    Each audit gets an equal share of the error (Bonferroni), so that the largest may be taken.

    Args:
        cells: the metrics of each audit.
        error: probability that the result may be wrong.
    """
    bounds = [bound for cell in cells if (bound := _bound_of(cell))]
    return max((bound(error / len(bounds)) for bound in bounds), default=None)


def _bound_of(cell: Sequence[Metric]) -> Callable[[float], float] | None:
    """Return what maps an error to the bound that an audit's counts give at it; None where a cell is no audit."""
    counts = {metric.name: metric.value for metric in cell if metric.value is not None}
    draws = next((metric.n for metric in cell if metric.name == HITS), None) or 0
    if counts.keys() >= {HITS, MISSES, DELTA}:
        hits, misses = int(counts[HITS]), int(counts[MISSES])
        return lambda error: lower_bound(hits, misses, draws, counts[DELTA], error)
    if counts.keys() >= {CANARIES, GUESSES, RIGHT, TRIED, GROUP, DELTA}:
        m, r, v, tried, group = (int(counts[name]) for name in (CANARIES, GUESSES, RIGHT, TRIED, GROUP))
        return lambda error: one_run_bound(m, r, v, counts[DELTA], error / tried, group=group)
    return None


def verdict(claimed: float, proved: float, audited: float | None) -> str:
    """Return ``violated`` where an audit found more than is claimed, ``unproven`` where less is proved than claimed.

    ``unproven`` too where an audit found more than is proved: then the proof is wrong. Else ``holds``. An epsilon is
    small where much is promised: less is proved where the proved epsilon is the larger.
    """
    if audited is not None and audited > claimed:
        return "violated"
    refuted = audited is not None and audited > proved
    return "holds" if proved <= claimed * (1 + 1e-9) and not refuted else "unproven"
