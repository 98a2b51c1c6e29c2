"""Round releases, since audits do not judge floating-point arithmetic.

Noise in whole steps of 0.1 gives one number in several ways: 0.1 + 0.2 and 0.3 differ in the last bit. This bit tells
something about the input, and a classifier would find it. But the claimed mechanism adds real numbers.

A function of a release is as private as the release. So rounding adds no loss, and numbers that differ in their last
bits alone become equal. What lies below the last digit is not audited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.trials import LARGEST_NUMBER, noise_generator

SAMPLE, FEWEST_ROWS = 10_000, 16
"""Numbers that are released to learn their size, and the least number of rows."""
DIGITS = 4
"""Digits that are kept of each number, but none below the fourth digit of the coordinate's median size. Single
precision has seven."""
BORDERS, MARGIN = np.arange(1, 9) * (5**0.5 - 1) / 2 % 1, 0.02
"""Shares of a step up to which numbers may be rounded down. The one with the fewest numbers within the margin is taken:
of equal numbers at a border, the last bits would decide. The first share is far from short decimals."""
DECADE = 1e-6
"""Numbers that are less than this below a power of ten, as a decimal logarithm, are rounded like the power."""
SMALLEST = 1e-300
"""Smaller numbers are rounded to 0."""


def round_releases(mechanism: Mechanism, pair: Pair, generator: np.random.Generator) -> Rounded:
    """Return a mechanism that rounds its releases, and learn from releases of a pair how to round each coordinate."""
    rows = max(FEWEST_ROWS, SAMPLE // len(pair.first))
    inputs = np.resize(np.stack(pair.inputs), (rows, len(pair.first)))
    numbers = mechanism.release(inputs, noise_generator(generator)).astype(np.float64)
    numbers[~((np.abs(numbers) >= SMALLEST) & (np.abs(numbers) <= LARGEST_NUMBER))] = np.nan
    numbers[:, np.isnan(numbers).all(0)] = 1
    sizes = np.nanmedian(np.abs(numbers), axis=0)
    steps = numbers * _scale(numbers, sizes)
    near = [(np.abs((steps - border + 0.5) % 1 - 0.5) < MARGIN).sum(0) for border in BORDERS]
    return Rounded(mechanism, sizes, BORDERS[np.argmin(near, axis=0)])


def _scale(numbers: Array, sizes: Array) -> Array:
    """Return steps per unit, a power of ten for each number, float (..., d)."""
    digits = np.log10(np.clip(np.abs(numbers), sizes, LARGEST_NUMBER))
    scale: Array = 10.0 ** (DIGITS - 1 - np.floor(digits + DECADE))
    return scale


@dataclass(frozen=True)
class Rounded(MechanismDefaults):
    """A mechanism whose releases are rounded."""

    mechanism: Mechanism
    sizes: Array
    """Typical size of the numbers of each coordinate, float (d,)."""
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
        """Return releases rounded, float (..., d)."""
        numbers = released.astype(np.float64)
        scale = _scale(numbers, self.sizes)
        rounded: Array = np.ceil(numbers * scale - self.borders) / scale
        return rounded.astype(np.result_type(released.dtype, np.float32))
