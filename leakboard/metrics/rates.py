"""Measure how many members are found if hardly any non-member is taken for one (Carlini et al. 2022).

A member is a text that was in the training data, or a text with a value of a secret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Integers
from leakboard.metrics.intervals import CONFIDENCE
from leakboard.metrics.measures import Metric

SHARE = (1 - CONFIDENCE) / 4
"""Probability of error of each of four bounds: the lower and upper bounds of the threshold and of the rate."""


def true_positive_rate_at(
    target: float, scores: NDArray[np.float64], members: NDArray[np.bool_], units: Integers | None = None
) -> Metric:
    """Return the share of members above the threshold of a false positive rate.

    At most floor(target N) of N non-members may exceed the threshold. So the threshold is the score of the next
    non-member, and a member with this score does not count. About (floor(target N) + 1) / (N + 1) of new non-members
    exceed the threshold. This share is larger than ``target``, so the value errs upwards. The 95 % interval is for the
    rate P(member > t). Here t is the true threshold: the least value that at most a share ``target`` of all non-members
    exceeds.

    Args:
        target: share of the non-members that may be taken for members.
        scores: float64 (n,), higher for a likelier member.
        members: bool (n,), the truth.
        units: int64 (n,), the independent unit of each candidate; None: the candidate itself.

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
        count, rate = scipy.stats.binom, target * self.fill
        j, k = int(count.ppf(self.error, self.units, rate)), int(count.isf(self.error, self.units, rate)) + 1
        return [max(0, self.largest * (j - 1) + 1), min(self.largest * k, self.candidates + 1)]

    def rates(self, fewest: int, most: int) -> tuple[float, float]:
        """Return a lower bound of the rate, from ``fewest`` found members, and an upper bound, from ``most``."""
        few, many, n = math.floor(fewest / self.largest), math.ceil(most / self.largest), self.units
        low = scipy.special.betaincinv(few, n - few + 1, self.error) if few > 0 else 0.0
        high = 1 - scipy.special.betaincinv(n - many, many + 1, self.error) if many < n else 1.0
        return float(low / self.fill), min(1.0, float(high / self.fill))
