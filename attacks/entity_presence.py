"""Entity presence: guess from one published vector which of the given entities the text mentions.

This is a stronger form of the attacker of Coavoux et al. (2018, sections 2 and 4) and DPNR (Lyu, He and Li 2020,
section 4.4): an ensemble of classifiers. Dev chooses the threshold of "present" with the best micro F1. Micro F1 is
also the headline score of this attack.
"""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from leakboard.attacks._portfolio.portfolio import fit_portfolio
from leakboard.attacks._portfolio.portfolio_options import PAPERS, PortfolioAttack
from leakboard.suite.options import attack
from leakboard.threats.secrets import Guesser, SecretsView


@attack(revision=7)
class EntityPresence(PortfolioAttack):
    threshold: bool = True
    """Whether dev chooses the threshold of "present"; if not, and for ``coavoux`` and ``lyu``, it is a probability of
    one half."""

    kind: ClassVar = "entity"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an attack on standardised inputs.

        On normalised inputs one principal axis holds only rounding errors. Trees would split on it, and so give other
        results on another machine.
        """
        return replace(super().example(folder), inputs="standardised")

    def fit(self, view: SecretsView, seed: int) -> Guesser:
        """Train on the vectors of the texts whose secrets the attacker knows, and choose the threshold on dev."""
        from leakboard.metrics.measures import best_offset

        fitted = fit_portfolio(self, view, seed)
        if not self.threshold or self.portfolio in PAPERS:
            return fitted
        margins = np.concatenate([scores[:, 1] - scores[:, 0] for scores in fitted.on_dev.values()])
        present = np.concatenate([view.dev.values[name] for name in fitted.on_dev])
        return replace(fitted, offset=best_offset(margins, present))
