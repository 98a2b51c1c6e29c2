"""Entity presence: guess from one published vector which of the given entities the text mentions.

The attacker of Coavoux et al. (2018, sections 2 and 4) and DPNR (Lyu, He and Li 2020, section 4.4), made strong: an
ensemble of classifiers, with the threshold of "present" chosen on dev for the micro F1 that it is scored by.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from leakboard.attacks._portfolio.portfolio import FittedPortfolio, PortfolioAttack, Scores, fit_portfolio
from leakboard.interfaces import Integers
from leakboard.suite.options import attack
from leakboard.threats.secrets import SecretsView


@attack(revision=1)
class EntityPresence(PortfolioAttack):
    threshold: bool = True
    """Choose the threshold of "present" on dev; otherwise a probability of one half, as in the papers."""

    kind: ClassVar = "entity"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return one that scales vectors in one way: normalised vectors have an axis of rounding errors for trees."""
        return replace(super().example(folder), inputs="standardised")

    def fit(self, view: SecretsView, seed: int) -> FittedPortfolio:
        """Train on the attacker's own vectors."""
        offsets = _best_offset if self.threshold else _no_offset
        return fit_portfolio(self, view, offsets, seed)


def _no_offset(scores: Scores, truth: Mapping[str, Integers]) -> float:
    return 0.0


def _best_offset(scores: Scores, truth: Mapping[str, Integers]) -> float:
    from leakboard.metrics.measures import best_offset

    margins = np.concatenate([value[:, 1] - value[:, 0] for value in scores.values()])
    return best_offset(margins, np.concatenate([truth[name] for name in scores]))
