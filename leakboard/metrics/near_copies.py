"""Count vectors of test that are nearly vectors of train, as those of overlapping chunks of one document are.

An attacker with such a copy among its own vectors knows the secret, although the vector itself need not tell it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats
from leakboard.metrics.measures import Metric
from leakboard.models.search import nearest, normalised

NEAR = 0.3
"""Largest distance of a near copy, divided by the distance within which the nearest 5 % of train lie."""
MAX_ROWS = 2_000
"""Largest number of vectors of test that are compared with all of train."""
MAX_NUMBERS = 2_000_000
"""Largest number of random vectors to compare, and to compare with, times dimensions."""
ONE_DIRECTION = 0.001
"""Distances below this are rounding errors of cosines in float32: a twentieth of train has one direction."""
SAMPLE = 1_000
"""Vectors of train that stand for all, where all are not needed."""


def near_copy_metrics(documents: Mapping[str, Floats]) -> list[Metric]:
    """Return ``near_copies``, the share of vectors of test with a near copy in train.

    Vectors are centred on the mean of train. Their directions are compared twice: as they are, and standardised, as
    attacks do. Each distance is divided by the distance within which the nearest 5 % of train lie. A near copy fulfils
    two conditions:

    - Its relative distance is less than `NEAR`.
    - It is below the 0.1 % quantile of random vectors. In few dimensions unrelated vectors are near each other.

    The random vectors are Gaussian, with the covariance of train. They are compared with as many others as train has,
    or as `MAX_NUMBERS` allows. So of vectors with heavy tails or many zeros more than copies may be counted.

    Args:
        documents: published vectors, float32 (n, d) a split.
    """
    rng = np.random.default_rng(0)
    train, test = (documents[split] for split in ("train", "test"))
    tried = test[np.sort(rng.permutation(len(test))[:MAX_ROWS])]
    scale = np.float32(np.abs(train).max() or 1)  # squares of large numbers leave the range of float32
    known, tried = train / scale, tried / scale
    tried, known = tried - known.mean(0), known - known.mean(0)
    spread = known.std(0)
    spread[spread <= 1e-6 * spread.max()] = np.inf  # constant but for rounding
    are_copies = _are_copies(tried, known, rng) | _are_copies(tried / spread, known / spread, rng)
    return [Metric("near_copies", float(are_copies.mean()), n=len(tried))]


def _are_copies(tried: Floats, known: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which vectors have a near copy among the known ones, bool (n,)."""
    most = MAX_NUMBERS // known.shape[1] + 1
    tries = min(MAX_ROWS, most)
    random = _random(known, tries + min(len(known), most), rng)
    usual = _distances(random[:tries], random[tries:], rng)
    return _distances(tried, known, rng) < min(NEAR, float(np.quantile(usual, 0.001)))


def _distances(tried: Floats, known: Floats, rng: np.random.Generator) -> Floats:
    """Return the distance to the nearest known vector over that to the nearest twentieth, float32 (n,).

    It is 1 where a twentieth of the known vectors has the same direction.
    """
    directions, sample = normalised(tried), normalised(known[rng.permutation(len(known))[:SAMPLE]])
    far = np.sqrt(np.maximum(2 - 2 * np.quantile(directions @ sample.T, 0.95, axis=1), 0))
    near = np.linalg.norm(directions - normalised(known[nearest(tried, known, 1).rows[:, 0]]), axis=1)
    return np.divide(near, far, out=np.ones_like(near), where=far > ONE_DIRECTION)


def _random(vectors: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return Gaussian vectors, float32 (count, d), with mean 0 and the covariance of a sample of centred vectors."""
    sample = vectors[rng.permutation(len(vectors))[:SAMPLE]]
    return rng.standard_normal((count, len(sample)), np.float32) @ sample / np.float32(np.sqrt(len(sample)))
