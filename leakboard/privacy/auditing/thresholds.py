"""Choose the threshold on a score whose event promises the largest bound on fresh releases.

An event has the scores on one side of a threshold, or the scores equal to one value. The second kind finds values that
only one of the inputs gives, such as a release without noise. A wrong choice weakens a bound, but never makes it wrong.
"""

from __future__ import annotations

import numpy as np

from leakboard.privacy.auditing.bound import clopper_pearson_high, clopper_pearson_low, log_ratios_from_counts
from leakboard.privacy.auditing.events import Array, Side, Threshold

SPREAD_THRESHOLDS = 256
"""Number of thresholds at equally spaced ranks. Each tail has up to as many more."""
MAX_ATOMS = 32
"""Number of the most frequent scores that become thresholds, and of the scores that become events of their own."""
MAX_EXACT = 64
"""Number of thresholds with the largest approximate promise, for which the promise is computed."""
CAUTION = 2.0
"""Number of standard errors by which a rate is shifted towards a smaller bound."""
TAIL_SCORES = 30
"""Number of the most extreme scores from which a tail is extrapolated; at most a quarter of the scores."""
LEAST_REPEATS = 3
"""Smallest number of releases with a score for an event of this score alone."""
ATOM_ERROR = 0.05
"""Probability that the promise of any event of a single score exceeds the bound at its true rates.

It is divided among all repeated scores, since the luckiest of thousands would win otherwise.
"""


def best_threshold(first_scores: Array, second_scores: Array, fresh: int, delta: float, error: float) -> Threshold:
    """Return the threshold that promises the largest bound on ``fresh`` releases of each input.

    Args:
        first_scores: scores of the first input, (n,).
        second_scores: scores of the second input, (m,).
        fresh: number of releases of each input that will test the event.
        delta: of the claim.
        error: probability that this test may be wrong.
    """
    return best_thresholds(first_scores, second_scores, fresh, delta, error)[0]


def best_thresholds(
    first_scores: Array, second_scores: Array, fresh: int, delta: float, error: float
) -> tuple[Threshold, Threshold]:
    """Return the best threshold for an event of the first input, and the best for an event of the second input."""
    sides = np.sort(first_scores), np.sort(second_scores)
    both = np.sort(np.concatenate(sides))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(both)) + 1])
    sizes = np.diff(np.append(starts, len(both)))
    values = _threshold_values(both, starts, sizes)
    atoms = both[starts[sizes >= LEAST_REPEATS]]

    def best(first: Array, second: Array) -> Threshold:
        found = [_best_one_sided(first, second, values, side, fresh, delta, error) for side in _ONE_SIDED]
        if len(atoms):
            found.append(_best_equality(first, second, atoms, fresh, delta, error))
        return max(found, key=lambda threshold: threshold.promise)

    return best(*sides), best(*sides[::-1])


_ONE_SIDED: tuple[Side, Side] = (">=", "<")


def _best_one_sided(
    first: Array, second: Array, values: Array, side: Side, fresh: int, delta: float, error: float
) -> Threshold:
    above = side == ">="
    p = _counts(first, values, above) / len(first)
    # the best event may be too rare to occur among these draws, so its rate is extrapolated
    q = np.maximum(_counts(second, values, above) / len(second), _tail(second, values, above))
    # without caution, a lucky one of thousands of thresholds would win
    low_p = np.maximum(p - CAUTION * np.sqrt(p / len(first)), 0.0)
    high_q = np.minimum(q + CAUTION * np.sqrt(q / len(second)), 1.0)
    rows = (fresh, fresh)
    approximate = log_ratios_from_counts(low_p * fresh, high_q * fresh, rows, delta, error, _wilson_low)
    likely = np.sort(np.argsort(-approximate, kind="stable")[:MAX_EXACT])
    promises = log_ratios_from_counts(low_p[likely] * fresh, high_q[likely] * fresh, rows, delta, error)
    i = int(np.argmax(promises))
    return Threshold(float(values[likely[i]]), side, float(promises[i]))


def _best_equality(first: Array, second: Array, atoms: Array, fresh: int, delta: float, error: float) -> Threshold:
    """Return the best event of a single score, among the scores that are repeated."""
    p, q = (
        np.searchsorted(scores, atoms, "right") - np.searchsorted(scores, atoms, "left") for scores in (first, second)
    )
    likely = np.argsort(-(p - q) / np.sqrt(p + q), kind="stable")[:MAX_ATOMS]
    share = ATOM_ERROR / (2 * len(atoms))
    low_p = clopper_pearson_low(p[likely], len(first), share)
    high_q = clopper_pearson_high(q[likely], len(second), share)
    promises = log_ratios_from_counts(low_p * fresh, high_q * fresh, (fresh, fresh), delta, error)
    i = int(np.argmax(promises))
    return Threshold(float(atoms[likely[i]]), "==", float(promises[i]))


def _wilson_low(counts: Array | float, draws: Array | float, error: float) -> Array:
    """Return the lower bound of Wilson (1927), close to that of Clopper and Pearson and faster, float64."""
    from scipy import special

    z, n = special.ndtri(1 - error), np.maximum(draws, 1.0)
    rates = counts / n
    spread = z * np.sqrt(rates * (1 - rates) / n + z**2 / (4 * n**2))
    low: Array = (rates + z**2 / (2 * n) - spread) / (1 + z**2 / n)
    return np.maximum(low, 0.0)


def _counts(scores: Array, values: Array, above: bool) -> Array:
    below = np.searchsorted(scores, values, "left")
    return len(scores) - below if above else below


def _threshold_values(scores: Array, starts: Array, sizes: Array) -> Array:
    """Return thresholds, (k,): spread over the ranks, dense in the tails, and at frequent scores.

    Args:
        scores: sorted, (n,).
        starts: index of the first of each group of equal scores.
        sizes: number of scores in each group.
    """
    n = len(scores)
    tail = np.unique(np.geomspace(1, n, SPREAD_THRESHOLDS).astype(int)) - 1
    ranks = np.concatenate([np.linspace(0, n - 1, SPREAD_THRESHOLDS).astype(int), tail, n - 1 - tail])
    repeated = np.flatnonzero(sizes > 1)
    atoms = repeated[np.argsort(-sizes[repeated], kind="stable")[:MAX_ATOMS]]
    following = np.minimum(atoms + 1, len(starts) - 1)
    return np.unique(scores[np.concatenate([ranks, starts[atoms], starts[following]])])


def _tail(scores: Array, values: Array, above: bool) -> Array:
    """Extrapolate the share of scores beyond each value by an exponential tail, float64 (k,); 0 before the tail."""
    ordered, beyond = (scores, values) if above else (-scores[::-1], -values)
    n, k = len(ordered), min(TAIL_SCORES, len(ordered) // 4)
    last = ordered[n - k :]
    # the mean distance of the extreme scores sets the decay
    excess = float((last - last[0]).mean()) if k else 0.0
    if excess <= 0:
        return np.zeros(len(values))
    return np.where(beyond > last[0], k / n * np.exp(-np.maximum(beyond - last[0], 0.0) / excess), 0.0)
