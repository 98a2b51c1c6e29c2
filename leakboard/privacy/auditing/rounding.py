"""Round releases, since audits do not judge floating-point arithmetic.

Noise in whole steps of 0.1 gives one number in several ways: 0.1 + 0.2 and 0.3 differ in the last bit. This bit tells
something about the input, and a classifier would find it. But the claimed mechanism adds real numbers.

A function of a release is as private as the release, so rounding accuses no sound mechanism. What lies below the last
digit is not audited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.trials import LARGEST_NUMBER, noise_generator

SAMPLE, FEWEST_ROWS = 10_000, 16
"""Numbers that are released to learn their size, and the least number of rows."""
DIGITS, SINGLE_DIGITS = 9, 5
"""Digits that are kept in double and in single precision, from the first digit of a coordinate's large numbers: 99 %
are smaller."""


def sample(mechanism: Mechanism, pair: Pair, generator: np.random.Generator) -> Array:
    """Return releases of both inputs of a pair, float (n, d)."""
    rows = max(FEWEST_ROWS, SAMPLE // len(pair.first))
    inputs = np.resize(np.stack(pair.inputs), (rows, len(pair.first)))
    return mechanism.release(inputs, noise_generator(generator))


def decimals_of(released: Array) -> Array:
    """Return how many decimals of each coordinate of releases, float (n, d), to keep, int (d,)."""
    sizes = np.abs(released.astype(np.float64))
    sizes[(sizes == 0) | ~(sizes < LARGEST_NUMBER)] = np.nan
    sizes[:, np.isnan(sizes).all(0)] = 1
    digits = SINGLE_DIGITS if _is_single(released) else DIGITS
    decimals: Array = digits - 1 - np.floor(np.log10(np.nanquantile(sizes, 0.99, axis=0))).astype(int)
    return decimals


def _is_single(released: Array) -> bool:
    """Return whether numbers are in single precision; whole numbers are exact in any."""
    with np.errstate(over="ignore"):
        return bool((released == released.astype(np.float32)).all() and (released != np.rint(released)).any())


@dataclass(frozen=True)
class Rounded(MechanismDefaults):
    """A mechanism whose releases are rounded."""

    mechanism: Mechanism
    decimals: Array
    """Decimals of each coordinate, int (d,)."""

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
        scale = 10.0**self.decimals
        rounded: Array = (np.rint(released * scale) / scale).astype(released.dtype)
        return rounded
