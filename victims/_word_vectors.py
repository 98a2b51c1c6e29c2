"""Publish a static table of word vectors, and their means as documents."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.data.tokens import words
from leakboard.interfaces import Coverage, FittedVictim, Floats, PublishedWords, Texts


@dataclass(frozen=True)
class WordVectors(FittedVictim):
    """A static table of word vectors."""

    vocabulary: list[str]
    vectors: Floats
    """float32 (V, d)."""

    def mean_vectors(self, texts: Sequence[str]) -> Floats:
        """Return the mean of each text's word vectors, float32 (n, d); zeros for a text without a known word."""
        rows = {word: row for row, word in enumerate(self.vocabulary)}
        means = np.zeros((len(texts), self.vectors.shape[1]), np.float32)
        for i, text in enumerate(texts):
            known = [rows[word] for word in words(text) if word in rows]
            if known:
                means[i] = self.vectors[known].mean(0)
        return means

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return mean word vectors."""
        return self.mean_vectors(texts)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the whole table."""
        return PublishedWords(self.vocabulary, self.vectors)

    def coverage(self, texts: Texts) -> Coverage:
        """Return the share of texts without a known word; their vectors are zeros, or with noise the cube's centre."""
        known = set(self.vocabulary)
        return Coverage(unknown=float(np.mean([known.isdisjoint(words(text)) for text in texts])))
