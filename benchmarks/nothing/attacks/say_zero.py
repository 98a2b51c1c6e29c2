"""An attack that guesses the first value of every secret."""

import numpy as np

from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class SayZero(SecretsAttack):
    k: int = 0
    """Nothing but another identity."""

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        secrets = view.secrets
        return lambda vectors: {
            secret.name: np.zeros((len(vectors), len(secret.values)), np.float32) for secret in secrets
        }
