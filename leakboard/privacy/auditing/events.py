"""Define pairs of neighbouring inputs, and events of a release that are likelier for the first input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Score = Callable[[Array], Array]
"""Maps n releases, (n, d), to n numbers, float64 (n,), or to n truth values, bool (n,)."""


@dataclass(frozen=True)
class Pair:
    """Two inputs that are neighbours by the claim: vectors, float (d,), or one text each, object (1,)."""

    name: str
    first: Array
    second: Array

    @property
    def inputs(self) -> tuple[Array, Array]:
        """The first and the second input."""
        return self.first, self.second

    def swapped(self) -> Pair:
        """Return the pair with first and second exchanged."""
        return Pair(f"{self.name}, swapped", self.second, self.first)


@dataclass(frozen=True)
class Threshold:
    """A threshold on scores, and the bound that its event promises."""

    value: float
    above: bool
    """True: scores at or above the value; False: scores below it."""
    promise: float
    """Bound that fresh releases would prove at cautiously estimated rates; below 0 if they would prove nothing."""

    @property
    def sign(self) -> int:
        """1 if the event has the high scores, -1 if the event has the low scores."""
        return 1 if self.above else -1

    def holds(self, scores: Array) -> Array:
        """Return whether each score is in the event, a bool array of the same shape."""
        return scores >= self.value if self.above else scores < self.value


@dataclass(frozen=True)
class Event:
    """A pair, a named score and a threshold."""

    pair: Pair
    score_name: str
    score: Score
    threshold: Threshold

    def holds(self, outputs: Array) -> Array:
        """Return whether the event holds for each release (n, d), bool (n,)."""
        return self.threshold.holds(self.score(outputs))

    @property
    def description(self) -> str:
        """The event in words."""
        return f"{self.score_name} {'>=' if self.threshold.above else '<'} {self.threshold.value:.6g}"


def corners(dimensions: int, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs of corners of the unit cube, (dimensions,): one pair in one dimension, else three."""
    zeros, ones = np.zeros(dimensions, dtype), np.ones(dimensions, dtype)
    pairs = [Pair("zeros and ones", zeros, ones)]
    if dimensions > 1:
        single = np.zeros(dimensions, dtype)
        single[0] = 1
        pairs += [_alternating(dimensions, dtype), Pair("one coordinate", zeros, single)]
    return pairs


def normalised_corners(dimensions: int, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs of corners that min-max normalisation can produce: each corner has a 0 and a 1.

    In one dimension normalisation gives no such corner; the pair is still 0 and 1.
    """
    pairs = [_alternating(dimensions, dtype)]
    if dimensions > 2:
        first, second = np.zeros((2, dimensions), dtype)
        first[0] = second[:2] = 1
        pairs.append(Pair("one coordinate", first, second))
    return pairs


def _alternating(dimensions: int, dtype: Any) -> Pair:
    alternating = (np.arange(dimensions) % 2).astype(dtype)
    return Pair("alternating", alternating, 1 - alternating)
