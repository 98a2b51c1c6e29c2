"""Integrate over noisy vectors along rays, exactly on a line.

On the ray x + r v, the order of the words by distance changes only at the bisectors of two words, which are known
values of r. Between them a choice among the nearest words is a smooth function of r. So the Gauss-Legendre rule on
each piece is exact up to rounding. On a line there are two rays. In a plane, `ANGLES` equally spaced rays leave an
error of about 1e-3 of a probability. The sum of a row is exact, but ratios of close words are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.privacy.channels.words import Numbers

ANGLES = 180
"""Rays in a plane."""
NODES = 16
"""Nodes of the rule on each part of a piece."""
HALVINGS = 9
"""Halvings of a piece towards each of its ends: a choice by ratios of distances varies fast near a word."""
LONGEST_PIECE = 36.0
"""Longest piece, in units of 1 / epsilon; the length beyond has e^-36 of the weight of the piece."""
MAX_WORDS = 200
"""Largest vocabulary: the time grows with V^4, and one row of 200 words takes about a minute."""
POINTS = 20_000
"""Points of a ray that are computed at once; with 200 words they take about 100 MB."""


def log_shares(
    vectors: Numbers, rows: Integers, epsilon: float, along: Callable[[Numbers], Numbers], choose: Any
) -> Numbers:
    """Return ln P(y | x) of words whose vectors get noise, float64 (n, V).

    Args:
        vectors: float64 (V, d), d 1 or 2.
        rows: inputs, int64 (n,).
        epsilon: of the length r, whose law is Gamma(d, 1 / epsilon).
        along: maps directions u to the vectors v of the rays, float64 (n, d).
        choose: the rule that publishes a word, see `leakboard.privacy.channels.noisy_vectors.Choice`.

    Raises:
        RequestError: more than `MAX_WORDS` words.
    """
    if len(vectors) > MAX_WORDS:
        raise RequestError(f"channel: a matrix of {len(vectors):,} noisy words is not allowed: up to {MAX_WORDS}")
    dimension = vectors.shape[1]
    angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    units = np.array([[1.0], [-1.0]]) if dimension == 1 else np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rays = along(units)
    logs = np.full((len(rows), len(vectors)), -np.inf)
    for i, word in enumerate(rows):
        for ray in rays:
            lengths, log_weights = _nodes(_breaks(vectors, vectors[word], ray), epsilon, dimension)
            for block in (slice(start, start + POINTS) for start in range(0, len(lengths), POINTS)):
                points = vectors[word] + lengths[block, None] * ray
                apart = np.linalg.norm(points[:, None] - vectors, axis=2)
                near = np.argsort(apart, axis=1, kind="stable")[:, :3]
                first, second, share = choose(int(word), near, np.take_along_axis(apart, near, axis=1))
                with np.errstate(divide="ignore"):  # a share of 0
                    parts = [log_weights[block] + np.log(share), log_weights[block] + np.log1p(-share)]
                _add(logs[i], np.concatenate([first, second]), np.concatenate(parts) - math.log(len(rays)))
    return logs


def exponential_nodes(breaks: Numbers, scale: float) -> tuple[Numbers, Numbers]:
    """Return nodes and the logarithms of their weights under an exponential law, float64 (n,) each.

    Args:
        breaks: values from 0 on between which the integrand is smooth, in any shape and order.
        scale: the law's mean.
    """
    lengths, logs = _nodes(np.unique(np.append(breaks, 0)), 1 / scale, 1)
    is_possible = np.isfinite(logs) & (lengths > 0)
    return lengths[is_possible], logs[is_possible]


def _breaks(vectors: Numbers, start: Numbers, ray: Numbers) -> Numbers:
    """Return the lengths r > 0 at which two words are equally near, or a word is nearest to the ray, increasing."""
    offsets = vectors - start
    squares, along = (offsets**2).sum(1), offsets @ ray
    first, second = np.triu_indices(len(vectors), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        bisectors = (squares[first] - squares[second]) / (2 * (along[first] - along[second]))
    every = np.concatenate([[0.0], bisectors, along / (ray @ ray)])
    return np.unique(every[np.isfinite(every) & (every >= 0)])


def _nodes(breaks: Numbers, epsilon: float, dimension: int) -> tuple[Numbers, Numbers]:
    """Return lengths r and the logarithms of their weights under Gamma(d, 1 / epsilon), float64 (n,) each."""
    ends = np.minimum(np.append(breaks[1:], np.inf), breaks + LONGEST_PIECE / epsilon)
    half_way = np.append(0, 0.5 ** np.arange(HALVINGS, 0, -1))
    edges = breaks[:, None] + (ends - breaks)[:, None] * np.append(half_way, 1 - half_way[-2::-1])
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges, axis=1)[..., None] / 2
    lengths = (edges[:, :-1, None] + half * (nodes + 1)).ravel()
    with np.errstate(divide="ignore"):  # a piece without length
        log_weights = np.log(half * weights).ravel() + (dimension - 1) * np.log(lengths)
    return lengths, log_weights + dimension * math.log(epsilon) - math.lgamma(dimension) - epsilon * lengths


def _add(logs: Numbers, words: Integers, parts: Numbers) -> None:
    """Add exp(parts) to exp(logs) at the words, in logarithms."""
    most = logs.copy()
    np.maximum.at(most, words, parts)
    most[np.isneginf(most)] = 0
    sums = np.exp(logs - most) + np.bincount(words, np.exp(parts - most[words]), minlength=len(logs))
    with np.errstate(divide="ignore"):
        logs[:] = np.log(sums) + most
