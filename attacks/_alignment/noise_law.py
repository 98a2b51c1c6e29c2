"""Tell how likely a stored vector is of a text, by the law of what the protection and the map leave.

The model: a mapped vector of a text with the vector c is v = f c + e, and e / f has the law N(0, R). A vector of no
candidate is near one, as texts of one corpus are: v / f - c has the law N(0, R + t S), with a candidate c drawn at
random, t of `SCALES` drawn at random, and S the covariance of the difference between a text and its nearest other one.
So the odds that a vector is of a candidate c, against any of the N - 1 others or no candidate, are::

    N(v / f - c; R) / (mean over the other candidates b of N(v / f - b; R) + mean over a and t of N(v / f - a; R + t S))

where a is any of the candidates, or of `BACKGROUND` of them. f and R are those of the mapped vectors and candidates
that are each other's nearest, and of these the nearer 70 %. The cosine knows neither that some directions are noisier,
nor that another candidate explains a vector as well.

If the noise is known to be uniform in a ball, e / f is uniform in a ball of radius r. In many dimensions nearly all of
the ball is near its surface. So true links have lengths |v / f - c| just below r, and other texts have larger ones. f
is the factor at which half of the lengths below r are below r (1/2)^(1/d), as in the ball.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from leakboard.attacks._alignment.known_encoder import mutual_nearest, search
from leakboard.attacks._alignment.moments import shrunk
from leakboard.errors import RequestError
from leakboard.interfaces import Floats
from leakboard.metrics.link_scores import DEPTH
from leakboard.models.search import Neighbours, normalised

SCALES = (0.25, 0.5, 1.0)
LEFT_OUT = 0.3
"""Share of the pairs that are each other's nearest and whose cosines are the smallest: many of them are no links."""
FLOOR = 1e-6
"""Least variance of a direction, as a share of the largest one."""
BACKGROUND = 4_000
"""Number of candidates from which the law of unknown texts is computed, unless all are asked for."""
ROWS = 1_000
"""Vectors that are compared with all candidates at once."""
EDGE = 0.002
"""Softness of a ball's edge, as a share of the squared radius: maps and factors are not exact."""
OUTSIDE = 1.01
"""A candidate is no link if the squared length is above this share of the squared radius."""
FACTOR_ROUNDS = 5
LEAST_UNKNOWN = -12.0
"""Least log-density of unknown texts relative to a ball's: some vectors are of texts that are unlike all others."""

Radius = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
"""Option: the radius of the ball in which noise is uniform, for vectors of length 1; null: the noise is normal."""

NOT_SURE = 1_000.0
"""Log-odds that a link loses if a surer link has the same candidate."""

Numbers = NDArray[np.float64]


class Noise(Protocol):
    """The law of a difference, as a density up to a factor that is the same for all laws of one kind."""

    def prepared(self, centres: Floats) -> Floats:
        """Transform centres, float32 (m, d), for `log_density`."""
        ...

    def log_density(self, vectors: Floats, prepared: Floats) -> Floats:
        """Return the log-density of the difference between vectors, (n, d), and centres, float32 (n, m)."""
        ...

    def plus(self, covariance: Numbers) -> Noise:
        """Return the law of the sum with a normal variable of mean 0."""
        ...


@dataclass(frozen=True)
class NoiseLaw:
    factor: float
    """f"""
    noise: Noise
    """The law of e / f."""
    between: Numbers
    """S, float64 (d, d)."""
    background: Floats
    """Vectors of texts like the unknown ones, float32 (b, d)."""
    pairs: int
    """Number of links from which f and the noise are estimated."""

    @classmethod
    def fit(
        cls,
        mapped: Floats,
        candidates: Floats,
        rng: np.random.Generator,
        most: int = BACKGROUND,
        radius: float | None = None,
    ) -> NoiseLaw | None:
        """Estimate the law; None if fewer than two mapped vectors have a likely link.

        Args:
            mapped: stored vectors in the space of the candidates, float32 (n, d).
            candidates: vectors of texts, float32 (m, d).
            rng: draws the background.
            most: largest number of candidates in the background.
            radius: of the ball in which the noise is uniform, in the scale of the candidates; None: it is normal.
        """
        found = _normal_noise(mapped, candidates) if radius is None else _ball(mapped, candidates, radius)
        if found is None:
            return None
        factor, noise, pairs = found
        background = candidates[np.sort(rng.permutation(len(candidates))[:most])]
        nearest = search(background, candidates, candidates, 2)
        other = nearest.rows[:, -1]
        between = _covariance((background - candidates[other]).astype(np.float64))
        return cls(factor, noise, between, background, pairs)

    @cached_property
    def _unknown(self) -> list[tuple[Noise, Floats]]:
        """The laws of unknown texts, each with the prepared background."""
        laws = [self.noise.plus(t * self.between) for t in SCALES]
        return [(law, law.prepared(self.background)) for law in laws]

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

        known = self.noise.prepared(candidates)
        for start in range(0, len(vectors), ROWS):
            scaled = vectors[start : start + ROWS] / np.float32(self.factor)
            direct = self.noise.log_density(scaled, known).astype(np.float64)
            laws = [law.log_density(scaled, background) for law, background in self._unknown]
            unknown = logsumexp(np.concatenate(laws, axis=1).astype(np.float64), axis=1) - np.log(
                len(SCALES) * len(self.background)
            )
            others = _log_sum_of_others(direct) - np.log(max(1, len(candidates) - 1))
            yield (direct - np.logaddexp(others, unknown[:, None])).astype(np.float32)


def _normal_noise(mapped: Floats, candidates: Floats) -> tuple[float, Noise, int] | None:
    """Return factor, normal noise and number of links; None if there are fewer than two."""
    rows, columns = mutual_nearest(mapped, candidates)
    near = (normalised(mapped[rows]) * normalised(candidates[columns])).sum(1)
    kept = near >= np.quantile(near, LEFT_OUT) if len(near) else np.zeros(0, bool)
    if kept.sum() < 2:
        return None
    vectors, texts = mapped[rows][kept].astype(np.float64), candidates[columns][kept].astype(np.float64)
    factor = float((vectors * texts).sum() / (texts * texts).sum())
    noise = shrunk(_covariance(vectors / factor - texts), len(vectors))
    if not noise.any():  # vectors without noise: a density would be infinite
        noise = FLOOR * (texts**2).mean() * np.eye(len(noise))
    return factor, Normal(noise), len(vectors)


def _ball(mapped: Floats, candidates: Floats, radius: float) -> tuple[float, Noise, int] | None:
    """Return factor, noise in a ball and number of links; None if there are fewer than two."""
    d = mapped.shape[1]
    vectors, texts = mapped.astype(np.float64), candidates[search(mapped, candidates, mapped, 1).rows[:, 0]]
    own, products, known = (vectors**2).sum(1), (vectors * texts).sum(1), (texts.astype(np.float64) ** 2).sum(1)
    all_known = float((candidates.astype(np.float64) ** 2).sum(1).mean())
    factor = np.sqrt(own.mean() / (all_known + radius**2 * d / (d + 2)))  # d / (d + 2) r^2: the mean squared length
    inside = np.zeros(len(own), bool)
    for _ in range(FACTOR_ROUNDS):
        squares = (own / factor**2 - 2 * products / factor + known) / radius**2
        inside = squares < OUTSIDE
        if inside.sum() < 2:
            return None
        factor *= (np.median(squares[inside]) / 0.5 ** (2 / d)) ** 0.25
    return float(factor), Ball(radius), int(inside.sum())


@dataclass(frozen=True)
class Normal:
    """A normal law with mean 0; variances below `FLOOR` are raised."""

    covariance: Numbers
    """float64 (d, d)."""

    @cached_property
    def _whitening(self) -> tuple[Floats, np.float32]:
        """The matrix that makes the covariance the identity, float32 (d, d), and the log-determinant."""
        values, axes = np.linalg.eigh(self.covariance)
        values = values.clip(values.max() * FLOOR)
        return (axes / np.sqrt(values)).astype(np.float32), np.float32(np.log(values).sum())

    def prepared(self, centres: Floats) -> Floats:
        """Whiten centres."""
        return centres @ self._whitening[0]

    def log_density(self, vectors: Floats, prepared: Floats) -> Floats:
        """Return ln N(v - c; 0, covariance) without the constant (2 pi)^(-d/2)."""
        whitening, log_determinant = self._whitening
        density: Floats = -0.5 * (_squares(vectors @ whitening, prepared) + log_determinant)
        return density

    def plus(self, covariance: Numbers) -> Normal:
        """Return the normal law with the sum of both covariances."""
        return Normal(self.covariance + covariance)


@dataclass(frozen=True)
class Ball:
    """The uniform law in a ball around 0, with a soft edge. Its density is relative to that at the centre."""

    radius: float

    def prepared(self, centres: Floats) -> Floats:
        """Return the centres."""
        return centres

    def log_density(self, vectors: Floats, prepared: Floats) -> Floats:
        """Return about 0 inside the ball; outside, the density falls by e for each `EDGE` of the squared radius."""
        beyond = _squares(vectors, prepared) / np.float32(self.radius**2) - 1
        return -np.logaddexp(np.float32(0), beyond / np.float32(EDGE))

    def plus(self, covariance: Numbers) -> Noise:
        """Return the law of the sum."""
        return BlurredBall(self.radius, covariance)


@dataclass(frozen=True)
class BlurredBall:
    """The sum of a uniform variable in a ball and a normal one, relative to the density in the ball.

    The density at x is the probability that x - e is in the ball. Its squared length is taken as normal, with mean
    |x|^2 + tr S and variance 4 x'Sx + 2 tr S^2, where S is the covariance of e.
    """

    radius: float
    covariance: Numbers
    """S, float64 (d, d)."""

    def prepared(self, centres: Floats) -> Floats:
        """Return centres beside the same times the root of S, float32 (m, 2 d)."""
        return np.concatenate([centres, centres @ self._root], axis=1)

    @cached_property
    def _root(self) -> Floats:
        values, axes = np.linalg.eigh(self.covariance)
        return (axes * np.sqrt(values.clip(0))).astype(np.float32)  # type: ignore[no-any-return]

    def log_density(self, vectors: Floats, prepared: Floats) -> Floats:
        """Return the log-density, at least `LEAST_UNKNOWN`."""
        from scipy.special import log_ndtr

        centres, blurred = np.split(prepared, 2, axis=1)
        mean = _squares(vectors, centres) + np.float32(np.trace(self.covariance))
        spread = 4 * _squares(vectors @ self._root, blurred) + np.float32(2 * (self.covariance**2).sum())
        log_inside = log_ndtr((np.float32(self.radius**2) - mean) / np.sqrt(spread.clip(1e-12)))
        density: Floats = log_inside.clip(LEAST_UNKNOWN)
        return density

    def plus(self, covariance: Numbers) -> BlurredBall:
        """Return the law of the sum: covariances add."""
        return BlurredBall(self.radius, self.covariance + covariance)


def _squares(vectors: Floats, centres: Floats) -> Floats:
    """Return the squared lengths of all differences, float32 (n, m)."""
    squares: Floats = (vectors**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * vectors @ centres.T
    return squares


def check_radius(radius: float | None, likely: bool) -> None:
    """Refuse a radius without ``likely``: no law is estimated then.

    Raises:
        RequestError: there is one.
    """
    if radius is not None and not likely:
        raise RequestError(f"radius: {radius:g} is not allowed with likely: false; allowed: null")


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
