"""Take noisy gradient steps on the two word tables of skip-gram, and draw each row's noise late.

Differentially private gradient descent adds N(0, (rate * deviation)**2) to every coordinate at every step, but a batch
reads few rows. A row receives its noise when it is next read or published: one draw with the summed variance (the idea
of LazyDP; Lim et al. 2024).

Theorem (same distribution). Late noise leaves the joint law of every value that is read or published as it was.

Proof. Without momentum a row changes by its own noise, and by gradients of batches that read it. Let row r be read at
steps s < t and not between. The noise of steps s, ..., t - 1 is independent of everything that was read in between. Its
sum is N(0, sum of the variances). So one draw of the sum at t can replace the summands. The same holds for the
tables after `NoisyTables.flush_noise`.

The tables in memory lack noise before `flush_noise`: they are no private release.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats, Integers

FLUSHED_ROWS = 1 << 16
"""Rows that receive their noise together when it is flushed."""


@dataclass
class NoiseStream:
    """A stream of standard normal numbers (`leakboard.models.skip_gram.normals`)."""

    key: int
    """Below 2**63; streams with different keys are independent."""
    block: int = 0
    """Number of blocks drawn so far; with ``key`` the whole state."""

    def fill(self, out: Floats) -> None:
        """Fill a contiguous float32 array with the next numbers; the rest of the last block is skipped."""
        from leakboard.models.skip_gram.normals import BLOCK, fill_normals  # compiled: importing it writes a cache

        flat = out.reshape(-1)
        fill_normals(flat, self.key, self.block)
        self.block += -(-flat.size // BLOCK)


@dataclass(frozen=True)
class Descent:
    """The rule of a step: table - rate * (sum of the clipped gradients of the batch + N(0, deviation**2 I))."""

    rate: float
    """Learning rate of the sum."""
    clipping_norm: float
    """C; infinite to clip nothing."""
    deviation: float
    """Standard deviation of the noise on every coordinate of the sum; 0 for none."""
    of_batch: bool = False
    """Clip the sum of the whole batch, each table's part to C, and not each unit's gradient (a broken control)."""


@dataclass
class NoisyTables:
    """The two word tables, how much noise each row has received, and working memory for the rows of a batch."""

    values: Floats
    """float32 (2 V, d): the input vectors of all words, then their output vectors."""
    applied_variance: np.ndarray
    """float64 (2 V,): summed variance of the noise in each row."""
    target_variance: float = 0.0
    """Summed variance of the noise that every row is to receive."""

    @classmethod
    def start(cls, words: int, dimensions: int, generator: np.random.Generator) -> NoisyTables:
        """Return word2vec's start, which depends on no data: input uniform in (-0.5/d, 0.5/d), output 0."""
        values = np.zeros((2 * words, dimensions), np.float32)
        values[:words] = (generator.random((words, dimensions), np.float32) - np.float32(0.5)) / np.float32(dimensions)
        return cls(values, np.zeros(2 * words))

    def __post_init__(self) -> None:
        """Make working memory; it grows with the largest batch."""
        self._slots = np.full(len(self.values), -1, np.int32)
        self._make_room(1)

    def _make_room(self, references: int) -> None:
        self._distinct = np.empty(references, np.int32)
        shape = (min(references, len(self.values)), self.values.shape[1])
        self._noise, self._work = np.empty(shape, np.float32), np.empty(shape, np.float32)
        self._unit, self._total = np.zeros(shape, np.float32), np.zeros(shape)

    @property
    def words(self) -> int:
        """Number of words V."""
        return len(self.values) // 2

    def descend(
        self,
        centres: NDArray[np.int32],
        targets: NDArray[np.int32],
        starts: Integers,
        descent: Descent,
        noise: NoiseStream,
    ) -> np.ndarray:
        """Take one step on a batch.

        The step's noise is added to `target_variance`, and drawn when a row is next read.

        Args:
            centres: int32 (pairs,), words.
            targets: int32 (pairs, 1 + negatives), words: the context, then the negatives.
            starts: int64 (units + 1,), where each unit's pairs start.
            descent: rule of the step.
            noise: source of the noise.

        Returns:
            The norm of each gradient before it was clipped, float64 (units,), of the whole batch's float64 (1,):
            private, for tests alone.
        """
        from leakboard.models.skip_gram import kernels  # compiled: importing it writes a cache

        targets = targets + np.int32(self.words)
        references = np.concatenate([centres, targets.ravel()])
        if len(references) > len(self._distinct):
            self._make_room(len(references))
        rows = self._distinct[: kernels.collect_rows(references, self._slots, self._distinct)]
        due = self._noise[: len(rows) if self.target_variance > 0 else 0]
        if len(due):
            noise.fill(due)
        kernels.read_rows(self.values, self.applied_variance, self.target_variance, due, rows, self._work)
        clipped = starts[[0, -1]] if descent.of_batch else starts
        norms = np.empty(len(clipped) - 1)
        batch = (centres, targets, clipped, self._slots, self._work)
        kernels.sum_gradients(*batch, descent.clipping_norm, descent.of_batch, self._unit, self._total, norms)
        kernels.write_rows(self.values, rows, self._slots, self._work, self._total, descent.rate)
        self.target_variance += (descent.rate * descent.deviation) ** 2
        return norms

    def flush_noise(self, noise: NoiseStream) -> Floats:
        """Add the noise that is due to every row, and return the input vectors, float32 (V, d): a private release."""
        late = np.flatnonzero(self.applied_variance < self.target_variance)
        for start in range(0, len(late), FLUSHED_ROWS):
            rows = late[start : start + FLUSHED_ROWS]
            deviations = np.sqrt(self.target_variance - self.applied_variance[rows]).astype(np.float32)
            drawn = np.empty((len(rows), self.values.shape[1]), np.float32)
            noise.fill(drawn)
            self.values[rows] += deviations[:, None] * drawn
        self.applied_variance[late] = self.target_variance
        return self.values[: self.words].copy()
