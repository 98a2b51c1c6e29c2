"""Judging a membership inference: which of the candidate texts was the victim trained on?

The headline is the area under the ROC curve: the probability that a member scores above a text that is none, ties
counted half (Mann and Whitney 1947). Beside it stands the true positive rate at a low false positive rate (Carlini et
al. 2022, Membership inference attacks from first principles): an attack that is sure of a few members is a leak that
an average over all candidates hides.

What it does not say: an area of one half proves no privacy, for one attack failed. Members and others that differ
otherwise (in topic, in date) are told apart without any leak.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.referee.measures import CONFIDENCE, RESAMPLES, Array, Metric, Ratio

TARGETS = (0.001, 0.01)
"""False positive rates at which the true positive rate is told."""
CHANCE = 0.5
"""The area that is reached without looking."""


def membership_metrics(scores: NDArray[Any], members: NDArray[Any], units: Integers | None = None) -> list[Metric]:
    """Return what an attack's scores say about who was a member.

    ``attack_score`` and ``attack_auc`` are the area under the ROC curve, ``empirical_privacy`` is 1 - the better of it
    and chance, ``privacy_majority`` what chance leaves, ``tpr@fpr=...`` the share of members found at `TARGETS`.

    Args:
        scores: float64 (n,), higher where a candidate is more likely a member.
        members: bool or 0 and 1 (n,), the truth.
        units: int64 (n,), what was drawn independently (a text's author); None where each candidate was.

    Raises:
        RequestError: scores are not finite or of a wrong shape, or there are no members, or nothing but members.
    """
    scores, members = _checked(scores, members, units)
    n = len(scores)
    area, low, high = _area(scores, members, units)
    return [
        Metric("attack_score", area, low=low, high=high, n=n),
        Metric("attack_auc", area, low=low, high=high, n=n),
        Metric("empirical_privacy", _left(area), low=_left(high), high=_left(low), n=n),
        Metric("privacy_majority", 1 - CHANCE, n=n),
        *(_found_at(target, scores, members, units) for target in TARGETS),
    ]


def _checked(
    scores: NDArray[Any], members: NDArray[Any], units: Integers | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    found, truth = np.asarray(scores, np.float64), np.asarray(members)
    if truth.ndim != 1 or not np.isin(truth, (0, 1)).all():
        raise RequestError(f"members of shape {truth.shape} are not one bool a candidate")
    if found.shape != truth.shape:
        raise RequestError(f"scores of membership have shape {found.shape}, not {truth.shape}")
    if units is not None and np.shape(units) != truth.shape:
        raise RequestError(f"units of membership have shape {np.shape(units)}, not {truth.shape}")
    if not np.isfinite(found).all():
        raise RequestError("scores of membership are not finite")
    inside = np.count_nonzero(truth)
    if inside in (0, len(truth)):
        raise RequestError(f"{inside} of {len(truth)} candidates are members: an attack is judged on both kinds")
    return found, truth.astype(bool)


def _left(area: float) -> float:
    """Return the privacy that an area leaves; it falls with the area, so the ends of an interval change places."""
    return 1 - max(area, CHANCE)  # in this order NaN, which is no interval, stays NaN


def _area(
    scores: NDArray[np.float64], members: NDArray[np.bool_], units: Integers | None
) -> tuple[float, float, float]:
    """Return the area under the ROC curve with its 95 % bootstrap interval (percentile, fixed seed).

    Members and others are resampled separately. Candidates of one unit are drawn together; where a unit has candidates
    of both kinds, all units are one sample. Where all resamples agree (a perfect attack) the interval is Wilson's for
    as many trials as the rarer kind has units; fewer than two units of either kind give (nan, nan).
    """
    codes = np.arange(len(scores)) if units is None else np.unique(units, return_inverse=True)[1]
    levels = np.unique(scores, return_inverse=True)[1]
    shape = (int(codes.max()) + 1, int(levels.max()) + 1)
    inside, outside = (_table(codes[kind], levels[kind], shape) for kind in (members, ~members))

    def area(weights: Array) -> Any:
        """Return the area where unit u counts weights[..., u] times."""
        hits, alarms = weights @ inside, weights @ outside
        won = (hits * (alarms.cumsum(-1) - alarms / 2)).sum(-1)
        pairs = hits.sum(-1) * alarms.sum(-1)
        return np.divide(won, pairs, out=np.full(np.shape(pairs), CHANCE), where=pairs > 0)

    value = float(area(np.ones(shape[0])))
    with_members, with_others = np.unique(codes[members]), np.unique(codes[~members])
    fewest = min(len(with_members), len(with_others))
    if fewest < 2:
        return value, math.nan, math.nan
    mixed = len(np.intersect1d(with_members, with_others)) > 0
    interval = stats.bootstrap(
        (np.arange(shape[0]),) if mixed else (with_members, with_others),
        lambda *drawn, axis=-1: area(_occurrences(np.concatenate(drawn, axis), shape[0])),
        n_resamples=RESAMPLES,
        batch=max(1, 2_000_000 // len(scores)),
        vectorized=True,
        method="percentile",
        confidence_level=CONFIDENCE,
        rng=np.random.default_rng(0),
    ).confidence_interval
    if interval.low == interval.high:
        interval = stats.binomtest(round(value * fewest), fewest).proportion_ci(CONFIDENCE, method="wilson")
    return value, float(interval.low), float(interval.high)


def _table(codes: Integers, levels: Integers, shape: tuple[int, int]) -> Any:
    """Return how many candidates each unit has at each level of the score, sparse float64 (units, levels)."""
    return sparse.coo_array((np.ones(len(codes)), (codes, levels)), shape=shape).tocsr()


def _occurrences(drawn: Integers, units: int) -> Array:
    """Return how often each unit was drawn in each resample, float64 (..., units); ``drawn`` is int64 (..., draws)."""
    rows = drawn.reshape(-1, drawn.shape[-1])
    places = rows + units * np.arange(len(rows))[:, None]
    found = np.bincount(places.ravel(), minlength=units * len(rows))
    return found.reshape(*drawn.shape[:-1], units).astype(np.float64)


def _found_at(target: float, scores: NDArray[np.float64], members: NDArray[np.bool_], units: Integers | None) -> Metric:
    """Return the share of members above a threshold that at most a share ``target`` of the others reaches.

    Of N others at most floor(target N) may: a member counts if it scores above the next of them, so a tie with that
    one does not. The interval is Clopper and Pearson's at this threshold (with units: the bootstrap over them); it says
    nothing of the threshold's own error.
    """
    others = np.sort(scores[~members])[::-1]
    allowed = math.floor(target * len(others) + 1e-9)  # 0.01 of 700 is 7 and a rounding error
    hits = scores[members] > others[allowed]
    if units is None:
        interval = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(CONFIDENCE, method="exact")
        low, high = float(interval.low), float(interval.high)
    else:
        low, high = Ratio(hits.astype(np.float64), np.ones(len(hits)), units[members]).interval()
    few = len(others) < 1 / target
    status = f"threshold above every non-member: only {len(others)} non-members" if few else ""
    return Metric(f"tpr@fpr={target}", float(hits.mean()), low=low, high=high, n=len(hits), status=status)
