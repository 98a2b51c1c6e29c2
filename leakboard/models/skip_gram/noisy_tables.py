"""The two word tables of skip-gram, with Gaussian noise that reaches every coordinate at every step, drawn late.

Differentially private gradient descent adds N(0, (rate * sigma C)**2) to every coordinate at every step, yet a batch
reads a few rows. A row that nobody reads gets its noise when it is next read or published: once, with the summed
variance (the idea of LazyDP; Lim et al. 2024).

Theorem (same distribution). Without momentum a row changes by its own noise and by gradients of batches that read it.
Let row r be read at steps s < t and not between. The noise of steps s, ..., t - 1 is independent of all that was read
in between, and its sum is N(0, sum of the variances); replacing the summands by one draw of the sum at t leaves the
joint law of everything that is ever read, and of the tables after `NoisyTables.flush_noise`, as it was.

What is in memory before `flush_noise` lacks noise and is no private release.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats, Integers
from leakboard.models.skip_gram.noise import NoiseStream

BLOCK = 1 << 16
"""Rows whose noise is flushed at once."""


@dataclass
class NoisyTables:
    """Input and output vectors one below the other, and how much noise each row has had."""

    values: Floats
    """float32 (2 V, d): the input vectors of all words, then their output vectors."""
    applied_variance: np.ndarray
    """float64 (2 V,): summed variance of the noise in each row."""
    target_variance: float = 0.0
    """Summed variance of the noise that every row is to have."""

    @classmethod
    def start(cls, words: int, dimensions: int, generator: np.random.Generator) -> NoisyTables:
        """Return word2vec's start, which depends on no data: input uniform in (-0.5/d, 0.5/d), output 0."""
        values = np.zeros((2 * words, dimensions), np.float32)
        values[:words] = (generator.random((words, dimensions), np.float32) - np.float32(0.5)) / np.float32(dimensions)
        return cls(values, np.zeros(2 * words))

    @property
    def words(self) -> int:
        """Number of words V."""
        return len(self.values) // 2

    def flush_noise(self, noise: NoiseStream) -> Floats:
        """Bring the noise of every row up to date and return the input vectors, float32 (V, d): a private release."""
        late = np.flatnonzero(self.applied_variance < self.target_variance)
        for start in range(0, len(late), BLOCK):
            rows = late[start : start + BLOCK]
            deviations = np.sqrt(self.target_variance - self.applied_variance[rows]).astype(np.float32)
            drawn = np.empty((len(rows), self.values.shape[1]), np.float32)
            noise.fill(drawn)
            self.values[rows] += deviations[:, None] * drawn
        self.applied_variance[late] = self.target_variance
        return self.values[: self.words].copy()


class Workspace:
    """Room for the rows of a batch; it grows with the largest and is used again."""

    def __init__(self, tables: NoisyTables):
        self.tables = tables
        self.slots = np.full(len(tables.values), -1, np.int32)
        self.rows = 0
        self.distinct = np.empty(0, np.int32)
        self._make_room(1)

    def _make_room(self, references: int) -> None:
        if references > len(self.distinct):
            self.distinct = np.empty(references, np.int32)
        rows = min(references, len(self.tables.values))
        if rows > self.rows:
            self.rows = rows
            shape = (rows, self.tables.values.shape[1])
            self.noise, self.work = np.empty(shape, np.float32), np.empty(shape, np.float32)
            self.unit, self.total = np.zeros(shape, np.float32), np.zeros(shape)

    def descend(
        self,
        centres: NDArray[np.int32],
        targets: NDArray[np.int32],
        starts: Integers,
        *,
        rate: float,
        clipping_norm: float,
        each_table: bool,
        deviation: float,
        noise: NoiseStream,
    ) -> np.ndarray:
        """Take one step on a batch: bring the noise of its rows up to date, subtract ``rate`` times the clipped sum.

        The noise of this step is counted in `NoisyTables.target_variance`, and drawn when a row is next read.

        Args:
            centres: int32 (pairs,), words.
            targets: int32 (pairs, 1 + negatives), words: the context, then the negatives.
            starts: int64 (units + 1,), where each unit's pairs start.
            rate: learning rate of the sum.
            clipping_norm: C, of a unit's gradient.
            each_table: clip input and output part by themselves.
            deviation: standard deviation of the noise on each coordinate of the sum.
            noise: where the noise is drawn from.

        Returns:
            The norm of each unit's gradient before it was clipped, float64 (units,): private, for tests alone.
        """
        from leakboard.models.skip_gram import kernels  # compiled: importing it writes a cache

        tables = self.tables
        targets = targets + np.int32(tables.words)
        references = np.concatenate([centres, targets.ravel()])
        self._make_room(len(references))
        count = kernels.collect_rows(references, self.slots, self.distinct)
        noisy = tables.target_variance > 0
        if noisy:
            noise.fill(self.noise[:count])
        read = (tables.values, tables.applied_variance, tables.target_variance, self.noise[: count if noisy else 0])
        kernels.read_rows(*read, self.distinct, count, self.work)
        norms = np.empty(len(starts) - 1)
        batch = (centres, targets, starts, self.slots, self.work)
        kernels.summed_gradients(*batch, clipping_norm, each_table, self.unit, self.total, norms)
        kernels.write_rows(tables.values, self.distinct, count, self.slots, self.work, self.total, rate)
        tables.target_variance += (rate * deviation) ** 2
        return norms
