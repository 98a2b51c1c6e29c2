"""Entities, guessed by one classifier of scikit-learn with its defaults; the threshold is chosen on dev, as ours."""

from typing import ClassVar

import numpy as np

from leakboard.attacks._ordinary_classifiers import Classifier, scored
from leakboard.interfaces import Floats
from leakboard.metrics.measures import best_offset
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class OrdinaryEntities(SecretsAttack):
    classifier: Classifier = "LogisticRegression"
    """Which."""

    kind: ClassVar = "entity"

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        scores = scored(self.classifier, view, seed)
        on_dev, truth = scores(view.dev.vectors), view.dev.values
        margins = np.concatenate([on_dev[name][:, 1] - on_dev[name][:, 0] for name in truth])
        offset = best_offset(margins, np.concatenate(list(truth.values())))

        def guess(vectors: Floats) -> dict[str, Floats]:
            return {name: found + np.array([0, offset], np.float32) for name, found in scores(vectors).items()}

        return guess
