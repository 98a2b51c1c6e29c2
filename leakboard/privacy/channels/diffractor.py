"""Move words along a list by geometric noise: 1-Diffractor (2024; sjmeis/Diffractor 338d305).

The list is a chain of nearest neighbours. There are two methods:

| method | published word | source in ``src/diffractor/core.py`` |
|---|---|---|
| ``geometric`` | the difference of two geometric numbers away, clipped to the list | 129-133 |
| ``tem`` | TEM (Carvalho et al. 2023) with the distance in places, and a threshold of 5 places | 134-160 |

The first is the truncated geometric mechanism of Ghosh, Roughgarden and Sundararajan (2009), and the claim holds. The
second has P(y | x) proportional to exp(-epsilon min(d, threshold) / 2), and the claim holds as TEM's does.

The released code seeds all noise with 42 by default (``core.py:20,31,46-47,63``). A reader who counts the words before
this one can draw the noise again. The option ``public_seed`` shows the mechanism to this reader.

The released code can also keep several lists of words, and draws one for each word. Here there is one list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from pydantic import Field

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import Channel, ChannelClaim, FittedChannel, Positive, channel, log_softmax
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
    method: Literal["geometric", "tem"] = "geometric"
    """How a place is drawn: see the module's table."""
    threshold: Annotated[int, Field(ge=1)] = 5
    """Places within which ``tem`` tells words apart by their distance (gamma); ``geometric`` does not use it."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedOneDiffractor:
        """Make the list; nothing is drawn."""
        threshold = self.threshold if self.method == "tem" else None
        return FittedOneDiffractor(space, self.epsilon, self.sensitivity, self.public_seed, chain(space), threshold)


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


def tem_place(rng: Generator, place: int, size: int, threshold: int, each: float) -> int:
    """Draw a place by TEM, in the order in which the released code draws.

    Args:
        rng: draws.
        place: of the input.
        size: places of the list.
        threshold: gamma, in places.
        each: epsilon for each place.
    """
    near = np.arange(max(0, place - threshold), min(size, place + threshold + 1))
    scores = rng.gumbel(0, 2 / each, len(near)) - np.abs(near - place)
    rest = 2 * math.log(max(1, size - len(near))) / each - threshold + rng.gumbel(0, 2 / each)
    if scores.max() > rest or len(near) == size:
        return int(near[scores.argmax()])
    while (drawn := int(rng.integers(0, size))) in near:
        pass
    return drawn


@dataclass(frozen=True)
class FittedOneDiffractor(FittedChannel):
    """Noise on a word's place in the list."""

    epsilon: float
    sensitivity: float
    public_seed: int | None
    order: Integers
    """Words by place, int64 (V,)."""
    threshold: int | None = None
    """Of TEM, in places; None: geometric noise."""

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

    def first(self, places: Integers) -> Integers:
        """Return where the released code moves the first word, with the public seed, from each place, int64 (n,)."""
        each, last = self.epsilon / self.sensitivity, len(self) - 1
        seed = SeedSequence(self.public_seed).spawn(1)[0]
        if self.threshold is None:
            rng, success = default_rng(seed), -math.expm1(-each)
            return np.clip(places + int(rng.geometric(success)) - int(rng.geometric(success)), 0, last)
        moved = [tem_place(default_rng(seed), int(place), len(self), self.threshold, each) for place in places]
        return np.array(moved, np.int64)

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix; with a public seed, those of the first word.

        Where no word is beyond the threshold, and these words win, the released code never ends. Here they never win.
        """
        last, logs = len(self) - 1, np.empty((len(rows), len(self)))
        places, every = self.places[rows], np.arange(len(self))
        if self.public_seed is not None:
            logs[:, self.order] = np.where(every == self.first(places)[:, None], 0, -np.inf)
            return logs
        each, apart = self.epsilon / self.sensitivity, np.abs(places[:, None] - every)
        if self.threshold is not None:
            logs[:, self.order] = log_softmax(np.minimum(apart, self.threshold) * (-each / 2))
            return logs
        by_place = apart * -each
        by_place[:, 1:last] += math.log(-math.expm1(-each))  # the ends of the list have all noise beyond them
        logs[:, self.order] = by_place - math.log1p(math.exp(-each))
        return logs
