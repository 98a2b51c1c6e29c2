"""Name the words of published vectors by the attacker's own table, its occurrences of words, or their means."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leakboard.attacks._words.lengths import WEIGHTS, log_lengths, nearest_without_hubs, with_lengths
from leakboard.attacks._words.own_tables import OwnTable, centred, procrustes
from leakboard.attacks._words.weighing import weighing
from leakboard.errors import NotApplicable
from leakboard.interfaces import Floats, Integers
from leakboard.models.search import Neighbours, nearest, nearest_groups, normalised
from leakboard.threats.words import WordGuesses

if TYPE_CHECKING:
    from leakboard.attacks.nearest_neighbour import NearestNeighbour

FOLDS = 5
"""Folds of anchors that are left out of the rotation in turn, to choose the weights."""
RIDGES = (0.01, 0.1, 1.0, 10.0)
"""Ridges to choose from when directions are weighed; the first is used where no anchors can choose."""


@dataclass(frozen=True)
class Anchors:
    """Known words: their published vectors, float32 (a, d), and their rows in the attacker's vocabulary."""

    published: Floats
    vocabulary_rows: np.ndarray


@dataclass(frozen=True)
class NamerOfOccurrences:
    """Names contextual vectors by the attacker's occurrences of words."""

    options: NearestNeighbour
    vocabulary: list[str]
    vectors: Floats
    """float32 (m, d) of length 1, one for each occurrence."""
    owners: Integers
    """int64 (m,), index of each occurrence's word in ``vocabulary``."""

    def __call__(self, vectors: Floats) -> WordGuesses:
        """Rank words for each published vector."""
        found = nearest_groups(normalised(vectors), self.vectors, self.owners, self.options.candidates)
        remark = f"each word by the nearest of {len(self.vectors)} occurrences of the attacker's own"
        return WordGuesses(self.vocabulary, found.rows, found.similarity, remark)


@dataclass(frozen=True)
class NamerOfMeans:
    """Names contextual vectors by the mean vector of each word, in weighed directions (linear discriminants)."""

    options: NearestNeighbour
    vocabulary: list[str]
    means: Floats
    """Weighed means, float32 (m, d), one for each word."""
    centre: Floats
    """Mean of the attacker's occurrences, float32 (d,)."""
    directions: Floats
    """Map to weighed directions, float32 (d, d)."""

    def __call__(self, vectors: Floats) -> WordGuesses:
        """Rank words for each published vector."""
        weighed = ((vectors - self.centre) @ self.directions).astype(np.float32)
        found = nearest(weighed, self.means, self.options.candidates, self.options.exact_limit)
        remark = f"each word by the mean of its occurrences, of {len(self.means)} words, in weighed directions"
        remarks = [remark, *_approximate(found)]
        return WordGuesses(self.vocabulary, found.rows, found.similarity, "; ".join(remarks))


@dataclass(frozen=True)
class Weights:
    """What counts when vectors are compared."""

    ridge: float
    """Ridge of the weighing of directions; it does not count if they are not weighed."""
    lengths: float | None
    """Weight of the lengths; None: they are not compared."""


@dataclass(frozen=True)
class NamerOfTables:
    """Names the vectors of a static table by the attacker's own table."""

    options: NearestNeighbour
    own: OwnTable
    anchors: Anchors | None
    """Known words, to align the published table; None: it is not aligned."""

    def __call__(self, vectors: Floats) -> WordGuesses:
        """Rank words for each published vector."""
        remarks = [f"mean of {self.options.own_tables} own tables"] if self.options.own_tables > 1 else []
        if self.anchors is None:
            neighbours = self._nearest(*self._compared(vectors, None, Weights(RIDGES[0], None)))
        else:
            neighbours, remark = self._by_anchors(vectors, self.anchors)
            remarks.append(remark)
        remarks += _approximate(neighbours)
        return WordGuesses(self.own.words, neighbours.rows, neighbours.similarity, "; ".join(remarks))

    def _by_anchors(self, vectors: Floats, anchors: Anchors) -> tuple[Neighbours, str]:
        """Rotate the published vectors into the attacker's space, and compare them; describe it."""
        both = centred(np.concatenate([vectors, anchors.published]))
        queries, known = both[: len(vectors)], both[len(vectors) :]
        shift = np.median(log_lengths(anchors.published) - self.own.log_lengths[anchors.vocabulary_rows])
        angles = log_lengths(vectors) - shift  # another recipe may make all vectors longer
        weights = self._weights(anchors, known, log_lengths(anchors.published) - shift)
        rotation = procrustes(known, self.own.vectors[anchors.vocabulary_rows])
        remark = f"rotated by {len(known)} anchors"
        for _ in range(self.options.iterations if self.options.align == "iterative" else 0):
            forth, mutual = self._matched(*self._compared(queries @ rotation, angles, weights))
            source = np.concatenate([known, queries[mutual]])
            rows = np.concatenate([anchors.vocabulary_rows, forth[mutual]])
            rotation = procrustes(source, self.own.vectors[rows])
            remark = f"rotated by {len(known)} anchors and {len(mutual)} matched words"
        compared, index = self._compared(queries @ rotation, angles, weights)
        if weights.lengths is None:
            return self._nearest(compared, index), remark
        others = np.setdiff1d(np.arange(len(index)), anchors.vocabulary_rows)
        if not len(others):
            raise NotApplicable("nearest_neighbour: all words that the attacker knows are anchors (fewer anchors?)")
        found = nearest_without_hubs(compared, index[others], self.options.candidates, self.options.exact_limit)
        found = replace(found, rows=np.append(others, -1)[found.rows])  # -1: none was found
        return found, f"{remark}; lengths have the weight {weights.lengths:g}"

    def _weights(self, anchors: Anchors, known: Floats, angles: Floats) -> Weights:
        """Choose the weights that name left-out anchors best, by mean reciprocal rank.

        Args:
            anchors: known words.
            known: their centred vectors, float32 (a, d).
            angles: their log lengths around the attacker's median, float32 (a,).
        """
        lengths = WEIGHTS if self.options.lengths else (None,)
        ridges = RIDGES if self.options.weigh else RIDGES[:1]
        choices = [Weights(ridge, length) for ridge, length in itertools.product(ridges, lengths)]
        if len(choices) == 1:
            return choices[0]
        rows = anchors.vocabulary_rows
        rotated, fold = np.empty_like(known), np.arange(len(rows)) % min(FOLDS, len(rows))
        for left_out in (fold == f for f in range(FOLDS)):
            rotated[left_out] = known[left_out] @ procrustes(known[~left_out], self.own.vectors[rows[~left_out]])

        def reciprocal_rank(weights: Weights) -> float:
            found = self._nearest(*self._compared(rotated, angles, weights)).rows == rows[:, None]
            return float((found / np.arange(1, found.shape[1] + 1)).sum())

        return max(choices, key=reciprocal_rank)

    def _compared(self, rotated: Floats, angles: Floats | None, weights: Weights) -> tuple[Floats, Floats]:
        """Return published and own vectors so that the cosine compares them by these weights.

        Args:
            rotated: published vectors in the attacker's space, float32 (n, d).
            angles: their log lengths around the attacker's median, float32 (n,); None: lengths are not compared.
            weights: what counts.
        """
        index = self.own.vectors
        if self.options.weigh and self.own.differences is not None:
            directions = weighing(self.own.differences, weights.ridge)
            rotated, index = rotated @ directions, index @ directions
        queries, index = normalised(rotated), normalised(index)
        if weights.lengths is None or angles is None:
            return queries, index
        own_angles = self.own.log_lengths
        return with_lengths(queries, angles, weights.lengths), with_lengths(index, own_angles, weights.lengths)

    def _nearest(self, queries: Floats, index: Floats) -> Neighbours:
        return nearest(queries, index, self.options.candidates, self.options.exact_limit)

    def _matched(self, queries: Floats, index: Floats) -> tuple[Integers, Integers]:
        """Return each query's nearest row of the index, int64 (n,), and the queries that are that row's nearest."""
        forth = nearest(queries, index, 1, self.options.exact_limit).rows[:, 0]
        back = nearest(index, queries, 1, self.options.exact_limit).rows[:, 0]
        return forth, np.flatnonzero(back[forth] == np.arange(len(queries)))


def _approximate(neighbours: Neighbours) -> list[str]:
    """Return a remark on the recall of a search, if it is not exact."""
    return [] if neighbours.recall == 1 else [f"approximate search with recall {neighbours.recall:.3f}"]
