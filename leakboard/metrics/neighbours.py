"""Score the neighbours of words in a published table against a gold table (Vu, Tran and Jiang 2019, figure 3).

For each of eleven frequent words, the K = 100 nearest words in the published table are compared with those in the gold
table. The authors' code (`eval_utils.py`) has two scores, MAP-Word and MAP-Char. They are kept as coded, to compare
with published numbers. Both are defective, so the standard average precision at K is reported, too. Each of the three
scores is also computed for random words of the published table. The authors' gold table is a Word2Vec of Text8; here
the caller gives a gold table. These scores do not measure privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from leakboard.interfaces import Floats, PublishedWords
from leakboard.metrics.measures import Metric, Ratio
from leakboard.randomness import stream

QUERIES = ("been", "time", "over", "not", "three", "between", "from", "eight", "they", "more", "other")
"""The paper's words."""
NEIGHBOURS = 100
"""The paper's K."""
RANDOM_LISTS = 20
"""Random lists for each query; their mean score is reported, since the score of one list is a matter of luck."""
UNKNOWN = "no query is in both tables"
CONTEXTUAL = "contextual vectors are not a table of words"
DEFECTS = {
    "map_word": "as coded, a mean over hits alone: words that are not found cost nothing",
    "map_char": "as coded, it measures the alphabet: random words score about 0.9",
}
"""Defects of the paper's scores; the status of every number names them."""


def map_word_as_coded(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return MAP-Word of one query as in the paper's code (`calc_map`); 0 without a hit.

    A hit is a predicted word that is among the gold words. The mean of hits/rank is over the hits alone, so misses
    cost nothing. One hit at rank 1 and 99 misses score 1.0; a second hit at rank 100 lowers the score.

    Args:
        predicted: at most K words, nearest first.
        gold: at most K words, whose order does not matter.
    """
    wanted = set(gold)
    return _mean_at_hits([word in wanted for word in predicted])


def map_char_as_coded(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """Return MAP-Char of one query as in the paper's code (`calc_map_character_level`); 0 without a hit.

    The words of each list are joined without spaces. A hit at rank r is a predicted letter that is anywhere among the
    first r gold letters. The score measures the alphabet: soon all letters have occurred, and random words score 0.89.
    Without a hit the authors' code divides by zero (NaN); here the score is 0.

    Args:
        predicted: at most K words, nearest first.
        gold: at most K words, nearest first; their order matters.
    """
    wanted = "".join(gold)
    return _mean_at_hits([letter in wanted[:rank] for rank, letter in enumerate("".join(predicted), start=1)])


def average_precision(predicted: Sequence[str], gold: Sequence[str], k: int = NEIGHBOURS) -> float:
    """Return average precision at ``k``: the sum of hits/rank over the hits, divided by min(len(gold), k).

    Unlike in the scores of the paper, misses count: one hit at rank 1 and 99 misses score 0.01. Without gold words the
    score is 0.

    Args:
        predicted: distinct words, nearest first; only the first ``k`` count. Missing words count as misses.
        gold: distinct words, whose order does not matter.
        k: how many predicted words count.
    """
    wanted = set(gold)
    return sum(_at_hits([word in wanted for word in predicted[:k]])) / max(1, min(len(gold), k))


def _at_hits(is_hit: Sequence[bool]) -> list[float]:
    """Return (hits so far) / rank at the rank of every hit."""
    return [hits / (rank + 1) for hits, rank in enumerate(np.flatnonzero(is_hit), start=1)]


def _mean_at_hits(is_hit: Sequence[bool]) -> float:
    return float(np.mean(_at_hits(is_hit))) if any(is_hit) else 0.0


def neighbours(words: Sequence[str], vectors: Floats, queries: Sequence[str], k: int) -> dict[str, list[str]]:
    """Return the ``k`` words of highest cosine similarity to each query that is in the table, nearest first.

    The search is exact, and ties are in the order of the table. The query itself is left out, and a small table gives
    fewer than ``k``.

    Args:
        words: of the table, distinct.
        vectors: float32 (V, d), one row for each word.
        queries: words; a word that is not in the table gets no list.
        k: number of neighbours of each query.
    """
    from leakboard.models.search import normalised  # takes seconds to import

    rows = {word: row for row, word in enumerate(words)}
    present = [query for query in queries if query in rows]
    table = normalised(vectors)
    itself = [rows[query] for query in present]
    similarity = table[itself] @ table.T
    similarity[np.arange(len(present)), itself] = -np.inf
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, : min(k, len(words) - 1)]
    return {query: [words[row] for row in order] for query, order in zip(present, nearest, strict=True)}


def neighbour_metrics(
    published: PublishedWords,
    gold: PublishedWords,
    queries: Sequence[str] = QUERIES,
    k: int = NEIGHBOURS,
    seed: int = 0,
) -> list[Metric]:
    """Return the three scores as means over the queries that both tables have, each also for random words.

    Intervals are over queries: they show how much the score depends on the choice of words.

    Args:
        published: the table to score.
        gold: the table with the right neighbours. If a table is contextual, ``gold_queries`` is 0, without scores.
        queries: words to ask for; ``gold_queries`` is the share of these words that both tables have.
        k: number of neighbours of each query.
        seed: draws the random words.
    """
    scores: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
        "map_word": map_word_as_coded,
        "map_char": map_char_as_coded,
        f"average_precision@{k}": partial(average_precision, k=k),
    }
    contextual = any(table.text_index is not None for table in (published, gold))
    shared = [] if contextual else [q for q in queries if q in published.words and q in gold.words]
    status = CONTEXTUAL if contextual else "" if shared else UNKNOWN
    share = Metric("gold_queries", len(shared) / max(1, len(queries)), n=len(queries), status=status)
    if not shared:
        names = [name + ending for name in scores for ending in ("", "_random")]
        return [share, *(Metric(name, None, n=0, status=status) for name in names)]
    predicted, wanted = (neighbours(table.words, table.vectors, shared, k) for table in (published, gold))
    drawn = {query: _random_lists(published.words, query, k, seed) for query in shared}
    metrics = [share]
    for name, score in scores.items():
        chance = [float(np.mean([score(words, wanted[q]) for words in drawn[q]])) for q in shared]
        metrics += [
            _mean_over_queries([score(predicted[q], wanted[q]) for q in shared], name),
            _mean_over_queries(chance, f"{name}_random"),
        ]
    return metrics


def _random_lists(words: Sequence[str], query: str, k: int, seed: int) -> list[list[str]]:
    """Return lists of at most ``k`` distinct words other than the query, in random order."""
    others = [word for word in words if word != query]
    generator = stream(seed, "random neighbours", query)
    drawn = [generator.permutation(len(others))[:k] for _ in range(RANDOM_LISTS)]
    return [[others[row] for row in rows] for rows in drawn]


def _mean_over_queries(values: Sequence[float], name: str) -> Metric:
    """Return the mean with its interval, and the defect of the score."""
    mean = Ratio(np.array(values, dtype=np.float64), np.ones(len(values))).metric(name)
    return replace(mean, status=DEFECTS.get(name.removesuffix("_random"), ""))
