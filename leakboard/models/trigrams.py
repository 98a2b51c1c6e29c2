"""Estimate how likely a word is after two others: interpolated Witten-Bell trigrams.

Attackers use them as the prior of a text. With h' the history h without its first word, c counts, and N(h) different
words seen after h (Witten and Bell 1991; Chen and Goodman 1999, section 2.5)::

    P(w | h) = (c(h w) + N(h) P(w | h')) / (c(h) + N(h))

After a history that was never seen, P(w | h) = P(w | h'). Below single words stands the uniform law, so that no word is
impossible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakboard.corpus import Integers


@dataclass(frozen=True)
class _Followers:
    """Counts of sequences of one length, each coded as one number."""

    sequences: Integers
    """Sorted and distinct, int64 (s,)."""
    times: Integers
    histories: Integers
    """Sequences without their last word, sorted and distinct, int64 (h,)."""
    totals: Integers
    """Words seen after each history."""
    kinds: Integers
    """Distinct words seen after each history."""

    @classmethod
    def counted(cls, sequences: Integers, base: int) -> _Followers:
        distinct, times = np.unique(sequences, return_counts=True)
        histories, first, kinds = np.unique(distinct // base, return_index=True, return_counts=True)
        totals = np.add.reduceat(times, first) if len(first) else kinds
        return cls(distinct, times, histories, totals, kinds)


@dataclass(frozen=True)
class Trigrams:
    """Law of the next word. Codes from 0 to ``words - 1`` are words."""

    words: int
    """Size of the vocabulary."""
    orders: tuple[_Followers, _Followers, _Followers]
    """Counts of single words, pairs and triples."""

    @property
    def end(self) -> int:
        """Code of the mark after the last word."""
        return self.words

    @property
    def start(self) -> int:
        """Code of the two marks before the first word."""
        return self.words + 1

    @classmethod
    def fit(cls, texts: Iterable[ArrayLike], words: int) -> Trigrams:
        """Count texts, given as codes of words, int (n,) each.

        Raises:
            ValueError: a code is not a word, or there are over two million words.
        """
        start, end, base = words + 1, words, words + 2
        if words > 2_000_000:
            raise ValueError(f"words: {words} is not allowed here (allowed: at most 2,000,000)")  # triples fit in int64
        parts: list[Integers] = []
        for text in texts:
            codes = np.asarray(text, np.int64)
            if codes.size and not (codes.min() >= 0 and codes.max() < words):
                raise ValueError(f"a code is not allowed here (allowed: 0 to {words - 1})")
            parts.append(np.concatenate([[start, start], codes, [end]]))
        line = np.concatenate([*parts, np.empty(0, np.int64)])
        place = np.flatnonzero(line != start)  # of every word and end
        third, second, first = line[place], line[place - 1], line[place - 2]
        pairs = second * base + third
        counted = [_Followers.counted(codes, base) for codes in (third, pairs, first * base**2 + pairs)]
        return cls(words, (counted[0], counted[1], counted[2]))

    def log_probabilities(self, first: ArrayLike, second: ArrayLike, third: ArrayLike) -> NDArray[np.float64]:
        """Return the natural logarithm of the probability of each third word after two others, float64.

        The codes are broadcast, and each history is looked up once for all third words. The history may hold `start`,
        the third word may be `end`.
        """
        one, two = (np.asarray(codes, np.int64) for codes in (first, second))
        return self._log_probabilities((np.int64(0), two, one * (self.words + 2) + two), third)

    def log_pairs(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
        """Return the natural logarithm of the probability of each second word after one other, float64.

        The codes are broadcast. The first may be `start`, the second may be `end`.
        """
        return self._log_probabilities((np.int64(0), np.asarray(first, np.int64)), second)

    def _log_probabilities(self, histories: Sequence[Integers | np.int64], word: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of a word's probability after a history.

        Args:
            histories: codes of the last 0, 1 and 2 words before it; fewer of them make a law of a lower order.
            word: code of the word.
        """
        codes = np.asarray(word, np.int64)
        chance = np.full(codes.shape, 1 / (self.words + 1))
        for counts, history in zip(self.orders, histories, strict=False):
            total, kinds = _found(counts.histories, history, counts.totals, counts.kinds)
            (times,) = _found(counts.sequences, history * (self.words + 2) + codes, counts.times)
            mixed = (times + kinds * chance) / np.maximum(total + kinds, 1)
            chance = np.where(total > 0, mixed, chance)
        return np.log(chance)

    def log_probability(self, text: ArrayLike) -> float:
        """Return the natural logarithm of the probability of a whole text, its end included."""
        line = np.concatenate([[self.start, self.start], np.asarray(text, np.int64), [self.end]])
        return float(self.log_probabilities(line[:-2], line[1:-1], line[2:]).sum())


def _found(keys: Integers, asked: Integers | np.int64, *values: Integers) -> list[Integers]:
    """Return the values of the keys that are asked for; 0 where a key is missing."""
    if not len(keys):
        return [np.zeros(asked.shape, np.int64) for _ in values]
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    known = keys[place] == asked
    return [np.where(known, value[place], 0) for value in values]
