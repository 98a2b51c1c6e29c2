"""Compare word vectors by direction and length, and correct for hubs.

- The length of a word's vector tells how frequent the word is (Schakel and Wilson 2015, "Measuring word significance
  using distributed representations of words"). Here the log length is an angle a, in radians. The vectors
  (u, sqrt(w) cos a, sqrt(w) sin a) have the dot product u v + w cos(a - b). So a search by cosine compares both.
- Hubs are words that are near to many vectors. CSLS (Conneau et al. 2018, "Word translation without parallel data",
  section 2.3) subtracts half of the mean similarity to the 10 nearest vectors. The other half of its correction is the
  same for all candidates of a vector, and changes no ranking.
"""

import numpy as np

from leakboard.interfaces import Floats
from leakboard.models.search import NOTHING, Neighbours, nearest, normalised

WEIGHTS = (0.0, 0.1, 0.2, 0.4)
"""Weights of the lengths to choose from. Anchors are frequent words, and would choose more than suits rare words."""
HUB_NEIGHBOURS = 10
"""Nearest vectors whose mean similarity shows a hub."""
SHORTEST = 1e-9
"""Length of vectors that have none, to take the logarithm."""


def log_lengths(vectors: Floats) -> Floats:
    """Return the natural logarithms of the lengths of rows, float32 (n,)."""
    return np.log(np.maximum(np.linalg.norm(vectors, axis=1), SHORTEST)).astype(np.float32)


def with_lengths(directions: Floats, angles: Floats, weight: float) -> Floats:
    """Append two coordinates to rows of length 1, float32 (n, d + 2) of length 1.

    Args:
        directions: float32 (n, d).
        angles: log lengths around a median, float32 (n,).
        weight: weight of the lengths, from 0; that of the directions is 1.
    """
    turned = np.clip(angles, -np.pi / 2, np.pi / 2)  # a full circle would make the shortest and the longest equal
    on_circle = np.sqrt(weight) * np.column_stack([np.cos(turned), np.sin(turned)])
    return normalised(np.column_stack([directions, on_circle]))


def nearest_without_hubs(queries: Floats, index: Floats, k: int, exact_limit: int) -> Neighbours:
    """Return the ``k`` nearest rows of ``index`` by CSLS, with their cosines; all rows have length 1.

    Two more coordinates turn the correction into a part of the cosine: the correction itself, and a remainder that
    makes the rows of the index equally long.
    """
    if not len(queries):
        return nearest(queries, index, k, exact_limit)
    back = nearest(index, queries, HUB_NEIGHBOURS, exact_limit)
    half = np.where(back.rows >= 0, back.similarity, 0).sum(1) / np.maximum((back.rows >= 0).sum(1), 1) / 2
    remainder = np.sqrt(np.maximum((half**2).max() - half**2, 0))
    ones = np.ones((len(queries), 1), np.float32)
    found = nearest(
        np.column_stack([queries, ones, 0 * ones]), np.column_stack([index, -half, remainder]), k, exact_limit
    )
    cosines = found.similarity * np.sqrt(2 * (1 + (half**2).max())) + half[found.rows]
    cosines = np.where(found.rows >= 0, cosines, NOTHING).astype(np.float32)
    return Neighbours(found.rows, cosines, min(found.recall, back.recall))
