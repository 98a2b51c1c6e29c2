"""A text is the mean of its words' fixed random vectors, with Gaussian noise; the task by least squares."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from leakboard.claims import ReleaseClaim
from leakboard.interfaces import Corpus, FittedVictim, Floats, Integers, Texts, Victim
from leakboard.randomness import stream
from leakboard.suite.options import victim


@victim(revision=1)
class Hashed(Victim):
    dimensions: Annotated[int, Field(ge=1)] = 24
    """Length of a vector."""
    noise: Annotated[float, Field(ge=0)] = 0.0
    """Standard deviation of the noise."""

    def fit(self, corpus: Corpus, seed: int) -> "FittedHashed":
        bare = FittedHashed(self.dimensions, self.noise, seed, np.zeros(self.dimensions + 1, np.float32))
        vectors = bare.publish_documents(corpus.texts("train"), np.random.default_rng(seed))
        wanted = 2.0 * corpus.column("train", "label") - 1
        weights = np.linalg.lstsq(np.c_[vectors, np.ones(len(vectors))], wanted, rcond=None)[0]
        return FittedHashed(self.dimensions, self.noise, seed, weights.astype(np.float32))


@dataclass(frozen=True)
class FittedHashed(FittedVictim):
    dimensions: int
    noise: float
    seed: int
    weights: Floats

    @property
    def claim(self) -> ReleaseClaim | None:
        return ReleaseClaim(0.05 / self.noise, 1e-6, "document", "gaussian", "L2, 1") if self.noise else None

    def _vector(self, word: str) -> Floats:
        return stream("hashed", self.seed, word).standard_normal(self.dimensions).astype(np.float32)

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        known = {word: self._vector(word) for word in sorted({word for text in texts for word in text.split()})}
        means = np.stack([np.mean([known[word] for word in text.split()], axis=0) for text in texts])
        return means + self.noise * rng.standard_normal(means.shape).astype(np.float32)

    def predict(self, vectors: Floats) -> Integers:
        return (vectors @ self.weights[:-1] + self.weights[-1] > 0).astype(np.int64)
