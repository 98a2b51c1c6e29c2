"""A victim that publishes zeros; a fit may wait for as long as `NOTHING_WAITS` says (seconds)."""

import os
import time
from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Corpus, FittedVictim, Floats, Integers, Texts, Victim
from leakboard.suite.options import victim


@victim(revision=1)
class Zeros(Victim):
    k: int = 0
    """Nothing but another identity."""

    def fit(self, corpus: Corpus, seed: int) -> "FittedZeros":
        time.sleep(float(os.environ.get("NOTHING_WAITS", "0")))
        return FittedZeros()


@dataclass(frozen=True)
class FittedZeros(FittedVictim):
    claim: None = None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        return np.zeros((len(texts), 2), np.float32)

    def predict(self, vectors: Floats) -> Integers:
        return np.zeros(len(vectors), np.int64)
