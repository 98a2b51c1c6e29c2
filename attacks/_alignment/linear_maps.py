"""Undo any secret linear map with known pairs: ridge regression, or whitening and a rotation."""

import numpy as np

from leakboard.attacks._alignment.alignment import Pairs
from leakboard.attacks._alignment.moments import covariance
from leakboard.attacks._alignment.rotation import procrustes, with_pairs
from leakboard.interfaces import Floats
from leakboard.models.search import nearest

PENALTIES = np.logspace(-8, 2, 21)
"""Ridge penalties, in units of the mean squared length of a stored pair."""
ROUNDS, ROWS, NEIGHBOURS = 12, 3_000, 10
"""Rounds of refinement; stored vectors and own neighbours of a round."""
PAIR_SHARE = 0.3
"""Weight of all known pairs together, in units of the neighbourhoods of one round; more fits the few pairs alone."""


def ridge(pairs: Pairs) -> Floats:
    """Return the matrix (e, d) that maps stored to own vectors of centred pairs, with the best left-out error.

    The penalty minimises the error of left-out pairs in closed form: residual / (1 - leverage).
    """
    left, values, right = np.linalg.svd(pairs.stored.astype(np.float64), full_matrices=False)
    target, best, error = left.T @ pairs.own, values * 0, np.inf
    for penalty in PENALTIES * max(float((values**2).mean()), 1e-30):
        shrink = values**2 / (values**2 + penalty)
        leverage = np.minimum((left**2) @ shrink, 1 - 1e-6)
        residuals = (pairs.own - left @ (shrink[:, None] * target)) / (1 - leverage)[:, None]
        if (residuals**2).sum() < error:
            best, error = values / (values**2 + penalty), (residuals**2).sum()
    return (right.T @ (best[:, None] * target)).astype(np.float32)  # type: ignore[no-any-return]


def whitened_rotation(own: Floats, stored: Floats, pairs: Pairs, seed: int) -> Floats:
    """Return the matrix (d, d) that maps the covariances of ``stored`` to those of ``own``, and pairs to pairs.

    Such a matrix is a rotation between whitened spaces. It starts at the ridge regression of the pairs, and
    neighbourhoods refine it as in `rotation.py`.

    Args:
        own: centred, float32 (m, d).
        stored: centred, float32 (n, d).
        pairs: centred pairs.
        seed: draws the rows of each round.
    """
    rng, neighbours = np.random.default_rng(seed), max(1, min(NEIGHBOURS, len(own) // 60))
    values, axes = np.linalg.eigh(covariance(own))
    axes, spread = axes[:, ::-1].astype(np.float32), np.sqrt(np.maximum(values[::-1], 0)).astype(np.float32)
    scores, paired = own @ axes, pairs.own @ axes
    stored_values, stored_axes = np.linalg.eigh(covariance(stored))
    floor = 1e-6 * stored_values.mean()
    scaling = np.where(stored_values > floor, 1 / np.sqrt(np.maximum(stored_values, floor)), 0)
    whitening = (stored_axes * scaling).astype(np.float32)
    white, known = stored @ whitening, Pairs(paired * spread, pairs.stored @ whitening)
    matrix = ridge(pairs)
    for _ in range(ROUNDS):
        drawn = rng.choice(len(stored), min(ROWS, len(stored)), replace=False)
        partners = scores[nearest(stored[drawn] @ matrix @ axes, scores, neighbours).rows].mean(1)
        rotation = procrustes(*with_pairs(white[drawn], partners * spread, known, PAIR_SHARE))
        matrix = whitening @ rotation * spread @ axes.T
    return matrix  # type: ignore[no-any-return]
