"""Scale vectors before a classifier learns from them, and denoise the vectors of a victim that adds noise.

Noise that all coordinates share, as in DPNR's released code, shifts the whole vector. Subtracting the smallest
coordinate or the mean removes this shift. Independent noise is reduced by the best linear estimate of the vector
without noise (Wiener 1949). Let S be the covariance of the clean vectors, N the covariance of the noise, and m the
mean. The estimate is x -> m + S (S + N)^-1 (x - m).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import NotApplicable
from leakboard.interfaces import Floats

if TYPE_CHECKING:
    from sklearn.preprocessing import QuantileTransformer

BLOCK = 4_096
"""Number of vectors that are computed at once in float64."""
LEAST_VARIANCE = 1e-5
"""Whitening adds this share of the largest variance to the variances of all principal axes."""
MAX_ROUNDS = 20
"""Most rounds of the search for the signs of saturated vectors."""
FARTHEST_QUANTILE = 4.0
"""Coordinates at or beyond the smallest and the largest known ones get this quantile, in standard deviations."""
NEAREST_ONE = 1 - 3e-8
"""Coordinates are kept below this before arctanh: the next number below 1 in float32 is 1 - 6e-8."""
Inputs = Literal["raw", "standardised", "per vector", "centred", "above minimum", "shrunken", "quantile", "saturated"]


def blocks(rows: int) -> Iterator[slice]:
    """Yield the slices of consecutive blocks."""
    return (slice(start, start + BLOCK) for start in range(0, rows, BLOCK))


@dataclass(frozen=True)
class Scaling:
    """A map of vectors: one affine map for all vectors, or a map that depends on each vector alone."""

    name: Inputs
    shift: NDArray[np.float64] | float = 0.0
    scale: NDArray[np.float64] | float = 1.0
    """Factors of the coordinates (d,), or a matrix (d, d) that is multiplied from the right."""

    def __call__(self, vectors: Floats) -> Floats:
        """Scale vectors, float32 (n, d), block by block; sums and products are computed in float64."""
        if self.name == "raw":
            return vectors
        if self.name == "above minimum":
            return vectors - vectors.min(1, keepdims=True)
        scaled = np.empty(vectors.shape, np.float32)
        for rows in blocks(len(vectors)):
            scaled[rows] = self._block(vectors[rows])
        return scaled

    def _block(self, vectors: Floats) -> Floats:
        if self.name == "per vector":
            vectors = vectors - vectors.mean(1, keepdims=True, dtype=np.float64)  # squares leave the range of float32
            deviation = vectors.std(1, keepdims=True)
            return (vectors / np.where(deviation > 0, deviation, 1)).astype(np.float32)
        if self.name == "centred":
            return (vectors - vectors.mean(1, keepdims=True, dtype=np.float64)).astype(np.float32)
        moved = vectors - self.shift
        return (moved @ self.scale if np.ndim(self.scale) == 2 else moved * self.scale).astype(np.float32)


RAW = Scaling("raw")


@dataclass(frozen=True)
class Quantiles:
    """Each coordinate's rank among known vectors, as a quantile of the normal distribution.

    A pooled vector ends in tanh. If nearly all coordinates are near -1 or 1, the rest of what they tell lies in
    differences that a scaling leaves tiny.
    """

    transformer: "QuantileTransformer"
    name: Inputs = "quantile"

    @classmethod
    def of(cls, vectors: Floats) -> "Quantiles":
        """Rank vectors, float32 (n, d): scikit-learn keeps at most 1,000 quantiles of 10,000 of them."""
        from sklearn.preprocessing import QuantileTransformer

        count = min(1000, len(vectors))
        transformer = QuantileTransformer(n_quantiles=count, output_distribution="normal", random_state=0)
        return cls(transformer.fit(vectors.astype(np.float64)))

    def __call__(self, vectors: Floats) -> Floats:
        """Return normal quantiles, float32 (n, d), within ±`FARTHEST_QUANTILE`."""
        ranks = self.transformer.transform(vectors.astype(np.float64))
        return np.clip(ranks, -FARTHEST_QUANTILE, FARTHEST_QUANTILE).astype(np.float32)


@dataclass(frozen=True)
class Saturated:
    """Undo tanh, and standardise each coordinate within two clusters of opposite signs, then each vector.

    Training against an attacker may drive nearly all coordinates to -1 or 1. Then nearly all texts have the signs of
    one vector, or the opposite ones. How far a text is saturated as a whole tells little about its secrets.
    """

    signs: NDArray[np.float64]
    """Of cluster 1: -1 or 1, (d,)."""
    means: NDArray[np.float64]
    """Of both clusters, (2, d)."""
    deviations: NDArray[np.float64]
    """Standard deviations, (2, d)."""
    name: Inputs = "saturated"

    @classmethod
    def of(cls, vectors: Floats) -> "Saturated":
        """Learn both clusters of vectors, float32 (n, d).

        Raises:
            NotApplicable: a coordinate is below -1 or above 1, so it is no value of tanh.
        """
        if (farthest := float(np.abs(vectors).max())) > 1:
            raise NotApplicable(f"inputs: saturated: a coordinate is {farthest!r} from 0; allowed: at most 1")
        signs = _common_signs(vectors)
        counts, sums, squares = np.zeros((2, 1)), np.zeros((2, len(signs))), np.zeros((2, len(signs)))
        for rows in blocks(len(vectors)):
            cluster, values = _before_tanh(vectors[rows], signs)
            for side in (0, 1):
                part = values[cluster == side]
                counts[side] += len(part)
                sums[side] += part.sum(0)
                squares[side] += (part**2).sum(0)
        means = sums / np.maximum(counts, 1)
        variances = squares / np.maximum(counts, 1) - means**2
        return cls(signs, means, np.sqrt(np.where(variances > 0, variances, 1)))

    def __call__(self, vectors: Floats) -> Floats:
        """Return the standardised values and, as the last coordinate, the cluster (-1 or 1), float32 (n, d + 1)."""
        scaled = np.empty((len(vectors), vectors.shape[1] + 1), np.float32)
        for rows in blocks(len(vectors)):
            cluster, values = _before_tanh(vectors[rows], self.signs)
            values = (values - self.means[cluster]) / self.deviations[cluster]
            values -= values.mean(1, keepdims=True)
            spread = values.std(1, keepdims=True)
            scaled[rows, :-1] = values / np.where(spread > 0, spread, 1)
            scaled[rows, -1] = 2 * cluster - 1
        return scaled


def _common_signs(vectors: Floats) -> NDArray[np.float64]:
    """Return the signs that most vectors have, or the opposite ones, -1 or 1, (d,)."""
    signs = np.where(vectors[0] < 0, -1.0, 1.0)
    for _ in range(MAX_ROUNDS):
        before = signs
        sides = np.where(vectors @ signs > 0, 1.0, -1.0)
        signs = np.where(sides @ vectors < 0, -1.0, 1.0)
        if np.array_equal(signs, before):
            break
    return signs


def _before_tanh(vectors: Floats, signs: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the cluster of each vector, int64 (n,), and the values before tanh, float64 (n, d).

    Cluster 1 is on the side of the signs, cluster 0 on the other. Values are positive if they have the cluster's sign.
    """
    cluster = (vectors @ signs > 0).astype(np.int64)
    values = np.arctanh(np.clip(vectors.astype(np.float64), -NEAREST_ONE, NEAREST_ONE))
    return cluster, values * signs * (2 * cluster - 1)[:, None]


AnyScaling = Scaling | Quantiles | Saturated


@dataclass(frozen=True)
class Rotated:
    """Scaled vectors along their principal axes, so that trees, which split single coordinates, split these directions.

    If the coordinates of each vector sum to 0, as after normalisation, one axis holds only rounding errors. Trees may
    split on this axis. It does little harm: without the axis four ensembles on AG scored the same within 0.002.
    Removing it would change published numbers.
    """

    scaling: AnyScaling
    axes: Floats
    """float32 (d, d): each column is an axis."""

    @classmethod
    def of(cls, scaling: AnyScaling, vectors: Floats) -> "Rotated":
        """Compute the axes of vectors, float32 (n, d), after scaling."""
        return cls(scaling, np.linalg.eigh(_moments(scaling, vectors)[1])[1].astype(np.float32))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"rotated {self.scaling.name}"

    def __call__(self, vectors: Floats) -> Floats:
        return self.scaling(vectors) @ self.axes


@dataclass(frozen=True)
class Whitened:
    """Scaled vectors whose principal axes have variances near 1; those of the least axes stay smaller.

    The vectors of an encoder that is trained on a task vary most along the few directions of the task. On standardised
    coordinates a network learns these first, and its training may end before it has learned the others. The matrix is
    symmetric, so that signs of axes do not matter, which differ between machines.
    """

    scaling: AnyScaling
    centre: NDArray[np.float64]
    """Mean of the scaled vectors, (d,)."""
    matrix: NDArray[np.float64]
    """(d, d)."""

    @classmethod
    def of(cls, scaling: AnyScaling, vectors: Floats) -> "Whitened":
        """Whiten vectors, float32 (n, d), after scaling.

        Raises:
            ValueError: all scaled vectors are the same.
        """
        centre, products = _moments(scaling, vectors)
        variances, axes = np.linalg.eigh(products / len(vectors))
        if variances[-1] <= 0:
            raise ValueError("all vectors are the same")
        damped = np.maximum(variances, 0) + LEAST_VARIANCE * variances[-1]
        return cls(scaling, centre, (axes / np.sqrt(damped)) @ axes.T)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"whitened {self.scaling.name}"

    def __call__(self, vectors: Floats) -> Floats:
        scaled = np.empty((len(vectors), len(self.centre)), np.float32)
        for rows in blocks(len(vectors)):
            scaled[rows] = (self.scaling(vectors[rows]) - self.centre) @ self.matrix
        return scaled


AnyInputs = AnyScaling | Rotated | Whitened


def _moments(scaling: AnyScaling, vectors: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of scaled vectors, float64 (d,), and the centred vectors' products, (d, d), block by block."""
    rows = list(blocks(len(vectors)))
    mean = np.asarray(sum(scaling(vectors[block]).sum(0, dtype=np.float64) for block in rows) / len(vectors))
    products = np.zeros((len(mean), len(mean)))
    for block in rows:
        centred = scaling(vectors[block]) - mean
        products += centred.T @ centred
    return mean, products


def plain_scalings(vectors: Floats) -> list[Scaling]:
    """Return the scalings for vectors without noise, with means and deviations taken from ``vectors``."""
    return [RAW, standardised(vectors), Scaling("per vector")]


def standardised(vectors: Floats) -> Scaling:
    """Return the scaling that gives every coordinate of ``vectors`` mean 0 and, unless it is constant, deviation 1."""
    mean = vectors.mean(0, dtype=np.float64)
    squares = np.zeros(vectors.shape[1])
    for rows in blocks(len(vectors)):
        squares += ((vectors[rows] - mean) ** 2).sum(0)
    deviation = np.sqrt(squares / len(vectors))
    return Scaling("standardised", mean, 1 / np.where(deviation > 0, deviation, 1))


def shrinkage(vectors: Floats, again: Floats) -> Scaling:
    """Return the linear estimate of the vectors without noise; its coordinates have mean variance 1.

    It leaves out directions whose share of signal is within four standard errors of 0, unless this is true of all. In
    these directions the noise may be far larger than the signal in other directions.

    Args:
        vectors: float32 (n, d), publications of n texts.
        again: publications of the same texts with fresh noise; the signal is what both have in common.

    Raises:
        ValueError: there is one text, or all vectors are the same.
    """
    from scipy import linalg

    def covariance(sample: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.atleast_2d(np.cov(sample, rowvar=False))

    if len(vectors) < 2:
        raise ValueError("noise cannot be estimated from a single text")
    first, second = vectors.astype(np.float64), again.astype(np.float64)
    total = (covariance(first) + covariance(second)) / 2
    noise = covariance(first - second) / 2
    ridge = 1e-9 * np.trace(total) / len(total) * np.eye(len(total))
    shares, axes = linalg.eigh(total - noise, total + ridge)  # axes whiten: axes.T @ (total + ridge) @ axes = 1
    significant = shares > 4 / np.sqrt(len(vectors))
    shares = np.where(significant if significant.any() else shares > 0, shares, 0.0)
    filter_ = (axes * shares) @ linalg.inv(axes)
    spread = np.trace(filter_.T @ total @ filter_) / len(total)
    return Scaling("shrunken", first.mean(0), filter_ / np.sqrt(spread) if spread > 0 else filter_)
