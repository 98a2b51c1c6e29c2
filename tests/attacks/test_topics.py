"""Test the topic of a text in the prior: values by hand, and texts of two topics that share a channel."""

import math

import numpy as np
import pytest

from leakboard.attacks._reading.lattice import shares
from leakboard.attacks._reading.topics import SHARPNESS, Topics

TEXTS = [np.array([0, 1]), np.array([2, 2, 3]), np.array([], np.int64)]
"""Two texts without a word in common, and an empty one."""
PRIOR = np.log([0.25, 0.25, 0.25, 0.25])


@pytest.fixture
def topics():
    return Topics.of(TEXTS, 4)


def test_texts_are_counted_by_hand(topics):
    assert topics.shares.toarray() == pytest.approx(np.array([[1 / 2, 1 / 2, 0, 0], [0, 0, 2 / 3, 1 / 3]]))
    assert topics.rarity == pytest.approx(np.log(3 / 2) * np.ones(4))
    two, one = math.log1p(2), math.log1p(1)
    length = math.hypot(two, one)
    expected = [[math.sqrt(1 / 2), math.sqrt(1 / 2), 0, 0], [0, 0, two / length, one / length]]
    assert topics.directions.toarray() == pytest.approx(np.array(expected))


def test_gains_by_hand(topics):
    """One place is word 0 for sure, so the first text has a cosine of sqrt(1/2), the second one of 0."""
    codes, posterior = np.array([[0, 3]]), np.array([[1.0, 0.0]])
    weights = np.exp(SHARPNESS * np.array([0, -math.sqrt(1 / 2)]))
    first = weights[0] / weights.sum()
    expected = [[0.5 + 0.5 * first * (1 / 2) / 0.25, 0.5 + 0.5 * (1 - first) * (1 / 3) / 0.25]]
    assert np.exp(topics.log_gains(codes, posterior, PRIOR, 0.5)) == pytest.approx(np.array(expected))


def test_no_share_and_no_texts_change_nothing(topics):
    codes, posterior = np.array([[0, 3]]), np.array([[0.5, 0.5]])
    assert not topics.log_gains(codes, posterior, PRIOR, 0.0).any()
    assert not Topics.of([], 4).log_gains(codes, posterior, PRIOR, 0.5).any()


def test_an_empty_text_has_no_gains(topics):
    assert topics.log_gains(np.empty((0, 2), np.int64), np.empty((0, 2)), PRIOR, 0.5).shape == (0, 2)


def test_a_place_without_a_possible_word_tells_nothing(topics):
    logs = np.array([[0.0, -np.inf], [-np.inf, -np.inf]])
    posterior = shares(logs)
    assert posterior.tolist() == [[1, 0], [0, 0]]
    assert np.isfinite(topics.log_gains(np.array([[0, 1], [2, 3]]), posterior, PRIOR, 0.5)).all()


def test_a_single_text_is_the_topic():
    """Its share of each word is the law of the topic, whatever the cosine."""
    topics = Topics.of([np.array([0, 1])], 4)
    assert topics.rarity == pytest.approx(np.log([1, 1, 2, 2]))
    gains = np.exp(topics.log_gains(np.array([[0, 3]]), np.array([[1.0, 0.0]]), PRIOR, 0.5))
    assert gains == pytest.approx(np.array([[1.5, 0.5]]))
