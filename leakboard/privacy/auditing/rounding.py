"""Round releases, since audits do not judge floating-point arithmetic.

Noise in whole steps of 0.1 gives one number in several ways: 0.1 + 0.2 and 0.3 differ in the last bit. This bit tells
something about the input, and a classifier would find it. But the claimed mechanism adds real numbers.

A function of a release is as private as the release. So rounding adds no loss. It makes most numbers equal that differ
in their last bits alone. What lies below the last digit is not audited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.trials import LARGEST_NUMBER, noise_generator

SAMPLE, FEWEST_ROWS = 10_000, 256
"""Numbers that are released to learn how to round, and the least number of rows."""
DIGITS = 3
"""Digits that are kept of a number's distance from its coordinate's median, but none below the third digit of the
median distance. Single precision has seven, and rounding errors may add up."""
MOST_DIGITS = 6
"""Digits that are kept of a number at most."""
BORDERS = np.arange(1, 9) * (5**0.5 - 1) / 2 % 1
"""Shares of a step up to which numbers may be rounded down. Each coordinate has the share from which the nearest number
is farthest. Of equal numbers at a border, the last bits would decide."""
DECADE = 1e-6
"""Numbers that are less than this below a power of ten, as a decimal logarithm, are rounded like the power. Otherwise
the results would differ in their last bit."""
LOWEST = -308
POWERS = 10.0 ** np.arange(LOWEST, 1 - LOWEST)
"""Powers of ten from the lowest exponent; a table is faster than computing them."""
TOO_LARGE = 1e30
"""Numbers from this on teach no size: 1e30 stands for NaN and infinity."""
SMALLEST = 1e-300
"""Smaller distances count as this."""


def round_releases(mechanism: Mechanism, pair: Pair, generator: np.random.Generator) -> Rounded:
    """Return a mechanism that rounds its releases, and learn from releases of a pair how to round each coordinate."""
    rows = max(FEWEST_ROWS, SAMPLE // len(pair.first))
    inputs = np.resize(np.stack(pair.inputs), (rows, len(pair.first)))
    numbers = mechanism.release(inputs, noise_generator(generator)).astype(np.float64)
    numbers[~(np.abs(numbers) < TOO_LARGE)] = np.nan
    numbers[:, np.isnan(numbers).all(0)] = 0
    centers = np.nanmedian(numbers, axis=0)
    distances = np.abs(numbers - centers)
    distances[~(distances >= SMALLEST)] = np.nan
    distances[:, np.isnan(distances).all(0)] = 1
    sizes = np.nanmedian(distances, axis=0)
    steps = numbers * _scale(numbers, centers, sizes)
    nearest = [np.nanmin(np.abs((steps - border + 0.5) % 1 - 0.5), axis=0) for border in BORDERS]
    return Rounded(mechanism, centers, sizes, BORDERS[np.argmax(nearest, axis=0)])


def _scale(numbers: Array, centers: Array, sizes: Array) -> Array:
    """Return steps per unit, a power of ten for each number, float (..., d)."""
    distances = np.clip(np.abs(numbers - centers), sizes, LARGEST_NUMBER)
    largest = np.maximum(distances * 10.0 ** (MOST_DIGITS - DIGITS), np.abs(numbers))
    with np.errstate(invalid="ignore"):  # NaN stays NaN whatever its scale
        exponents = MOST_DIGITS - 1 - np.floor(np.log10(largest) + DECADE).astype(int)
    scale: Array = POWERS.take(exponents - LOWEST, mode="clip")
    return scale


@dataclass(frozen=True)
class Rounded(MechanismDefaults):
    """A mechanism whose releases are rounded."""

    mechanism: Mechanism
    centers: Array
    """Median of the numbers of each coordinate, float (d,)."""
    sizes: Array
    """Median distance from the center, of the numbers that have one, float (d,)."""
    borders: Array
    """Share of a step up to which the numbers of each coordinate are rounded down, float (d,)."""

    @property
    def epsilon(self) -> float:
        """Epsilon that is claimed."""
        return self.mechanism.epsilon

    @property
    def delta(self) -> float:
        """Delta that is claimed."""
        return self.mechanism.delta

    def log_ratio(self, outputs: Array, first: Array, second: Array) -> Array | None:
        """Return how much likelier each output is for the first input."""
        return self.mechanism.log_ratio(outputs, first, second)

    def vector_of(self, values: Array) -> Array | None:
        """Return the vector before noise."""
        return self.mechanism.vector_of(values)

    def release(self, values: Array, generator: np.random.Generator) -> Array:
        """Release each row, float (n, d)."""
        return self.rounded(self.mechanism.release(values, generator))

    def rounded(self, released: Array) -> Array:
        """Return releases rounded, float64 (..., d)."""
        numbers = released.astype(np.float64)
        scale = _scale(numbers, self.centers, self.sizes)
        rounded: Array = np.ceil(numbers * scale - self.borders) / scale + 0.0  # no negative 0
        return rounded

    def before(self, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return a function of rounded releases as a function of releases."""
        return lambda released: function(self.rounded(released))
