"""Score how well published vectors serve search: half of a text's words must find the text (known-item search).

A random half of the words of a test text is published like any other text. The test texts are ranked by cosine
similarity to this vector. One text is right, so with its rank r the scores of the first ten are:

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

LEAST_TEXTS = 100
"""Smallest number of test texts to search in: by chance, a search of n texts finds the right one in 10 / n."""
MAX_SEARCHES = 500
"""Largest number of searches; the standard error of a share is at most 0.022, without authors."""
DEPTH = 10
"""Number of texts that a search returns."""
SEARCHES_AT_ONCE = 64
EQUAL = 1e-6
"""Similarities that differ by less are equal: products of matrices round."""


def half_texts(texts: Texts, rng: np.random.Generator) -> tuple[Integers, Texts]:
    """Return the rows of up to `MAX_SEARCHES` texts, int64 (q,), and a random half of the words of each, in order.

    A text needs two words, and may occur only once. Of fewer than `LEAST_TEXTS` texts, none is returned.
    """
    counts = Counter(texts)
    rows = [row for row, text in enumerate(texts) if counts[text] == 1 and len(text.split()) > 1]
    most = MAX_SEARCHES if len(texts) >= LEAST_TEXTS else 0
    chosen = np.sort(rng.permutation(np.array(rows, np.int64))[:most])
    return chosen, Texts([half_of(texts[row], rng) for row in chosen])


def half_of(text: str, rng: np.random.Generator) -> str:
    """Return a random half of the words of a text, in order; of an odd number, one more."""
    words = text.split()
    kept = np.sort(rng.permutation(len(words))[: (len(words) + 1) // 2])
    return " ".join(words[place] for place in kept)


def ranks_of(rows: Integers, halves: Floats, documents: Floats) -> Integers:
    """Return the rank of each half's own text by cosine similarity, int64 (q,), 1 for the nearest.

    Of the other texts that are as near as the right one, half count as nearer.

    Args:
        rows: the right row of ``documents`` for each half, int64 (q,).
        halves: vectors of half texts, float32 (q, d).
        documents: vectors of all texts, float32 (n, d).
    """
    from leakboard.models.search import normalised  # takes seconds to import

    ranks, lengths = np.empty(len(rows), np.int64), np.linalg.norm(documents, axis=1)
    lengths[lengths == 0] = 1
    for start in range(0, len(rows), SEARCHES_AT_ONCE):
        part = slice(start, start + SEARCHES_AT_ONCE)
        similarity = normalised(halves[part]) @ documents.T / lengths
        right = similarity[np.arange(len(similarity)), rows[part]][:, None]
        equal = (np.abs(similarity - right) <= EQUAL).sum(1) - 1
        ranks[part] = 1 + (similarity > right + EQUAL).sum(1) + (equal + 1) // 2
    return ranks


def retrieval_metrics(ranks: Integers, units: Integers | None) -> list[Metric]:
    """Return recall, mean reciprocal rank and normalised gain of the first `DEPTH` texts.

    Args:
        ranks: rank of the right text of each search, int64 (q,).
        units: author of the text of each search, int64 (q,); None: texts are independent.
    """
    if not len(ranks):
        return []
    found = ranks <= DEPTH
    scores = {"recall": np.ones(len(ranks)), "mrr": 1 / ranks, "ndcg": 1 / np.log2(1 + ranks)}
    return [
        Ratio(np.where(found, score, 0.0), np.ones(len(ranks)), units).metric(f"retrieval_{name}@{DEPTH}")
        for name, score in scores.items()
    ]
