"""Integrate the nearest word over noisy vectors in a plane: one integral, over the direction of the noise.

On the ray x + r v, the word y is nearest from r = a to r = b. These are the largest and the smallest of the bisectors
of y with the other words, and closed forms. The length r has the law Gamma(2, 1 / epsilon), so the ray gives y

    exp(-epsilon a) (1 + epsilon a) - exp(-epsilon b) (1 + epsilon b).

Between two special directions this is a smooth function of the direction. Special are those of the corners of the
words' Voronoi cells, those along an edge of a cell, and those in which a bisector is met first. Rays that are scaled
to one length meet it first in another direction than rays that are not; both are special. The Gauss-Legendre rule runs
over each piece, which is halved towards its ends: the more often, the further epsilon times a length is from 1.
Twice the nodes change no logarithm by more than 1e-9, for eight words with epsilon times their spread from 1e-5 to 1e4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.channels.words import Numbers

MAX_WORDS = 30
"""Largest vocabulary: the time grows with V^4. A row of 30 words takes 11 s at epsilon 1, and 28 s at epsilon 1e-6."""
NODES = 16
"""Nodes of the rule on each part of a piece."""
HALVINGS = 6
"""Least halvings of a piece towards each of its ends."""
MARGIN = 3
"""Halvings beyond the angle in which the integrand changes."""
LEAST_LENGTH = 1e-12
"""Least length to a bisector that counts, as a share of the largest."""
LEAST_ANGLE = 1e-13
"""Least angle between two special directions, and of an integrand's change. Nearer directions are one."""
RAYS = 4_096
"""Rays that are computed at once; with 30 words they take about 100 MB."""


def log_nearest(
    vectors: Numbers, rows: Integers, epsilon: float, shape: Numbers, along: Callable[[Numbers], Numbers]
) -> Numbers:
    """Return ln P(y | x) of words whose vectors get noise, if the nearest word is published, float64 (n, V).

    Of words with equal vectors, the first one is published.

    Args:
        vectors: float64 (V, 2).
        rows: inputs, int64 (n,).
        epsilon: of the length r, whose law is Gamma(2, 1 / epsilon).
        shape: the matrix A, float64 (2, 2): the ray of a direction u has the direction A u.
        along: maps directions u to the vectors v of the rays, float64 (n, 2).
    """
    distinct, first, place = np.unique(vectors, axis=0, return_index=True, return_inverse=True)
    corners, logs = _corners(distinct), np.full((len(rows), len(vectors)), -np.inf)
    for row, start in zip(logs, distinct[place.ravel()[rows]], strict=True):
        halvings = _halvings(distinct - start, epsilon, shape)
        angles, weights = _nodes(_special(distinct, start, corners, shape), halvings)
        for block in (slice(at, at + RAYS) for at in range(0, len(angles), RAYS)):
            rays = along(np.stack([np.cos(angles[block]), np.sin(angles[block])], axis=1))
            parts = _log_on_rays(distinct - start, rays, epsilon) + np.log(weights[block, None])
            row[first] = np.logaddexp(row[first], np.logaddexp.reduce(parts, axis=0))
    return logs


def _log_on_rays(offsets: Numbers, rays: Numbers, epsilon: float) -> Numbers:
    """Return ln of the probability that each word is nearest on each ray, float64 (n, V)."""
    from scipy.special import gammainc

    slopes, squares = rays @ offsets.T, (offsets**2).sum(1) / 2
    gaps = squares[None, :] - squares[:, None]  # of the second word less the first
    rises = slopes[:, None, :] - slopes[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = gaps / rises
    upper = np.where(rises > 0, meets, np.inf).min(2)
    lower = np.maximum(np.where(rises < 0, meets, 0).max(2), 0)
    is_never = ((rises == 0) & (gaps < 0)).any(2) | (upper <= lower)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        width = epsilon * (upper - lower)
        logs = np.log(gammainc(2, width) - epsilon * lower * np.expm1(-width)) - epsilon * lower
    return np.where(is_never, -np.inf, logs)


def _corners(vectors: Numbers) -> Numbers:
    """Return the corners of the words' Voronoi cells, float64 (n, 2): no word is nearer than the three that meet."""
    found = []
    for three in itertools.combinations(range(len(vectors)), 3):
        first, *others = vectors[list(three)]
        sides = np.array(others) - first
        scale = np.abs(sides).max()
        if abs(np.linalg.det(sides / scale)) < 1e-12:
            continue
        corner = first + np.linalg.solve(2 * sides, (sides**2).sum(1))
        apart = np.linalg.norm(vectors - corner, axis=1)
        if apart.min() >= np.linalg.norm(first - corner) * (1 - 1e-9):
            found.append(corner)
    return np.array(found).reshape(-1, 2)


def _special(vectors: Numbers, start: Numbers, corners: Numbers, shape: Numbers) -> Numbers:
    """Return the special directions u as angles in [0, 2 pi), increasing, float64 (n,); 0 is one of them."""
    first, second = np.triu_indices(len(vectors), 1)
    across = vectors[first] - vectors[second]
    edges = across[:, ::-1] * [1, -1]
    inverse = np.linalg.inv(shape)
    seen = [
        np.array([[1.0, 0.0]]),
        (corners - start) @ inverse,
        edges @ inverse,
        -edges @ inverse,
        across @ shape,
        -across @ shape,
        across @ inverse,
        -across @ inverse,
    ]
    directions = np.concatenate(seen)
    directions = directions[np.abs(directions).max(1) > 0]
    angles = np.sort(np.arctan2(directions[:, 1], directions[:, 0]) % (2 * np.pi))
    kept: Numbers = angles[np.diff(angles, prepend=-1) > LEAST_ANGLE]
    return kept


def _halvings(offsets: Numbers, epsilon: float, shape: Numbers) -> int:
    """Return how often the pieces are halved towards each end.

    A ray straight to a bisector has some length l. Next to the direction along that bisector, the integrand changes
    within an angle of about epsilon l. Next to a corner, it changes within about 1 / (epsilon l).
    """
    first, second = np.triu_indices(len(offsets), 1)
    squares = (offsets**2).sum(1) / 2
    slopes = np.linalg.norm((offsets[first] - offsets[second]) @ shape, axis=1)
    lengths = np.abs(squares[first] - squares[second]) / slopes
    lengths = epsilon * lengths[lengths > LEAST_LENGTH * lengths.max(initial=0)]
    shortest = min(1.0, float(np.linalg.norm(shape, -2)))  # of A u, which scaled rays divide by
    angle = min(shortest * lengths.min(initial=1), 1 / lengths.max(initial=1))
    return max(HALVINGS, math.ceil(MARGIN - math.log2(max(angle, LEAST_ANGLE))))


def _nodes(angles: Numbers, halvings: int) -> tuple[Numbers, Numbers]:
    """Return angles and their positive weights, which add up to 1, float64 (n,) each."""
    ends = np.append(angles[1:], angles[0] + 2 * np.pi)
    half_way = np.append(0, 0.5 ** np.arange(halvings, 0, -1))
    edges = angles[:, None] + (ends - angles)[:, None] * np.append(half_way, 1 - half_way[-2::-1])
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges, axis=1)[..., None] / 2
    found, shares = (edges[:, :-1, None] + half * (nodes + 1)).ravel(), (half * weights).ravel() / (2 * np.pi)
    return found[shares > 0], shares[shares > 0]  # rounding leaves pieces of width 0
