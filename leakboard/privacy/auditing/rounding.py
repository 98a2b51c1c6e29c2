"""Round releases whose equal values differ in their last bits, since audits do not judge floating-point arithmetic.

Noise in whole steps of 0.1 gives one number in several ways: 0.1 + 0.2 and 0.3 differ in the last bit. This bit tells
something about the input, and a classifier would find it. But the claimed mechanism adds real numbers.

A function of a release is as private as the release, so rounding accuses no sound mechanism. What lies below the last
digit is not audited. Releases without such values are not rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.trials import LARGEST_NUMBER

SAMPLE, FEWEST_ROWS = 10_000, 16
"""Numbers that are released to search them for equal values, and the least number of rows. Of wide noise on a fine grid
too few numbers are equal; then audits do not round, and cannot learn single values either."""
UNITS = 8
"""Numbers are equal if they differ by less than this many units in the last place of the large numbers."""
FEWEST, RATIO = 15, 4
"""At least so many numbers of the sample must be equal to the next, and not identical. They must also be so many times
as many as those whose distance is one to two times the largest of equal numbers. Of continuous noise both are as many.
"""
DIGITS = {np.float64: 9, np.float32: 5}
"""Digits that are kept, from the first digit of the large numbers: 99 % are smaller."""


def kept_decimals(mechanism: Mechanism, pair: Pair, generator: np.random.Generator) -> int | None:
    """Release both inputs of a pair; return the decimals to which an audit rounds; None: it does not round."""
    rows = max(FEWEST_ROWS, SAMPLE // len(pair.first))
    released = mechanism.release(np.resize(np.stack(pair.inputs), (rows, len(pair.first))), generator)
    return decimals_of(released.ravel())


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
    decimals = DIGITS[kind] - 1 - math.floor(math.log10(large))
    _, merged = np.unique(np.round(np.unique(numbers), decimals), return_counts=True)
    return decimals if merged.max() <= UNITS else None  # more are no rounding errors, but numbers of a smaller scale


@dataclass(frozen=True)
class Rounded(MechanismDefaults):
    """A mechanism whose releases are rounded."""

    mechanism: Mechanism
    decimals: int | None
    """None: no rounding."""

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
        """Return releases rounded, float of the same shape."""
        return released if self.decimals is None else np.round(released, self.decimals)
