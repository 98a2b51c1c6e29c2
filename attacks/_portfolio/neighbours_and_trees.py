"""Train neighbours and forests. Both also recognise copies, and near copies, of the attacker's own texts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._portfolio.members import Scorer, Scores, Task, Trained, log_loss
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import KnownTexts

Array = NDArray[np.float64]
Search = Callable[[Floats], tuple[Floats, Integers]]
"""Returns squared distances and rows of the nearest known texts, (n, k) each."""

NEIGHBOURS = 50
"""Number of known texts that vote on a text."""
WIDTHS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Widths of the votes' weights to try, as multiples of the median squared distance to the fifth neighbour."""
PRIORS = (0.03, 0.3, 3.0)
"""Weights of the prior to try: each value's share of all known texts. A neighbour at distance 0 has weight 1."""
MOST_EXACT = 100_000
"""Largest number of known texts whose distances are all computed."""
CELLS, CELLS_SEARCHED = 1_024, 32
"""Cells of the vectors' space, and the number of nearest cells whose texts are compared."""
EXTRA_COUNT = 1 / 400
"""Added to the number of known texts with a value, so that no value is impossible."""
TREES = 100
"""Number of trees in a forest; retraining with dev adds a second forest of this size."""
MAX_LEAF_NUMBERS = 50_000_000
"""Largest number of values in the leaves of a forest: 400 MB."""


def fit_neighbours(task: Task) -> Trained:
    """Let the nearest known texts vote, with Gaussian weights (Nadaraya 1964; Watson 1964).

    For each secret, the width of the weights and the weight of the prior are those of least log-loss on dev. A copy of
    a known text has the largest single vote. A text far from all known texts gets the prior.
    """
    train, dev, secrets = task.train, task.dev, task.secrets
    on_dev = _search(task, train)(dev.vectors)
    unit = float(np.median(on_dev[0][:, min(4, on_dev[0].shape[1] - 1)])) or 1.0

    def votes(near: tuple[Floats, Integers], codes: Integers, secret: Secret, width: float) -> Array:
        (distances, rows), values = near, len(secret.values)
        weights = np.exp(-distances / (2 * width * unit))
        places = values * np.arange(len(rows))[:, None] + codes[rows]
        sums = np.bincount(places.ravel(), weights.ravel(), values * len(rows))
        return np.asarray(sums, np.float64).reshape(-1, values)

    def logs(sums: Array, codes: Integers, prior: float) -> Array:
        sums = sums + prior * (np.bincount(codes, minlength=sums.shape[1]) + EXTRA_COUNT) / len(codes)
        return np.log(sums / sums.sum(1, keepdims=True))

    def best_choice(secret: Secret) -> tuple[float, float]:
        codes, truth = train.values[secret.name], dev.values[secret.name]
        sums = {width: votes(on_dev, codes, secret, width) for width in WIDTHS}
        choices = ((width, prior) for width in WIDTHS for prior in PRIORS)
        return min(choices, key=lambda choice: log_loss(logs(sums[choice[0]], codes, choice[1]), truth))

    best = {secret.name: best_choice(secret) for secret in secrets}

    def trained(texts: KnownTexts) -> Trained:
        search = _search(task, texts)

        def scorer(vectors: Floats) -> Scores:
            near, result = search(vectors), {}
            for secret in secrets:
                codes, (width, prior) = texts.values[secret.name], best[secret.name]
                scores = logs(votes(near, codes, secret, width), codes, prior)
                result[secret.name] = scores.astype(np.float32)
            return result

        return Trained(scorer)

    return trained(train)._replace(retrain=trained)


def _search(task: Task, texts: KnownTexts) -> Search:
    """Return an exact search among at most `MOST_EXACT` texts; among more it compares with the nearest cells alone."""
    import faiss

    known = np.ascontiguousarray(task.inputs(texts.vectors))
    index: Any = faiss.IndexFlatL2(known.shape[1])
    if len(known) > MOST_EXACT:
        index = faiss.IndexIVFFlat(index, known.shape[1], CELLS)
        index.cp.seed, index.nprobe = task.seed, CELLS_SEARCHED
        index.train(known[:: max(1, len(known) // (64 * CELLS))])
    index.add(known)

    def search(vectors: Floats) -> tuple[Floats, Integers]:
        scaled = np.ascontiguousarray(task.inputs(vectors))
        distances, rows = index.search(scaled, min(NEIGHBOURS, index.ntotal))
        return np.maximum(distances, 0), rows

    return search


def fit_trees(task: Task) -> Trained:
    """Grow extremely randomised trees (Geurts et al. 2006) for all secrets at once, and let them vote.

    Retraining with dev adds a second forest of the same size; the first one stays.
    """
    forest = _forest(task, task.train, task.seed)

    def retrain(texts: KnownTexts) -> Trained:
        second = _forest(task, texts, task.seed + 1)
        return Trained(lambda vectors: _log_votes((forest(vectors), second(vectors))))

    return Trained(lambda vectors: _log_votes((forest(vectors),)), retrain)


def _log_votes(forests: Sequence[Scores]) -> Scores:
    """Return the log of the mean votes of forests of the same size; a value without a vote has a quarter of one."""
    least = 1 / (4 * TREES)
    return {name: np.log(np.mean([votes[name] for votes in forests], axis=0).clip(least)) for name in forests[0]}


def _forest(task: Task, texts: KnownTexts, seed: int) -> Scorer:
    """Grow a forest; return a function that gives the share of trees that vote for each value."""
    from sklearn.ensemble import ExtraTreesClassifier

    secrets = task.secrets
    values = max(len(secret.values) for secret in secrets) * len(secrets)
    leaves = MAX_LEAF_NUMBERS // (2 * TREES * values)
    max_leaves = max(2, leaves) if leaves < len(texts.vectors) else None  # None: until every leaf is pure
    targets = np.stack([texts.values[secret.name] for secret in secrets], axis=1)
    forest = ExtraTreesClassifier(TREES, max_leaf_nodes=max_leaves, random_state=seed)
    forest.fit(task.inputs(texts.vectors), targets if len(secrets) > 1 else targets[:, 0])
    classes = forest.classes_ if len(secrets) > 1 else [forest.classes_]

    def votes(vectors: Floats) -> Scores:
        shares = forest.predict_proba(task.inputs(vectors))
        result = {}
        for secret, seen, share in zip(secrets, classes, shares if len(secrets) > 1 else [shares], strict=True):
            result[secret.name] = np.zeros((len(vectors), len(secret.values)), np.float32)
            result[secret.name][:, seen] = share
        return result

    return votes
