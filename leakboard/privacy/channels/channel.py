"""Define a channel: a recipe, and the fitted mechanism that replaces each word of a text by a random word.

1. ``Channel.fit`` takes the public vocabulary, and makes what the mechanism needs, for instance clusters.
2. `FittedChannel.log_probabilities` has the rows of the matrix ln P(y | x).
3. `FittedChannel.claim` is what the paper claims: ln P(y | x) - ln P(y | x') <= additive + epsilon d(x, x').

The distance d is `FittedChannel.distances`. In local differential privacy it is 1 for any two different words. It is
infinite for two words about which nothing is claimed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from leakboard.interfaces import Integers, Plugin
from leakboard.privacy.channels.words import Numbers, WordSpace
from leakboard.privacy.mechanisms.textbook import Positive as Positive
from leakboard.privacy.protections.protection import protection

channel = protection
"""Make a class a recipe, whose fields are its options."""
ROWS = 256
"""Rows of the matrix that are computed at once; at 34,573 words they take 71 MB."""
Precision = Literal["exact", "lower bound", "approximate"]
"""How the ratios of a matrix compare with the mechanism's: equal up to rounding, at most as large, or near."""
DIFFERENT = "different words"
"""The distance of local differential privacy: 1 for any two different words."""


@dataclass(frozen=True)
class ChannelClaim:
    """A claim about one published word: ln P(y | x) - ln P(y | x') <= additive + epsilon d(x, x')."""

    epsilon: float
    """Epsilon for each unit of the distance."""
    distance: str
    """The distance d, in words."""
    additive: float = 0.0
    """Nats that the claim allows at any distance."""
    scope: str = ""
    """The words or outputs about which the claim is, in words; empty: all."""
    is_proved: bool = False
    """Whether the claim follows from the rule in real arithmetic; the docstring of the class says why."""


@dataclass(frozen=True)
class FittedChannel:
    """A mechanism over a vocabulary. Inputs and outputs are indices of its words."""

    space: WordSpace

    def __len__(self) -> int:
        return len(self.space)

    @property
    @abstractmethod
    def claim(self) -> ChannelClaim:
        """The claim of the mechanism's authors."""

    @property
    def precision(self) -> Precision:
        """How exact the matrix is. A ratio of an ``approximate`` one says nothing about a claim."""
        return "exact"

    @abstractmethod
    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return ln P(y | x) of the inputs ``rows`` and all outputs, float64 (n, V); -inf where y is impossible."""

    def distances(self, rows: Integers, columns: Integers) -> Numbers:
        """Return the claim's distances of the words ``rows`` to ``columns``, float64 (n, m)."""
        return (rows[:, None] != columns).astype(np.float64)

    @property
    def claimed_outputs(self) -> Integers:
        """The outputs about which the claim is, int64; by default all."""
        return np.arange(len(self))

    @property
    def special_inputs(self) -> Integers:
        """Inputs that have a rule of their own, so that every audit compares them, int64; by default none."""
        return np.empty(0, np.int64)

    def sample(self, indices: Integers, rng: Generator) -> Integers:
        """Replace each word by a random word, int64 (n,)."""
        published = np.empty(len(indices), np.int64)
        draws = rng.random(len(indices))
        inputs, input_of = np.unique(indices, return_inverse=True)
        for start in range(0, len(inputs), ROWS):
            sums = np.exp(self.log_probabilities(inputs[start : start + ROWS])).cumsum(1)
            sums /= sums[:, -1:]
            for i in np.flatnonzero((input_of >= start) & (input_of < start + ROWS)):
                published[i] = np.searchsorted(sums[input_of[i] - start], draws[i], side="right")
        return published


class Channel(Plugin):
    """A recipe for a channel."""

    @abstractmethod
    def fit(self, space: WordSpace, rng: Generator) -> FittedChannel:
        """Return the mechanism over a vocabulary; ``rng`` draws what the mechanism draws once, such as clusters."""


def log_softmax(scores: Numbers) -> Numbers:
    """Return ln(exp(score) / sum of exp(scores)) of each row, float64 (n, V); scores are overwritten."""
    scores -= scores.max(1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(1, keepdims=True))
    return scores
