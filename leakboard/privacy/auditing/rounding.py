"""Round releases, since audits do not judge floating-point arithmetic.

Noise in whole steps of 0.1 gives one number in several ways: 0.1 + 0.2 and 0.3 differ in the last bit. This bit tells
something about the input, and a classifier would find it. But the claimed mechanism adds real numbers.

So each number gets a little noise, and is rounded. Both are functions of the release and of independent noise. So they
add no loss.

Theorem. Let two numbers be t apart, and add Laplace noise of scale s to both. Whatever is computed from the sums, its
probabilities differ by a factor of at most exp(t / s) (Dwork et al. 2006, proposition 1). So rounding errors far below
s show nothing, wherever the borders of rounding are. The scale itself changes by at most t / 10,000, which we neglect.

What lies below the last digit is not audited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.trials import LARGEST_NUMBER, noise_generator

SAMPLE, FEWEST_ROWS = 10_000, 256
"""Numbers of each input that are released to learn how to round, and the least number of rows."""
DIGITS = 3
"""Digits that are kept of a number's distance from the nearest center."""
MOST_DIGITS = 6
"""Digits that are kept of a number at most. Single precision has seven, and rounding errors may add up."""
DISTANCE_SPREAD, NUMBER_SPREAD = 1e-4, 1e-6
"""Scale of the noise, as a share of a number's distance from the nearest center, and at least of the number itself.

Single precision has an error of 6e-8 of the number. The last kept digit is ten to a hundred times the first scale.
"""
BORDERS = np.arange(1, 9) * (5**0.5 - 1) / 2 % 1
"""Shares of a step up to which numbers may be rounded down. Each coordinate has the share from which the nearest number
is farthest. So the noise seldom splits repeated numbers, if there are few."""
DECADE = 0.01
"""Numbers that are less than this below a power of ten, as a decimal logarithm, are rounded like the power. So the
noise does not split powers of ten, which are frequent."""
LOWEST = -308
POWERS = 10.0 ** np.arange(LOWEST, 1 - LOWEST)
"""Powers of ten from the lowest exponent; a table is faster than computing them."""
TOO_LARGE = 1e30
"""Numbers from this on teach nothing: 1e30 stands for NaN and infinity."""
SIZE_QUANTILE = 0.2
"""Quantile of the distances from a center that is the center's size. Smaller distances are rounded like it."""
NEGLIGIBLE = 1e-6
"""Distances below this share of the median distance do not count for the size: they may be rounding errors."""
SMALLEST_SIZE = 1e-12
"""Smallest size, as a share of 1 and of the largest size of a coordinate: less may be a rounding error of 0."""
COVERED = 10.0
"""A center is left out if the others round there at most this many times as coarsely."""


def round_releases(mechanism: Mechanism, pairs: Sequence[Pair], generator: np.random.Generator) -> Rounded:
    """Return a mechanism that rounds its releases, and learn how to from releases of all inputs of the pairs.

    Each input has centers of its own, since inputs may have numbers of very different size: the median of each
    coordinate, and the median of the numbers that are not the first one. The first may be a mark, such as -99,999.
    """
    noise, centers, samples = noise_generator(generator), list[tuple[Array, Array]](), list[Array]()
    for pair in pairs:
        sides = [_sample(mechanism, values, noise) for values in pair.inputs]
        medians = [np.nan_to_num(_quantile(side, 0.5)) for side in sides]
        others = [np.where(side == median, np.nan, side) for side, median in zip(sides, medians, strict=True)]
        second = [_quantile(side, 0.5) for side in others]
        centers += [(median, _size(sides, median)) for median in medians]
        centers += [(median, _size(others, median)) for median in map(np.where, map(np.isnan, second), medians, second)]
        samples += sides
    smallest = SMALLEST_SIZE * max(1.0, *(float(sizes.max()) for _, sizes in centers))
    kept: list[tuple[Array, Array]] = []
    for center, sizes in centers:
        sizes = np.maximum(sizes, smallest)
        if not kept or (_distances(center, kept) > COVERED * sizes).any():
            kept.append((center, sizes))
    numbers = np.concatenate(samples)
    steps = numbers * _steps_per_unit(numbers, kept)
    nearest = [np.fmin.reduce(np.abs((steps - border + 0.5) % 1 - 0.5)) for border in BORDERS]
    return Rounded(mechanism, kept, BORDERS[np.argmax(nearest, axis=0)], noise_generator(generator))


def _sample(mechanism: Mechanism, values: Array, noise: np.random.Generator) -> Array:
    """Return releases of one input, float64 (n, d), with NaN for numbers that teach nothing."""
    inputs = np.tile(values, (max(FEWEST_ROWS, SAMPLE // len(values)), 1))
    numbers = mechanism.release(inputs, noise).astype(np.float64)
    numbers[~(np.abs(numbers) < TOO_LARGE)] = np.nan
    return numbers


def _size(sides: Sequence[Array], center: Array) -> Array:
    """Return the size of the distances of numbers from a center, float (d,); 1 where there are none."""
    distances = np.abs(np.concatenate(sides) - center)
    distances[distances == 0] = np.nan
    distances[distances < NEGLIGIBLE * _quantile(distances, 0.5)] = np.nan
    return np.nan_to_num(_quantile(distances, SIZE_QUANTILE), nan=1.0)


def _quantile(numbers: Array, share: float) -> Array:
    """Return the quantile of each column without its NaN, float (d,); NaN if there is nothing else."""
    last = np.maximum((~np.isnan(numbers)).sum(0) - 1, 0)
    quantile: Array = np.take_along_axis(np.sort(numbers, axis=0), (share * last).astype(int)[None], axis=0)[0]
    return quantile


def _distances(numbers: Array, centers: Sequence[tuple[Array, Array]]) -> Array:
    """Return the distance of each number from the nearest center, and at least the center's size, float (..., d)."""
    nearest = np.full(numbers.shape, LARGEST_NUMBER)
    for center, sizes in centers:
        np.minimum(nearest, np.maximum(np.abs(numbers - center), sizes), out=nearest)
    return nearest


def _steps_per_unit(numbers: Array, centers: Sequence[tuple[Array, Array]]) -> Array:
    """Return a power of ten for each number, float (..., d)."""
    largest = np.maximum(_distances(numbers, centers) * 10.0 ** (MOST_DIGITS - DIGITS), np.abs(numbers))
    with np.errstate(invalid="ignore"):  # NaN stays NaN whatever its scale
        exponents = MOST_DIGITS - 1 - np.floor(np.log10(largest) + DECADE).astype(int)
    powers: Array = POWERS.take(exponents - LOWEST, mode="clip")
    return powers


@dataclass(frozen=True)
class Rounded(MechanismDefaults):
    """A mechanism whose releases are rounded."""

    mechanism: Mechanism
    centers: Sequence[tuple[Array, Array]]
    """Each a number of each coordinate, float (d,), and the size of the distances from it, float (d,)."""
    borders: Array
    """Share of a step up to which the numbers of each coordinate are rounded down, float (d,)."""
    noise: np.random.Generator
    """Generator of the noise that is added before rounding."""

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
        """Return releases with a little noise and rounded, float64 (..., d)."""
        numbers = released.astype(np.float64)
        scale = self.scale(numbers)
        # the difference of two exponential numbers has the law of Laplace, and is drawn fast
        numbers += scale * self.noise.standard_exponential(numbers.shape)
        numbers -= scale * self.noise.standard_exponential(numbers.shape)
        steps_per_unit = _steps_per_unit(numbers, self.centers)
        rounded: Array = np.ceil(numbers * steps_per_unit - self.borders) / steps_per_unit + 0.0  # no negative 0
        return rounded

    def scale(self, numbers: Array) -> Array:
        """Return the scale of the noise of each number, float64 (..., d)."""
        sizes = np.minimum(np.abs(numbers), LARGEST_NUMBER)
        return np.maximum(DISTANCE_SPREAD * _distances(numbers, self.centers), NUMBER_SPREAD * sizes)

    def before(self, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return a function of rounded releases as a function of releases."""
        return lambda released: function(self.rounded(released))
