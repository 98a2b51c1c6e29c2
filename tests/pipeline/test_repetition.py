"""Test that a victim is found that mixes up its texts, or whose claimed noise repeats, and that no other one is."""

import numpy as np
import pytest

from leakboard.corpus import Texts
from leakboard.pipeline.repetition import mixes_up
from leakboard.randomness import stream

TEXTS = Texts([" ".join(["word"] * (1 + i % 7)) + f" {i}" for i in range(40)])


def vectors(texts):
    """Return the vector of each text, which depends on the text alone."""
    return np.stack([stream(0, text).normal(size=8) for text in texts]).astype(np.float32)


def published(make, noise=0.0):
    """Return a function that publishes texts with noise."""

    def publish(texts, name):
        made = make(texts)
        return made + noise * stream(0, name).normal(size=made.shape).astype(np.float32)

    return publish


def mixed(make, texts=TEXTS, **noise):
    return mixes_up(published(make, **noise), texts, np.random.default_rng(0))


def by_length(texts):
    return vectors(sorted(texts, key=len))


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_sorted_texts_are_found(noise):
    assert mixed(lambda texts: vectors(sorted(texts)), noise=noise)


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0, 100.0])
def test_a_victim_that_keeps_the_order_is_not_blamed(noise):
    assert not mixed(vectors, noise=noise)


def test_sorting_by_length_is_found():
    assert mixed(by_length)


def test_rounding_is_no_other_order():
    assert not mixed(lambda texts: vectors(texts) + np.float32(0.01) * np.arange(len(texts))[:, None] / len(texts))


def test_equal_vectors_have_no_order():
    assert not mixed(lambda texts: np.ones((len(texts), 2), np.float32))


@pytest.mark.parametrize("texts", [Texts([]), Texts(["one"])])
def test_fewer_than_two_texts_have_no_order(texts):
    assert not mixed(lambda texts: vectors(texts) if texts else np.ones((0, 8), np.float32), texts=texts)
