"""Move words along a list by geometric noise: 1-Diffractor (2024; sjmeis/Diffractor 338d305).

The list is a chain of nearest neighbours. The noise is the difference of two geometric numbers, and the place is
clipped to the list (``src/diffractor/core.py:129-133``). That is the truncated geometric mechanism of Ghosh,
Roughgarden and Sundararajan (2009), and the claim holds.

The released code seeds all noise with 42 by default (``core.py:20,31,46-47,63``). A reader who counts the words before
this one can draw the noise again. The option ``public_seed`` shows the mechanism to this reader.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import Channel, ChannelClaim, FittedChannel, Positive, channel
from leakboard.privacy.channels.words import Numbers, WordSpace


@channel(revision=1)
class OneDiffractor(Channel):
    """Publishes the word some places further in a public list."""

    epsilon: Positive
    """Epsilon for each ``sensitivity`` places of the list."""
    sensitivity: Positive = 1.0
    """Places of the list that cost one epsilon."""
    public_seed: int | None = None
    """Seed of all noise, which the reader knows; 42 in the released code. None: the noise is secret."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedOneDiffractor:
        """Make the list; nothing is drawn."""
        return FittedOneDiffractor(space, self.epsilon, self.sensitivity, self.public_seed, chain(space))


def chain(space: WordSpace) -> Integers:
    """Return the words in a chain, int64 (V,): from the most frequent word on, always the nearest one that is left."""
    left, vectors = space.by_frequency.copy(), space.centred[space.by_frequency].astype(np.float32)
    squares = (vectors**2).sum(1)
    order, at = np.empty(len(space), np.int64), 0
    for place, count in enumerate(range(len(space), 0, -1)):
        order[place], vector = left[at], vectors[at].copy()
        for array in (left, vectors, squares):
            array[at] = array[count - 1]
        at = int(np.argmin(squares[: count - 1] - 2 * (vectors[: count - 1] @ vector))) if count > 1 else 0
    return order


@dataclass(frozen=True)
class FittedOneDiffractor(FittedChannel):
    """Geometric noise on a word's place in the list."""

    epsilon: float
    sensitivity: float
    public_seed: int | None
    order: Integers
    """Words by place, int64 (V,)."""

    @cached_property
    def places(self) -> Integers:
        """Place of each word, int64 (V,)."""
        return np.argsort(self.order)

    @property
    def claim(self) -> ChannelClaim:
        """Epsilon for each ``sensitivity`` places."""
        is_proved = self.public_seed is None
        return ChannelClaim(self.epsilon / self.sensitivity, "places in the list", is_proved=is_proved)

    def distances(self, rows: Integers, columns: Integers) -> Numbers:
        """Return how many places the words are apart."""
        return np.abs(self.places[rows][:, None] - self.places[columns]).astype(np.float64)

    @property
    def first_noise(self) -> int:
        """The noise of the first word that the released code replaces with the public seed, in places."""
        rng = default_rng(SeedSequence(self.public_seed).spawn(1)[0])
        success = -math.expm1(-self.epsilon / self.sensitivity)
        return int(rng.geometric(success)) - int(rng.geometric(success))

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix; with a public seed, those of the first word."""
        last, logs = len(self) - 1, np.empty((len(rows), len(self)))
        places = self.places[rows][:, None]
        if self.public_seed is not None:
            moved = np.clip(places + self.first_noise, 0, last)
            logs[:, self.order] = np.where(np.arange(last + 1) == moved, 0, -np.inf)
            return logs
        each = self.epsilon / self.sensitivity
        by_place = np.abs(places - np.arange(last + 1)) * -each
        by_place[:, 1:last] += math.log(-math.expm1(-each))  # the ends of the list have all noise beyond them
        logs[:, self.order] = by_place - math.log1p(math.exp(-each))
        return logs
