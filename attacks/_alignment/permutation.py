"""Find a secret order of coordinates by matching two graphs.

Each coordinate is a node with features. Two kinds of graph are tried:

| edges | features of a coordinate | when it works best |
|---|---|---|
| correlations | mean, spread, skewness | both corpora are alike |
| partial correlations | residual variances | the corpora differ: it depends on the encoder more than on the corpus |

Isotropic noise adds a constant to the diagonal of the covariances. The attacker adds the same constant to its own.
Graphs are matched by the Frank-Wolfe algorithm (Vogelstein et al. 2015, "Fast approximate quadratic programming").
"""

from dataclasses import dataclass

import numpy as np

from leakboard.attacks._alignment.alignment import Pairs
from leakboard.attacks._alignment.moments import Array, covariance
from leakboard.interfaces import Floats, Integers

ROUNDS = 40
FEATURE_WEIGHTS = (10.0, 30.0)
"""Weights of the features against the edges, one for each start."""
RIDGES = (0.02, 0.2, 2.0)
"""Added to the diagonal before inversion, in mean variances of a coordinate."""


@dataclass(frozen=True)
class Graph:
    features: Array
    """Features of coordinates in units of their sampling error, or of their spread, (d, f)."""
    edges: Array
    """Symmetric with a diagonal of zeros, (d, d)."""


def find_order(own: Floats, stored: Floats, noise: float, pairs: Pairs | None = None) -> Integers:
    """Return the order of stored coordinates, int64 (d,): ``stored[:, order]`` has the coordinates of ``own``.

    Args:
        own: float32 (m, d).
        stored: float32 (n, d), in the scale of ``own``.
        noise: standard deviation of the noise of a stored coordinate.
        pairs: known pairs, in the scale of ``own``.
    """
    known = _pair_costs(pairs, noise, float(own.var(0).mean()))
    plain = _correlations(own, noise), _correlations(stored, 0)
    partial = _partial_correlations(own, noise, 0), _partial_correlations(stored, 0, noise)
    rows = 1 / (1 / len(own) + 1 / len(stored))
    starts = [(plain, rows, rows)]
    starts += [(partial, 1.0, weight) for weight in FEATURE_WEIGHTS] + [(plain, rows, 1.0)]
    best, best_fit = np.arange(own.shape[1]), -np.inf
    for graphs, edge_weight, feature_weight in starts:
        costs = feature_weight * _distances(graphs[0].features, graphs[1].features) + edge_weight * known
        for uniform in (False, True):
            order = _match(graphs[0].edges, graphs[1].edges, edge_weight, costs, uniform)
            likeness = edge_likeness(*partial, order)
            fit = likeness + edge_likeness(*plain, order)
            if fit > best_fit:
                best, best_fit = order, fit
            if likeness > 1.5 * chance_likeness(len(order)):
                return best
    return best


def edge_likeness(own: Graph, stored: Graph, order: Integers) -> float:
    """Return the correlation of the edges of both graphs in this order."""
    upper = np.triu_indices(len(order), 1)
    a, b = own.edges[upper], stored.edges[np.ix_(order, order)][upper]
    return float(a @ b / max(np.sqrt((a @ a) * (b @ b)), 1e-12))


def partial_likeness(own: Floats, stored: Floats, noise: float, order: Integers) -> float:
    """Return the correlation of the partial correlations of ``own`` and ``stored[:, order]``; see `find_order`."""
    return edge_likeness(_partial_correlations(own, noise, 0), _partial_correlations(stored, 0, noise), order)


def chance_likeness(d: int) -> float:
    """Return about the highest correlation of unrelated edges over all d! orders, by the union bound."""
    return float(np.sqrt(4 * np.log(d) / d))


def _correlations(vectors: Floats, noise: float) -> Graph:
    centred, mean = vectors - vectors.mean(0), vectors.mean(0)
    variances = (centred**2).mean(0) + noise**2
    spread = np.sqrt(np.maximum(variances, 1e-6 * variances.mean()))  # constant coordinates
    edges = covariance(vectors) / np.outer(spread, spread)
    np.fill_diagonal(edges, 0)
    overall = np.sqrt(variances.mean())
    features = [mean / overall, np.log(spread / overall) * np.sqrt(2), (centred**3).mean(0) / spread**3 / np.sqrt(6)]
    return Graph(np.stack(features, 1).astype(np.float64), edges)


def _partial_correlations(vectors: Floats, added: float, contained: float) -> Graph:
    """Return partial correlations after ``added`` noise; ``contained`` noise is no part of the ridge's unit."""
    d = vectors.shape[1]
    covariances = covariance(vectors) + added**2 * np.eye(d)
    unit = max(np.trace(covariances) / d - added**2 - contained**2, 1e-12)
    inverses = [np.linalg.inv(covariances + ridge * unit * np.eye(d)) for ridge in RIDGES]
    features = np.stack([np.log(np.diag(inverse)) for inverse in inverses], 1)
    edges = inverses[0] / np.sqrt(np.outer(np.diag(inverses[0]), np.diag(inverses[0])))
    np.fill_diagonal(edges, 0)
    return Graph(features, edges)


def _pair_costs(pairs: Pairs | None, noise: float, variance: float) -> Array | float:
    """Return squared differences of coordinates over the known pairs, in units of noise per entry; (d, d)."""
    if pairs is None:
        return 0.0
    return _distances(pairs.own.T, pairs.stored.T) / (noise**2 + 0.01 * variance + 1e-12)


def _distances(a: Array | Floats, b: Array | Floats) -> Array:
    """Return squared distances of all rows of ``a`` and ``b``."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0)  # type: ignore[no-any-return]


def _match(own: Array, stored: Array, weight: float, costs: Array, uniform: bool) -> Integers:
    """Minimise costs of nodes plus ``weight`` times half the squared differences of edges.

    The search starts at the best match of nodes alone. With ``uniform`` it starts with equal weights for all matches.
    """
    from scipy.optimize import linear_sum_assignment  # takes long to import

    d = len(own)
    plan = np.full((d, d), 1 / d) if uniform else np.eye(d)[linear_sum_assignment(costs)[1]]
    for _ in range(ROUNDS):
        gradient = costs - 2 * weight * (own @ plan @ stored)
        step = np.eye(d)[linear_sum_assignment(gradient)[1]] - plan
        slope, curvature = (gradient * step).sum(), -weight * ((own @ step @ stored) * step).sum()
        if slope >= -1e-9 * abs((gradient * plan).sum()):
            break
        plan = plan + (1.0 if curvature <= 0 else min(1.0, -slope / (2 * curvature))) * step
    return linear_sum_assignment(-plan)[1]  # type: ignore[no-any-return]
