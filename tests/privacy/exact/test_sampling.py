"""Published words are tested against their channel: right ones pass, and each kind of wrong one is found."""

import numpy as np
import pytest

from leakboard.privacy.channels.custext import CusText
from leakboard.privacy.channels.randomised_response import RandomisedResponse
from leakboard.privacy.channels.santext import SanText
from leakboard.privacy.channels.texts import TOKEN, TextChannel
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.sampling import sampling_p_value

WORDS = [*(f"w{i}" for i in range(39)), TOKEN]
SPACE = WordSpace(WORDS, np.random.default_rng(0).standard_normal((40, 3)))
PLAIN = [*np.random.default_rng(1).choice(WORDS[:39], 1_970), *["kelly"] * 30]


def channel(recipe, unknown="token"):
    return TextChannel(recipe.fit(SPACE, np.random.default_rng(0)), unknown)


def p_value(declared, published):
    return sampling_p_value(declared, PLAIN, published, np.random.default_rng(2))


@pytest.mark.parametrize("unknown", ["token", "kept"])
@pytest.mark.parametrize(
    "recipe", [SanText(epsilon=2.0), RandomisedResponse(epsilon=3.0), CusText(epsilon=2.0, size=5)]
)
def test_words_of_the_channel_pass(recipe, unknown):
    declared = channel(recipe, unknown)
    (published,) = declared.publish([PLAIN], np.random.default_rng(3))
    assert p_value(declared, published) > 1e-3


@pytest.mark.parametrize("other", [SanText(epsilon=2.5), SanText(epsilon=1.6), RandomisedResponse(epsilon=3.0)])
def test_words_of_another_channel_do_not(other):
    (published,) = channel(other).publish([PLAIN], np.random.default_rng(3))
    assert p_value(channel(SanText(epsilon=2.0)), published) < 1e-6


def test_a_wrong_choice_among_equally_likely_words_is_found():
    declared = channel(RandomisedResponse(epsilon=3.0))
    (published,) = declared.publish([PLAIN], np.random.default_rng(3))
    always_one = [new if new == word else "w0" for word, new in zip(PLAIN, published, strict=True)]
    assert p_value(declared, always_one) < 1e-6


def test_few_words_prove_little():
    """Four points in one of twenty bins would have a p-value of 1e-8, and a chance of one in 8,000."""
    declared = channel(RandomisedResponse(epsilon=10.0))
    values = [sampling_p_value(declared, ["w0"] * 4, ["w0"] * 4, np.random.default_rng(seed)) for seed in range(2_000)]
    assert min(values) == 1
    some = [sampling_p_value(declared, ["w0"] * 15, ["w0"] * 15, np.random.default_rng(seed)) for seed in range(500)]
    assert 1e-4 < min(some) < 0.05


def test_an_impossible_word_is_enough():
    declared = channel(RandomisedResponse(epsilon=3.0), "kept")
    (published,) = declared.publish([PLAIN], np.random.default_rng(3))
    assert p_value(declared, [*published[:-1], "w0"]) == 0  # kelly is kept
    assert p_value(declared, ["kelly", *published[1:]]) == 0
    assert sampling_p_value(declared, ["kelly"], ["kelly"], np.random.default_rng(2)) == 1
