"""Turn the counts of audits into metrics, by the bounds of `leakboard.privacy.auditing`; give verdicts on claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.mechanism import ReleaseMechanism
from leakboard.metrics.measures import Metric
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.privacy.auditing.curve import TradeOff
from leakboard.privacy.auditing.events import per_unit
from leakboard.privacy.auditing.guesses import SHARES, audit_scores
from leakboard.privacy.auditing.one_run_curve import best_one_run_bound
from leakboard.privacy.auditing.point_estimate import estimate_loss

BOUND, DELTA, TOSSES = "attack_score", "audit_delta", "audit_tosses"
TRUE_POSITIVES, FALSE_POSITIVES = "true_positives", "false_positives"
"""Names of the metrics from which the bound is computed again, at a smaller error, if a claim has several audits.

A fair coin decided for each of `TOSSES` rows whether its input is the first. The ``n`` of `TRUE_POSITIVES` is the
number of rows of the first input; the ``n`` of `FALSE_POSITIVES` is that of the second.
"""
CANARIES, GUESSES, RIGHT, TRIED, GROUP = "canaries", "canary_guesses", "canary_right", "canary_tried", "canary_group"
"""Names of the metrics from which the bound of one training run is computed again."""
DISTANCE = "audit_distance"
"""Distance of the audited inputs, if epsilon is claimed for each unit of it: all bounds are divided by it."""
LARGEST_BOUND = "audit_largest_bound"
"""The bound if 90 % of the canaries were guessed, all rightly: so few canaries refute no larger claim."""
PLUG_IN = "plug_in_loss"
MU, RENYI, TRADE_OFF = "audit_mu", "audit_renyi", "audit_trade_off"
UNSEEN = "infinite: one kind of error was never seen"
VERDICT_ERROR, VERDICT_ERROR_WITH_DELTA = 1e-4, 1e-3
"""Largest probability that a true claim is called violated: small enough for boards of hundreds of claims.

The second is for claims with a delta, often 1e-5. A sound training may reveal everything with probability delta, so
guesses of one run prove nothing at an error below delta. The error is divided among the audits of a claim, and among
the numbers of guesses that an audit tries. So a part of 1e-4 could be below delta.
"""
VERDICT_CONFIDENCE = (
    f"{100 * (1 - VERDICT_ERROR):.4g} % confidence, {100 * (1 - VERDICT_ERROR_WITH_DELTA):.3g} % with a delta"
)
ERROR = 0.05
"""Probability that the bound of a victim, from all of its audits together, is wrong."""


def bound_metrics(
    true_positives: int, false_positives: int, tosses: tuple[int, int], delta: float, distance: float | None = None
) -> list[Metric]:
    """Return the bound on epsilon that the frequencies of an event prove, with its counts.

    Args:
        true_positives: how often the event held for rows of the first input.
        false_positives: how often it held for rows of the second input.
        tosses: number of rows of the first input, and of the second input, as the coins decided.
        delta: delta of the claim.
        distance: of the two inputs, above 0; None: the claim has no distance.
    """
    bound = bound_from_counts(true_positives, false_positives, tosses, delta, ERROR)
    return [
        Metric(BOUND, per_unit(bound, distance or 1.0), n=sum(tosses) // 2),
        Metric(TRUE_POSITIVES, true_positives, n=tosses[0]),
        Metric(FALSE_POSITIVES, false_positives, n=tosses[1]),
        Metric(TOSSES, sum(tosses), n=sum(tosses)),
        Metric(DELTA, delta, n=sum(tosses) // 2),
        *_distance_metric(distance, sum(tosses) // 2),
    ]


def _distance_metric(distance: float | None, n: int) -> list[Metric]:
    return [] if distance is None else [Metric(DISTANCE, distance, n=n)]


def curve_metrics(curve: TradeOff, draws: int) -> list[Metric]:
    """Return the trade-off of errors that releases prove, with its mu and Renyi bounds; all hold together at 95 %.

    Args:
        curve: the trade-off, computed with the error `ERROR`.
        draws: number of releases of the first input.
    """
    points = zip(curve.false_positives, curve.false_negatives, strict=True)
    return [
        Metric(MU, curve.mu, n=draws),
        *(Metric(RENYI, value, f"order={order:g}", n=draws) for order, value in curve.renyi),
        *(Metric(TRADE_OFF, missed, f"fpr={alarms:.6g}", n=draws) for alarms, missed in points),
    ]


def canary_metrics(
    scores: NDArray[Any], planted: NDArray[np.bool_], delta: float, group: int, distance: float | None = None
) -> list[Metric]:
    """Return the bound on epsilon that scores of canaries prove, with its counts.

    Args:
        scores: float64 (m,): the higher, the likelier the canary was planted. The order of canaries must not depend on
            the coins.
        planted: bool (m,), the coins.
        delta: delta of the claim.
        group: number of units of the claim in a canary.
        distance: of the two inputs of an audit of calls, above 0; None: the claim has no distance.
    """
    audit, m = audit_scores(scores, planted, delta, ERROR, group=group), len(planted)
    most = max(round(share * m) for share in SHARES)
    largest = best_one_run_bound(m, most, most, delta, ERROR / audit.tried, group=group)
    counts = {GUESSES: audit.guesses, RIGHT: audit.right, TRIED: audit.tried, DELTA: delta}
    return [
        Metric(BOUND, per_unit(audit.epsilon, distance or 1.0), n=m),
        Metric(LARGEST_BOUND, per_unit(largest, distance or 1.0), n=m),
        Metric(CANARIES, m, n=m),
        Metric(GROUP, group, n=m),
        *(Metric(name, value, n=m) for name, value in counts.items()),
        *_distance_metric(distance, m),
    ]


def sanity_metric(mechanism: ReleaseMechanism, repeats: int, rng: np.random.Generator) -> Metric:
    """Return Habernal's plug-in estimate (2022, section 3) with its 95 % interval by the delta method."""
    estimate = estimate_loss(mechanism, mechanism.dimension, repeats, rng)
    if math.isinf(estimate.loss):
        return Metric(PLUG_IN, math.inf, n=estimate.repeats, status=UNSEEN)
    margin = 1.959964 * estimate.standard_error
    return Metric(PLUG_IN, estimate.loss, low=estimate.loss - margin, high=estimate.loss + margin, n=estimate.repeats)


def verdict_error(delta: float) -> float:
    """Return the largest probability that a claim with this delta is called violated although it holds."""
    return VERDICT_ERROR_WITH_DELTA if delta > 0 else VERDICT_ERROR


def rounded_down(bound: float, digits: int = 3) -> str:
    """Return a lower bound as text, rounded down to significant digits: never more than was proved."""
    return f"{float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(bound)))):.{digits}g}"


def corrected_bound(cells: Sequence[Sequence[Metric]], error: float = ERROR) -> float | None:
    """Return the largest of the bounds of several audits of one claim.

    With probability 1 - ``error``, all these bounds hold.

    Each audit gets an equal share of the error (Bonferroni), so the largest bound may be taken.

    Args:
        cells: the metrics of each audit.
        error: probability that the result may be wrong.
    """
    bounds = [bound for cell in cells if (bound := _bound_of(cell))]
    return max((bound(error / len(bounds)) for bound in bounds), default=None)


def _bound_of(cell: Sequence[Metric]) -> Callable[[float], float] | None:
    """Return a function from an error to the bound of a cell's counts at this error; None if the cell is no audit."""
    counts = {metric.name: metric.value for metric in cell if metric.value is not None}
    sizes = {metric.name: metric.n or 0 for metric in cell}
    distance = counts.get(DISTANCE, 1.0)
    if counts.keys() >= {TRUE_POSITIVES, FALSE_POSITIVES, TOSSES, DELTA}:
        true_positives, false_positives = int(counts[TRUE_POSITIVES]), int(counts[FALSE_POSITIVES])
        tosses = sizes[TRUE_POSITIVES], sizes[FALSE_POSITIVES]
        return lambda error: per_unit(
            bound_from_counts(true_positives, false_positives, tosses, counts[DELTA], error), distance
        )
    if counts.keys() >= {CANARIES, GUESSES, RIGHT, TRIED, GROUP, DELTA}:
        m, r, v, tried, group = (int(counts[name]) for name in (CANARIES, GUESSES, RIGHT, TRIED, GROUP))
        return lambda error: per_unit(best_one_run_bound(m, r, v, counts[DELTA], error / tried, group=group), distance)
    return None


def contradiction(cell: Sequence[Metric]) -> str:
    """Return what is impossible in the counts of an audit; empty if the counts are possible."""
    known = {metric.name: metric.value for metric in cell if metric.value is not None}
    for metric in cell:
        if metric.name in (TRUE_POSITIVES, FALSE_POSITIVES) and not 0 < (metric.n or 0) >= (metric.value or 0):
            return f"{metric.name} is {metric.value:g} of {metric.n}"
    for name, whole in ((GUESSES, CANARIES), (RIGHT, GUESSES)):
        if name in known and (whole not in known or known[name] > known[whole]):
            return f"{name} is {known[name]:g}, {whole} {known.get(whole, 'missing')}"
    return ""


def verdict(claimed: float, proved: float, audited: float | None) -> str:
    """Return the verdict on a claim.

    - ``violated``: the audited epsilon is larger than the claimed one.
    - ``unproven``: the proved epsilon is larger than the claimed one; or the audited epsilon is larger than the proved
      one, so that the proof is wrong.
    - ``holds``: otherwise.
    - ``holds, not audited``: the same, but without an audit. Then the proof is only a statement of the victim's author.
    """
    if audited is not None and audited > claimed:
        return "violated"
    refuted = audited is not None and audited > proved
    if proved > claimed * (1 + 1e-9) or refuted:
        return "unproven"
    return "holds" if audited is not None else "holds, not audited"
