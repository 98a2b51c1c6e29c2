"""Predict the vector of a text from its words: the sum of their vectors, divided by the root of their number.

The words' vectors are those of ridge regression on known texts. Of an encoder that reads the order of words, the sum
explains only a part. But it predicts well how a vector changes if a word is replaced, and costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Floats

RIDGE = 1.0


@dataclass(frozen=True)
class WordSums:
    table: Floats
    """The vector of each word, float32 (words + 1, d); the last row is 0, for no word."""

    @classmethod
    def fit(cls, texts: Sequence[Sequence[int]], vectors: Floats, words: int) -> "WordSums":
        """Fit the words' vectors.

        Args:
            texts: codes of the words of each text, from 0 to ``words - 1``.
            vectors: float32 (n, d).
            words: size of the vocabulary.
        """
        from scipy import linalg, sparse

        lengths = np.array([len(text) for text in texts])
        ends = np.concatenate([[0], np.cumsum(lengths)])
        codes = np.array([code for text in texts for code in text], np.int64)
        counts = sparse.csr_matrix(
            (np.repeat(lengths.clip(1) ** -0.5, lengths).astype(np.float32), codes, ends), (len(texts), words)
        )
        moments = (counts.T @ counts).toarray() + RIDGE * np.eye(words, dtype=np.float32)
        table = linalg.solve(moments, counts.T @ vectors, assume_a="pos", overwrite_a=True, overwrite_b=True)
        return cls(np.concatenate([table, np.zeros((1, table.shape[1]))]).astype(np.float32))

    def __call__(self, text: Sequence[int]) -> Floats:
        """Return the predicted vector of a text, float32 (d,)."""
        total: Floats = self.table[list(text)].sum(0)
        return total / np.float32(max(1, len(text)) ** 0.5)

    def changed(self, text: Sequence[int], removed: Sequence[int], added: Sequence[int]) -> Floats:
        """Return the predicted vectors if one word is removed and another added, float32 (removed, added, d).

        The code -1 is for no word.
        """
        total = self.table[list(text)].sum(0) - self.table[list(removed)][:, None] + self.table[list(added)]
        lengths = len(text) - (np.array(removed) >= 0)[:, None] + (np.array(added) >= 0)
        return (total / np.sqrt(lengths.clip(1))[:, :, None]).astype(np.float32)  # type: ignore[no-any-return]
