"""Attribute inference: guess the author's attributes (gender, age group) from one published vector.

The attacker of DPNR (Lyu, He and Li 2020) and Coavoux et al. (2018): an MLP with 512 ReLU units trained on vectors of
texts whose secrets the attacker knows, here the strongest of a portfolio. It is not membership inference: it says
nothing about who was in the training data.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from leakboard.attacks._portfolio import FittedPortfolio, MlpRecipe, Portfolio, Scores, fit_portfolio
from leakboard.interfaces import AttackerView, Integers, Publication
from leakboard.options import attack

Count = Annotated[int, Field(ge=1)]


@attack
class AttributeInference:
    portfolio: Portfolio = "best"
    """``best`` on dev of MLP and logistic regression on three scalings; ``mlp``: the papers' alone; ``logistic``."""
    hidden: Count = 512
    """ReLU units of the MLP."""
    epochs: Count = 60
    """Most passes over the attacker's texts."""
    patience: Count = 6
    """Stop after this many epochs without a better dev loss."""
    batch_size: Count = 256
    """Texts a step."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Adam's."""

    needs: ClassVar[Publication] = "documents"
    target: ClassVar[str] = "attribute"

    def fit(self, view: AttackerView, seed: int) -> FittedPortfolio:
        """Train on the attacker's own vectors; select on dev by mean accuracy."""
        recipe = MlpRecipe(self.hidden, self.epochs, self.patience, self.batch_size, self.learning_rate)
        secrets = [secret for secret in view.secrets if secret.kind == "attribute"]
        return fit_portfolio(view, secrets, self.portfolio, recipe, _mean_accuracy, lambda *_: 0.0, seed)


def _mean_accuracy(scores: Scores, truth: Mapping[str, Integers]) -> float:
    return float(np.mean([np.mean(value.argmax(1) == truth[name]) for name, value in scores.items()]))
