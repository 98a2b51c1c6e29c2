"""Attributes, guessed by one classifier of scikit-learn with its defaults."""

from leakboard.attacks._ordinary_classifiers import Classifier, scored
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class OrdinaryAttributes(SecretsAttack):
    classifier: Classifier = "LogisticRegression"
    """Which."""

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        return scored(self.classifier, view, seed)
