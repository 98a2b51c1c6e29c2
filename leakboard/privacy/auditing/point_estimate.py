"""Estimate a privacy loss without confidence, by the sanity check of Habernal (2022).

The attacker guesses from one release whether the input was all zeros or all ones. Every released value becomes a bit: 1
if it is one half or more. The guess Y is the majority of the bits; a tie gives 0. The loss is
max over Y of |ln P(D | Y) - ln P(D' | Y)|, estimated by counts (his equation in section 3 and experiment.py).

This point estimate has no confidence. It is infinite if a guess was made for one input and never for the other.
`leakboard.privacy.auditing.audit` gives a bound.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.trials import releases


@dataclass(frozen=True)
class PointEstimate:
    """Counts of the guess 1, and the loss that is estimated from them."""

    zeros: int
    """Number of releases of zeros with the guess 1."""
    ones: int
    """Number of releases of ones with the guess 1."""
    repeats: int
    """Number of releases of each input."""

    @property
    def loss(self) -> float:
        """The estimated loss; infinite if a guess was made for one input and never for the other."""
        return _log_ratio(*self._deciding_counts)

    @property
    def standard_error(self) -> float:
        """Standard deviation of the estimate; NaN if a count is 0.

        For a count k of R with probability p, ln(k / R) has variance (1 - p) / (p R) to first order (delta method).
        The shares of the releases are taken as probabilities.
        """
        a, b = self._deciding_counts
        return math.sqrt(1 / a + 1 / b - 2 / self.repeats) if a and b else math.nan

    @property
    def _deciding_counts(self) -> tuple[int, int]:
        """Counts, for zeros and for ones, of the guess with the larger loss."""
        counts = ((self.zeros, self.ones), (self.repeats - self.zeros, self.repeats - self.ones))
        return max(counts, key=lambda pair: _log_ratio(*pair))


def _log_ratio(first: int, second: int) -> float:
    if first == second:
        return 0.0
    return abs(math.log(first / second)) if first and second else math.inf


def published_repeats(dimensions: int) -> int:
    """Return the number of releases of each input behind the published estimates."""
    # above 16 dimensions, the released code keeps only the last of ten rounds
    return 10_000_000 if dimensions <= 16 else 1_000_000


def majority_vote(outputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether most values of each release are one half or more, bool (n,)."""
    return 2 * np.count_nonzero(outputs >= 0.5, axis=1) > outputs.shape[1]


def estimate_loss(mechanism: Mechanism, dimensions: int, repeats: int, generator: np.random.Generator) -> PointEstimate:
    """Release zeros and ones ``repeats`` times each, and count the guesses."""

    def guessed_ones(value: float, stream: np.random.Generator) -> int:
        values = np.full(dimensions, value, np.float32)
        outputs = releases(mechanism.release, values, repeats, stream)
        return sum(int(np.count_nonzero(majority_vote(part))) for part in outputs)

    with ThreadPoolExecutor(2) as pool:
        zeros, ones = pool.map(guessed_ones, (0.0, 1.0), generator.spawn(2))
    return PointEstimate(zeros, ones, repeats)
