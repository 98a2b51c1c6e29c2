"""Compute how often a word stays, and how many words can come out: N_w and S_w of Feyisetan et al. (2020).

The papers run a mechanism n times on each word. N_w counts the runs that publish the word itself, and S_w the different
words that come out. Their expectations follow from the matrix: N_w = n P(w | w), S_w = sum of 1 - (1 - P(y | w))^n.
"""

from __future__ import annotations

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.channels.words import Numbers


class Deniability:
    """Expected N_w and S_w of each word."""

    def __init__(self, size: int, runs: int = 100):
        self.runs = runs
        self.kept = np.full(size, np.nan)
        """P(w | w), float64 (V,); N_w is ``runs`` times it."""
        self.outputs = np.full(size, np.nan)
        """S_w, float64 (V,): expected number of different outputs in ``runs`` runs."""

    def add(self, rows: Integers, logs: Numbers) -> None:
        """Read some rows."""
        chances = np.exp(logs)
        self.kept[rows] = chances[np.arange(len(rows)), rows]
        with np.errstate(divide="ignore"):  # P = 1: ln 0
            np.log1p(-np.minimum(chances, 1, out=chances), out=chances)
        chances *= self.runs
        self.outputs[rows] = -np.expm1(chances, out=chances).sum(1)
