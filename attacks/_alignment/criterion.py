"""Judge an alignment without the truth: do mapped vectors lie as close to own vectors as own vectors to each other?"""

import numpy as np

from leakboard.attacks._alignment.alignment import Alignment, Pairs
from leakboard.attacks._alignment.moments import principal_axes
from leakboard.interfaces import Floats
from leakboard.models.search import nearest, normalised

QUERIES, INDEX = 500, 4_000
"""Largest numbers of vectors whose nearest neighbour is sought, and of own vectors that are searched."""
SAME = 0.999
"""Own vectors with a larger cosine belong to the same text."""


def closeness(alignment: Alignment, own: Floats, stored: Floats, seed: int) -> float:
    """Return how close mapped vectors are to own vectors, on a scale from 0 to about 1.

    Closeness is the mean cosine to the nearest own vector, about the own mean. 1: own vectors are as close to other own
    vectors. 0: no closer than after random flips along the principal axes, which keep means and covariances only.
    Noise and another corpus lower the value of the true map.

    Args:
        alignment: the map to judge.
        own: float32 (m, d).
        stored: float32 (n, e); rows that the map was not fitted on, or else it is judged too well.
        seed: draws the own vectors and the flips.
    """
    own = own * (np.abs(alignment.matrix).sum(0) > 0)  # ignores truncated coordinates
    rng, mean = np.random.default_rng(seed), own.mean(0)
    drawn = rng.permutation(len(own))
    index, queries = (own - mean)[drawn[:INDEX]], (own - mean)[drawn[:QUERIES]]
    mapped = alignment(stored[:QUERIES]) - mean
    axes, centre = principal_axes(mapped), mapped.mean(0)
    flips = rng.choice(np.array([-1, 1], np.float32), mapped.shape)
    flipped = ((mapped - centre) @ axes * flips) @ axes.T + centre
    chance, reached = (float(nearest(rows, index, 1).similarity.mean()) for rows in (flipped, mapped))
    among_own = float(nearest(queries, index, 2).similarity[:, 1].mean())  # the first is the query itself
    return (reached - chance) / max(among_own - chance, 1e-3)


def pair_likeness(alignment: Alignment, pairs: Pairs, mean: Floats) -> float:
    """Return the mean cosine of mapped stored vectors and their own vectors, about the own mean."""
    mapped, own = normalised(alignment(pairs.stored) - mean), normalised(pairs.own - mean)
    return float((mapped * own).sum(1).mean())


def pair_margin(alignment: Alignment, pairs: Pairs, own: Floats, seed: int) -> float:
    """Return by how much mapped stored vectors are nearer to their own vectors than to all others, at most 1.

    Let s be the mean cosine of mapped vectors to their own texts' vectors, and t that to the nearest of the other own
    vectors, about the own mean. The margin is (s - t) / (1 - t). At 0 another text is as near, below 0 it is nearer.

    Args:
        alignment: the map to judge.
        pairs: known pairs that the map was not fitted on.
        own: float32 (m, d).
        seed: draws the own vectors.
    """
    mean = own.mean(0)
    mapped, true = normalised(alignment(pairs.stored) - mean), normalised(pairs.own - mean)
    others = normalised(own[np.random.default_rng(seed).permutation(len(own))[:INDEX]] - mean)
    similarity = np.where(true @ others.T > SAME, -1, mapped @ others.T)
    same, other = float((mapped * true).sum(1).mean()), float(similarity.max(1).mean())
    return (same - other) / max(1 - other, 1e-3)
