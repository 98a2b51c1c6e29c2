"""Estimate scale and noise of stored vectors, and compute moments that isotropic noise leaves alone."""

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats

Array = NDArray[np.float64]
TRIALS = 8
"""Largest number of trials with noise."""
LEAST_SHRINKAGE = 0.05


def covariance(vectors: Floats) -> Array:
    """Return the covariances of the columns, float64 (d, d)."""
    centred = vectors - vectors.mean(0)
    return (centred.T @ centred).astype(np.float64) / len(vectors)


def shrunk(moments: Array, count: int) -> Array:
    """Return second moments of errors, float64 (d, d), with a share of a multiple of the identity.

    The share is `LEAST_SHRINKAGE` + d / (2 count), at most 1; ``count`` is the number of errors.
    """
    d = len(moments)
    share = min(1.0, LEAST_SHRINKAGE + d / count / 2)
    return (1 - share) * moments + share * np.trace(moments) / d * np.eye(d)


def scale_and_noise(own: Floats, stored: Floats, seed: int = 0) -> tuple[float, float]:
    """Estimate s and sigma of stored = s * isometry(own) + noise; sigma is the noise of one coordinate.

    Noise fills the smaller half of the eigenvalues. Copies of ``own`` with trial noise show how much: sampling spreads
    the eigenvalues of noise, so a formula for infinitely many rows is biased. The trace then gives the scale.
    """
    d, rng, rows = own.shape[1], np.random.default_rng(seed), min(len(own), len(stored))
    trace, stored_values = float(own.var(0).sum()), np.linalg.eigvalsh(covariance(stored))
    total, lower = stored_values.sum(), d // 2
    if not total > 0 < trace:
        return 1.0, 0.0
    noise, unit = 0.0, rng.normal(size=(rows, d)).astype(np.float32)
    sample = own[rng.choice(len(own), rows, replace=False)]
    for _ in range(TRIALS):
        scale = np.sqrt((total - d * noise) / trace)
        trial = np.linalg.eigvalsh(covariance(np.float32(scale) * sample + np.float32(np.sqrt(noise)) * unit))
        change = stored_values[:lower].mean() - trial[:lower].mean()
        noise = float(np.clip(noise + change, 0, 0.99 * total / d))
        if abs(change) < 1e-3 * total / d:
            break
    return float(np.sqrt((total - d * noise) / trace)), float(np.sqrt(noise))


def principal_axes(vectors: Floats) -> Floats:
    """Return the eigenvectors of the covariances as columns, the largest eigenvalue first, float32 (d, d)."""
    return np.ascontiguousarray(np.linalg.eigh(covariance(vectors))[1][:, ::-1], dtype=np.float32)


def third_moments(scores: Floats) -> Array:
    """Return the third moments of centred columns, (k, k, k)."""
    n, k = scores.shape
    products = (scores[:, :, None] * scores[:, None, :]).reshape(n, k * k)
    return (products.T @ scores).reshape(k, k, k).astype(np.float64) / n
