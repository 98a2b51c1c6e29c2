"""Guess attributes by one classifier of scikit-learn with its defaults."""

from leakboard.attacks._ordinary_classifiers import Classifier, fit_scores
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsAttack, SecretsView


@attack(revision=1)
class OrdinaryAttributes(SecretsAttack):
    classifier: Classifier = "LogisticRegression"
    """Name of the classifier."""

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        return fit_scores(self.classifier, view, seed)
