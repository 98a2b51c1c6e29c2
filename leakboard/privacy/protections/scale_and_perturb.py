"""Encrypt vectors so that distances are kept roughly: scale and perturb (Fuchsbauer, Ghosal, Hauke and O'Neill 2022).

The coordinates are shuffled in a secret order, and multiplied by a secret scale s. Then noise is added, which is
uniform in a ball of radius s beta / 4. This is what IronCore's Cloaked AI does (ironcore-alloy, ``src/vector/``), with
a scale of 24 bits. Its examples take beta 2.0, 2.5 and 7.2.

Queries get the same noise. The scheme's theorem is about searches: if a vector is nearer to the query than another one
is, by more than beta, it stays nearer. Each of the three vectors moves by at most s beta / 4. Unit vectors are at most
2 apart, so from beta 2 on the theorem says nothing about them. It is not about privacy, and nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from leakboard.interfaces import Floats, Integers
from leakboard.privacy.protections.noise import Positive, directions
from leakboard.privacy.protections.protection import FittedProtection, Protection, protection

SCALES = 2**24
"""The scale is a whole number from 1, below this."""


@protection(revision=1)
class ScaleAndPerturb(Protection):
    """Shuffles the coordinates, scales the vector, and adds noise that is uniform in a ball."""

    beta: Positive
    """Approximation factor: the noise has a radius of up to beta / 4, for vectors of length 1."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedScaleAndPerturb:
        """Draw scale and order."""
        scale = float(rng.integers(1, SCALES))
        return FittedScaleAndPerturb(self.beta, scale, rng.permutation(vectors.shape[1]))


@dataclass(frozen=True)
class FittedScaleAndPerturb(FittedProtection):
    """Secret scale and order, with fresh noise for every vector."""

    beta: float
    scale: float
    order: Integers
    """int64 (d,): coordinate i of the result is coordinate ``order[i]`` of the vector."""

    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return the encrypted vectors."""
        count, dimension = vectors.shape
        radii = self.scale * self.beta / 4 * rng.random((count, 1)) ** (1 / dimension)
        return self.scale * vectors[:, self.order] + radii * directions(count, dimension, rng)
