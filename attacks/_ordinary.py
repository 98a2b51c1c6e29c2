"""The ordinary classifiers of the portfolio: ridge regression, neighbours, a kernel machine and forests.

Neighbours and trees also find texts that stand, word by word or nearly, among the attacker's own.
"""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._members import Scores, Trained
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio import PortfolioAttack

NEIGHBOURS = 50
"""Known texts that vote on a text."""
WIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Of the votes' weights, as multiples of the median squared distance to the fifth neighbour."""
PRIORS = (0.03, 0.3, 3.0)
"""Votes for the shares of all known texts, against those of the neighbours."""
LANDMARKS = 1_000
"""Known texts that span the kernel machine's functions."""
PENALTIES = 10.0 ** np.arange(-4, 5)
"""Of ridge regression, as multiples of its inputs' mean variance."""
BLOCK = 4_096
"""Texts whose distances to the landmarks are held at once."""
TREES = 200
VALUES_IN_LEAVES = 50_000_000
"""Most numbers in the leaves of a forest: 400 MB."""
LEAST = 1 / (2 * TREES)
"""Probability of a value that no tree votes for."""


def fit_neighbours(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return the votes of the nearest known texts, of Gaussian weight (Nadaraya 1964; Watson 1964).

    For each secret the width of the weights, and how much the shares of all texts count, are those of the best
    log-loss on dev. A copy of a known text gives a vote that no other outweighs; a text far from all has the shares.
    """
    import faiss

    index = faiss.IndexFlatL2(train.vectors.shape[1])
    index.add(np.ascontiguousarray(train.vectors))

    def search(vectors: Floats) -> tuple[Floats, Integers]:
        distances, rows = index.search(np.ascontiguousarray(vectors), min(NEIGHBOURS, index.ntotal))
        return np.maximum(distances, 0), rows

    found = search(dev.vectors)
    unit = float(np.median(found[0][:, min(4, index.ntotal - 1)])) or 1.0

    def voted(found: tuple[Floats, Integers], secret: Secret, width: float, prior: float) -> Floats:
        distances, rows = found
        codes = train.values[secret.name]
        shares = (np.bincount(codes, minlength=len(secret.values)) + LEAST) / len(codes)
        votes = np.tile(prior * shares, (len(rows), 1))
        np.add.at(votes, (np.arange(len(rows))[:, None], codes[rows]), np.exp(-distances / (2 * width * unit)))
        return np.log(votes / votes.sum(1, keepdims=True)).astype(np.float32)

    def loss(secret: Secret, width: float, prior: float) -> float:
        scores = voted(found, secret, width, prior)
        return -float(np.mean(scores[np.arange(len(scores)), dev.values[secret.name]]))

    choices = [(width, prior) for width in WIDTHS for prior in PRIORS]
    best = {s.name: min(choices, key=lambda choice: loss(s, *choice)) for s in secrets}

    def scores(vectors: Floats) -> Scores:
        near = search(vectors)
        return {secret.name: voted(near, secret, *best[secret.name]) for secret in secrets}

    return Trained(scores)


def fit_ridge(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return least squares with a penalty on the weights (Hoerl and Kennard 1970), the best line of few texts."""
    return Trained(_least_squares(lambda vectors: vectors.astype(np.float64), train, dev, secrets))


def fit_kernel(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return ridge regression on the functions of a Gaussian kernel at known texts (Williams and Seeger 2001).

    The kernel's width is half the median squared distance of the texts.
    """
    from scipy import linalg

    rng = np.random.default_rng(seed)
    vectors = train.vectors.astype(np.float64)
    landmarks = vectors[rng.choice(len(vectors), min(LANDMARKS, len(vectors)), replace=False)]
    distances = _squared_distances(landmarks, landmarks)
    rate = 2 / (np.median(distances[distances > 0]) if (distances > 0).any() else 1.0)
    weights, axes = linalg.eigh(np.exp(-rate * distances))
    kept = weights > 1e-6 * weights[-1]
    basis = axes[:, kept] / np.sqrt(weights[kept])

    def features(vectors: Floats) -> NDArray[np.float64]:
        parts = np.array_split(vectors.astype(np.float64), 1 + len(vectors) // BLOCK)
        return np.concatenate([np.exp(-rate * _squared_distances(part, landmarks)) @ basis for part in parts])

    return Trained(_least_squares(features, train, dev, secrets))


def _least_squares(
    features: Callable[[Floats], NDArray[np.float64]],
    train: KnownTexts,
    dev: KnownTexts,
    secrets: tuple[Secret, ...],
) -> Callable[[Floats], Scores]:
    """Return penalised least squares of every value's indicator; of each secret the penalty of least error on dev.

    One eigendecomposition serves all secrets and penalties.
    """
    from scipy import linalg

    known = features(train.vectors)
    centre = known.mean(0)
    known -= centre
    variances, axes = linalg.eigh(known.T @ known)
    penalties = PENALTIES * max(variances.mean(), 1e-12)
    on_dev = (features(dev.vectors) - centre) @ axes

    def solved(secret: Secret) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = np.eye(len(secret.values))
        targets, truth = (values[part.values[secret.name]] for part in (train, dev))
        share = targets.mean(0)
        products = axes.T @ (known.T @ (targets - share))
        solutions = [products / (np.maximum(variances, 0) + penalty)[:, None] for penalty in penalties]
        return min(solutions, key=lambda solution: float(((on_dev @ solution + share - truth) ** 2).sum())), share

    found = {secret.name: solved(secret) for secret in secrets}

    def scores(vectors: Floats) -> Scores:
        of_axes = (features(vectors) - centre) @ axes
        return {name: (of_axes @ solution + share).astype(np.float32) for name, (solution, share) in found.items()}

    return scores


def _squared_distances(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1) - 2 * first @ second.T
    return np.maximum(squares, 0.0)


def fit_trees(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return the votes of extremely randomised trees (Geurts et al. 2006), grown for all secrets at once."""
    from sklearn.ensemble import ExtraTreesClassifier

    values = max(len(secret.values) for secret in secrets) * len(secrets)
    leaves = VALUES_IN_LEAVES // (2 * TREES * values)
    most = max(2, leaves) if leaves < len(train.vectors) else None  # None: until every leaf is pure
    targets = np.stack([train.values[secret.name] for secret in secrets], axis=1)
    forest = ExtraTreesClassifier(TREES, max_leaf_nodes=most, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # many values, few texts
        forest.fit(train.vectors, targets if len(secrets) > 1 else targets[:, 0])
    seen = forest.classes_ if len(secrets) > 1 else [forest.classes_]

    def scores(vectors: Floats) -> Scores:
        shares = forest.predict_proba(vectors)
        parts = shares if len(secrets) > 1 else [shares]
        result = {}
        for secret, classes, share in zip(secrets, seen, parts, strict=True):
            full = np.full((len(vectors), len(secret.values)), LEAST)
            full[:, classes] = np.maximum(share, LEAST)
            result[secret.name] = np.log(full).astype(np.float32)
        return result

    return Trained(scores)
