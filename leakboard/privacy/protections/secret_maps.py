"""Hide vectors by a secret linear map. Stored vectors and queries go through the same map.

| recipe | map | where it is used |
|---|---|---|
| `Rotation` | a random rotation | turboquant-vectors (PyPI) |
| `Permutation` | a random order of the coordinates | salty-embeddings |
| `Watermark` | a circulant matrix | WET (Shetty, Xu and Lau 2025), a watermark of embedding services |
| `SecretLinear` | a random invertible matrix | none known: the general case |

Rotations and permutations keep all cosines, so searches find the same texts. The other two change cosines. No map hides
the dimension, and pairs of a text and its stored vector give the map away. Nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field

from leakboard.interfaces import Floats, Integers
from leakboard.privacy.protections.protection import FittedProtection, Protection, at_most, protection, unit_length

SINGULAR = 1e-10
"""Least absolute eigenvalue of a circulant matrix that counts as invertible, as in WET's code."""


@dataclass(frozen=True)
class LinearMap(FittedProtection):
    """Multiplies vectors by a secret matrix, and scales the products to length 1."""

    matrix: NDArray[np.float64]
    """float64 (d, d); the product is ``vectors @ matrix``."""

    def stored(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the products, of length 1."""
        return unit_length(vectors @ self.matrix)


@dataclass(frozen=True)
class Order(FittedProtection):
    """Puts the coordinates into a secret order."""

    order: Integers
    """int64 (d,): coordinate i of the result is coordinate ``order[i]`` of the vector."""

    def stored(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the coordinates in the secret order."""
        return vectors[:, self.order]


@protection(revision=1)
class Rotation(Protection):
    """Multiplies vectors by a secret orthogonal matrix, uniform over all of them (Haar's measure)."""

    def learn(self, vectors: Floats, rng: Generator) -> LinearMap:
        """Draw the matrix."""
        return LinearMap(orthogonal(vectors.shape[1], rng))


@protection(revision=1)
class Permutation(Protection):
    """Shuffles the coordinates, in one secret order for all vectors."""

    def learn(self, vectors: Floats, rng: Generator) -> Order:
        """Draw the order."""
        return Order(rng.permutation(vectors.shape[1]))


@protection(revision=1)
class Watermark(Protection):
    """Multiplies vectors by WET's circulant matrix, whose rows have positive entries that sum to 1."""

    entries: Annotated[int, Field(ge=1)] = 25
    """Entries above 0 in each row. With many, all rows are near the mean, and undoing the map amplifies noise."""

    def learn(self, vectors: Floats, rng: Generator) -> LinearMap:
        """Draw the matrix; WET's code stops at a singular one, and this code draws again.

        Raises:
            RequestError: ``entries`` is above the dimension.
        """
        dimension = vectors.shape[1]
        at_most("watermark.entries", self.entries, dimension, "the dimension")
        row = np.zeros(dimension)
        while np.abs(np.fft.fft(row)).min() <= SINGULAR:
            row[:] = 0
            row[rng.choice(dimension, self.entries, replace=False)] = 1 - rng.random(self.entries)  # never 0
        rows = np.stack([np.roll(row / row.sum(), shift) for shift in range(dimension)])
        return LinearMap(rows.T)


@protection(revision=1)
class SecretLinear(Protection):
    """Multiplies vectors by a secret invertible matrix of a given condition number."""

    condition: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 10.0
    """Largest singular value over the smallest one; the values between are a geometric series. 1 is a rotation."""

    def learn(self, vectors: Floats, rng: Generator) -> LinearMap:
        """Draw the matrix: both sides of its singular value decomposition are uniform rotations."""
        dimension = vectors.shape[1]
        values = np.geomspace(1, 1 / self.condition, dimension)
        return LinearMap((orthogonal(dimension, rng) * values) @ orthogonal(dimension, rng))


def orthogonal(dimension: int, rng: Generator) -> NDArray[np.float64]:
    """Return an orthogonal matrix from Haar's measure, float64 (d, d) (Mezzadri 2007, How to generate random matrices).

    The signs of R's diagonal make the decomposition unique. Without them the law depends on the LAPACK version.
    """
    q, r = np.linalg.qr(rng.normal(size=(dimension, dimension)))
    uniform: NDArray[np.float64] = q * np.sign(np.diag(r))
    return uniform
