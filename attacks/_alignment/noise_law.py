"""Tell how likely a stored vector is of a text, by the law of what the protection and the map leave.

The model: a mapped vector of a text with the vector c is v = f c + e, and e / f has the law N(0, R). A vector of no
candidate is near one, as texts of one corpus are: v / f - c has the law N(0, R + t S), with a candidate c drawn at
random, t of `SCALES` drawn at random, and S the covariance of the difference between a text and its nearest other one.
So the odds that a vector is of a candidate c, against any of the N - 1 others or no candidate, are::

    N(v / f - c; R) / (mean over the other candidates b of N(v / f - b; R) + mean over a and t of N(v / f - a; R + t S))

where a is any of the candidates, or of `BACKGROUND` of them. f and R are those of the mapped vectors and candidates
that are each other's nearest, and of these the nearer 70 %. The cosine knows neither that some directions are noisier,
nor that another candidate explains a vector as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._alignment.known_encoder import mutual_nearest, search
from leakboard.interfaces import Floats
from leakboard.metrics.link_scores import DEPTH
from leakboard.models.search import Neighbours, normalised

SCALES = (0.25, 0.5, 1.0)
LEFT_OUT = 0.3
"""Share of the pairs that are each other's nearest and whose cosines are the smallest: many of them are no links."""
LEAST_SHRINKAGE = 0.05
"""Smallest share of R that is a multiple of the identity; half of the dimensions, divided by the pairs, is added."""
FLOOR = 1e-6
"""Least variance of a direction, as a share of the largest one."""
BACKGROUND = 4_000
"""Number of candidates from which the law of unknown texts is computed, unless all are asked for."""
ROWS = 1_000
"""Vectors that are compared with all candidates at once."""

NOT_SURE = 1_000.0
"""Log-odds that a link loses if a surer link has the same candidate."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseLaw:
    factor: float
    """f"""
    noise: Numbers
    """R, float64 (d, d)."""
    between: Numbers
    """S, float64 (d, d)."""
    background: Floats
    """Vectors of texts like the unknown ones, float32 (b, d)."""
    pairs: int
    """Number of links from which f and R are estimated."""

    @classmethod
    def fit(
        cls, mapped: Floats, candidates: Floats, rng: np.random.Generator, most: int = BACKGROUND
    ) -> NoiseLaw | None:
        """Estimate the law; None if fewer than two mapped vectors and candidates are each other's nearest.

        Args:
            mapped: stored vectors in the space of the candidates, float32 (n, d).
            candidates: vectors of texts, float32 (m, d).
            rng: draws the background.
            most: largest number of candidates in the background.
        """
        rows, columns = mutual_nearest(mapped, candidates)
        near = (normalised(mapped[rows]) * normalised(candidates[columns])).sum(1)
        kept = near >= np.quantile(near, LEFT_OUT) if len(near) else np.zeros(0, bool)
        if kept.sum() < 2:
            return None
        vectors, texts = mapped[rows][kept].astype(np.float64), candidates[columns][kept].astype(np.float64)
        factor = float((vectors * texts).sum() / (texts * texts).sum())
        noise = _covariance(vectors / factor - texts)
        share = min(1.0, LEAST_SHRINKAGE + len(noise) / len(vectors) / 2)
        noise = (1 - share) * noise + share * np.trace(noise) / len(noise) * np.eye(len(noise))
        if not noise.any():  # vectors without noise: a density would be infinite
            noise = FLOOR * (texts**2).mean() * np.eye(len(noise))
        background = candidates[np.sort(rng.permutation(len(candidates))[:most])]
        nearest = search(background, candidates, candidates, 2)
        other = nearest.rows[:, -1]
        between = _covariance((background - candidates[other]).astype(np.float64))
        return cls(factor, noise, between, background, len(vectors))

    @cached_property
    def _law(self) -> Normal:
        return Normal.of(self.noise)

    @cached_property
    def _unknown(self) -> list[tuple[Normal, Floats]]:
        """The laws of unknown texts, each with the transformed background."""
        laws = [Normal.of(self.noise + t * self.between) for t in SCALES]
        return [(law, self.background @ law.whitening) for law in laws]

    def log_odds(self, vectors: Floats, candidates: Floats) -> Floats:
        """Return the log-odds that each mapped vector is of each candidate, float32 (n, m).

        Args:
            vectors: float32 (n, d).
            candidates: of texts, float32 (m, d).
        """
        return np.concatenate([np.empty((0, len(candidates)), np.float32), *self.blocks(vectors, candidates)])

    def blocks(self, vectors: Floats, candidates: Floats) -> Iterator[Floats]:
        """Yield `log_odds` of at most `ROWS` vectors at once."""
        from scipy.special import logsumexp

        known = candidates @ self._law.whitening
        for start in range(0, len(vectors), ROWS):
            scaled = vectors[start : start + ROWS] / np.float32(self.factor)
            direct = self._law.log_density(scaled, known).astype(np.float64)
            laws = [law.log_density(scaled, background) for law, background in self._unknown]
            unknown = logsumexp(np.concatenate(laws, axis=1).astype(np.float64), axis=1) - np.log(
                len(SCALES) * len(self.background)
            )
            others = _log_sum_of_others(direct) - np.log(max(1, len(candidates) - 1))
            yield (direct - np.logaddexp(others, unknown[:, None])).astype(np.float32)


@dataclass(frozen=True)
class Normal:
    """A normal law around any centre."""

    whitening: Floats
    """Makes the covariance the identity, float32 (d, d)."""
    log_determinant: np.float32
    """Of the covariance."""

    @classmethod
    def of(cls, covariance: Numbers) -> Normal:
        """Return the law; variances below `FLOOR` are raised."""
        values, axes = np.linalg.eigh(covariance)
        values = values.clip(values.max() * FLOOR)
        return cls((axes / np.sqrt(values)).astype(np.float32), np.float32(np.log(values).sum()))

    def log_density(self, vectors: Floats, centres: Floats) -> Floats:
        """Return ln N(v - c; 0, covariance) without the constant (2 pi)^(-d/2), float32 (n, m).

        Args:
            vectors: float32 (n, d).
            centres: transformed by ``whitening``, float32 (m, d).
        """
        own = vectors @ self.whitening
        squares = (own**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * own @ centres.T
        density: Floats = -0.5 * (squares + self.log_determinant)
        return density


def taken(law: NoiseLaw, stored: Floats, candidates: Floats) -> Numbers:
    """Return the largest probability that a stored vector is of each candidate, float64 (m,).

    Before a vector is seen, each candidate is as likely, and all together are as likely as an unknown text.
    """
    from scipy.special import expit

    odds = largest_odds(law, stored, candidates).astype(np.float64)
    largest: Numbers = expit(odds - np.log(max(1, len(candidates))))
    return largest


def largest_odds(law: NoiseLaw, stored: Floats, candidates: Floats) -> Floats:
    """Return the largest log-odds that a stored vector is of each candidate, float32 (m,)."""
    most = np.full(len(candidates), -np.inf, np.float32)
    for odds in law.blocks(stored, candidates):
        most = np.maximum(most, odds.max(0))
    return most


def once(log_odds: Floats) -> Neighbours:
    """Rank candidates by their log-odds, float32 (n, m), and link each first candidate surely to one vector.

    The other vectors with this first candidate lose `NOT_SURE`, at all ranks.
    """
    rows = np.argsort(-log_odds, axis=1, kind="stable")[:, :DEPTH]
    scores = np.take_along_axis(log_odds, rows, axis=1)
    surest = np.argsort(-scores[:, 0], kind="stable")
    _, first = np.unique(rows[surest, 0], return_index=True)
    scores[np.delete(surest, first)] -= NOT_SURE
    return Neighbours(rows, scores)


def _covariance(differences: Numbers) -> Numbers:
    found: Numbers = differences.T @ differences / len(differences)
    return found


def _log_sum_of_others(logs: Numbers) -> Numbers:
    """Return the log of the sum of each row's exponentials without the entry itself, float64 (n, m)."""
    top = logs.max(1, keepdims=True)
    shares = np.exp(logs - top)
    # where the entry itself is nearly the whole sum, the largest other one bounds the rest from below
    second = np.partition(logs, -2, axis=1)[:, [-2]] if logs.shape[1] > 1 else np.full_like(top, -np.inf)
    rest = np.log((shares.sum(1, keepdims=True) - shares).clip(1e-300)) + top
    others: Numbers = np.where(logs == top, np.maximum(rest, second), rest)
    return others
