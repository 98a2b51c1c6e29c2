"""Make the training pairs of skip-gram, grouped by unit of privacy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from leakboard.interfaces import Integers

GAP = -2
"""Code of the padding between texts; -1 is an unknown word."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of known words; the pairs of a unit are next to each other."""

    centres: NDArray[np.int32]
    """int32 (pairs,)."""
    contexts: NDArray[np.int32]
    """int32 (pairs,)."""
    starts: Integers
    """int64 (units + 1,), where each unit's pairs start."""

    @property
    def units(self) -> int:
        """Number of units, units without a pair of known words included: it does not depend on the vocabulary."""
        return len(self.starts) - 1

    @property
    def units_without_pairs(self) -> int:
        """Number of units without a pair of known words."""
        return int((np.diff(self.starts) == 0).sum())

    def batch(self, units: Integers) -> tuple[NDArray[np.int32], NDArray[np.int32], Integers]:
        """Return centres and contexts of these units' pairs, and where each unit's pairs start, int64 (units + 1,)."""
        sizes = self.starts[units + 1] - self.starts[units]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(starts[-1]) + np.repeat(self.starts[units] - starts[:-1], sizes)
        return self.centres[rows], self.contexts[rows], starts


def pairs_of(texts: Sequence[Sequence[str]], owners: Integers | None, words: Sequence[str], window: int) -> Pairs:
    """Return the pairs of texts.

    A word is paired with all neighbours within the window, on both sides; word2vec takes a random part of them. A word
    outside the vocabulary keeps its position. A pair with such a word is still a unit, which contributes nothing. So
    the units, and their number, do not depend on the vocabulary.

    Args:
        texts: the words of each text.
        owners: int64 (texts,), the unit of each text; None if every pair is a unit.
        words: the vocabulary.
        window: largest distance between a word and its context (words).
    """
    order = range(len(texts)) if owners is None else np.argsort(owners, kind="stable").tolist()
    code = {word: number for number, word in enumerate(words)}
    gap = [GAP] * window  # no window reaches from one text into another
    padded = itertools.chain(gap, *((*(code.get(word, -1) for word in texts[i]), *gap) for i in order), gap, [GAP])
    windows = sliding_window_view(np.fromiter(padded, np.int32), 2 * window + 1)
    centres = np.broadcast_to(windows[:, [window]], windows.shape)
    paired = (windows != GAP) & (centres != GAP)
    paired[:, window] = False
    known = paired & (windows >= 0) & (centres >= 0)
    if owners is None:
        pairs_by_unit = known[paired].astype(np.int64)
    else:
        owner_of_window = np.repeat(owners[order], [len(texts[i]) + window for i in order])
        pairs_by_unit = np.bincount(owner_of_window, known.sum(1)[: len(owner_of_window)]).astype(np.int64)
    return Pairs(centres[known], windows[known], np.concatenate([[0], np.cumsum(pairs_by_unit)]))
