"""Training pairs of skip-gram, grouped by unit of privacy: what one example is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Integers


@dataclass(frozen=True)
class Pairs:
    """Pairs of words, those of a unit next to each other."""

    centres: NDArray[np.int32]
    """int32 (pairs,)."""
    contexts: NDArray[np.int32]
    """int32 (pairs,)."""
    starts: Integers | None = None
    """int64 (units + 1,), where each unit's pairs start; None where every pair is a unit."""

    @property
    def units(self) -> int:
        """Number of units, also those without a pair."""
        return len(self.centres) if self.starts is None else len(self.starts) - 1

    def lot(self, units: Integers) -> tuple[NDArray[np.int32], NDArray[np.int32], Integers]:
        """Return centres and contexts of these units' pairs, and where each unit's pairs start, int64 (units + 1,)."""
        if self.starts is None:
            return self.centres[units], self.contexts[units], np.arange(len(units) + 1)
        sizes = self.starts[units + 1] - self.starts[units]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(starts[-1]) + np.repeat(self.starts[units] - starts[:-1], sizes)
        return self.centres[rows], self.contexts[rows], starts


def pairs_of(texts: Sequence[Sequence[str]], owners: Integers | None, words: Sequence[str], window: int) -> Pairs:
    """Return the pairs of texts.

    Every word has all neighbours within the window, on both sides, not a random part of them as in word2vec. A word
    outside the vocabulary keeps its place, so that which pairs there are does not depend on the vocabulary but by
    leaving pairs out.

    Args:
        texts: the words of each text.
        owners: int64 (texts,), which unit each text belongs to; None where every pair is a unit.
        words: the vocabulary.
        window: largest distance between a word and its context (words).
    """
    from leakboard.skip_gram import kernels  # compiled: importing it writes a cache

    order = range(len(texts)) if owners is None else np.argsort(owners, kind="stable").tolist()
    code = {word: number for number, word in enumerate(words)}
    lengths = [len(texts[i]) for i in order]
    codes = np.fromiter((code.get(w, -1) for i in order for w in texts[i]), np.int32, sum(lengths))
    centres, contexts, counts = kernels.make_pairs(codes, np.array([0, *itertools.accumulate(lengths)]), window)
    if owners is None:
        return Pairs(centres, contexts)
    of_unit = np.bincount(owners[order], weights=counts).astype(np.int64)
    return Pairs(centres, contexts, np.concatenate([[0], np.cumsum(of_unit)]))
