"""Entity presence: guess from one published vector which of the given entities the text mentions.

The attacker of Coavoux et al. (2018, sections 2 and 4) and DPNR (Lyu, He and Li 2020, section 4.4), made stronger: an
ensemble of classifiers, with a threshold for "present" that is chosen on dev for the best micro F1, its score.
"""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from leakboard.attacks._portfolio.portfolio import FittedPortfolio, fit_portfolio
from leakboard.attacks._portfolio.portfolio_options import PortfolioAttack
from leakboard.suite.options import attack
from leakboard.threats.secrets import SecretsView


@attack(revision=2)
class EntityPresence(PortfolioAttack):
    threshold: bool = True
    """Choose the threshold of "present" on dev; otherwise a probability of one half, as in the papers."""

    kind: ClassVar = "entity"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack on standardised inputs: normalised vectors have an axis of rounding errors for trees."""
        return replace(super().example(folder), inputs="standardised")

    def fit(self, view: SecretsView, seed: int) -> FittedPortfolio:
        """Train on the attacker's own vectors, and choose the threshold on dev."""
        from leakboard.metrics.measures import best_offset

        fitted = fit_portfolio(self, view, seed)
        if not self.threshold:
            return fitted
        margins = np.concatenate([scores[:, 1] - scores[:, 0] for scores in fitted.on_dev.values()])
        present = np.concatenate([view.dev.values[name] for name in fitted.on_dev])
        return replace(fitted, offset=best_offset(margins, present))
