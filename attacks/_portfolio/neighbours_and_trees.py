"""Neighbours and forests of the portfolio.

They also find texts that stand, word by word or nearly, among the attacker's own.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from leakboard.attacks._portfolio.members import Scorer, Scores, Trained, log_loss
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from leakboard.attacks._portfolio.portfolio import PortfolioAttack

Search = Callable[[Floats], tuple[Floats, Integers]]
"""Squared distances and rows of the nearest known texts, (n, k) each."""

NEIGHBOURS = 50
"""Known texts that vote on a text."""
WIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Of the votes' weights, as multiples of the median squared distance to the fifth neighbour."""
PRIORS = (0.03, 0.3, 3.0)
"""Votes for the shares of all known texts, against those of the neighbours."""
FEWEST = 1 / 400
"""Added to how many known texts have a value, so that none is impossible."""
TREES = 100
"""Of a forest; with dev as many more."""
VALUES_IN_LEAVES = 50_000_000
"""Most numbers in the leaves of a forest: 400 MB."""
LEAST = 1 / (4 * TREES)
"""Probability of a value that no tree votes for."""


def fit_neighbours(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return the votes of the nearest known texts, of Gaussian weight (Nadaraya 1964; Watson 1964).

    For each secret the width of the weights, and how much the shares of all texts count, are those of the best
    log-loss on dev. A copy of a known text gives a vote that no other outweighs; a text far from all has the shares.
    """
    on_dev = _search(train.vectors)(dev.vectors)
    unit = float(np.median(on_dev[0][:, min(4, on_dev[0].shape[1] - 1)])) or 1.0

    def voted(near: tuple[Floats, Integers], codes: Integers, secret: Secret, width: float, prior: float) -> Floats:
        distances, rows = near
        shares = (np.bincount(codes, minlength=len(secret.values)) + FEWEST) / len(codes)
        votes = np.tile(prior * shares, (len(rows), 1))
        np.add.at(votes, (np.arange(len(rows))[:, None], codes[rows]), np.exp(-distances / (2 * width * unit)))
        return np.log(votes / votes.sum(1, keepdims=True)).astype(np.float32)

    def loss(secret: Secret, width: float, prior: float) -> float:
        return log_loss(voted(on_dev, train.values[secret.name], secret, width, prior), dev.values[secret.name])

    choices = [(width, prior) for width in WIDTHS for prior in PRIORS]
    best = {s.name: min(choices, key=lambda choice: loss(s, *choice)) for s in secrets}

    def scorer(texts: KnownTexts) -> Scorer:
        search = _search(texts.vectors)

        def scores(vectors: Floats) -> Scores:
            near = search(vectors)
            return {s.name: voted(near, texts.values[s.name], s, *best[s.name]) for s in secrets}

        return scores

    return Trained(scorer(train), lambda texts: Trained(scorer(texts)))


def _search(known: Floats) -> Search:
    import faiss

    index = faiss.IndexFlatL2(known.shape[1])
    index.add(np.ascontiguousarray(known))

    def search(vectors: Floats) -> tuple[Floats, Integers]:
        distances, rows = index.search(np.ascontiguousarray(vectors), min(NEIGHBOURS, index.ntotal))
        return np.maximum(distances, 0), rows

    return search


def fit_trees(
    train: KnownTexts, dev: KnownTexts, secrets: tuple[Secret, ...], options: "PortfolioAttack", seed: int
) -> Trained:
    """Return the votes of extremely randomised trees (Geurts et al. 2006), grown for all secrets at once.

    When dev's texts come, trees that learn from them too join those of train alone, as many.
    """
    forest = _forest(train, secrets, seed)

    def again(texts: KnownTexts) -> Trained:
        more = _forest(texts, secrets, seed + 1)
        return Trained(lambda vectors: _votes(secrets, (forest(vectors), more(vectors))))

    return Trained(lambda vectors: _votes(secrets, (forest(vectors),)), again)


def _votes(secrets: tuple[Secret, ...], forests: Sequence[Scores]) -> Scores:
    """Return the logarithms of the mean votes of forests of one size."""
    return {s.name: np.log(np.mean([votes[s.name] for votes in forests], axis=0).clip(LEAST)) for s in secrets}


def _forest(texts: KnownTexts, secrets: tuple[Secret, ...], seed: int) -> Scorer:
    """Return what gives the share of the trees that vote for a value."""
    from sklearn.ensemble import ExtraTreesClassifier

    values = max(len(secret.values) for secret in secrets) * len(secrets)
    leaves = VALUES_IN_LEAVES // (2 * TREES * values)
    most = max(2, leaves) if leaves < len(texts.vectors) else None  # None: until every leaf is pure
    targets = np.stack([texts.values[secret.name] for secret in secrets], axis=1)
    forest = ExtraTreesClassifier(TREES, max_leaf_nodes=most, random_state=seed, n_jobs=torch.get_num_threads())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # many values, few texts
        forest.fit(texts.vectors, targets if len(secrets) > 1 else targets[:, 0])
    forest.set_params(n_jobs=1)  # threads would add votes in the order in which they end
    seen = forest.classes_ if len(secrets) > 1 else [forest.classes_]

    def votes(vectors: Floats) -> Scores:
        shares = forest.predict_proba(vectors)
        parts = shares if len(secrets) > 1 else [shares]
        result = {}
        for secret, classes, share in zip(secrets, seen, parts, strict=True):
            result[secret.name] = full = np.zeros((len(vectors), len(secret.values)), np.float32)
            full[:, classes] = share
        return result

    return votes
