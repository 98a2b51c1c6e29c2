"""Round releases, since audits do not judge floating-point arithmetic.

Noise in whole steps of 0.1 gives one number in several ways: 0.1 + 0.2 and 0.3 differ in the last bit. This bit tells
something about the input, and a classifier would find it. But the claimed mechanism adds real numbers.

So each number gets a little noise, and is rounded. Both are functions of the release and of independent noise. So they
add no loss.

Theorem. Let two numbers be t apart, and add Laplace noise of scale s to both. Then the probability of any result
computed from the sums differs by a factor of at most exp(t / s) (Dwork et al. 2006, proposition 1). For several numbers
the exponents add up. So rounding errors far below s show almost nothing, wherever the borders of rounding are. In
single precision t / s may reach 0.4 for a number, and more if an operation has larger numbers than its result. The
scale itself changes by at most t / 10,000, which we neglect.

What lies below the last digit, or below the smallest size, is not audited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.trials import LARGEST_NUMBER, noise_generator

SAMPLE, FEWEST_ROWS = 10_000, 64
"""Numbers that are released of each input to learn how to round. Wide inputs have at least `FEWEST_ROWS` rows."""
DIGITS = 3
"""Digits that are kept of a number's distance from the nearest center."""
MOST_DIGITS = 6
"""Digits that are kept of a number at most; the noise changes the sixth. Single precision has seven."""
DISTANCE_SPREAD = 1e-4
"""Scale of the noise, as a share of a number's distance from the nearest center. The last kept digit of the distance is
10 to 100 times this scale."""
NUMBER_SPREAD = 1e-6
"""Smallest scale of the noise, as a share of the number. Single precision has an error of 6e-8 of the number."""
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
NEGLIGIBLE = {0.5: 1e-5, 0.9: 1e-6}
"""Distances below these shares of these quantiles of the distances do not count for the size: they may be rounding
errors."""
NEGLIGIBLE_OF_CENTER = 1e-5
"""Nor do distances below this share of the center."""
SMALLEST_SIZE = 1e-12
"""Smallest size. A coordinate whose numbers are all smaller is rounded to 0, since they may be its rounding errors."""
SMALLEST_BESIDE, LARGEST_ERROR = 1e-5, 1e-6
"""So is one whose numbers are all below `LARGEST_ERROR`, and below this share of the largest size of a coordinate."""
MEDIANS = 3
"""Number of centers of each coordinate of an input."""
MAX_CENTERS, COVERED = 16, 10.0
"""Largest number of centers. A center is left out if the others round its neighbourhood at most ten times as coarsely
as it does."""


class Center(NamedTuple):
    """A center of each coordinate."""

    numbers: Array
    """Float (d,)."""
    sizes: Array
    """Distances below these are rounded like them, float (d,)."""


def round_releases(mechanism: Mechanism, pairs: Sequence[Pair], generator: np.random.Generator) -> Rounded:
    """Learn from releases of all inputs of the pairs how to round, and return a mechanism that rounds.

    Each input has its own centers, since inputs may have numbers of very different size. The first is the median. Each
    further one is the median of the numbers that equal no center so far, since these may be marks, such as -99,999.
    """
    noise = noise_generator(generator)
    found = [center for pair in pairs for center in _centers([_sample(mechanism, side, noise) for side in pair.inputs])]
    centers = found[:1]
    while len(centers) < MAX_CENTERS:
        coarseness = [float((_distances(numbers, centers) / sizes).max()) for numbers, sizes in found]
        if max(coarseness) <= COVERED:
            break
        centers.append(found[int(np.argmax(coarseness))])
    nearest = np.full((len(BORDERS), len(pairs[0].first)), np.nan)
    # new releases, since those of all wide pairs together may not fit into memory
    for numbers in (_sample(mechanism, side, noise) for pair in pairs for side in pair.inputs):
        steps = numbers * _steps_per_unit(numbers, centers)
        for border, smallest in zip(BORDERS, nearest, strict=True):
            np.fmin(smallest, np.fmin.reduce(np.abs((steps - border + 0.5) % 1 - 0.5)), out=smallest)
    return Rounded(mechanism, centers, BORDERS[np.argmax(nearest, axis=0)], noise_generator(generator))


def _sample(mechanism: Mechanism, values: Array, noise: np.random.Generator) -> Array:
    """Return releases of one input, float64 (n, d), with NaN for numbers that teach nothing."""
    inputs = np.tile(values, (max(FEWEST_ROWS, SAMPLE // len(values)), 1))
    numbers = mechanism.release(inputs, noise).astype(np.float64)
    numbers[~(np.abs(numbers) < TOO_LARGE)] = np.nan
    return numbers


def _centers(sides: Sequence[Array]) -> list[Center]:
    """Return the centers of the releases of each input of a pair."""
    numbers = np.fmax.reduce([np.fmax.reduce(np.abs(side)) for side in sides])
    centers, medians = list[Center](), np.zeros((len(sides), sides[0].shape[1]))
    for _ in range(MEDIANS):
        found = np.stack([_quantile(side, 0.5) for side in sides])
        medians = np.where(np.isnan(found), medians, found)
        centers += [Center(median, _size(sides, median)) for median in medians]
        sides = [np.where(side == median, np.nan, side) for side, median in zip(sides, medians, strict=True)]
    largest = max(float(center.sizes.max()) for center in centers)
    least = max(SMALLEST_SIZE, min(LARGEST_ERROR, SMALLEST_BESIDE * largest))
    smallest = np.where(numbers < least, least * 10**DIGITS, SMALLEST_SIZE)
    return [Center(center.numbers, np.maximum(center.sizes, smallest)) for center in centers]


def _size(sides: Sequence[Array], center: Array) -> Array:
    """Return the size of the distances of numbers from a center, float (d,)."""
    distances = np.abs(np.concatenate(sides) - center)
    distances[distances == 0] = np.nan
    least = NEGLIGIBLE_OF_CENTER * np.abs(center)
    for quantile, share in NEGLIGIBLE.items():
        least = np.fmax(least, share * _quantile(distances, quantile))
    distances[distances < least] = np.nan
    sizes = _quantile(distances, SIZE_QUANTILE)
    return np.where(np.isnan(sizes), np.maximum(1.0, np.abs(center)), sizes)


def _quantile(numbers: Array, share: float) -> Array:
    """Return the lower quantile of each column without its NaN, float (d,); NaN if there is nothing else.

    It is that of `numpy.nanquantile`, and 20 times as fast.
    """
    last = np.maximum((~np.isnan(numbers)).sum(0) - 1, 0)
    quantile: Array = np.take_along_axis(np.sort(numbers, axis=0), (share * last).astype(int)[None], axis=0)[0]
    return quantile


def _distances(numbers: Array, centers: Sequence[Center]) -> Array:
    """Return the distance of each number from the nearest center, and at least the center's size, float (..., d)."""
    nearest = np.full(numbers.shape, LARGEST_NUMBER)
    for center, sizes in centers:
        np.minimum(nearest, np.maximum(np.abs(numbers - center), sizes), out=nearest)
    return nearest


def _steps_per_unit(numbers: Array, centers: Sequence[Center]) -> Array:
    """Return a power of ten for each number, float (..., d)."""
    largest = np.maximum(_distances(numbers, centers) * 10.0 ** (MOST_DIGITS - DIGITS), np.abs(numbers))
    with np.errstate(invalid="ignore"):  # NaN stays NaN whatever its scale
        exponents = MOST_DIGITS - 1 - np.floor(np.log10(largest) + DECADE).astype(int)
    powers: Array = POWERS.take(exponents - LOWEST, mode="clip")
    return powers


@dataclass(frozen=True)
class Rounded(MechanismDefaults):
    """A mechanism whose releases get a little noise and are rounded."""

    mechanism: Mechanism
    centers: Sequence[Center]
    borders: Array
    """Share of a step up to which the numbers of each coordinate are rounded down, float (d,)."""
    noise: np.random.Generator
    """Generator of the noise before rounding. It is not the mechanism's, which a mechanism may copy."""

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
        """Add a little noise, and return the sums rounded, float64 (..., d). Each call draws new noise."""
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
        """Return a function of releases that rounds them first, with new noise at each call."""
        return lambda released: function(self.rounded(released))
