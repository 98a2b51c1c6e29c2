"""The context-free bound of a corpus: equal to a loop over all guesses, and never beaten on average."""

import itertools

import numpy as np
import pytest

from leakboard.privacy.channels.noisy_vectors import MultivariateLaplace
from leakboard.privacy.channels.santext import SanText
from leakboard.privacy.channels.texts import TOKEN, TextChannel
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.corpus_bound import corpus_bound

WORDS = ["inn", "hotel", "book", TOKEN]
SPACE = WordSpace(WORDS, np.arange(4.0)[:, None])
TEXT = ["inn"] * 5 + ["hotel"] * 3 + ["book"] + ["kelly"] * 4 + ["smith"] * 2


def channel(epsilon=1.0, **more):
    return TextChannel(SanText(epsilon=epsilon).fit(SPACE, np.random.default_rng(0)), **more)


def by_loop(of, text):
    """Try every guess for every published word: all words of the text are candidates."""
    logs = np.exp(of.known.log_probabilities(of.inputs(sorted(set(text)))))
    joint = [[text.count(word) * row[y] for word, row in zip(sorted(set(text)), logs, strict=True)] for y in range(4)]
    return max(
        sum(joint[y][guess] for y, guess in enumerate(guesses))
        for guesses in itertools.product(range(len(set(text))), repeat=4)
    ) / len(text)


def test_it_is_that_of_the_best_of_all_guesses():
    assert corpus_bound(channel(), TEXT) == pytest.approx(by_loop(channel(), TEXT), abs=1e-12)


def test_kept_words_are_sure():
    alone = ["kelly"] * 4
    assert corpus_bound(channel(unknown="kept"), alone) == 1
    expected = (6 + 9 * corpus_bound(channel(), TEXT[:9])) / 15
    assert corpus_bound(channel(unknown="kept"), TEXT) == pytest.approx(expected)


def test_of_words_outside_the_vocabulary_only_the_most_frequent_can_be_right():
    assert corpus_bound(channel(1e6), TEXT) == pytest.approx((5 + 3 + 1 + 4) / 15)


def test_no_guess_by_single_words_is_better_on_average():
    """The best guesses on the draws themselves are better: they know these draws. Fixed guesses are not."""
    of, rng = channel(), np.random.default_rng(0)
    logs = of.known.log_probabilities(of.inputs(TEXT))
    counts = np.array([TEXT.count(word) for word in TEXT])
    guess = [TEXT[int((np.exp(logs[:, y]) * counts).argmax())] for y in range(4)]
    drawn = [of.publish([TEXT], rng)[0] for _ in range(2_000)]
    right = np.mean([[guess[WORDS.index(y)] == x for x, y in zip(TEXT, text, strict=True)] for text in drawn])
    assert right == pytest.approx(corpus_bound(of, TEXT), abs=4 * 0.5 / np.sqrt(2_000 * 15))


def test_without_a_matrix_or_a_word_there_is_none():
    wide = WordSpace(WORDS, np.eye(4))
    laplace = TextChannel(MultivariateLaplace(epsilon=1.0).fit(wide, np.random.default_rng(0)))
    assert corpus_bound(laplace, TEXT) is None
    assert corpus_bound(channel(), []) is None
