"""Define known pairs, and the affine map that an attacker found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leakboard.interfaces import Floats

STILL = 1e-3
"""Coordinates are still if they vary by less than this share of the coordinate that varies most."""


@dataclass(frozen=True)
class Pairs:
    """Known pairs: row i of both arrays is a vector of the same text."""

    own: Floats
    """Vectors under the attacker's encoder, float32 (p, d)."""
    stored: Floats
    """Stored vectors, float32 (p, e)."""

    def __len__(self) -> int:
        return len(self.own)

    def take(self, rows: slice) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.own[rows], self.stored[rows])


@dataclass(frozen=True)
class Alignment:
    """An affine map from the space of the stored vectors (e) to the attacker's own space (d)."""

    matrix: Floats
    """float32 (e, d)."""
    centre: Floats
    """Subtracted from stored vectors, float32 (e,)."""
    shift: Floats
    """Added to mapped vectors, float32 (d,)."""
    method: str = ""
    criterion: float = 0.0
    """How well mapped vectors fit, without knowledge of the truth; about 1: perfect, 0: chance. See `align`."""
    details: str = ""
    """One line: method, pairs, criterion."""

    def __call__(self, stored: Floats) -> Floats:
        """Map stored vectors, float32 (n, e), to own vectors, float32 (n, d)."""
        return ((stored - self.centre) @ self.matrix + self.shift).astype(np.float32)

    def without_still(self, own: Floats) -> Alignment:
        """Return the map with still coordinates at their mean.

        A classifier that divides each coordinate by its standard deviation would blow up the map's errors there.

        Args:
            own: vectors of the attacker's own texts, float32 (m, d).
        """
        deviations = own.std(0)
        still = deviations < STILL * deviations.max()
        matrix, shift = np.where(still, np.float32(0), self.matrix), np.where(still, own.mean(0), self.shift)
        return replace(self, matrix=matrix, shift=shift)


def linear(matrix: Floats) -> Alignment:
    """Return the map without centring."""
    e, d = matrix.shape
    return Alignment(matrix.astype(np.float32), np.zeros(e, np.float32), np.zeros(d, np.float32))
