"""Predict stored vectors from those of another encoder, with the errors of the prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.attacks._alignment.alignment import Pairs
from leakboard.attacks._alignment.linear_maps import ridge
from leakboard.attacks._alignment.moments import shrunk
from leakboard.interfaces import Floats

PARTS = 10
"""Parts of the pairs; each is predicted by the others."""


@dataclass(frozen=True)
class SurrogateStore:
    """An affine map from own vectors (d) to stored vectors (e), and the law of its errors: normal, with mean 0."""

    matrix: Floats
    """float32 (d, e)."""
    centre: Floats
    """Subtracted from own vectors, float32 (d,)."""
    shift: Floats
    """Added to mapped vectors, float32 (e,)."""
    factor: Floats
    """Standard normal numbers times this matrix are errors, float32 (e, e). It is the symmetric root of a covariance.

    This root is unique. Other roots depend on the choice of axes, which differs between processors.
    """

    @classmethod
    def fit(cls, own: Floats, stored: Floats, pairs: Pairs, seed: int) -> SurrogateStore:
        """Fit the map to pairs by ridge regression, and the errors to pairs that were left out.

        The map is then fitted to all pairs, so its errors are smaller. That matters for few pairs.

        Args:
            own: vectors of the attacker's own texts, float32 (m, d).
            stored: stolen vectors, float32 (n, e).
            pairs: at least two known pairs.
            seed: divides the pairs.
        """
        many = len(pairs) > 2 * own.shape[1]
        centre, shift = (pairs.own.mean(0), pairs.stored.mean(0)) if many else (own.mean(0), stored.mean(0))
        inputs, targets = pairs.own - centre, pairs.stored - shift
        errors = np.empty_like(targets)
        order = np.random.default_rng(seed).permutation(len(pairs))
        for part in np.array_split(order, min(PARTS, len(pairs))):
            others = np.setdiff1d(order, part)
            errors[part] = targets[part] - inputs[part] @ _map(inputs[others], targets[others])
        covariance = shrunk(errors.T.astype(np.float64) @ errors / len(errors), len(errors))
        values, axes = np.linalg.eigh(covariance)
        factor = ((axes * np.sqrt(values.clip(0))) @ axes.T).astype(np.float32)
        return cls(_map(inputs, targets), centre, shift, factor)

    def __call__(self, own: Floats, rng: np.random.Generator) -> Floats:
        """Draw the stored vectors of texts, float32 (n, e), given their own vectors, float32 (n, d)."""
        errors = rng.standard_normal((len(own), len(self.factor)), np.float32) @ self.factor
        drawn: Floats = (own - self.centre) @ self.matrix + self.shift + errors
        return drawn


def _map(inputs: Floats, targets: Floats) -> Floats:
    """Return the matrix that maps inputs to targets; `ridge` maps in the other direction."""
    return ridge(Pairs(own=targets, stored=inputs))
