"""Guess entities by one classifier of scikit-learn with its defaults, and a threshold chosen on dev."""

from typing import ClassVar

import numpy as np

from leakboard.attacks._ordinary_classifiers import Classifier, fit_scores
from leakboard.interfaces import Floats
from leakboard.metrics.measures import best_offset
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class OrdinaryEntities(SecretsAttack):
    classifier: Classifier = "LogisticRegression"
    """Name of the classifier."""

    kind: ClassVar = "entity"

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        scores_of = fit_scores(self.classifier, view, seed)
        on_dev = scores_of(view.dev.vectors)
        margins = np.concatenate([scores[:, 1] - scores[:, 0] for scores in on_dev.values()])
        offset = best_offset(margins, np.concatenate([view.dev.values[name] for name in on_dev]))

        def guess(vectors: Floats) -> dict[str, Floats]:
            return {name: scores + np.array([0, offset], np.float32) for name, scores in scores_of(vectors).items()}

        return guess
