"""Guess an attribute by least squares on the published vectors."""

import numpy as np

from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class Ridge(SecretsAttack):
    penalty: float = 0.1
    """Weight of the squared norm."""

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        square = view.vectors.T @ view.vectors + self.penalty * np.eye(view.vectors.shape[1])
        weights = {}
        for secret in view.secrets:
            wanted = np.eye(len(secret.values))[view.values[secret.name]] - 0.5
            weights[secret.name] = np.linalg.solve(square, view.vectors.T @ wanted).astype(np.float32)
        return lambda vectors: {name: vectors @ matrix for name, matrix in weights.items()}
