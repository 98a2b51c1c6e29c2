"""Whiten vectors: subtract the mean of the stored ones, and make their coordinates uncorrelated, with variance 1.

Su, Cao, Liu and Ou 2021 (Whitening sentence representations, algorithm 1) use it for better similarities and fewer
dimensions. Nothing is secret, and nothing is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field

from leakboard.errors import RequestError
from leakboard.interfaces import Floats
from leakboard.privacy.protections.protection import FittedProtection, Protection, at_most, protection

NEGLIGIBLE = 1e-6
"""Axes with less than this share of the largest variance are rounding errors of float32 vectors."""


@protection(revision=1)
class Whitening(Protection):
    """Stores the principal components of vectors, each divided by its standard deviation over the stored vectors."""

    dimensions: Annotated[int, Field(ge=1)] | None = None
    """Number of components that are kept, largest variance first; null: all that the stored vectors have."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedWhitening:
        """Learn mean and components.

        Raises:
            RequestError: all stored vectors are the same, or they have less than ``dimensions`` components.
        """
        mean = vectors.mean(0, dtype=np.float64)
        variances, axes = np.linalg.eigh(np.cov(vectors.T.astype(np.float64)).reshape(vectors.shape[1], -1))
        if variances[-1] <= NEGLIGIBLE**2:
            raise RequestError(f"whitening: {len(vectors)} equal stored vectors are not allowed: at least 2 others")
        rank = int((variances > NEGLIGIBLE * variances[-1]).sum())
        kept = rank if self.dimensions is None else self.dimensions
        at_most("whitening.dimensions", kept, rank, "the rank of the stored vectors")
        chosen = np.argsort(variances)[::-1][:kept]
        signs = np.sign(axes[np.abs(axes).argmax(0), range(len(axes))])  # LAPACK's signs are arbitrary
        return FittedWhitening(mean, (axes * signs)[:, chosen] / np.sqrt(variances[chosen]))


@dataclass(frozen=True)
class FittedWhitening(FittedProtection):
    """Mean and components."""

    mean: NDArray[np.float64]
    """float64 (d,)."""
    components: NDArray[np.float64]
    """float64 (d, d'); the result is ``(vectors - mean) @ components``."""

    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return the whitened vectors."""
        return (vectors - self.mean) @ self.components
