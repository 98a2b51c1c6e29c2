"""Count vectors of test that nearly equal vectors of train, for example of overlapping chunks of one document.

An attacker with such a copy among its own vectors knows the secret, even if the vector itself does not reveal it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats, Integers
from leakboard.metrics.measures import Metric
from leakboard.models.search import nearest, normalised

NEAR = 0.3
"""Largest distance of a near copy, divided by the radius that contains the nearest 5 % of train."""
MAX_ROWS = 2_000
"""Largest number of vectors of test that are compared with all of train."""
MAX_NUMBERS = 2_000_000
"""Largest number of coordinates, about, in each of two sets of random vectors. Comparing them shows usual distances."""
ONE_DIRECTION = 0.001
"""Smallest radius of the nearest 5 % of train. A smaller one is a rounding error: these 5 % have the same direction."""
BLOCK = 65_536
"""Number of vectors of train that are centred at once."""
SAMPLE = 1_000
"""Size of the sample of train that is used instead of all vectors, where a sample is enough."""


def near_copy_metrics(documents: Mapping[str, Floats]) -> list[Metric]:
    """Return ``near_copies``, the share of vectors of test with a near copy in train.

    Vectors are centred on the mean of train. Their directions are compared twice: as they are, and standardised, since
    attacks use both. Each distance is divided by the radius that contains the nearest 5 % of train. A vector is a near
    copy if, in at least one comparison, its relative distance fulfils both conditions:

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
    tried = np.sort(rng.permutation(len(test))[:MAX_ROWS])
    size = np.float32(max(train.max(), -train.min()) or 1)  # squares of large numbers leave the range of float32
    total = sum((train[rows] / size).sum(0, dtype=np.float64) for rows in _blocks(len(train)))
    mean = (total / len(train)).astype(np.float32)
    squares = sum(((train[rows] / size - mean) ** 2).sum(0, dtype=np.float64) for rows in _blocks(len(train)))
    spread = np.sqrt(squares / len(train)).astype(np.float32)
    spread[spread <= 1e-6 * spread.max()] = np.inf  # constant but for rounding
    are_copies = np.zeros(len(tried), np.bool_)
    for factor in (np.ones_like(spread), 1 / spread):
        known, asked = (_Mapped(vectors, mean, factor, size) for vectors in (train, test))
        are_copies |= _are_copies(asked[tried], known, rng)
    return [Metric("near_copies", float(are_copies.mean()), n=len(tried))]


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, rows, BLOCK))


@dataclass(frozen=True)
class _Mapped:
    """Vectors that are centred, and perhaps standardised, when they are read: a copy of all would fill the memory."""

    vectors: Floats
    mean: Floats
    factor: Floats
    size: np.float32

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, rows: Integers | slice) -> Floats:
        return (self.vectors[rows] / self.size - self.mean) * self.factor


def _are_copies(tried: Floats, known: _Mapped, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which vectors have a near copy among the known ones, bool (n,)."""
    most = MAX_NUMBERS // tried.shape[1] + 1
    tries = min(MAX_ROWS, most)
    random = _random(known, tries + min(len(known), most), rng)
    usual = _distances(random[:tries], random[tries:], rng)
    return _distances(tried, known, rng) < min(NEAR, float(np.quantile(usual, 0.001)))


def _distances(tried: Floats, known: Floats | _Mapped, rng: np.random.Generator) -> Floats:
    """Return the distance to the nearest known vector, divided by the radius of the nearest 5 %, float32 (n,).

    The value is 1 if 5 % of the known vectors have the same direction.
    """
    directions, sample = normalised(tried), normalised(known[rng.permutation(len(known))[:SAMPLE]])
    far = np.sqrt(np.maximum(2 - 2 * np.quantile(directions @ sample.T, 0.95, axis=1), 0))
    rows, similarity = np.zeros(len(tried), np.int64), np.full(len(tried), -np.inf, np.float32)
    for block in _blocks(len(known)):
        found = nearest(tried, known[block], 1)
        is_nearer = found.similarity[:, 0] > similarity
        rows[is_nearer], similarity[is_nearer] = block.start + found.rows[is_nearer, 0], found.similarity[is_nearer, 0]
    near = np.linalg.norm(directions - normalised(known[rows]), axis=1)
    return np.divide(near, far, out=np.ones_like(near), where=far > ONE_DIRECTION)


def _random(vectors: _Mapped, count: int, rng: np.random.Generator) -> Floats:
    """Return Gaussian vectors, float32 (count, d), with mean 0 and the covariance of a sample of centred vectors."""
    sample = vectors[rng.permutation(len(vectors))[:SAMPLE]]
    return rng.standard_normal((count, len(sample)), np.float32) @ sample / np.float32(np.sqrt(len(sample)))
