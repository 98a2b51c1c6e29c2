"""Where to put the threshold of a statistic so that the bound on fresh tosses promises most.

The rates on either side of a threshold are estimated on tosses of their own, each `CAUTION` standard errors to its
disadvantage, so that no lucky threshold of thousands wins. Beyond the last scores of an input its tail is taken to fall
off like an exponential, with the mean excess of the last ones: the event that proves most on many fresh tosses may not
have been seen at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.privacy.auditing.bound import logs_of_tosses

Array = NDArray[Any]

SPREAD = 256
"""Thresholds at equally spaced ranks; as many again lie in the tails, at ranks that grow geometrically."""
ATOMS = 32
"""Most frequent scores that are thresholds too, with the score above each."""
CAUTION = 2.0
"""Standard errors by which a rate is taken to be worse than it looks."""
TAIL = 30
"""Last scores that a tail is extrapolated from."""


@dataclass(frozen=True)
class Threshold:
    """An event of a score, and the bound that it promises on fresh tosses; below 0 where it promises none."""

    value: float
    above: bool
    """Whether the event is a score at or above the value, or below it."""
    promise: float

    def holds(self, scores: Array) -> Array:
        """Return whether scores lie in the event, bool like them."""
        return scores >= self.value if self.above else scores < self.value


def best_threshold(first: Array, second: Array, fresh: int, delta: float, error: float) -> Threshold:
    """Return the threshold that promises most on ``fresh`` tosses of either input.

    Args:
        first: scores of the first input, (n,).
        second: scores of the second.
        fresh: tosses of either that will test it.
        delta: of the claim.
        error: that the test's bound may have.
    """
    first, second = np.sort(first), np.sort(second)
    candidates = _candidates(np.sort(np.concatenate([first, second])))
    found = []
    for above in (True, False):
        p = _counted(first, candidates, above) / len(first)
        q = np.maximum(_counted(second, candidates, above) / len(second), _tail(second, candidates, above))
        less = p - CAUTION * np.sqrt(p / len(first))
        more = q + CAUTION * np.sqrt(q / len(second))
        counts = (np.maximum(less, 0.0) * fresh, np.minimum(more, 1.0) * fresh)
        promises = logs_of_tosses(*counts, (fresh, fresh), delta, error)
        best = int(np.argmax(promises))
        found.append(Threshold(float(candidates[best]), above, float(promises[best])))
    return max(found, key=lambda threshold: threshold.promise)


def _counted(scores: Array, candidates: Array, above: bool) -> Array:
    below = np.searchsorted(scores, candidates, "left")
    return len(scores) - below if above else below


def _candidates(both: Array) -> Array:
    """Return thresholds among sorted scores, (k,): spread over the ranks, dense in the tails, and around atoms."""
    n = len(both)
    tail = np.unique(np.geomspace(1, n, SPREAD).astype(int)) - 1
    ranks = np.concatenate([np.linspace(0, n - 1, SPREAD).astype(int), tail, n - 1 - tail])
    starts = np.concatenate([[0], np.flatnonzero(np.diff(both)) + 1])
    sizes = np.diff(np.append(starts, n))
    repeated = np.flatnonzero(sizes > 1)
    atoms = repeated[np.argsort(-sizes[repeated], kind="stable")[:ATOMS]]
    following = np.minimum(atoms + 1, len(starts) - 1)
    return np.unique(both[np.concatenate([ranks, starts[atoms], starts[following]])])


def _tail(scores: Array, candidates: Array, above: bool) -> Array:
    """Return the shares of an exponential tail beyond the last sorted scores, float64 (k,); 0 before them."""
    ordered, beyond = (scores, candidates) if above else (-scores[::-1], -candidates)
    n, k = len(ordered), min(TAIL, len(ordered) // 4)
    last = ordered[n - k :]
    excess = float((last - last[0]).mean()) if k else 0.0
    if excess <= 0:
        return np.zeros(len(candidates))
    return np.where(beyond > last[0], k / n * np.exp(-np.maximum(beyond - last[0], 0.0) / excess), 0.0)
