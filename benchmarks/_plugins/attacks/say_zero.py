"""Guess the first value of every secret: an attack that costs nothing."""

import numpy as np

from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class SayZero(SecretsAttack):
    k: int = 0
    """Number that changes the attack's identity and nothing else."""

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        secrets = view.secrets
        return lambda vectors: {s.name: np.zeros((len(vectors), len(s.values)), np.float32) for s in secrets}
