"""Score membership inference: which of the candidate texts was the victim trained on?

The headline is the area under the ROC curve: the probability that a member scores above a non-member, with ties counted
half (Mann and Whitney 1947). The true positive rate at a low false positive rate is next to it (Carlini et al. 2022,
Membership inference attacks from first principles). An attack that is sure of a few members is a leak, and an average
over all candidates hides it.

An area of one half does not prove privacy: only this attack failed. If members and non-members differ in topic or in
date, an attack can tell them apart without any leak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.metrics.measures import CONFIDENCE, RESAMPLES, Array, Metric

TARGETS = (0.001, 0.01)
"""False positive rates at which the true positive rate is reported."""
CHANCE = 0.5
"""The area under the ROC curve of random guesses."""
SHARE = (1 - CONFIDENCE) / 4
"""Probability of error of each of four bounds: the lower and upper bounds of the threshold and of the rate."""


def membership_metrics(scores: NDArray[Any], members: NDArray[Any], units: Integers | None = None) -> list[Metric]:
    """Return the metrics of an attack's scores.

    - ``attack_score`` and ``attack_auc``: the area under the ROC curve.
    - ``empirical_privacy``: 1 - the area, or 1 - `CHANCE` if the area is smaller.
    - ``privacy_best_constant``: 1 - `CHANCE`.
    - ``tpr@fpr=...``: the share of members found at `TARGETS`.

    Args:
        scores: float64 (n,), higher for a likelier member.
        members: bool or 0 and 1 (n,), the truth.
        units: int64 (n,), the independent unit of each candidate (its author); None: the candidate itself.

    Raises:
        RequestError: scores are not finite or of a wrong shape, or all candidates are of one kind.
    """
    scores, members = _checked(scores, members, units)
    n = len(scores)
    area, low, high = _area(scores, members, units)
    return [
        Metric("attack_score", area, low=low, high=high, n=n),
        Metric("attack_auc", area, low=low, high=high, n=n),
        Metric("empirical_privacy", _left(area), low=_left(high), high=_left(low), n=n),
        Metric("privacy_best_constant", 1 - CHANCE, n=n),
        *(true_positive_rate_at(target, scores, members, units) for target in TARGETS),
    ]


def _checked(
    scores: NDArray[Any], members: NDArray[Any], units: Integers | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values, truth = np.asarray(scores, np.float64), np.asarray(members)
    if truth.ndim != 1 or not np.isin(truth, (0, 1)).all():
        raise RequestError(f"members of shape {truth.shape} are not one bool for each candidate")
    if values.shape != truth.shape:
        raise RequestError(f"scores of membership have shape {values.shape}, not {truth.shape}")
    if units is not None and np.shape(units) != truth.shape:
        raise RequestError(f"units of membership have shape {np.shape(units)}, not {truth.shape}")
    if not np.isfinite(values).all():
        raise RequestError("scores of membership are not finite")
    inside = np.count_nonzero(truth)
    if inside in (0, len(truth)):
        raise RequestError(f"{inside} of {len(truth)} candidates are members: an attack needs members and others")
    return values, truth.astype(bool)


def _left(area: float) -> float:
    """Return the privacy that an area leaves; a larger area leaves less privacy, so an interval's ends swap."""
    return 1 - max(area, CHANCE)  # in this order NaN, which is no interval, stays NaN


def _area(
    scores: NDArray[np.float64], members: NDArray[np.bool_], units: Integers | None
) -> tuple[float, float, float]:
    """Return the area under the ROC curve with its 95 % bootstrap interval (percentile, fixed seed).

    Members and non-members are resampled separately; candidates of one unit are drawn together. If a unit has both
    members and non-members, all units are one sample. If all resamples agree (a perfect attack), Wilson's interval
    replaces it. Its n is the number of units of members, or of non-members if these are fewer. Fewer than two units of
    members or of non-members give (nan, nan).
    """
    codes = np.arange(len(scores)) if units is None else np.unique(units, return_inverse=True)[1]
    levels = np.unique(scores, return_inverse=True)[1]
    shape = (int(codes.max()) + 1, int(levels.max()) + 1)
    inside, outside = (_table(codes[kind], levels[kind], shape) for kind in (members, ~members))

    def area(weights: Array) -> Any:
        """Return the area if unit u counts weights[..., u] times."""
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
    interval = scipy.stats.bootstrap(
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
        interval = scipy.stats.binomtest(round(value * fewest), fewest).proportion_ci(CONFIDENCE, method="wilson")
    return value, float(interval.low), float(interval.high)


def _table(codes: Integers, levels: Integers, shape: tuple[int, int]) -> Any:
    """Return how many candidates each unit has at each level of the score, sparse float64 (units, levels)."""
    return scipy.sparse.coo_array((np.ones(len(codes)), (codes, levels)), shape=shape).tocsr()


def _occurrences(drawn: Integers, units: int) -> Array:
    """Return how often each unit was drawn in each resample, float64 (..., units); ``drawn`` is int64 (..., draws)."""
    rows = drawn.reshape(-1, drawn.shape[-1])
    places = rows + units * np.arange(len(rows))[:, None]
    counts = np.bincount(places.ravel(), minlength=units * len(rows))
    return counts.reshape(*drawn.shape[:-1], units).astype(np.float64)


def true_positive_rate_at(
    target: float, scores: NDArray[np.float64], members: NDArray[np.bool_], units: Integers | None = None
) -> Metric:
    """Return the share of members above the threshold of a false positive rate.

    At most floor(target N) of N non-members may exceed the threshold. So the threshold is the score of the next
    non-member, and a member with this score does not count. About (floor(target N) + 1) / (N + 1) of new non-members
    exceed the threshold. This share is larger than ``target``, so the value errs upwards. The 95 % interval is for the
    rate P(member > t). Here t is the true threshold: the least value that at most a share ``target`` of all non-members
    exceeds.

    Theorem. Let X(r) be the r-th highest of N independent non-members, and B binomial (N, target).

    1. A share of at least ``target`` reaches t, so P(X(j) < t) = P(fewer than j reach t) <= P(B < j).
    2. A share of at most ``target`` exceeds t, so P(X(k) > t) = P(k or more exceed t) <= P(B >= k).
    3. Take the largest j and the least k that keep both within `SHARE`. Then X(j) >= t >= X(k), with error 2 `SHARE`.
    4. Then X(j) has at most as many members above it as t, and X(k) at least as many. From the number of members above
       t, Clopper and Pearson (1934) bound the rate, with another error of 2 `SHARE`.

    Members and non-members may depend on each other. X(0) is infinite, and X(N + 1) is minus infinity. So the lower end
    is 0 if there are fewer than 437 non-members at 0.01, or 4,380 at 0.001. The sum of four errors (Bonferroni) is
    cautious: for normal scores the interval covers the rate in about 99 % of cases. If units have several candidates,
    the counts are not binomial, and `_Trials` bounds them.
    """
    codes = np.arange(len(scores)) if units is None else units
    inside, others = scores[members], np.sort(scores[~members])[::-1]
    allowed = math.floor(target * len(others) + 1e-9)  # 0.01 of 700 is 7 and a rounding error
    value = float((inside > others[allowed]).mean())
    thresholds = np.concatenate([[np.inf], others, [-np.inf]])[_Trials.of(codes[~members]).ranks(target)]
    fewest, most = (int(np.count_nonzero(inside > threshold)) for threshold in thresholds)
    low, high = _Trials.of(codes[members]).rates(fewest, most)
    few = len(others) < 1 / target
    status = f"threshold above every non-member: only {len(others)} non-members" if few else ""
    return Metric(f"tpr@fpr={target}", value, low=low, high=high, n=len(inside), status=status)


@dataclass(frozen=True)
class _Trials:
    """Binomial trials that bound counts of candidates, if the candidates of one unit depend on each other in any way.

    Theorem. Let the largest of U units have m candidates. A count of candidates, divided by m, is a sum of U
    independent numbers in [0, 1]. Its tail from a whole number on is at most e times the tail of a binomial
    (U, mean / U) (Bentkus 2004, On Hoeffding's inequalities). So counts are taken in steps of m, and the allowed error
    is e times smaller. If m = 1, the count is binomial itself. Rates are over candidates, given the sizes of the units.
    The bounds are wide if the sizes differ, since every unit counts like a unit with m candidates.
    """

    candidates: int
    units: int
    largest: int

    @classmethod
    def of(cls, codes: Integers) -> _Trials:
        """Return the trials of candidates with these units, int64 (n,)."""
        sizes = np.unique(codes, return_counts=True)[1]
        return cls(len(codes), len(sizes), int(sizes.max()))

    @property
    def error(self) -> float:
        """The binomial tail that keeps the tail of the count within `SHARE`."""
        return SHARE / math.e if self.largest > 1 else SHARE

    @property
    def fill(self) -> float:
        """Mean size of a unit divided by the largest size, in (0, 1].

        The success rate of a trial is this number times the rate of candidates.
        """
        return self.candidates / (self.units * self.largest)

    def ranks(self, target: float) -> list[int]:
        """Return the ranks, highest score first, of an upper and a lower bound of the threshold at rate ``target``."""
        count = scipy.stats.binom(self.units, target * self.fill)
        j, k = int(count.ppf(self.error)), int(count.isf(self.error)) + 1
        return [max(0, self.largest * (j - 1) + 1), min(self.largest * k, self.candidates + 1)]

    def rates(self, fewest: int, most: int) -> tuple[float, float]:
        """Return a lower bound of the rate, from ``fewest`` found members, and an upper bound, from ``most``."""
        few, many, n = math.floor(fewest / self.largest), math.ceil(most / self.largest), self.units
        low = scipy.stats.beta.ppf(self.error, few, n - few + 1) if few > 0 else 0.0
        high = scipy.stats.beta.isf(self.error, many + 1, n - many) if many < n else 1.0
        return float(low / self.fill), min(1.0, float(high / self.fill))
