"""Find a secret rotation: axes of both clouds with signs from third moments, then neighbourhoods.

Refinement follows mini-vec2vec (Dar 2025, arXiv 2510.02348): the mean of the nearest own vectors stands for the unknown
partner of a stored vector, and orthogonal Procrustes gives the next map. Here it begins with the few largest principal
axes, where the neighbours are already right, and adds axes step by step. Known pairs count as many neighbourhoods.
Whitening is undone in the same way, without a pair.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from leakboard.attacks._alignment.alignment import Pairs
from leakboard.attacks._alignment.moments import Array, principal_axes, third_moments
from leakboard.interfaces import Floats
from leakboard.models.search import nearest

SIGNED_AXES = 12
"""Principal axes whose signs are found together."""
STARTS = 6
"""Patterns of signs that are refined; the best goes on. If more are tried, a short look chooses them."""
LOOK_ROUNDS, LOOK_ROWS = 3, 500
"""Rounds of a short look at a pattern, and stored vectors in each."""
Schedule = tuple[tuple[int | None, int, int, int], ...]
SCHEDULE: Schedule = ((24, 6, 1_500, 20), (60, 8, 1_500, 20), (None, 3, 3_000, 20), (None, 4, 4_000, 8))
"""Stages: number of axes (None: all), rounds, stored vectors a round, neighbours."""
WHITE_SCHEDULE: Schedule = (*SCHEDULE[:2], (120, 6, 2_000, 20), (None, 6, 3_000, 20), (None, 12, 4_000, 10))
"""Stages for whitened vectors."""
PAIR_SHARE = 3.0
"""Weight of all known pairs together, in units of the neighbourhoods of one round."""


@dataclass(frozen=True)
class Clouds:
    """Both clouds on their own principal axes, about their means."""

    own: Floats
    """float32 (m, d)."""
    stored: Floats
    """float32 (n, d)."""
    pairs: Pairs | None
    trust: Floats
    """Factor of rotated stored vectors along each axis before neighbours are sought, float32 (d,)."""
    weights: Floats
    """Factor of own vectors along each axis when the rotation is fitted, float32 (d,)."""


def find_rotation(
    own: Floats, stored: Floats, noise: float, pairs: Pairs | None, seed: int, starts: int = STARTS
) -> Floats:
    """Return an orthogonal W, float32 (d, d), so that (stored - mean) @ W lines up with own - mean.

    Args:
        own: float32 (m, d).
        stored: float32 (n, d), in the scale of ``own``.
        noise: standard deviation of the noise of a stored coordinate.
        pairs: known pairs, in the scale of ``own``.
        seed: draws the rows of each round.
        starts: largest number of patterns of signs that are tried.
    """
    rng, mean, stored_mean = np.random.default_rng(seed), own.mean(0), stored.mean(0)
    axes, stored_axes = principal_axes(own), principal_axes(stored)
    scores = (own - mean) @ axes
    variances = scores.var(0)
    trust = variances / (variances + np.float32(noise**2) + 1e-12)
    known = pairs and Pairs((pairs.own - mean) @ axes, (pairs.stored - stored_mean) @ stored_axes)
    clouds = Clouds(scores, (stored - stored_mean) @ stored_axes, known, trust, np.ones_like(trust))
    patterns = [np.diag(signs) for signs in _signs(clouds, mean @ axes, stored_mean @ stored_axes, starts, rng)]
    first = min(SIGNED_AXES, own.shape[1])
    if known:
        size = min(own.shape[1], max(first, len(known) // 2))
        patterns.append(procrustes(known.stored[:, :size], known.own[:, :size]))
    return stored_axes @ _refined(clouds, patterns, SCHEDULE, rng) @ axes.T


def find_components(own: Floats, stored: Floats, seed: int, starts: int = STARTS) -> Floats:
    """Return the matrix (e, d) that maps whitened vectors back: (stored - mean) @ matrix lines up with own - mean.

    Whitening sorts the principal components by variance, and has no key. Signs are found as in `find_rotation`.
    Components of other texts differ by a rotation, which neighbourhoods find in the whitened space.

    Args:
        own: float32 (m, d).
        stored: whitened vectors, largest component first, float32 (n, e) with e at most d.
        seed: draws the rows of each round.
        starts: largest number of patterns of signs that are tried.
    """
    rng, mean, tiny = np.random.default_rng(seed), own.mean(0), np.finfo(np.float32).tiny
    axes = principal_axes(own)[:, : stored.shape[1]]
    scores = (own - mean) @ axes
    spread, stored_spread = (np.maximum(part.std(0), tiny) for part in (scores, stored))
    white = (stored - stored.mean(0)) / stored_spread
    rescaled = Clouds(scores, white * spread, None, spread, spread)
    patterns = [np.diag(signs) for signs in _signs(rescaled, mean @ axes, np.zeros_like(spread), starts, rng)]
    rotation = _refined(replace(rescaled, stored=white), patterns, WHITE_SCHEDULE, rng)
    return (rotation * spread / stored_spread[:, None]) @ axes.T


def _refined(clouds: Clouds, starts: list[Floats], schedule: Schedule, rng: Generator) -> Floats:
    """Refine the most promising starts, and the best of them by the schedule."""
    first, all_axes = min(SIGNED_AXES, clouds.own.shape[1]), clouds.own.shape[1]

    def fit(rotation: Floats) -> float:
        return _fit(clouds, rotation, first)

    if len(starts) > STARTS + 1:  # pairs give one more
        looked = [_refine(clouds, start, len(start), LOOK_ROUNDS, LOOK_ROWS, 20, rng) for start in starts]
        starts = sorted(looked, key=fit, reverse=True)[:STARTS]
    best = max((_refine(clouds, start, len(start), 8, 1_000, 20, rng) for start in starts), key=fit)
    for size, rounds, rows, neighbours in schedule:
        best = _refine(clouds, best, min(size or all_axes, all_axes), rounds, rows, neighbours, rng)
    return best


def procrustes(source: Floats, target: Floats) -> Floats:
    """Return the orthogonal W (d, d) that minimises the squared differences of source @ W and target, (n, d) each."""
    left, _, right = np.linalg.svd(source.T @ target)
    return (left @ right).astype(np.float32)  # type: ignore[no-any-return]


def with_pairs(source: Floats, target: Floats, pairs: Pairs | None, share: float) -> tuple[Floats, Floats]:
    """Append known pairs, with ``share`` times the weight of all rows of source and target, (n, d) each."""
    if not pairs:
        return source, target
    weight = np.float32(np.sqrt(share * len(source) / len(pairs)))
    return np.vstack([source, weight * pairs.stored]), np.vstack([target, weight * pairs.own])


def _signs(clouds: Clouds, mean: Floats, stored_mean: Floats, starts: int, rng: Generator) -> list[Floats]:
    """Return the patterns of signs of the first axes that agree best with means, third moments and pairs.

    With more ``starts`` than these patterns, those with two signs of the best pattern flipped are added.
    """
    k = min(SIGNED_AXES, clouds.own.shape[1])
    spread = clouds.own[:, :k].std(0) + 1e-12
    a, v = clouds.own[:, :k] / spread, clouds.stored[:, :k] / spread
    single = (mean[:k] * stored_mean[:k] / spread**2).astype(np.float64)
    if clouds.pairs:
        single += (clouds.pairs.own[:, :k] * clouds.pairs.stored[:, :k] / spread**2).sum(0)
    triples = third_moments(a) * third_moments(v) / 6
    found = [_climb(rng.choice([-1.0, 1.0], k), single, triples) for _ in range(50)]
    best = max(found, key=lambda signs: _agreement(signs, single, triples))
    found += list(best * (1 - 2 * np.eye(k)))  # the best with one sign flipped
    if starts > len(set(map(tuple, found))):
        flips = 1 - 2 * np.eye(k)
        found += [best * first * second for first, second in itertools.combinations(flips, 2)]
    patterns = {tuple(signs): _agreement(signs, single, triples) for signs in found}
    chosen = sorted(patterns, key=lambda signs: -patterns[signs])[:starts]
    return [np.array(signs, np.float32) for signs in chosen]


def _agreement(signs: Array, single: Array, triples: Array) -> float:
    return float(single @ signs + signs @ (triples @ signs @ signs))


def _climb(signs: Array, single: Array, triples: Array) -> Array:
    """Flip the sign that raises the agreement most, until no flip does."""
    repeated, cubes = np.einsum("iij->ij", triples), np.einsum("iii->i", triples)
    while True:
        others = np.einsum("ijk,j,k->i", triples, signs, signs) - 2 * repeated @ signs * signs + cubes
        gains = -2 * signs * (single + 3 * others + cubes)
        flipped = gains.argmax()
        if gains[flipped] <= 1e-9:
            return signs
        signs = np.where(np.arange(len(signs)) == flipped, -signs, signs)


def _refine(
    clouds: Clouds, rotation: Floats, size: int, rounds: int, rows: int, neighbours: int, rng: Generator
) -> Floats:
    """Return the rotation of the first ``size`` axes after some rounds of neighbourhoods and Procrustes."""
    neighbours = max(1, min(neighbours, len(clouds.own) // 60))
    for _ in range(rounds):
        known, drawn = len(rotation), rng.choice(len(clouds.stored), min(rows, len(clouds.stored)), replace=False)
        queries = clouds.stored[drawn, :known] @ rotation * clouds.trust[:known]
        partners = clouds.own[nearest(queries, clouds.own[:, :known], neighbours).rows, :size].mean(1)
        pairs = clouds.pairs and Pairs(clouds.pairs.own[:, :size], clouds.pairs.stored[:, :size])
        targets = partners * clouds.weights[:size]
        rotation = procrustes(*with_pairs(clouds.stored[drawn, :size], targets, pairs, PAIR_SHARE))
    return rotation


def _fit(clouds: Clouds, rotation: Floats, size: int) -> float:
    """Return the mean cosine of 1,000 rotated vectors and their nearest own vectors on the first axes."""
    rotated = clouds.stored[:1_000, : len(rotation)] @ rotation * clouds.trust[: len(rotation)]
    return float(nearest(rotated[:, :size], clouds.own[:, :size], 1).similarity.mean())
