"""A word is the sum of its neighbours' random vectors, a text the mean of its words; with epsilon, under noise.

It publishes all that there is to publish, so that every attack meets it.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from leakboard.claims import ReleaseClaim
from leakboard.data.words import words
from leakboard.interfaces import Corpus, FittedVictim, Floats, Publication, PublishedWords, Strings, Texts, Victim
from leakboard.privacy.mechanisms.normalisation import min_max
from leakboard.privacy.mechanisms.releases import CubeRelease
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.suite.options import Count, victim


@victim
class Tabled(Victim):
    """The recipe: random vectors and the words of train."""

    dimensions: Count = 8
    """Length of a vector."""
    epsilon: Positive | None = None
    """Claimed for one release; null adds no noise."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words", "releases")

    def fit(self, corpus: Corpus, seed: int) -> "FittedTabled":
        """Sum up the vectors of neighbours of every word that occurs twice."""
        texts = [words(text) for text in corpus.texts("train")]
        counts = Counter(word for text in texts for word in text)
        vocabulary = np.array(sorted(word for word, count in counts.items() if count > 1))
        rows = {word: row for row, word in enumerate(vocabulary)}
        random = np.random.default_rng(seed).standard_normal((len(rows), self.dimensions))
        table = random.copy()
        for text in texts:
            for first, second in pairwise(rows[word] for word in text if word in rows):
                table[first] += random[second]
                table[second] += random[first]
        return FittedTabled(vocabulary, min_max(table).astype(np.float32), self.epsilon)


@dataclass(frozen=True)
class FittedTabled(FittedVictim):
    """The table."""

    vocabulary: Strings
    table: Floats
    epsilon: float | None

    @property
    def mechanism(self) -> CubeRelease | None:
        """Noise on the unit cube, where epsilon is given."""
        return None if self.epsilon is None else CubeRelease(self.table.shape[1], self.epsilon, calibration="l1")

    @property
    def claim(self) -> ReleaseClaim | None:
        """The mechanism's."""
        return self.mechanism.claim("word") if self.mechanism else None

    def inputs(self, texts: Texts) -> Floats:
        """Return the mean of the vectors of each text, float32 (n, d)."""
        rows = {word: row for row, word in enumerate(self.vocabulary)}
        known = [[rows[word] for word in words(text) if word in rows] for text in texts]
        centre = np.full(self.table.shape[1], 0.5, np.float32)
        return np.stack([self.table[places].mean(0) if places else centre for places in known])

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Release the mean of each text."""
        return self._released(self.inputs(texts), rng)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Release the table."""
        return PublishedWords(self.vocabulary.tolist(), self._released(self.table, rng))

    def _released(self, vectors: Floats, rng: np.random.Generator) -> Floats:
        return self.mechanism.release(vectors, rng).astype(np.float32) if self.mechanism else vectors
