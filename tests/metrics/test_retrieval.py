"""Half of a text's words must find the text: ranks by hand, and scores as ir-measures computes them."""

import ir_measures
import numpy as np
import pytest

from leakboard.corpus import Texts
from leakboard.metrics.retrieval import half_texts, ranks_of, retrieval_metrics


def test_a_query_is_half_of_the_words_in_their_order_of_a_text_that_occurs_once():
    texts = Texts(["One two, three four five", "twice here", "alone", "twice here", "a b", *["alone"] * 95])
    rows, halves = half_texts(texts, np.random.default_rng(0))
    assert rows.tolist() == [0, 4]
    assert half_texts(Texts(texts[:99]), np.random.default_rng(0))[0].tolist() == []
    assert [len(half.split()) for half in halves] == [3, 1]
    for row, half in zip(rows, halves, strict=True):
        words = texts[row].split()
        assert [word for word in words if word in half.split()] == half.split()


def test_other_draws_take_other_words():
    texts = Texts([" ".join("abcdefghij"), *["alone"] * 99])
    drawn = {half_texts(texts, np.random.default_rng(seed))[1][0] for seed in range(20)}
    assert len(drawn) > 10


def test_ranks_by_hand():
    documents = np.array([[1, 0], [0, 1], [5, 5], [-1, 0]], np.float32)
    queries = np.array([[2, 0.1], [2, 0.1], [-0.1, 3], [0, 0]], np.float32)
    # cosines are .999, .050, .742, -.999; then -.033, .999, .683, .033; the last query is as near to all texts
    assert ranks_of(np.array([0, 1, 3, 2]), queries, documents).tolist() == [1, 3, 3, 3]


def test_many_queries_have_the_ranks_of_a_sorted_list():
    rng = np.random.default_rng(1)
    documents, rows = rng.normal(size=(300, 5)).astype(np.float32), rng.permutation(300)[:150]
    queries = documents[rows] + rng.normal(size=(150, 5)).astype(np.float32)
    unit = [values / np.linalg.norm(values, axis=1, keepdims=True) for values in (queries, documents)]
    order = np.argsort(-(unit[0] @ unit[1].T), axis=1)
    wanted = [1 + order[query].tolist().index(row) for query, row in enumerate(rows)]
    assert ranks_of(rows, queries, documents).tolist() == wanted


def test_of_equal_vectors_half_count_as_nearer():
    """Products of matrices round the same vectors differently."""
    documents = np.repeat(np.random.default_rng(0).normal(size=(1, 384)), 201, axis=0).astype(np.float32)
    assert set(ranks_of(np.arange(150), documents[:150], documents).tolist()) == {101}


def test_scores_are_those_of_ir_measures():
    ranks = np.array([1, 3, 10, 11, 250])
    truth = [ir_measures.Qrel(str(query), "right", 1) for query in range(len(ranks))]
    run = [
        ir_measures.ScoredDoc(str(query), "right" if place == rank else f"other {place}", -place)
        for query, rank in enumerate(ranks)
        for place in range(1, 300)
    ]
    wanted = ir_measures.calc_aggregate([ir_measures.R @ 10, ir_measures.RR @ 10, ir_measures.nDCG @ 10], truth, run)
    metrics = {metric.name: metric for metric in retrieval_metrics(ranks, None)}
    for name, score in (("recall", "R@10"), ("mrr", "RR@10"), ("ndcg", "nDCG@10")):
        metric = metrics[f"retrieval_{name}@10"]
        assert metric.value == pytest.approx(wanted[ir_measures.parse_measure(score)], abs=1e-9)
        assert metric.low < metric.value < metric.high
        assert metric.n == 5


def test_without_queries_there_is_no_score():
    assert retrieval_metrics(np.zeros(0, np.int64), None) == []
