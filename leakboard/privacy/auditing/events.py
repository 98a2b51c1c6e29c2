"""Define pairs of neighbouring inputs, and events of a release that are likelier for the first input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Score = Callable[[Array], Array]
"""Maps n releases, (n, d), or objects, (n, 1), to n numbers, float64 (n,), or to n truth values, bool (n,)."""


def per_unit(bound: float, distance: float) -> float:
    """Return the lower bound on epsilon for each unit of distance that follows from a bound for two inputs.

    Two inputs at distance d are private with d epsilon, so a bound b for them proves epsilon >= b / d. At distance 0
    their releases have the same law. So a bound above 0 exceeds every epsilon.
    """
    if bound <= 0:
        return bound
    return bound / distance if distance else math.inf


@dataclass(frozen=True)
class Pair:
    """Two inputs that are neighbours by the claim: vectors, float (d,), or a text or other object each, object (1,)."""

    name: str
    first: Array
    second: Array
    distance: float = 1.0
    """Distance of the inputs, at least 0, if epsilon is claimed for each unit of a distance; else 1."""

    @property
    def inputs(self) -> tuple[Array, Array]:
        """The first and the second input."""
        return self.first, self.second

    def swapped(self) -> Pair:
        """Return the pair with first and second exchanged."""
        return Pair(f"{self.name}, swapped", self.second, self.first, self.distance)

    def per_unit(self, bound: float) -> float:
        """Return the lower bound on epsilon for each unit of distance that follows from a bound for this pair."""
        return per_unit(bound, self.distance)


Side = Literal[">=", "<", "=="]
HOLDS: Mapping[Side, Callable[[Array, float], Array]] = {">=": np.greater_equal, "<": np.less, "==": np.equal}
"""Which scores are in an event, by its side of the threshold."""


@dataclass(frozen=True)
class Threshold:
    """A threshold on scores, and the bound that its event promises."""

    value: float
    side: Side
    """Scores at or above the value, scores below it, or scores equal to it."""
    promise: float
    """Bound that fresh releases would prove at cautiously estimated rates; below 0 if they would prove nothing."""

    def turned(self, scores: Array) -> Array:
        """Return scores that are higher inside the event, float64 of the same shape."""
        if self.side == "==":
            return self.holds(scores).astype(np.float64)
        return scores if self.side == ">=" else -scores

    def holds(self, scores: Array) -> Array:
        """Return whether each score is in the event, a bool array of the same shape."""
        return HOLDS[self.side](scores, self.value)


@dataclass(frozen=True)
class DescribedScore:
    """A score with words of its own for its events."""

    function: Score
    describe: Callable[[Threshold], str]

    def __call__(self, outputs: Array) -> Array:
        """Return the scores of releases, float64 (n,)."""
        return self.function(outputs)


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
        if isinstance(self.score, DescribedScore):
            return self.score.describe(self.threshold)
        return f"{self.score_name} {self.threshold.side} {self.threshold.value:.6g}"


def corners(dimensions: int, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs of corners of the unit cube, (dimensions,): one pair in one dimension, else three."""
    zeros, ones = np.zeros(dimensions, dtype), np.ones(dimensions, dtype)
    pairs = [Pair("zeros and ones", zeros, ones)]
    if dimensions > 1:
        single = np.zeros(dimensions, dtype)
        single[0] = 1
        pairs += [_alternating(dimensions, dtype), Pair("one coordinate", zeros, single)]
    return pairs


def interior(dimensions: int, generator: np.random.Generator, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs with inputs inside the unit cube, (dimensions,), and off every grid."""
    return [
        Pair("middle and random vector", np.full(dimensions, 0.5, dtype), _random(dimensions, generator, dtype)),
        Pair(
            "random corner and random vector",
            generator.integers(0, 2, dimensions).astype(dtype),
            _random(dimensions, generator, dtype),
        ),
    ]


def normalised_interior(dimensions: int, generator: np.random.Generator, dtype: Any = np.float64) -> list[Pair]:
    """Return the first pair of `interior` as min-max normalisation can produce it: each input has a 0 and a 1."""
    if dimensions < 3:
        return []
    pair = interior(dimensions, generator, dtype)[0]
    for values in pair.inputs:
        values[:2] = 1, 0
    return [pair]


def outside(dimensions: int) -> list[Pair]:
    """Return pairs with an input outside the unit cube, for a mechanism that accepts all numbers, NaN and infinity."""
    places, ones = np.arange(dimensions), np.ones(dimensions)
    others = {
        "NaN": np.nan * ones,
        "infinity": np.inf * ones,
        "millions of both signs": np.where(places % 2, 1e6, -1e6),
    }
    others |= {"NaN beside millions": np.where(places, 1e6, np.nan)} if dimensions > 1 else {"a million": 1e6 * ones}
    pairs = [Pair(f"zeros and {name}", 0 * ones, value) for name, value in others.items()]
    return [Pair("just outside the cube", -ones, 2 * ones), *pairs]


def _random(dimensions: int, generator: np.random.Generator, dtype: Any) -> Array:
    return generator.uniform(0.02, 0.98, dimensions).astype(dtype)


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
