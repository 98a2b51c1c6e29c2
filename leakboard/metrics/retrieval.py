"""Score how well published vectors serve search: half of a text's words must find the text (known-item search).

The query is a random half of the words of a test text, published by the victim like any other text. The test texts are
ranked by cosine similarity to it. One text is right, so with its rank r the scores of the first ten are:

| score | if r <= 10 | else |
|---|---|---|
| recall | 1 | 0 |
| reciprocal rank | 1 / r | 0 |
| discounted cumulative gain, normalised | 1 / log2(1 + r) | 0 |
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from leakboard.interfaces import Floats, Integers, Texts
from leakboard.metrics.measures import Metric, Ratio

QUERIES = 500
"""Largest number of queries; their sampling error is at most 0.022."""
DEPTH = 10
"""Number of texts that a search returns."""
QUERIES_AT_ONCE = 64


def half_texts(texts: Texts, rng: np.random.Generator) -> tuple[Integers, Texts]:
    """Return the rows of up to `QUERIES` texts, int64 (q,), and half of the words of each, in their order.

    A text needs two words, and may occur only once.
    """
    counts = Counter(texts)
    rows = [row for row, text in enumerate(texts) if counts[text] == 1 and len(text.split()) > 1]
    chosen = np.sort(rng.permutation(np.array(rows, np.int64))[:QUERIES])
    halves = []
    for row in chosen:
        words = texts[row].split()
        kept = np.sort(rng.permutation(len(words))[: (len(words) + 1) // 2])
        halves.append(" ".join(words[place] for place in kept))
    return chosen, Texts(halves)


def ranks_of(rows: Integers, queries: Floats, documents: Floats) -> Integers:
    """Return the rank of each query's own text by cosine similarity, int64 (q,), 1 for the nearest.

    Texts that are as near as the right one share its rank: half of them count as nearer.

    Args:
        rows: the right row of ``documents`` for each query, int64 (q,).
        queries: float32 (q, d).
        documents: float32 (n, d).
    """
    from leakboard.models.search import normalised  # takes seconds to import

    index, ranks = normalised(documents), np.empty(len(rows), np.int64)
    for start in range(0, len(rows), QUERIES_AT_ONCE):
        part = slice(start, start + QUERIES_AT_ONCE)
        similarity = normalised(queries[part]) @ index.T
        right = similarity[np.arange(len(similarity)), rows[part]][:, None]
        equal = (similarity == right).sum(1) - 1
        ranks[part] = 1 + (similarity > right).sum(1) + (equal + 1) // 2
    return ranks


def retrieval_metrics(ranks: Integers, units: Integers | None) -> list[Metric]:
    """Return recall, mean reciprocal rank and normalised gain of the first `DEPTH` texts.

    Args:
        ranks: rank of the right text of each query, int64 (q,).
        units: author of the text of each query, int64 (q,); None: texts are independent.
    """
    if not len(ranks):
        return []
    found = ranks <= DEPTH
    scores = {"recall": np.ones(len(ranks)), "mrr": 1 / ranks, "ndcg": 1 / np.log2(1 + ranks)}
    return [
        Ratio(np.where(found, score, 0.0), np.ones(len(ranks)), units).metric(f"retrieval_{name}@{DEPTH}")
        for name, score in scores.items()
    ]
