"""Draw vectors of words that lie like those of known embeddings."""

import math

import numpy as np

from leakboard.privacy.channels.words import WordSpace


def clustered(rng: np.random.Generator) -> WordSpace:
    """Return 2,000 words around 200 centres, in 50 dimensions: near neighbours exist."""
    cluster, centres = rng.integers(0, 200, 2_000), rng.normal(size=(200, 50)) * 5 / math.sqrt(50)
    return _named(centres[cluster] + rng.normal(size=(2_000, 50)) * 0.35 * 5 / math.sqrt(50))


def like_ada(rng: np.random.Generator) -> WordSpace:
    """Return 3,000 unit vectors in 1,536 dimensions with distances of 0.5 to 1, as those of OpenAI's ada-002."""
    mean, cluster, centres = rng.normal(size=1_536), rng.integers(0, 150, 3_000), rng.normal(size=(150, 1_536))
    around = (0.45 * centres[cluster] + 0.42 * rng.normal(size=(3_000, 1_536))) / math.sqrt(1_536)
    vectors = 0.8 * mean / np.linalg.norm(mean) + around
    return _named(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _named(vectors: np.ndarray) -> WordSpace:
    return WordSpace([f"w{row}" for row in range(len(vectors))], vectors)
