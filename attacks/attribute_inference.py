"""Attribute inference: guess the author's attributes (gender, age group) from one published vector.

The attackers of DPNR (Lyu, He and Li 2020) and Coavoux et al. (2018) are MLPs, trained on vectors of texts whose
secrets they know. Here an ensemble of classifiers guesses; ``portfolio: lyu`` and ``portfolio: coavoux`` are the
papers' attackers. This is not membership inference: the guesses say nothing about who was in the training data.
"""

from leakboard.attacks._portfolio.portfolio import fit_portfolio
from leakboard.attacks._portfolio.portfolio_options import PortfolioAttack
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsView


@attack(revision=7)
class AttributeInference(PortfolioAttack):
    def fit(self, view: SecretsView, seed: int) -> Guesser:
        """Train on the published vectors of the texts whose secrets the attacker knows."""
        return fit_portfolio(self, view, seed)
