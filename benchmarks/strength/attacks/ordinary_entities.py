"""Entities, guessed by one classifier of scikit-learn with its defaults; the threshold is chosen on dev, as ours."""

from typing import ClassVar

import numpy as np

from leakboard.attacks._ordinary_classifiers import Classifier, scored
from leakboard.attacks.entity_presence import _best_offset
from leakboard.interfaces import Floats
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class OrdinaryEntities(SecretsAttack):
    classifier: Classifier = "LogisticRegression"
    """Which."""

    kind: ClassVar = "entity"

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        scores = scored(self.classifier, view, seed)
        offset = _best_offset(scores(view.dev.vectors), view.dev.values)

        def guess(vectors: Floats) -> dict[str, Floats]:
            return {name: found + np.array([0, offset], np.float32) for name, found in scores(vectors).items()}

        return guess
