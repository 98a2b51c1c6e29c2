"""Count vectors of test that nearly equal vectors of train, for example of overlapping chunks of one document.

An attacker with such a copy among its own vectors knows the secret, even if the vector itself does not reveal it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats
from leakboard.metrics.measures import Metric
from leakboard.models.search import nearest, normalised

NEAR = 0.3
"""Largest distance of a near copy, divided by the radius that contains the nearest 5 % of train."""
MAX_ROWS = 2_000
"""Largest number of vectors of test that are compared with all of train."""
MAX_NUMBERS = 2_000_000
"""Largest number of random vectors times dimensions, for vectors to compare and for vectors to compare with."""
ONE_DIRECTION = 0.001
"""Distances below this are rounding errors of cosines in float32: a twentieth of train has one direction."""
SAMPLE = 1_000
"""Size of the sample of train that is used instead of all vectors, where a sample is enough."""


def near_copy_metrics(documents: Mapping[str, Floats]) -> list[Metric]:
    """Return ``near_copies``, the share of vectors of test with a near copy in train.

    Vectors are centred on the mean of train. Their directions are compared twice: as they are, and standardised, since
    attacks use both. Each distance is divided by the radius that contains the nearest 5 % of train. A vector is a near
    copy if its relative distance fulfils two conditions:

    - The distance is less than `NEAR`.
    - The distance is below the 0.1 % quantile of random vectors. In few dimensions unrelated vectors are near each
      other.

    The random vectors are Gaussian, with the covariance of train. Each is compared with other random vectors: as many
    as train has, or as `MAX_NUMBERS` allows. If vectors have heavy tails or many zeros, the share may be too large.

    Args:
        documents: published vectors of each split, float32 (n, d).
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
    """Return the distance to the nearest known vector, divided by the radius of the nearest 5 %, float32 (n,).

    The value is 1 if 5 % of the known vectors have the same direction.
    """
    directions, sample = normalised(tried), normalised(known[rng.permutation(len(known))[:SAMPLE]])
    far = np.sqrt(np.maximum(2 - 2 * np.quantile(directions @ sample.T, 0.95, axis=1), 0))
    near = np.linalg.norm(directions - normalised(known[nearest(tried, known, 1).rows[:, 0]]), axis=1)
    return np.divide(near, far, out=np.ones_like(near), where=far > ONE_DIRECTION)


def _random(vectors: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return Gaussian vectors, float32 (count, d), with mean 0 and the covariance of a sample of centred vectors."""
    sample = vectors[rng.permutation(len(vectors))[:SAMPLE]]
    return rng.standard_normal((count, len(sample)), np.float32) @ sample / np.float32(np.sqrt(len(sample)))
