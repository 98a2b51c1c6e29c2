"""Compute intervals of ratios of sums over independent units: texts, or authors with all their texts.

The variance is the jackknife's over units (Efron and Stein 1981); Wilson's interval (1927) turns it into ends that stay
in [0, 1] and have a width even if all texts agree. Few or unequal authors widen the interval through Student's t with
the degrees of freedom of Bell and McCaffrey (2002).

No interval covers its value in exactly 95 % of samples: `python benchmarks interval_coverage` measures the coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Integers

CONFIDENCE = 0.95

Array = NDArray[np.float64]

LEAST_DEGREES = 0.05
"""One unit has nearly all rows if there are not more degrees of freedom: there is no interval."""
AGREE = 1e-12
"""A variance below this share of the largest possible one is rounding: the texts agree."""


def unit_codes(units: Integers | None, n: int) -> Integers:
    """Return the unit of each of n rows from 0 on, int64 (n,). Units are int64 (n,), or None: every row is one."""
    return np.arange(n) if units is None else np.unique(units, return_inverse=True)[1]


def jackknife_variance(left_out: Array) -> float:
    """Return the variance of a statistic from its values without each unit, float64 (units,)."""
    return float((len(left_out) - 1) * left_out.var())


@dataclass(frozen=True)
class Design:
    """The effect of units on an interval."""

    effect: float
    """Variance over units divided by the variance over rows, at least 1."""
    degrees: float
    """Degrees of freedom of Student's t; infinite if every row is a unit."""

    @classmethod
    def of(cls, over_rows: float, over_units: float, weights: Array, codes: Integers) -> Design:
        """Return the design effect and its degrees of freedom.

        There are none if one unit has all rows of a part. Otherwise they are those of a sum of independent terms with
        unequal expected squares (Satterthwaite 1946). The expected square of a unit depends on how similar its rows
        are; the effect shows how similar.

        Args:
            over_rows: variance of the statistic if rows were independent; 0 if all rows agree.
            over_units: its variance over units.
            weights: float64 (parts, n), the weight of each row; an area has a part for each class.
            codes: int64 (n,), the unit of each row.
        """
        if codes.max() + 1 == len(codes):
            return cls(1.0, math.inf)
        shares = weights / weights.sum(1, keepdims=True)
        if min(len(np.unique(codes[part > 0])) for part in weights) < 2:
            return cls(1.0, 0.0)
        independent = np.bincount(codes, (shares**2).sum(0))
        equal = np.square([np.bincount(codes, part) for part in shares]).sum(0)
        largest = equal.sum() / independent.sum()
        effect = max(1.0, over_units / over_rows) if over_rows > 0 else largest
        similarity = min(1.0, (effect - 1) / (largest - 1)) if largest > 1 else 0.0
        expected = (1 - similarity) * independent + similarity * equal
        return cls(float(effect), float(expected.sum() ** 2 / (expected**2).sum() - 1))

    def quantile(self, confidence: float) -> float:
        """Return how many standard errors an interval reaches to each side; NaN without degrees of freedom."""
        if self.degrees <= LEAST_DEGREES:
            return math.nan
        level, special = (1 + confidence) / 2, scipy.special  # the distributions of scipy.stats are far slower
        return float(special.ndtri(level) if math.isinf(self.degrees) else special.stdtrit(self.degrees, level))

    def tail(self, errors: float) -> float:
        """Return the probability of a value at least so many standard errors above the true one."""
        if self.degrees <= LEAST_DEGREES:
            return 1.0
        special = scipy.special
        return float(special.ndtr(-errors) if math.isinf(self.degrees) else special.stdtr(self.degrees, -errors))


def ratio_interval(
    numerator: Array, denominator: Array, units: Integers | None, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Return the interval of sum(numerator) / sum(denominator), if each numerator is from 0 to its denominator.

    If the ratio of a row may be larger than 1, or below 0, the interval is symmetric instead of Wilson's.

    Args:
        numerator: float64 (n,).
        denominator: float64 (n,), at least 0.
        units: int64 (n,), the independent unit of each row; None: the row itself.
        confidence: probability with which the interval holds the true ratio.

    Returns:
        The ends; NaN if every denominator is 0, or if one unit has nearly all rows.
    """
    used = denominator > 0
    numerator, denominator = numerator[used], denominator[used]
    if not len(numerator):
        return math.nan, math.nan
    codes = unit_codes(None if units is None else units[used], len(numerator))
    ratio, total = numerator.sum() / denominator.sum(), denominator.sum()
    is_share = bool((numerator >= 0).all() and (numerator <= denominator * (1 + AGREE)).all())
    scale = ratio * (1 - ratio) if is_share else ratio**2
    over_rows, over_units = (_ratio_variance(numerator, denominator, c) for c in (np.arange(len(codes)), codes))
    agree = over_rows <= AGREE * scale
    design = Design.of(0.0 if agree else over_rows, over_units, denominator[None], codes)
    if not is_share:
        design = Design(design.effect, min(design.degrees, len(codes) - 1))
        half_width = math.nan if agree else design.quantile(confidence) * math.sqrt(over_rows * design.effect)
        return ratio - half_width, ratio + half_width
    trials = total**2 / (denominator**2).sum() if agree else scale / over_rows
    return wilson(ratio, trials / design.effect, design.quantile(confidence))


def _ratio_variance(numerator: Array, denominator: Array, codes: Integers) -> float:
    tops, bottoms = np.bincount(codes, numerator), np.bincount(codes, denominator)
    left = denominator.sum() - bottoms
    return jackknife_variance((numerator.sum() - tops)[left > 0] / left[left > 0]) if (left > 0).any() else 0.0


def wilson(share: float, trials: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval of a share for a number of trials that need not be whole; NaN if the quantile is NaN."""
    square = quantile**2 / trials
    middle = (share + square / 2) / (1 + square)
    half_width = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    low, high = np.clip([middle - half_width, middle + half_width], 0.0, 1.0)
    return float(low), float(high)
