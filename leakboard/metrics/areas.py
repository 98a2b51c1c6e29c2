"""Compute areas under ROC curves, with intervals and tests that stay valid for rare values and few authors.

The area is the probability that a text with a value scores above a text without it; ties count half (Mann and Whitney
1947). It does not depend on how rare the value is, and every constant guess has an area of one half.

Theorem (Hanley and McNeil 1982). If both kinds of scores are exponential, the variance of an area t of m texts with
the value and n without it is

    [t (1 - t) + (m - 1) (t / (2 - t) - t**2) + (n - 1) (2 t**2 / (1 + t) - t**2)] / (m n).

At t = 1/2 this is (m + n + 1) / (12 m n), the exact variance of the Mann-Whitney statistic without ties whatever the
scores. So the test of one ranking against chance assumes nothing about them but that the area is nearly normal. Ties
make the true variance smaller.

The interval holds all areas that this test does not reject (Newcombe 2006, method 5, with m and n as they are). The
variance is larger than the theorem's if the jackknife shows that: if scores are spread otherwise, or if texts have
authors. Independent areas make the variance of their mean smaller. If all texts are ranked right, the jackknife shows
nothing. Then the interval holds all areas t with t**m of at least 2.5 %, for m texts of the rarer kind: an attack that
ranks a share t of them above all others, and the rest below, is perfect with this probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Integers
from leakboard.metrics.intervals import CONFIDENCE, Array, Design, jackknife_variance, unit_codes
from leakboard.metrics.measures import Metric

CHANCE_AREA = 0.5
"""The area of every constant guess."""
ROUNDING = 1e-12
"""A mean of areas that is this near to 0 or 1 is 0 or 1."""


@dataclass(frozen=True)
class Ranking:
    """A score for each text, and which of the texts have the value."""

    scores: Array
    """float64 (n,), higher if the attacker thinks that the text has the value."""
    inside: NDArray[np.bool_]
    """bool (n,): True for texts with the value; some texts have it, and some do not."""
    weight: float = 1.0
    """Weight in a mean of areas."""


@dataclass(frozen=True)
class Area:
    """A weighted mean of areas under ROC curves over the same texts."""

    value: float
    sizes: Sequence[tuple[int, int, float]]
    """For each ranking the number of texts with the value and without it, and the weight of its standard error."""
    scale: float
    """Variance of the mean divided by that of equally weighted areas that vary together."""
    design: Design

    @classmethod
    def of(cls, rankings: Sequence[Ranking], units: Integers | None = None) -> Area:
        """Return the mean of the areas of some rankings.

        Args:
            rankings: at least one, of the same texts.
            units: int64 (n,), the independent unit of each text (its author); None: the text itself.
        """
        n, weights = len(rankings[0].scores), np.array([ranking.weight for ranking in rankings])
        weights = weights / weights.sum()
        codes = unit_codes(units, n)
        areas, rows = zip(*(left_out(ranking, np.arange(n)) for ranking in rankings), strict=True)
        over_rows = over_units = jackknife_variance(weights @ np.array(rows))
        errors = np.array([math.sqrt(jackknife_variance(left)) for left in rows])
        if codes.max() + 1 < n:
            over_units = jackknife_variance(weights @ np.array([left_out(ranking, codes)[1] for ranking in rankings]))
        kinds = np.array([kind for r in rankings for kind in (r.inside, ~r.inside)], np.float64)
        design = Design.of(over_rows, over_units, kinds, codes)
        single = float(weights @ errors) ** 2
        sizes = []
        for ranking, area, error, weight in zip(rankings, areas, errors, weights, strict=True):
            inside = int(ranking.inside.sum())
            expected = math.sqrt(_variance(area, inside, n - inside))
            sizes.append((inside, n - inside, float(weight * (max(1.0, error / expected) if expected > 0 else 1.0))))
        together = max(1 / len(rankings), over_rows / single) if single > 0 else 1.0
        value = float(np.clip(weights @ np.array(areas), 0.0, 1.0))
        value = round(value) if min(value, 1 - value) < ROUNDING else value
        return cls(float(value), sizes, design.effect * together, design)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval of the area; NaN if one unit has nearly all texts with the value or without it."""
        quantile = self.design.quantile(confidence)
        if math.isnan(quantile):
            return math.nan, math.nan
        if self.value in (0.0, 1.0):
            fewest = min(min(m, n) for m, n, _ in self.sizes) / self.design.effect
            end = float(((1 - confidence) / 2) ** (1 / fewest))
            return (end, 1.0) if self.value else (0.0, 1 - end)

        def excess(area: float) -> float:
            """Return by how much an area is farther from ours than the test allows; negative inside the interval."""
            return abs(self.value - area) - quantile * self._error(area)

        least, most = 1e-9, 1 - 1e-9
        inner = min(max(self.value, least), most)
        low = 0.0 if excess(least) <= 0 else scipy.optimize.brentq(excess, least, inner)
        high = 1.0 if excess(most) <= 0 else scipy.optimize.brentq(excess, inner, most)
        return float(low), float(high)

    def metrics(self, variable: str = "") -> list[Metric]:
        """Return the area, the advantage 2 area - 1 over constant guesses, and its p-value.

        The variable is a secret, or empty for all secrets together.
        """
        n = sum(self.sizes[0][:2])
        low, high = self.interval()
        ends = (2 * low - 1, 2 * high - 1)
        return [
            Metric("attack_auc", self.value, variable, "", low, high, n),
            Metric("attack_advantage", 2 * self.value - 1, variable, "", *ends, n),
            Metric("attack_advantage_p", self.p_value, variable, n=n),
        ]

    @property
    def p_value(self) -> float:
        """Probability of an area at least as large by chance; 1 if one unit has nearly all texts of a kind."""
        if not (error := self._error(CHANCE_AREA)):
            return 1.0
        return self.design.tail((self.value - CHANCE_AREA) / error)

    def _error(self, area: float) -> float:
        """Return the standard error if this is the true area."""
        return math.sqrt(self.scale) * sum(w * math.sqrt(_variance(area, m, n)) for m, n, w in self.sizes)


def _variance(area: float, inside: int, outside: int) -> float:
    """Return the variance of the module's theorem."""
    square = area**2
    pairs = (inside - 1) * (area / (2 - area) - square) + (outside - 1) * (2 * square / (1 + area) - square)
    return max(0.0, (area * (1 - area) + pairs) / (inside * outside))


def left_out(ranking: Ranking, codes: Integers) -> tuple[float, Array]:
    """Return the area, and the areas without each unit, float64 (units,).

    A pair is a text with the value and one without it. Without a unit, the pairs of its texts are gone. Texts of one
    unit may be a pair themselves, which must not be subtracted twice. If no pair is left, the area stays as it is.
    """
    scores, inside = ranking.scores, ranking.inside
    units = int(codes.max()) + 1
    ranks = scipy.stats.rankdata(scores) - _ranks_within(scores, inside.astype(np.int64))
    won = np.where(inside, ranks, inside.sum() - ranks)
    total, pairs = won[inside].sum(), int(inside.sum()) * int((~inside).sum())
    with_value, without = np.bincount(codes, inside, units), np.bincount(codes, ~inside, units)
    own = np.zeros(units)
    if units < len(scores):
        own_ranks = np.bincount(codes, np.where(inside, _ranks_within(scores, codes), 0.0), units)
        own = own_ranks - with_value * (with_value + 1) / 2
    left = (inside.sum() - with_value) * ((~inside).sum() - without)
    remaining = total - np.bincount(codes, won, units) + own
    return total / pairs, np.divide(remaining, left, out=np.full(units, total / pairs), where=left > 0)


def _ranks_within(scores: Array, groups: Integers) -> Array:
    """Return the rank of each score within its group, from 1, the mean rank for ties, float64 (n,)."""
    levels = np.unique(scores, return_inverse=True)[1]
    sizes = np.bincount(groups)
    before = np.concatenate([[0], sizes.cumsum()[:-1]])
    return np.asarray(scipy.stats.rankdata(groups * (int(levels.max()) + 1) + levels) - before[groups])
