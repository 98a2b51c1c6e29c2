"""Judging an audit: the referee draws fresh releases of both inputs and counts what the audit's events tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Distinguisher, Floats, PrivacyClaim, ReleaseMechanism, Texts
from leakboard.privacy.audit import counts, lower_bound
from leakboard.privacy.sanity import PlugIn
from leakboard.referee.measures import Metric

BOUND, HITS, MISSES, DELTA = "attack_score", "audit_hits", "audit_misses", "audit_delta"
"""Names of the metrics from which a bound is worked out at any confidence."""
PLUG_IN = "plug_in_loss"
UNSEEN = "infinite: one kind of error was never seen"


def judge_claim(
    distinguishers: Sequence[Distinguisher],
    claim: PrivacyClaim,
    mechanism: ReleaseMechanism,
    publish: Callable[[Texts, np.random.Generator], Floats],
    rng: np.random.Generator,
) -> list[Metric]:
    """Return the bound on epsilon and the plug-in estimate that an audit's events give, with their counts.

    Args:
        distinguishers: at most one of each kind.
        claim: what is audited; its delta enters the bound.
        mechanism: releases vectors.
        publish: publishes texts.
        rng: of the referee's draws.

    Raises:
        ValueError: two events of one kind, or a release is not finite.
    """
    kinds = [entry.kind for entry in distinguishers]
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"an audit has one event of a kind, not {', '.join(kinds)}")
    metrics = []
    for entry in distinguishers:
        hits, misses = _counted(entry, mechanism, publish, rng)
        judged = _bound if entry.kind == "bound" else _plug_in
        metrics += judged(entry, hits, misses, claim.delta)
    return metrics


def _counted(
    entry: Distinguisher,
    mechanism: ReleaseMechanism,
    publish: Callable[[Texts, np.random.Generator], Floats],
    rng: np.random.Generator,
) -> tuple[int, int]:
    if isinstance(entry.first, str) or isinstance(entry.second, str):
        texts = (np.array([entry.first], object), np.array([entry.second], object))

        def release(values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
            return publish(Texts(values[:, 0].tolist()), generator)

        return counts(release, texts, entry.holds, entry.draws, rng, threads=1)
    return counts(mechanism.release, (entry.first, entry.second), entry.holds, entry.draws, rng)


def _bound(entry: Distinguisher, hits: int, misses: int, delta: float) -> list[Metric]:
    epsilon = lower_bound(hits, misses, entry.draws, delta, 1 - entry.confidence)
    return [
        Metric(BOUND, epsilon, n=entry.draws),
        Metric(HITS, hits, n=entry.draws),
        Metric(MISSES, misses, n=entry.draws),
        Metric(DELTA, delta, n=entry.draws),
    ]


def _plug_in(entry: Distinguisher, zeros: int, ones: int, delta: float) -> list[Metric]:
    """Return Habernal's estimate with its 95 % interval by the delta method; he claims pure privacy, so no delta."""
    found = PlugIn(zeros, ones, entry.draws)
    if math.isinf(found.loss):
        return [Metric(PLUG_IN, math.inf, n=entry.draws, status=UNSEEN)]
    margin = 1.959964 * found.error
    return [Metric(PLUG_IN, found.loss, low=found.loss - margin, high=found.loss + margin, n=entry.draws)]


def corrected_bound(cells: Sequence[Sequence[Metric]], error: float = 0.05) -> float | None:
    """Return the largest bound of several audits of one claim that holds with probability 1 - ``error`` for all.

    Each audit gets an equal share of the error (Bonferroni), so that the largest may be taken.

    Args:
        cells: the metrics of each audit.
        error: probability that the result may be wrong.
    """
    counted = [{m.name: m for m in cell if m.name in (HITS, MISSES, DELTA) and m.value is not None} for cell in cells]
    audits = [found for found in counted if len(found) == 3]
    bounds = [
        lower_bound(
            int(found[HITS].value or 0),
            int(found[MISSES].value or 0),
            int(found[HITS].n or 0),
            float(found[DELTA].value or 0),
            error / len(audits),
        )
        for found in audits
    ]
    return max(bounds, default=None)


def verdict(claimed: float, proved: float, audited: float | None) -> str:
    """Return ``violated`` where an audit found more than is claimed, ``unproven`` where less is proved than claimed.

    Else ``holds``. An epsilon is small where much is promised: less is proved where the proved epsilon is the larger.
    """
    if audited is not None and audited > claimed:
        return "violated"
    return "holds" if proved <= claimed * (1 + 1e-9) else "unproven"
