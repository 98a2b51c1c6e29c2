"""Guess an attribute by least squares on the published vectors."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakboard.interfaces import AttackerView, Floats, Publication, SecretGuesses
from leakboard.suite.options import attack


@attack(revision=1)
class Ridge:
    penalty: float = 0.1
    """Weight of the squared norm."""

    needs: ClassVar[Publication] = "documents"
    target: ClassVar[str] = "attribute"

    def fit(self, view: AttackerView, seed: int) -> "FittedRidge":
        vectors = view.train.vectors
        assert vectors is not None
        square = vectors.T @ vectors + self.penalty * np.eye(vectors.shape[1])
        weights = {}
        for secret in view.secrets:
            wanted = np.eye(len(secret.values))[view.train.secrets[secret.name]] - 0.5
            weights[secret.name] = np.linalg.solve(square, vectors.T @ wanted).astype(np.float32)
        return FittedRidge(weights)


@dataclass(frozen=True)
class FittedRidge:
    weights: dict[str, Floats]

    def guess(self, vectors: Floats) -> SecretGuesses:
        return SecretGuesses({name: vectors @ weights for name, weights in self.weights.items()})
