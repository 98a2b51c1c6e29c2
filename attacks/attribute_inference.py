"""Attribute inference: guess the author's attributes (gender, age group) from one published vector.

The attacker of DPNR (Lyu, He and Li 2020) and Coavoux et al. (2018): an MLP with 512 ReLU units trained on vectors of
texts whose secrets the attacker knows. Here an ensemble of classifiers does, unless ``portfolio: mlp`` asks for the
papers'. It is not membership inference: it says nothing about who was in the training data.
"""

from collections.abc import Mapping

import numpy as np

from leakboard.attacks._portfolio import FittedPortfolio, PortfolioAttack, Scores, fit_portfolio
from leakboard.interfaces import Integers
from leakboard.suite.options import attack
from leakboard.threats.secrets import SecretsView


@attack(revision=1)
class AttributeInference(PortfolioAttack):
    def fit(self, view: SecretsView, seed: int) -> FittedPortfolio:
        """Train on the attacker's own vectors; what it scores on dev is mean accuracy."""
        return fit_portfolio(self, view, _mean_accuracy, lambda *_: 0.0, seed)


def _mean_accuracy(scores: Scores, truth: Mapping[str, Integers]) -> float:
    return float(np.mean([np.mean(value.argmax(1) == truth[name]) for name, value in scores.items()]))
