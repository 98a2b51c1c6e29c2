"""Test the trigram law: values by hand, sums, and an independent implementation."""

import math
from collections import Counter

import numpy as np
import pytest

from leakboard.models.trigrams import Trigrams

TEXTS = [[0, 1, 2], [0, 1], [0, 2, 1, 2], []]
"""Words 0, 1 and 2 of a vocabulary of four."""


@pytest.fixture(scope="module")
def law():
    return Trigrams.fit(TEXTS, 4)


class TestByHand:
    def test_a_word_after_two(self, law):
        # 13 words and ends of 4 kinds: 0 three times, 1 three times, 2 three times, end four times
        one = (3 + 4 * 1 / 5) / (13 + 4)
        # after 0 come 1, 1 and 2
        pair = (2 + 2 * one) / (3 + 2)
        # after start and 0 come 1, 1 and 2, too
        triple = (2 + 2 * pair) / (3 + 2)
        assert law.log_probabilities(law.start, 0, 1) == pytest.approx(math.log(triple))

    def test_a_word_after_one(self, law):
        one = (3 + 4 * 1 / 5) / (13 + 4)
        assert law.log_pairs(0, 1) == pytest.approx(math.log((2 + 2 * one) / (3 + 2)))
        assert law.log_pairs(3, 1) == pytest.approx(math.log(one))

    def test_a_history_never_seen_leaves_the_shorter_one(self, law):
        one = (3 + 4 * 1 / 5) / (13 + 4)
        pair = (2 + 2 * one) / (3 + 2)
        assert law.log_probabilities(3, 0, 1) == pytest.approx(math.log(pair))
        assert law.log_probabilities(3, 3, 1) == pytest.approx(math.log(one))

    def test_a_word_never_seen(self, law):
        assert law.log_probabilities(3, 3, 3) == pytest.approx(math.log(4 / 5 / 17))


@pytest.mark.parametrize("history", [(0, 1), (5, 0), (5, 5), (3, 3), (2, 1)])
def test_probabilities_sum_to_one(law, history):
    chances = np.exp(law.log_probabilities(*history, np.arange(5)))
    assert chances.sum() == pytest.approx(1, abs=1e-12)


def test_a_text_is_the_product_of_its_words_and_its_end(law):
    steps = [(5, 5, 0), (5, 0, 1), (0, 1, 4)]
    assert law.log_probability([0, 1]) == pytest.approx(sum(float(law.log_probabilities(*step)) for step in steps))


def test_codes_are_broadcast(law):
    table = law.log_probabilities(np.arange(6)[:, None, None], np.arange(6)[:, None], np.arange(5))
    assert table.shape == (6, 6, 5)
    assert table[2, 1, 3] == law.log_probabilities(2, 1, 3)


@pytest.mark.slow  # nltk takes seconds to import
def test_nltk_agrees():
    """Its law has no uniform law below single words, so that part is given to it."""
    lm = pytest.importorskip("nltk.lm")
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 6, size=rng.integers(0, 9)) for _ in range(60)]
    law = Trigrams.fit(texts, 6)
    padded = [("<", "<", *map(str, text), ">") for text in texts]
    single = Counter(word for line in padded for word in line[2:])
    total = single.total()
    theirs = lm.WittenBellInterpolated(3, vocabulary=lm.Vocabulary([*map(str, range(6)), "<", ">"]))
    theirs.fit([[line[end - n : end] for end in range(3, len(line) + 1)] for n in (1, 2, 3) for line in padded])
    theirs.estimator.unigram_score = lambda word: (single[word] + len(single) / 7) / (total + len(single))
    names = [*map(str, range(6)), ">", "<"]
    for first, second, third in rng.integers(0, [8, 8, 7], size=(300, 3)):
        if law.end in (first, second):
            continue
        score = theirs.score(names[third], [names[first], names[second]])
        assert np.exp(law.log_probabilities(first, second, third)) == pytest.approx(score, rel=1e-12)


def test_no_texts_leave_the_uniform_law():
    assert np.allclose(np.exp(Trigrams.fit([], 3).log_probabilities(0, 0, np.arange(4))), 1 / 4)


def test_a_code_that_is_no_word_is_refused():
    with pytest.raises(ValueError, match="allowed: 0 to 3"):
        Trigrams.fit([[4]], 4)
