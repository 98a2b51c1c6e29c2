"""Raise the prior of words that occur in the attacker's own texts nearest to a published text.

The attacker has a posterior probability P(x | t) of each word at each place t of a published text.

1. The expected number of a word in the text is the sum of P(x | t) over places.
2. A tf-idf vector of these numbers has a cosine c_i with the vector of each own text i.
3. The own texts get the weights exp(25 c_i), divided by their sum. q(x), a word's probability under the topic, is the
   average of its shares in the own texts with these weights.

The prior p(x) of single words becomes (1 - s) p(x) + s q(x). The share s is chosen on texts of the attacker's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakboard.attacks._reading.likely_words import Numbers
from leakboard.interfaces import Integers

if TYPE_CHECKING:
    from scipy import sparse

SHARPNESS = 25.0
"""Weight of a cosine in the exponent: how much more near texts count than others."""


@dataclass(frozen=True)
class Topics:
    """The attacker's own texts."""

    shares: sparse.csr_array
    """Share of each word in each text, float64 (n, W)."""
    rarity: Numbers
    """Inverse document frequency of each word, ln((n + 1) / (texts with it + 1)), float64 (W,)."""
    directions: sparse.csr_array
    """tf-idf vectors of length 1, float64 (n, W)."""

    @classmethod
    def of(cls, texts: Sequence[Integers], words: int) -> Topics:
        """Count the words of texts, given as codes below ``words``."""
        from scipy import sparse

        texts = [text for text in texts if len(text)]
        rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        columns = np.concatenate([np.empty(0, np.int64), *texts])
        counts = sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=(len(texts), words))
        counts.sum_duplicates()
        rarity = np.log((len(texts) + 1) / (np.bincount(counts.indices, minlength=words) + 1))
        directions = counts.log1p().multiply(rarity).tocsr()
        lengths = np.sqrt(directions.power(2).sum(1))
        directions = directions.multiply(1 / np.maximum(lengths, 1e-12)[:, None]).tocsr()
        return cls(counts.multiply(1 / np.maximum(counts.sum(1), 1)[:, None]).tocsr(), rarity, directions)

    def log_gains(self, codes: Integers, posterior: Numbers, log_prior: Numbers, share: float) -> Numbers:
        """Return the logarithm of how many times likelier the topic makes each word, float64 (T, k).

        Args:
            codes: candidates at each place, int64 (T, k).
            posterior: their probabilities, float64 (T, k).
            log_prior: of all words, float64 (W,).
            share: s.
        """
        if not share or not self.directions.shape[0]:
            return np.zeros(codes.shape)
        expected = np.bincount(codes.ravel(), posterior.ravel(), minlength=len(self.rarity))
        query = np.log1p(expected) * self.rarity
        cosines = self.directions @ (query / max(float(np.linalg.norm(query)), 1e-12))
        weights = np.exp(SHARPNESS * (cosines - cosines.max()))
        of_topic = (weights / weights.sum()) @ self.shares
        gains: Numbers = np.log(1 - share + share * of_topic[codes] / np.exp(log_prior[codes]))
        return gains
