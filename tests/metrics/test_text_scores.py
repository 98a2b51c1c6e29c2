"""Test the scores of texts guessed from vectors: precision, recall, and the best constant guess."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from leakboard.data.corpora import build_corpus
from leakboard.interfaces import Texts
from leakboard.metrics.text_scores import best_constant_bag, overlap, recovered_texts, text_metrics


def corpus_of(train, test, dev=None):
    """Return a corpus without secrets and labels."""
    splits = {"train": train, "dev": test if dev is None else dev, "test": test}
    frames = {name: pd.DataFrame({"text": texts, "row": range(len(texts))}) for name, texts in splits.items()}
    return build_corpus("invented", frames, [], None)


def values(metrics):
    return {metric.name: metric.value for metric in metrics}


def test_precision_recall_and_f1_with_unequal_counts():
    corpus = corpus_of(["z"], ["A a, b c."])
    counted = values(text_metrics(["a b b d e"], True, corpus))
    assert counted["token_precision"] == 2 / 5
    assert counted["token_recall"] == 2 / 4
    assert counted["token_f1"] == counted["attack_score"] == pytest.approx(4 / 9)
    as_set = values(text_metrics(["b b a d e"], False, corpus))
    assert as_set["token_precision"] == 2 / 4
    assert as_set["token_recall"] == 2 / 3
    assert as_set["token_f1"] == pytest.approx(4 / 7)
    assert not {"character_accuracy", "exact_matches"} & set(as_set)


def test_texts_that_no_other_split_has_are_scored_apart():
    guesses = ["a b", "c x", "e f"]
    scores = values(text_metrics(guesses, True, corpus_of(["a b"], ["a b", "c d", "e f"], dev=["e f"])))
    assert scores["attack_score"] == 5 / 6
    assert scores["attack_score_new"] == scores["empirical_privacy_new"] == 1 / 2
    for test in (["a b"] * 3, ["c d"] * 3):  # all have copies, or none has
        assert "attack_score_new" not in values(text_metrics(guesses, True, corpus_of(["a b"], test, dev=["z"])))


def test_tokens_are_pooled_over_texts():
    authors = np.array([0, 0, 1])
    precision, recall, f1 = overlap(
        [Counter("ab"), Counter("x"), Counter()], [Counter("abcd"), Counter("y"), Counter("z")], authors
    )
    assert (precision.value, recall.value) == (2 / 3, 2 / 6)
    assert f1.value == pytest.approx(4 / 9)
    assert all(score.units is authors for score in (precision, recall, f1))


def test_characters_count_at_their_position_only():
    corpus = corpus_of(["z"], ["Abc d", "same text!", "lost"])
    scores = values(text_metrics(["abx d ef", "Same, text", "ost"], True, corpus))
    assert scores["character_accuracy"] == (4 + 9 + 0) / (8 + 9 + 4)
    assert scores["exact_matches"] == pytest.approx(1 / 3)


def test_an_empty_guess_shows_no_privacy_beyond_the_constant():
    corpus = corpus_of(["a b", "a c"], ["a d", "a e"])
    scores = values(text_metrics(["", ""], True, corpus))
    assert scores["token_precision"] == scores["attack_score"] == 0
    assert scores["privacy_best_constant"] == scores["empirical_privacy"] < 1


@pytest.mark.parametrize("seed", range(20))
def test_the_best_constant_is_the_best_of_all_bags(seed):
    rng = np.random.default_rng(seed)
    texts = [Counter(rng.choice(list("abc"), rng.integers(0, 5), p=[0.6, 0.3, 0.1]).tolist()) for _ in range(6)]

    def f1(bag):
        return overlap([bag] * len(texts), texts)[2].value

    bags = [Counter(dict(zip("abc", counts, strict=True))) for counts in itertools.product(range(5), repeat=3)]
    assert f1(best_constant_bag(texts)) == pytest.approx(max(map(f1, bags)))
    assert best_constant_bag([Counter(), Counter()]) == Counter()


def test_true_and_recovered_texts_are_listed_in_pairs():
    pairs = recovered_texts(["a b x", "c"], True, Texts(["A b b.", "d"]))
    rows = [(pair.text, pair.recovered, pair.words_right, pair.words) for pair in pairs]
    assert rows == [("A b b.", "a b x", 2, 3), ("d", "c", 0, 1)]
