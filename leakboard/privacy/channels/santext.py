"""Replace words by near words with probability proportional to exp(-epsilon d / 2): SanText (Yue et al. 2021).

SanText+ treats rare words as sensitive. It keeps most of the other words, and all replacements are sensitive words.
The released code is as the paper for known words (xiangyue9607/SanText 9c35f6e, ``SanText.py:11-15``). What it does
with unknown words is in `leakboard.privacy.channels.unknown_words`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator
from pydantic import Field

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import Channel, ChannelClaim, FittedChannel, Positive, channel, log_softmax
from leakboard.privacy.channels.words import Numbers, WordSpace

Share = Annotated[float, Field(gt=0, le=1)]


@channel(revision=1)
class SanText(Channel):
    """Replaces every word by a word near it."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedSanText:
        """Return the mechanism; nothing is drawn."""
        return FittedSanText(space, self.epsilon)


@dataclass(frozen=True)
class FittedEuclidean(FittedChannel):
    """A mechanism that claims epsilon for each unit of Euclidean distance."""

    is_proved: ClassVar[bool] = False
    epsilon: float

    @property
    def claim(self) -> ChannelClaim:
        """Epsilon times the Euclidean distance of the words."""
        return ChannelClaim(self.epsilon, "Euclidean", is_proved=self.is_proved)

    def distances(self, rows: Integers, columns: Integers) -> Numbers:
        """Return Euclidean distances."""
        return self.space.euclidean(rows, columns)


@dataclass(frozen=True)
class FittedSanText(FittedEuclidean):
    """P(y | x) proportional to exp(-epsilon d(x, y) / 2).

    The claim holds by the triangle inequality: the weight and the sum of all weights each change by at most
    exp(epsilon d / 2).
    """

    is_proved: ClassVar[bool] = True

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        return log_softmax(self.space.euclidean(rows) * (-self.epsilon / 2))


@channel(revision=1)
class SanTextPlus(Channel):
    """Replaces rare words always and other words sometimes, by rare words."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""
    sensitive: Share = 0.9
    """Share of the vocabulary that is sensitive: its rarest words, at least one."""
    replaced: Share = 0.3
    """Probability that a word that is not sensitive is replaced (p of the paper)."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedSanTextPlus:
        """Return the mechanism; nothing is drawn."""
        rare = space.by_frequency[::-1][: max(1, round(self.sensitive * len(space)))]
        return FittedSanTextPlus(space, self.epsilon, self.replaced, np.sort(rare))


@dataclass(frozen=True)
class FittedSanTextPlus(FittedEuclidean):
    """SanText with replacements among the sensitive words; other words are kept with probability 1 - replaced."""

    replaced: float
    sensitive: Integers
    """Indices of the sensitive words, int64, increasing."""

    @property
    def claim(self) -> ChannelClaim:
        """Utility-optimised metric privacy: epsilon d + ln(1 / replaced), for outputs that are sensitive words.

        It holds: SanText changes by at most epsilon d, and two rows differ by at most one factor ``replaced``.
        """
        cost, scope = math.log(1 / self.replaced), "outputs that are sensitive words"
        return ChannelClaim(self.epsilon, "Euclidean", cost, scope, is_proved=True)

    @property
    def claimed_outputs(self) -> Integers:
        """The sensitive words. Any other published word is certainly the input, and nothing is claimed about it."""
        return self.sensitive

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        logs = np.full((len(rows), len(self)), -np.inf)
        logs[:, self.sensitive] = log_softmax(self.space.euclidean(rows, self.sensitive) * (-self.epsilon / 2))
        others = np.flatnonzero(~np.isin(rows, self.sensitive))
        logs[others] += math.log(self.replaced)
        logs[others, rows[others]] = math.log1p(-self.replaced) if self.replaced < 1 else -np.inf
        return logs
