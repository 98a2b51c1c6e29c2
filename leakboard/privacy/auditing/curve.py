"""Bound the trade-off curve of a mechanism, its mu of Gaussian privacy, and its Renyi divergences.

Let P and Q be the laws of the releases of the first and of the second input. A test with false positive rate a and
false negative rate b decides whether a release is of the first input. The trade-off function f(a) of a mechanism is the
least b of any test with this a (Dong, Roth and Su 2022, definition 2.1). The function f is convex and decreasing.

Each threshold of a score is a test, if it was fixed before the draws. Clopper-Pearson bounds all rates from above, with
equal shares of the error. Then, with the stated confidence, all points (a, b) and their lower convex hull h are on or
above f. From h follow, with the same confidence:

- mu >= ndtri(1 - a) - ndtri(b) at every point: a mu-Gaussian mechanism has f(a) >= ndtr(ndtri(1 - a) - mu) (ibid.,
  definition 2.6).
- D_alpha(P || Q) >= ln(sum of p**alpha q**(1 - alpha)) / (alpha - 1). The sum is over the segments of h, of height p
  and width q. Any pair of laws with f <= h diverges at least as much (ibid., proposition B.2, with Blackwell's
  theorem).

The draws must be independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakboard.privacy.auditing.bound import clopper_pearson_high
from leakboard.privacy.auditing.events import Array

POINTS = 24
"""Largest number of thresholds."""
ORDERS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Orders of the Renyi divergences."""


@dataclass(frozen=True)
class TradeOff:
    """An upper bound on a trade-off function, and the bounds that follow from it."""

    joint_confidence: float
    """Probability that all of these bounds hold."""
    false_positives: tuple[float, ...]
    """False positive rates of the curve's corners, increasing from 0 to 1."""
    false_negatives: tuple[float, ...]
    """False negative rates of the corners, decreasing from 1 to 0."""
    mu: float
    """Lower bound on mu of Gaussian differential privacy; 0 if nothing is proved."""
    renyi: tuple[tuple[float, float], ...]
    """Orders and lower bounds on the Renyi divergence of the first input's releases from the second's (nats)."""


@dataclass(frozen=True)
class ThresholdedScore:
    """A score and thresholds for a curve, fixed before the draws that bound the curve."""

    score: Callable[[Array], Array]
    """Maps releases (n, d) to scores, float64 (n,). Higher scores mean that the first input is likelier."""
    thresholds: Array
    """Thresholds, float64 (k,)."""

    def bound(self, first_scores: Array, second_scores: Array, error: float) -> TradeOff:
        """Return the bound of `trade_off_bound` from fresh scores of each input."""
        return trade_off_bound(first_scores, second_scores, self.thresholds, error)


def curve_thresholds(first_scores: Array, second_scores: Array) -> Array:
    """Return thresholds for a curve, float64 (k,), from scores of draws that will not bound the curve."""
    ranks = np.linspace(0, 1, POINTS // 2 + 2)[1:-1]
    rarest = min(0.5, 20 / len(second_scores))
    tail = 1 - np.geomspace(rarest, 0.5, POINTS // 2)
    both = np.concatenate([first_scores, second_scores])
    return np.unique(np.concatenate([np.quantile(both, ranks), np.quantile(second_scores, tail)]))


def trade_off_bound(first_scores: Array, second_scores: Array, thresholds: Array, error: float) -> TradeOff:
    """Bound the trade-off curve by a score that is higher where the first input is likelier.

    Args:
        first_scores: fresh scores of the first input, (n,).
        second_scores: fresh scores of the second input, (m,).
        thresholds: float (k,), fixed without these scores.
        error: probability that any number of the result may be wrong.
    """
    from scipy import special

    share = error / (2 * len(thresholds))
    negatives = np.searchsorted(np.sort(first_scores), thresholds, "left")
    positives = len(second_scores) - np.searchsorted(np.sort(second_scores), thresholds, "left")
    a = clopper_pearson_high(positives, len(second_scores), share)
    b = clopper_pearson_high(negatives, len(first_scores), share)
    corners = _lower_convex_hull(np.concatenate([[0.0], a, [1.0]]), np.concatenate([[1.0], b, [0.0]]))
    widths, heights = np.diff(corners[:, 0]), -np.diff(corners[:, 1])
    mu = max(0.0, float(np.max(special.ndtri(1 - a) - special.ndtri(b))))
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(heights), np.log(widths)
    renyi = [
        (order, max(0.0, float(special.logsumexp(order * log_p + (1 - order) * log_q) / (order - 1))))
        for order in ORDERS
    ]
    return TradeOff(1 - error, tuple(corners[:, 0].tolist()), tuple(corners[:, 1].tolist()), mu, tuple(renyi))


def _lower_convex_hull(x: Array, y: Array) -> Array:
    hull: list[tuple[float, float]] = []
    for point in sorted(zip(x.tolist(), y.tolist(), strict=True)):
        while len(hull) > 1 and _is_redundant(hull[-2], hull[-1], point):
            hull.pop()
        if not hull or point[0] > hull[-1][0]:
            hull.append(point)
    return np.array(hull)


def _is_redundant(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Return whether b is on or above the line from a to c."""
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
