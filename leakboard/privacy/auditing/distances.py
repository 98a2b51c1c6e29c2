"""Measure how far apart two inputs are, and choose pairs of inputs at several distances.

Metric privacy (Chatzikokolakis et al. 2013) limits P(E | x) to e**(epsilon d(x, x')) P(E | x') for every event E. So
the loss of two inputs may be epsilon times their distance d. An audit divides the bound of a pair by its distance
(`leakboard.privacy.auditing.events.Pair.per_unit`).

A broken mechanism may leak at small distances alone, such as rounding before the noise, or show its leak best at losses
of a few nats. So the pairs are near and far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from leakboard.privacy.auditing.events import Array, Pair, corners, interior

DistanceFunction = Callable[[Any, Any], float]
"""Maps two inputs to their distance, from 0."""
Segment = Callable[[float], Pair]
"""Maps a share of the largest distance, in (0, 1], to a pair."""

NEAR_LOSS = 0.05
"""Loss that the claim allows at the near pairs, in nats, if a pair of the cube is far enough apart."""
LOSSES = (1.0, 4.0)
"""Losses that the claim allows at the pairs whose densities are learned, in nats."""
OFF_MIDDLE = 0.1
"""How far one more near pair is off the middle of the cube, as a share of half its width: at 0.45 instead of 0.5."""
HALVINGS = 24
"""Number of times that a pair is moved to half its distance in search of a loss."""


def angle(first: Any, second: Any) -> float:
    """Return the angle of two vectors, from 0 to pi (radians).

    Raises:
        ValueError: a vector is zero.
    """
    one, other = (np.asarray(values, np.float64) for values in (first, second))
    if not (one.any() and other.any()):
        raise ValueError("a vector of zeros has no angle")
    one, other = one / np.linalg.norm(one), other / np.linalg.norm(other)
    # exact for small angles, unlike the inverse cosine (Kahan 2006)
    return 2 * math.atan2(float(np.linalg.norm(one - other)), float(np.linalg.norm(one + other)))


def differing_words(first: str, second: str) -> int:
    """Return in how many words two texts differ, position by position; additional words count."""
    words = first.split(), second.split()
    return sum(a != b for a, b in zip(*words, strict=False)) + abs(len(words[0]) - len(words[1]))


def _norm(order: int) -> DistanceFunction:
    return lambda first, second: float(np.linalg.norm(np.subtract(first, second, dtype=np.float64), order))


DISTANCES: Mapping[str, DistanceFunction] = {"euclidean": _norm(2), "l1": _norm(1), "angular": angle}
"""Distances of two vectors, (d,), by name."""


def pairs_at_distances(
    dimension: int, epsilon: float, distance: DistanceFunction, generator: np.random.Generator, dtype: Any = np.float64
) -> tuple[list[Pair], list[Pair]]:
    """Return pairs whose losses are near `LOSSES`, and further pairs: near ones, the farthest, and inner vectors.

    All vectors are in the unit cube. If ``distance`` is `angle`, they have length 1, so no angle exceeds pi / 2.

    Args:
        dimension: width of the vectors.
        epsilon: claimed for each unit of distance.
        distance: maps two vectors to their distance.
        generator: of the inner vectors.
        dtype: of the vectors.

    Raises:
        ValueError: a distance is not a finite number from 0, or one dimension has no angles.
    """
    segments = _arcs(dimension, dtype) if distance is angle else _segments(dimension, dtype)
    learned: list[Pair] = []
    further: list[Pair] = []
    for segment in segments:
        pairs = _halved(segment, distance)
        middle = _unique([_at_loss(pairs, epsilon, loss) for loss in LOSSES])
        ends = _unique([_at_loss(pairs, epsilon, NEAR_LOSS), max(pairs, key=lambda pair: pair.distance)])
        learned += middle
        further += [pair for pair in ends if not any(pair is other for other in middle)]
    if distance is not angle:
        # one pair: of many near pairs one looks best by chance, since bounds are divided by their distances
        off_middle = _halved(_segments(dimension, dtype, OFF_MIDDLE)[0], distance)
        further.append(_at_loss(off_middle, epsilon, NEAR_LOSS))
    inner = [] if distance is angle else interior(dimension, generator, dtype)
    return learned, further + [measured(pair, distance) for pair in inner]


def measured(pair: Pair, distance: DistanceFunction) -> Pair:
    """Return a pair with the distance of its inputs.

    Raises:
        ValueError: the distance is not a finite number from 0.
    """
    value = distance(pair.first, pair.second)
    if not isinstance(value, Real) or not 0 <= value < math.inf:
        raise ValueError(f"it gives {value!r} for {pair.name}; allowed: a number from 0, not infinite")
    return replace(pair, distance=float(value))


def _halved(segment: Segment, distance: DistanceFunction) -> list[Pair]:
    """Return the pairs of a segment at its whole length, half of it, and so on."""
    return [measured(segment(0.5**halvings), distance) for halvings in range(HALVINGS)]


def _at_loss(pairs: Sequence[Pair], epsilon: float, loss: float) -> Pair:
    """Return the pair whose allowed loss is nearest to ``loss``, by its ratio to it."""
    return min(pairs, key=lambda pair: abs(math.log(max(epsilon * pair.distance, 1e-300) / loss)))


def _unique(pairs: Sequence[Pair]) -> list[Pair]:
    return list({id(pair): pair for pair in pairs}.values())


def _segments(dimension: int, dtype: Any, off_middle: float = 0.0) -> list[Segment]:
    """Return the pairs of corners, moved towards the middle of the cube, or towards a point ``off_middle``.

    Thresholds, floors and steps such as those of int8 have a border at the middle, rounding to one decimal at 0.45. So
    even the nearest pairs are on two sides of it.
    """

    def segment(pair: Pair) -> Segment:
        middle, half = (pair.first + pair.second) / 2, (pair.second - pair.first) / 2

        def at(share: float) -> Pair:
            centre = middle - off_middle * (1 - share) * half
            return Pair(
                pair.name if share == 1 else f"{pair.name}, at {share:.2g} of their distance",
                (centre - share * half).astype(dtype),
                (centre + share * half).astype(dtype),
            )

        return at

    return [segment(pair) for pair in corners(dimension)]


def _arcs(dimension: int, dtype: Any) -> list[Segment]:
    """Return unit vectors without negative coordinates, whose angle is a share of a right angle."""
    if dimension < 2:
        raise ValueError("vectors of one dimension have no angles: at least 2 dimensions")

    def arc(name: str, start: Array, end: Array) -> Segment:
        def pair(share: float) -> Pair:
            turned = math.cos(share * math.pi / 2) * start + math.sin(share * math.pi / 2) * end
            return Pair(f"{name}, {share:.2g} of a right angle", start.astype(dtype), turned.astype(dtype))

        return pair

    first, second = np.eye(2, dimension)
    arcs = [arc("first and second axis", first, second)]
    if dimension > 2:
        odd = np.arange(dimension) % 2
        arcs.append(arc("alternating", (1 - odd) / np.linalg.norm(1 - odd), odd / np.linalg.norm(odd)))
    return arcs
