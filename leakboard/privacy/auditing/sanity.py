"""The sanity check of Habernal (2022): guess from one release whether the input was all zeros or all ones.

Every released value becomes a bit, 1 from one half upwards; the majority of the bits is the guess Y, 0 in a tie. The
loss is max over Y of |ln P(D | Y) - ln P(D' | Y)|, estimated by counts (his equation in section 3 and experiment.py).
It is a point estimate without confidence, and infinite as soon as one kind of error was not seen: what it says of a
mechanism is a hint. `leakboard.privacy.auditing.audit` gives a bound.
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
class PlugIn:
    """Counts of the guess 1, and the loss that they suggest."""

    zeros: int
    """Releases of the zeros that were taken for ones."""
    ones: int
    """Releases of the ones that were taken for ones."""
    repeats: int
    """Releases of either."""

    @property
    def loss(self) -> float:
        """The plug-in estimate; infinite where one kind of error was never seen and the other was."""
        guesses = ((self.zeros, self.ones), (self.repeats - self.zeros, self.repeats - self.ones))
        return max(_log_ratio(a, b) for a, b in guesses)

    @property
    def error(self) -> float:
        """Standard deviation of the estimate (`sampling_error`, with shares for probabilities); NaN where infinite."""
        guesses = ((self.zeros, self.ones), (self.repeats - self.zeros, self.repeats - self.ones))
        a, b = max(guesses, key=lambda counted: _log_ratio(*counted))
        return math.sqrt(1 / a + 1 / b - 2 / self.repeats) if a and b else math.nan


def _log_ratio(first: int, second: int) -> float:
    if first == second:
        return 0.0
    return abs(math.log(first / second)) if first and second else math.inf


def published_repeats(dimensions: int) -> int:
    """Return how many releases of either input the published estimates rest on.

    Ten million; for more than 16 dimensions ten rounds of one million, of which the released code keeps the last.
    """
    return 10_000_000 if dimensions <= 16 else 1_000_000


def majority_vote(outputs: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether most of a release's values are one half or more: the guess that the input was all ones."""
    return 2 * np.count_nonzero(outputs >= 0.5, axis=1) > outputs.shape[1]


def plug_in(mechanism: Mechanism, dimensions: int, repeats: int, generator: np.random.Generator) -> PlugIn:
    """Release zeros and ones ``repeats`` times each and count the guesses.

    Both at once, each with a stream of its own, so that the counts do not depend on the number of cores.
    """

    def taken_for_ones(value: float, stream: np.random.Generator) -> int:
        values = np.full(dimensions, value, np.float32)
        outputs = releases(mechanism.release, values, repeats, stream)
        return sum(int(np.count_nonzero(majority_vote(part))) for part in outputs)

    with ThreadPoolExecutor(2) as pool:
        zeros, ones = pool.map(taken_for_ones, (0.0, 1.0), generator.spawn(2))
    return PlugIn(zeros, ones, repeats)


def exact_loss(chances: tuple[float, float], dimensions: int) -> float:
    """Return what the estimate is of: the loss of the majority vote over independent bits.

    Args:
        chances: probability that a bit is 1 for an input of 0 and of 1.
        dimensions: number of bits n; the guess is 1 if more than n/2 of them are.
    """
    return max(abs(p - q) for p, q in _log_chances(chances, dimensions))


def _log_chances(chances: tuple[float, float], dimensions: int) -> list[tuple[float, float]]:
    """Return for the guesses 0 and 1 the logarithms of their probabilities given zeros and given ones."""
    from scipy import stats

    half = dimensions // 2
    zeros, ones = (stats.binom(dimensions, chance) for chance in chances)
    return [(zeros.logcdf(half), ones.logcdf(half)), (zeros.logsf(half), ones.logsf(half))]


def laplace_chances(scale: float) -> tuple[float, float]:
    """Return the probabilities that 0 and 1 with Lap(scale) noise are one half or more."""
    low = 0.5 * math.exp(-0.5 / scale)
    return low, 1 - low


def sampling_error(chances: tuple[float, float], dimensions: int, repeats: int) -> float:
    """Return the standard deviation of the plug-in estimate (delta method), of the guess that decides the loss.

    For counts k of R with probability p, ln(k / R) has variance (1 - p) / (p R) to first order.
    """
    p, q = np.exp(max(_log_chances(chances, dimensions), key=lambda pair: abs(pair[0] - pair[1])))
    return math.sqrt(((1 - p) / p + (1 - q) / q) / repeats)
