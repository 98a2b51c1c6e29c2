"""What tested releases prove beside epsilon: the trade-off curve, mu of Gaussian privacy, and Renyi divergences.

A test that takes a release for one of the first input has a false positive rate a and a false negative rate b. The
trade-off function f(a) of a mechanism is the least b of any test (Dong, Roth and Su 2022, definition 2.1); it is convex
and falls. Thresholds of one statistic, fixed before the draws, give tests; with Clopper-Pearson bounds above all their
rates, which share the error equally, the points (a, b) and their lower convex hull h lie on or above f with the stated
confidence, all together. From h follows, with the same confidence,

- mu >= ndtri(1 - a) - ndtri(b) at every point: a mu-Gaussian mechanism has f(a) >= ndtr(ndtri(1 - a) - mu) (ibid.,
  definition 2.6);
- D_alpha(P || Q) >= ln(sum of p**alpha q**(1 - alpha)) / (alpha - 1) over the segments of h, which are p high and q
  wide: no pair with f <= h has less (ibid., proposition B.2, with Blackwell's theorem).

The draws must be independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.privacy.auditing.bound import high

Array = NDArray[Any]

POINTS = 24
"""Thresholds of a curve: half at equal steps of the rank, half in the tail of few false positives."""
ORDERS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Orders of the Renyi divergences."""


@dataclass(frozen=True)
class TradeOff:
    """An upper bound on a mechanism's trade-off function, and what follows from it; all hold together."""

    confidence: float
    false_positives: tuple[float, ...]
    """Corners of the curve, from 0 to 1, rising."""
    false_negatives: tuple[float, ...]
    """At each corner; from 1 to 0, falling and convex."""
    mu: float
    """Lower bound on mu of Gaussian differential privacy; 0 where nothing is proved."""
    renyi: tuple[tuple[float, float], ...]
    """By order, a lower bound on the Renyi divergence of the first input's releases from the second's, in nats."""


@dataclass(frozen=True)
class ScoreCurve:
    """The tests that a curve is made of, fixed before the draws that count."""

    score: Callable[[Array], Array]
    """Maps releases (n, d) to float64 (n,), higher where the first input is likelier."""
    thresholds: Array
    """float64 (k,)."""

    def bound(self, first: Array, second: Array, error: float) -> TradeOff:
        """Return the curve of fresh scores of either input, as `trade_off_bound` does."""
        return trade_off_bound(first, second, self.thresholds, error)


def curve_thresholds(first: Array, second: Array) -> Array:
    """Return thresholds for a curve, float64 (k,), from scores of draws that will not be counted in it."""
    ranks = np.linspace(0, 1, POINTS // 2 + 2)[1:-1]
    rarest = min(0.5, 20 / len(second))
    tail = 1 - np.geomspace(rarest, 0.5, POINTS // 2)
    return np.unique(np.concatenate([np.quantile(np.concatenate([first, second]), ranks), np.quantile(second, tail)]))


def trade_off_bound(first: Array, second: Array, thresholds: Array, error: float) -> TradeOff:
    """Return the curve of fresh scores, (n,) and (m,), higher where the first input is likelier.

    Args:
        first: scores of the first input.
        second: scores of the second.
        thresholds: float (k,), fixed without these scores.
        error: probability that any number here may be wrong.
    """
    from scipy import special

    share = error / (2 * len(thresholds))
    negatives = np.searchsorted(np.sort(first), thresholds, "left")
    positives = len(second) - np.searchsorted(np.sort(second), thresholds, "left")
    a, b = high(positives, len(second), share), high(negatives, len(first), share)
    corners = _hull(np.concatenate([[0.0], a, [1.0]]), np.concatenate([[1.0], b, [0.0]]))
    wide, tall = np.diff(corners[:, 0]), -np.diff(corners[:, 1])
    mu = max(0.0, float(np.max(special.ndtri(1 - a) - special.ndtri(b))))
    with np.errstate(divide="ignore"):
        logs = np.log(tall), np.log(wide)
    renyi = [
        (order, max(0.0, float(special.logsumexp(order * logs[0] + (1 - order) * logs[1]) / (order - 1))))
        for order in ORDERS
    ]
    return TradeOff(1 - error, tuple(corners[:, 0].tolist()), tuple(corners[:, 1].tolist()), mu, tuple(renyi))


def _hull(x: Array, y: Array) -> Array:
    """Return the corners of the lower convex hull of points, float64 (k, 2), by rising x."""
    hull: list[tuple[float, float]] = []
    for point in sorted(zip(x.tolist(), y.tolist(), strict=True)):
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        if not hull or point[0] > hull[-1][0]:
            hull.append(point)
    return np.array(hull)


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Return whether b lies on or above the line from a to c."""
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
