"""Define the words of a channel: a public vocabulary with vectors and frequencies."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.interfaces import Integers

Numbers = NDArray[np.float64]

CLOSE = 1e-6
"""Share of two squared norms below which a squared distance is computed again, from the difference of the vectors."""


@dataclass(frozen=True)
class WordSpace:
    """A public vocabulary. Different words may have the same vector.

    Raises:
        RequestError: fewer than two words, a repeated word, or vectors or frequencies of the wrong shape or not finite.
    """

    words: list[str]
    vectors: NDArray[Any]
    """float (V, d)."""
    frequencies: Numbers | None = None
    """How often each word occurs in public texts, float64 (V,), from 0; None: all words are equally frequent."""

    def __post_init__(self) -> None:
        count = len(self.words)
        if count < 2:
            raise RequestError(f"vocabulary: its size is {count}; allowed: at least 2 words")
        word, times = Counter(self.words).most_common(1)[0]
        if times > 1:
            raise RequestError(f"vocabulary: {word!r} is in it {times} times; allowed: once")
        if self.vectors.ndim != 2 or len(self.vectors) != count or not np.isfinite(self.vectors).all():
            raise RequestError(f"vocabulary: vectors of shape {self.vectors.shape}; allowed: {count} finite rows")
        if self.frequencies is not None and (
            self.frequencies.shape != (count,)
            or not np.isfinite(self.frequencies).all()
            or self.frequencies.min() < 0
            or not self.frequencies.any()
        ):
            raise RequestError(f"vocabulary: frequencies must be {count} finite numbers from 0, not all 0")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def centred(self) -> Numbers:
        """The vectors minus their mean, float64 (V, d): the same distances with smaller rounding errors."""
        exact = self.vectors.astype(np.float64)
        centred: Numbers = exact - exact.mean(0)
        return centred

    @cached_property
    def squares(self) -> Numbers:
        """Squared norms of the centred vectors, float64 (V,)."""
        squares: Numbers = (self.centred**2).sum(1)
        return squares

    @cached_property
    def unit(self) -> Numbers:
        """The vectors scaled to length 1, float64 (V, d); a vector of zeros stays."""
        exact = self.vectors.astype(np.float64)
        lengths = np.linalg.norm(exact, axis=1, keepdims=True)
        unit: Numbers = exact / np.where(lengths > 0, lengths, 1)
        return unit

    @cached_property
    def by_frequency(self) -> Integers:
        """Indices of the words from the most frequent one on, int64 (V,); ties keep the vocabulary's order."""
        if self.frequencies is None:
            return np.arange(len(self))
        return np.argsort(-self.frequencies, kind="stable")

    def euclidean(self, rows: Integers, columns: Integers | None = None) -> Numbers:
        """Return the distances of the words ``rows`` to ``columns``, or to all words, float64 (n, m).

        Equal vectors have distance 0 exactly: the expansion |x|^2 + |y|^2 - 2xy would lose all digits there.
        """
        centred, squares = self.centred, self.squares
        others, of_others = (centred, squares) if columns is None else (centred[columns], squares[columns])
        distances = centred[rows] @ others.T
        distances *= -2
        distances += squares[rows, None]
        distances += of_others
        near, far = np.nonzero(distances < CLOSE * (squares[rows].max(initial=0) + of_others.max(initial=0)))
        distances[near, far] = ((centred[rows[near]] - others[far]) ** 2).sum(1)
        return np.sqrt(distances, out=distances)

    def cosines(self, rows: Integers) -> Numbers:
        """Return the cosines of the words ``rows`` with all words, float64 (n, V); 0 for a vector of zeros."""
        return np.clip(self.unit[rows] @ self.unit.T, -1, 1)
