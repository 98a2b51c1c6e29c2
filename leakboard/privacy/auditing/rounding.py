"""Round releases whose equal values differ in their last bits, since audits do not judge floating-point arithmetic.

Noise in whole steps of 0.1 gives one number in several ways: 0.1 + 0.2 and 0.3 differ in the last bit. This bit tells
something about the input, and a classifier would find it. But the claimed mechanism adds real numbers.

A function of a release is as private as the release, so rounding accuses no sound mechanism. Releases without such
values stay as they are.
"""

from __future__ import annotations

import math

import numpy as np

from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.privacy.auditing.events import Array
from leakboard.privacy.auditing.trials import LARGEST_NUMBER

SAMPLE = 10_000
"""Number of first released numbers that are searched for equal values."""
UNITS = 8
"""Numbers are equal if they differ by less than this many units in the last place of the large numbers."""
FEWEST, RATIO = 15, 4
"""At least so many numbers of the sample must be equal to the next, and not identical. They must also be so many times
as many as those whose distance is one to two times the largest of equal numbers. Of continuous noise both are as many.
"""
DIGITS = {np.float64: 9, np.float32: 5}
"""Digits that are kept, from the first digit of the large numbers: 99 % are smaller."""


class Rounded(MechanismDefaults):
    """A mechanism whose releases are rounded, if equal values among its first ones differ in their last bits."""

    def __init__(self, mechanism: Mechanism):
        self.mechanism = mechanism
        self.sample: list[Array] = []
        self.missing = SAMPLE
        """Numbers that the sample lacks; until there are none, releases are not rounded."""
        self.decimals: int | None = None
        """Decimals that are kept; None: all."""

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
        released = self.mechanism.release(values, generator)
        if self.missing > 0:
            self.sample.append(released.ravel()[: self.missing])
            self.missing -= released.size
            if self.missing <= 0:
                self.decimals = decimals_of(np.concatenate(self.sample))
        return released if self.decimals is None else np.round(released, self.decimals)


def decimals_of(numbers: Array) -> int | None:
    """Return how many decimals of numbers, float (n,), to keep; None if no equal numbers differ in their last bits."""
    numbers = numbers.astype(np.float64)
    numbers = np.sort(numbers[np.abs(numbers) < LARGEST_NUMBER])  # without NaN
    sizes = np.abs(numbers[numbers != 0])
    if not len(sizes):
        return None
    large = float(np.quantile(sizes, 0.99))
    with np.errstate(over="ignore"):
        kind = np.float32 if (numbers == numbers.astype(np.float32)).all() else np.float64
    gaps = np.diff(numbers) / (UNITS * np.finfo(kind).eps * large)
    equal, near = np.count_nonzero((gaps > 0) & (gaps < 1)), np.count_nonzero((gaps >= 1) & (gaps < 2))
    if equal < FEWEST or equal < RATIO * near:
        return None
    return DIGITS[kind] - 1 - math.floor(math.log10(large))
