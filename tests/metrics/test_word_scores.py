"""Test the scores of word recovery and the recovered sentences."""

import numpy as np
import pytest

from leakboard.errors import NotApplicable, RequestError
from leakboard.metrics.word_scores import (
    ASKED,
    UNPUBLISHED,
    RecoveredSentence,
    WordGuesses,
    recovered_sentences,
    true_ranks,
    word_metrics,
)

VOCABULARY = [f"word{i}" for i in range(20)]


def guesses(ranked, vocabulary=VOCABULARY):
    ranked = np.array(ranked, dtype=np.int64)
    return WordGuesses(list(vocabulary), ranked, np.linspace(1, 0.5, ranked.size).reshape(ranked.shape))


def values(metrics):
    return {m.name: m.value for m in metrics}


def test_ranks_recall_and_reciprocal_rank_by_hand():
    published = ["word0", "word1", "word2", "word3", "unknown"]
    ranked = [
        [0, 1, 2, 3, 4, 5],  # first
        [2, 1, 0, 3, 4, 5],  # second
        [3, 4, 5, 6, 7, 2],  # sixth
        [4, 5, 6, -1, -1, -1],  # not among the candidates
        [0, 1, 2, 3, 4, -1],  # not in the attacker's vocabulary
    ]
    assert true_ranks(guesses(ranked), published).tolist() == [0, 1, 5, np.inf, np.inf]
    scores = values(word_metrics(guesses(ranked), published, ()))
    assert [scores[f"recall@{k}"] for k in range(1, 6)] == [0.2, 0.4, 0.4, 0.4, 0.4]
    assert scores["attack_score"] == 0.4
    assert scores["mean_reciprocal_rank"] == pytest.approx((1 + 1 / 2 + 1 / 6) / 5)
    assert scores["known_to_attacker"] == 0.8
    assert scores["empirical_privacy"] == pytest.approx(0.6)
    assert scores["privacy_best_constant"] == 1


def test_the_code_for_no_candidate_finds_no_unknown_word():
    assert true_ranks(guesses([[-1, -1], [-1, 0]]), ["unknown", "word5"]).tolist() == [np.inf, np.inf]


def test_the_constant_guess_caps_privacy():
    published = ["the"] * 6 + ["word1"] * 4
    ranked = np.full((10, 5), -1)
    constant = ["the", "a", "b", "c", "d", "word1"]
    scores = values(word_metrics(guesses(ranked), published, constant))
    assert scores["attack_score"] == 0
    assert scores["privacy_best_constant"] == scores["empirical_privacy"] == pytest.approx(0.4)


def test_one_word_is_scored_and_no_words_are_not_applicable():
    assert values(word_metrics(guesses([[3, 0, 1, 2, 4]]), ["word3"], ()))["recall@1"] == 1
    with pytest.raises(NotApplicable, match="no published word is left to name"):
        word_metrics(guesses(np.empty((0, 5))), [], ())


@pytest.mark.parametrize(
    ("ranked", "similarity", "reason"),
    [
        ([[0, 1]] * 2, [[1.0, 0.5]] * 2, "ranked 2 vectors, 1 were published"),
        ([[0, 20]], [[1.0, 0.5]], "outside its vocabulary of 20"),
        ([[-2, 0]], [[1.0, 0.5]], "outside its vocabulary of 20"),
        ([[0, 1]], [[1.0]], "not one finite number for each candidate"),
        ([[0, 1]], [[1.0, np.nan]], "not one finite number for each candidate"),
    ],
)
def test_impossible_guesses_are_refused(ranked, similarity, reason):
    guessed = WordGuesses(VOCABULARY, np.array(ranked), np.array(similarity, np.float32))
    with pytest.raises(RequestError, match=reason):
        word_metrics(guessed, ["word0"], ())


def test_words_of_one_text_count_as_one_observation():
    ranked = np.repeat([[0, 1], [1, 0]], 50, axis=0)
    published = ["word0"] * 100
    texts = np.repeat([0, 1], 50)
    single, together = (
        next(m for m in word_metrics(guesses(ranked), published, (), units) if m.name == "recall@1")
        for units in (None, texts)
    )
    assert single.value == together.value == 0.5
    assert (single.low, single.high) == pytest.approx((0.4, 0.6), abs=0.02)
    assert together.low < 0.01
    assert together.high > 0.99


def test_recovered_sentences_by_hand():
    published = ["apple", "bear", "cat"]
    vocabulary = ["apple", "bird", "cat"]
    guessed = WordGuesses(
        vocabulary, np.array([[0], [1], [-1]]), np.array([[0.9], [0.5], [0.0]], np.float32), details="made"
    )
    sentences = [
        ("a cat, apple", [("a", UNPUBLISHED), ("cat", 2), ("apple", 0)]),
        ("Apple, bear!", [("apple", 0), ("bear", 1)]),
        ("A cat", [("a", UNPUBLISHED), ("cat", 2)]),
        ("zzz", [("zzz", UNPUBLISHED)]),
        ("the apple", [("the", ASKED), ("apple", 0)]),
    ]
    unnamed, first, second, third, fourth = recovered_sentences(guessed, published, sentences)
    assert unnamed.similarities == "_ _ 0.90"
    assert first == RecoveredSentence("Apple, bear!", "apple bird", 1, 2, pytest.approx(0.7), "0.90 0.50")
    assert (second.recovered, second.words_right, second.words) == ("_ _", 0, 2)
    assert third.recovered == "_"
    assert (third.similarity, third.similarities) == (None, "")
    assert (fourth.recovered, fourth.words_right, fourth.words) == ("[the] apple", 1, 1)
    assert fourth.similarities == "_ 0.90"
