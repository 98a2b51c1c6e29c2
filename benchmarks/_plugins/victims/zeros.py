"""Publish zeros: a victim that costs nothing to fit."""

from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Corpus, FittedVictim, Floats, Integers, Texts, Victim
from leakboard.suite.options import victim


@victim(revision=1)
class Zeros(Victim):
    k: int = 0
    """Number that changes the victim's identity and nothing else."""

    def fit(self, corpus: Corpus, seed: int) -> "FittedZeros":
        return FittedZeros()


@dataclass(frozen=True)
class FittedZeros(FittedVictim):
    claim: None = None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        return np.zeros((len(texts), 2), np.float32)

    def predict(self, vectors: Floats) -> Integers:
        return np.zeros(len(vectors), np.int64)
