"""Channels of texts: each word alone, the same number of words, and a public rule for words outside the vocabulary."""

import numpy as np
import pytest

from leakboard.privacy.channels.randomised_response import RandomisedResponse
from leakboard.privacy.channels.santext import SanText
from leakboard.privacy.channels.texts import OUTSIDE, TOKEN, TextChannel
from leakboard.privacy.channels.words import WordSpace

WORDS = ["inn", "hotel", "book", TOKEN]
SPACE = WordSpace(WORDS, np.arange(4.0)[:, None])


def channel(epsilon=2.0, **more):
    return TextChannel(SanText(epsilon=epsilon).fit(SPACE, np.random.default_rng(0)), **more)


def publish(of, *texts, seed=0):
    return [" ".join(text) for text in of.publish([text.split() for text in texts], np.random.default_rng(seed))]


def test_words_are_replaced_as_the_matrix_says():
    drawn = publish(channel(), *["hotel"] * 4_000)
    expected = np.exp(channel().known.log_probabilities(np.array([1]))[0])
    counts = np.array([drawn.count(word) for word in WORDS])
    assert ((counts - 4_000 * expected) ** 2 / (4_000 * expected)).sum() < 16.3  # chi-square, 3 degrees, p = 0.001


def test_texts_keep_their_number_of_words():
    """At this epsilon every word of the vocabulary stays."""
    same = channel(epsilon=1e6)
    assert publish(same, "cheap inn a book", "", "hotel hotel") == ["unk inn unk book", "", "hotel hotel"]


def test_a_text_of_ten_thousand_words_and_none_at_all():
    (long,) = publish(channel(), " ".join(["inn"] * 10_000))
    assert len(long.split()) == 10_000
    assert publish(channel()) == []


def test_words_outside_the_vocabulary_are_kept_only_under_that_rule():
    assert publish(channel(unknown="kept"), "kelly kelly")[0] == "kelly kelly"
    assert not set(publish(channel(), "kelly kelly")[0].split()) - set(WORDS)


def test_all_words_outside_the_vocabulary_have_one_law():
    texts = publish(channel(0.5), *["kelly"] * 2_000), publish(channel(0.5), *[TOKEN] * 2_000)
    assert texts[0] == texts[1]


def test_the_number_of_words_and_their_places_do_not_depend_on_other_texts():
    """A repeated text is drawn anew, and the same generator draws the same."""
    once = publish(channel(0.5), *["inn hotel book inn hotel book"] * 2)
    assert once[0] != once[1]
    assert once == publish(channel(0.5), *["inn hotel book inn hotel book"] * 2)


def test_the_audited_channel_has_two_words_outside_if_these_are_kept():
    kept = channel(unknown="kept").audited
    assert kept.space.words == [*WORDS, *OUTSIDE]
    logs = kept.log_probabilities(np.array([4, 5]))
    assert np.exp(logs[:, 4:]) == pytest.approx(np.eye(2))
    assert channel().audited is not kept
    assert len(channel().audited) == 4


def test_a_vocabulary_needs_the_token():
    without = RandomisedResponse(epsilon=1.0).fit(WordSpace(["a", "b"], np.eye(2)), np.random.default_rng(0))
    with pytest.raises(KeyError):
        publish(TextChannel(without), "c")
