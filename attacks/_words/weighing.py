"""Weigh directions by how little the vectors of one word differ in them.

Directions in which the vectors of one word differ tell little about the word. A linear map makes these differences
equally large in all directions: within-class covariance normalisation, with words as classes (Hatch, Kajarekar and
Stolcke 2006, "Within-class covariance normalization for SVM-based speaker recognition").
"""

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats, Integers


def weighing(differences: NDArray[np.float64], ridge: float) -> Floats:
    """Return the map to vectors whose differences are equally large in all directions, float32 (d, d).

    Args:
        differences: covariance of the vectors of one word, float64 (d, d).
        ridge: variance that is added in each direction, as a multiple of the mean variance; large: no weighing.
    """
    variances, directions = np.linalg.eigh(differences)
    mean = variances.mean()
    if mean <= 0:  # the vectors of a word are equal
        return np.eye(len(differences), dtype=np.float32)
    scales = np.sqrt(mean / (np.maximum(variances, 0) + ridge * mean))
    return ((directions * scales) @ directions.T).astype(np.float32)


def within_words(vectors: Floats, owners: Integers) -> NDArray[np.float64]:
    """Return the covariance of vectors around the mean of their word, float64 (d, d); arguments as of `word_means`."""
    means = word_means(vectors, owners)
    apart = (vectors - means[owners]).astype(np.float64)
    return apart.T @ apart / max(len(vectors) - len(means), 1)  # type: ignore[no-any-return]


def word_means(vectors: Floats, owners: Integers) -> Floats:
    """Return the mean vector of each word, float32 (m, d).

    Args:
        vectors: float32 (n, d).
        owners: word of each vector, int64 (n,); each number from 0 to m - 1 occurs.
    """
    from scipy.sparse import csr_array

    rows = np.arange(len(owners))
    sums = csr_array((np.ones(len(owners), np.float32), (owners, rows))) @ vectors
    return (sums / np.bincount(owners)[:, None]).astype(np.float32)
