"""The bound on epsilon that counts of an event prove.

Theorem. If releases of neighbours x and x' are (epsilon, delta)-private, then P(E | x) <= e**epsilon P(E | x') + delta
for every event E. So epsilon >= ln((p - delta) / q) for any event with P(E | x) >= p and P(E | x') <= q. With p and q
Clopper-Pearson bounds, each at half of the error, from draws that the choice of the event did not see, that holds with
the stated confidence, and it is never infinite: q is never 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def lower_bound(true_positives: int, false_positives: int, draws: int, delta: float, error: float) -> float:
    """Return ln((p - delta) / q), p below P(E | x) and q above P(E | x') together with probability 1 - ``error``.

    Args:
        true_positives: releases of x in the event.
        false_positives: releases of x' in the event.
        draws: releases of either.
        delta: the claim's.
        error: probability that the bound may be wrong, shared equally by p and q (Clopper and Pearson 1934).
    """
    return float(lower_bounds(np.array([true_positives]), np.array([false_positives]), draws, delta, error)[0])


def lower_bounds(true_positives: Array, false_positives: Array, draws: int, delta: float, error: float) -> Array:
    """Return `lower_bound` of each count, float64 like the counts."""
    from scipy import stats

    low = stats.beta.ppf(error / 2, np.maximum(true_positives, 1), draws - true_positives + 1)
    high = stats.beta.ppf(1 - error / 2, false_positives + 1, np.maximum(draws - false_positives, 1))
    p, q = np.where(true_positives > 0, low, 0.0), np.where(false_positives < draws, high, 1.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.maximum(p - delta, 0.0)) - np.log(q), 0.0)
