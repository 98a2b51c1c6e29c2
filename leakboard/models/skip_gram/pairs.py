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
    """Pairs of known words, those of a unit next to each other."""

    centres: NDArray[np.int32]
    """int32 (pairs,)."""
    contexts: NDArray[np.int32]
    """int32 (pairs,)."""
    starts: Integers | None = None
    """int64 (units + 1,), where each unit's pairs start; None where every pair is a unit."""
    positions: Integers | None = None
    """Where every pair is a unit: int64 (pairs,), increasing, which unit each is; None where all words are known."""
    all_pairs: int | None = None
    """Where every pair is a unit: how many there are, those with an unknown word included."""

    @property
    def units(self) -> int:
        """Number of units, those without a pair of known words included: it does not depend on the vocabulary."""
        if self.starts is not None:
            return len(self.starts) - 1
        return len(self.centres) if self.all_pairs is None else self.all_pairs

    @property
    def units_without_pairs(self) -> int:
        """Number of units without a pair of known words."""
        return self.units - len(self.centres) if self.starts is None else int((np.diff(self.starts) == 0).sum())

    def batch(self, units: Integers) -> tuple[NDArray[np.int32], NDArray[np.int32], Integers]:
        """Return centres and contexts of these units' pairs, and where each unit's pairs start, int64 (units + 1,).

        Where every pair is a unit, those with an unknown word are left out: so there are fewer of them.
        """
        if self.starts is None:
            if self.positions is not None:
                first, last = (np.searchsorted(self.positions, units, side) for side in ("left", "right"))
                units = first[first < last]
            return self.centres[units], self.contexts[units], np.arange(len(units) + 1)
        sizes = self.starts[units + 1] - self.starts[units]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(starts[-1]) + np.repeat(self.starts[units] - starts[:-1], sizes)
        return self.centres[rows], self.contexts[rows], starts


def pairs_of(texts: Sequence[Sequence[str]], owners: Integers | None, words: Sequence[str], window: int) -> Pairs:
    """Return the pairs of texts.

    Every word has all neighbours within the window, on both sides, not a random part of them as in word2vec. A word
    outside the vocabulary keeps its position, and a pair with such a word is still a unit, which contributes nothing:
    so neither which pairs there are nor how many depends on the vocabulary.

    Args:
        texts: the words of each text.
        owners: int64 (texts,), which unit each text belongs to; None where every pair is a unit.
        words: the vocabulary.
        window: largest distance between a word and its context (words).
    """
    from leakboard.models.skip_gram import kernels  # compiled: importing it writes a cache

    order = range(len(texts)) if owners is None else np.argsort(owners, kind="stable").tolist()
    code = {word: number for number, word in enumerate(words)}
    lengths = [len(texts[i]) for i in order]
    codes = np.fromiter((code.get(w, -1) for i in order for w in texts[i]), np.int32, sum(lengths))
    starts = np.array([0, *itertools.accumulate(lengths)])
    centres, contexts, positions, counts, every = kernels.make_pairs(codes, starts, window)
    if owners is None:
        return Pairs(centres, contexts, positions=positions if len(positions) < every else None, all_pairs=every)
    of_unit = np.bincount(owners[order], weights=counts).astype(np.int64)
    return Pairs(centres, contexts, np.concatenate([[0], np.cumsum(of_unit)]))
