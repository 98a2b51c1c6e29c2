"""Publish the word itself, or any other word of the vocabulary: two textbook mechanisms of local privacy.

`RandomisedResponse` (Warner 1965; for k answers: Kairouz, Oh and Viswanath 2016, equation 6) uses its whole epsilon.
`ExponentialMechanism` (McSherry and Talwar 2007) chooses words by a score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import (
    DIFFERENT,
    Channel,
    ChannelClaim,
    FittedChannel,
    Positive,
    channel,
    log_softmax,
)
from leakboard.privacy.channels.words import Numbers, WordSpace


@channel(revision=1)
class RandomisedResponse(Channel):
    """Keeps the word with probability e^epsilon / (e^epsilon + V - 1); else takes a uniform other word."""

    epsilon: Positive
    """Epsilon between any two words."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedRandomisedResponse:
        """Return the mechanism; nothing is drawn."""
        return FittedRandomisedResponse(space, self.epsilon)


@dataclass(frozen=True)
class FittedRandomisedResponse(FittedChannel):
    """Randomised response over a vocabulary."""

    epsilon: float

    @property
    def claim(self) -> ChannelClaim:
        """Epsilon, which is attained: P(x | x) / P(x | x') = e^epsilon."""
        return ChannelClaim(self.epsilon, DIFFERENT, is_proved=True)

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        kept = -math.log1p((len(self) - 1) * math.exp(-self.epsilon))
        logs = np.full((len(rows), len(self)), kept - self.epsilon)
        logs[np.arange(len(rows)), rows] = kept
        return logs


@channel(revision=1)
class ExponentialMechanism(Channel):
    """Publishes y with probability proportional to exp(epsilon u(x, y) / (2 D)); D is the range of the score u."""

    epsilon: Positive
    """Epsilon between any two words."""
    score: Literal["cosine", "euclidean"] = "cosine"
    """``cosine`` has the range 2. ``euclidean`` is minus the distance; its range is at most 2 max |x - mean|."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedExponentialMechanism:
        """Return the mechanism; nothing is drawn."""
        return FittedExponentialMechanism(space, self.epsilon, self.score)


@dataclass(frozen=True)
class FittedExponentialMechanism(FittedChannel):
    """The exponential mechanism over a vocabulary."""

    epsilon: float
    score: str

    @property
    def claim(self) -> ChannelClaim:
        """Epsilon: exp(epsilon u / (2 D)) and the sum over all words each differ by at most exp(epsilon / 2)."""
        return ChannelClaim(self.epsilon, DIFFERENT, is_proved=True)

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix; with equal vectors only (range 0), all words are equally likely."""
        scores, span = self.space.cosines(rows), 2.0
        if self.score == "euclidean":
            scores, span = -self.space.euclidean(rows), 2 * math.sqrt(self.space.squares.max())
        return log_softmax(scores * (self.epsilon / (2 * span) if span > 0 else 0.0))
