"""Guess entities by one classifier of scikit-learn with its defaults, and a threshold chosen on dev."""

from typing import ClassVar

import numpy as np

from leakboard.attacks._ordinary_classifiers import Classifier, fit_scores
from leakboard.attacks.entity_presence import _best_offset
from leakboard.interfaces import Floats
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class OrdinaryEntities(SecretsAttack):
    classifier: Classifier = "LogisticRegression"
    """Name of the classifier."""

    kind: ClassVar = "entity"

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        scores_of = fit_scores(self.classifier, view, seed)
        offset = _best_offset(scores_of(view.dev.vectors), view.dev.values)

        def guess(vectors: Floats) -> dict[str, Floats]:
            return {name: scores + np.array([0, offset], np.float32) for name, scores in scores_of(vectors).items()}

        return guess
