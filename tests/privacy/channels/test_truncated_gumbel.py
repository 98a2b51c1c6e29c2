"""The truncated Gumbel mechanism: its law is that of its algorithm, and epsilon must suit the vocabulary."""

import numpy as np
import pytest
from scipy import stats

from leakboard.errors import RequestError
from leakboard.privacy.channels.truncated_gumbel import TruncatedGumbelAsInMLDP
from leakboard.privacy.channels.words import WordSpace

SPACE = WordSpace([f"w{i}" for i in range(30)], np.random.default_rng(0).normal(size=(30, 6)))


def rng(seed=0):
    return np.random.default_rng(seed)


def draws(channel, word, count, generator):
    """The algorithm as it is written, one draw at a time."""
    distances = np.linalg.norm(SPACE.vectors - SPACE.vectors[word], axis=1)
    order, published = np.argsort(distances), []
    while len(published) < count:
        nearest = generator.poisson(np.log(29))
        if nearest > 29:
            continue
        noise = np.array([np.inf])
        while nearest and np.abs(noise).max() > channel.largest:  # all K are drawn again; each is still truncated
            noise = generator.gumbel(0, channel.scale, nearest)
        published.append(order[(distances[order[:nearest]] + noise).argmin()] if nearest else word)
    return np.array(published)


@pytest.mark.parametrize("recipe", [TruncatedGumbelAsInMLDP(epsilon=40.0)])
def test_the_matrix_agrees_with_the_algorithm(recipe):
    channel = recipe.fit(SPACE, rng(3))
    row = np.exp(channel.log_probabilities(np.array([4]))[0])
    seen = np.bincount(draws(channel, 4, 2_000, rng(1)), minlength=30)
    rare = row * 2_000 < 8
    expected = np.append(row[~rare], row[rare].sum()) * 2_000
    assert stats.chisquare(np.append(seen[~rare], seen[rare].sum()), expected * 2_000 / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("recipe", [TruncatedGumbelAsInMLDP(epsilon=40.0), TruncatedGumbelAsInMLDP(epsilon=1e6)])
def test_rows_sum_to_one(recipe):
    logs = recipe.fit(SPACE, rng()).log_probabilities(np.arange(30))
    assert np.abs(np.exp(logs).sum(1) - 1).max() < 1e-12


def test_a_word_far_down_the_list_is_as_improbable_as_a_large_k():
    """Farther words can come out only if K reaches their rank; the largest K is V - 1, so the last word never does."""
    channel = TruncatedGumbelAsInMLDP(epsilon=40.0).fit(SPACE, rng())
    row = channel.log_probabilities(np.array([4]))[0]
    order = np.argsort(SPACE.euclidean(np.array([4]))[0])
    tail = stats.poisson(np.log(29))
    assert row[order[20]] <= np.log(tail.sf(20)) + 0.1
    assert row[order[20]] >= np.log(tail.sf(20)) - 7
    assert np.isneginf(row[order[29]])


def test_a_small_epsilon_is_refused_with_the_least_one():
    with pytest.raises(RequestError, match=r"epsilon=2 is not allowed: above \d+"):
        TruncatedGumbelAsInMLDP(epsilon=2.0).fit(SPACE, rng())


def test_equal_vectors_alone_have_a_law():
    logs = TruncatedGumbelAsInMLDP(epsilon=40.0).fit(WordSpace(["a", "b", "c"], np.zeros((3, 2))), rng())
    assert np.abs(np.exp(logs.log_probabilities(np.arange(3))).sum(1) - 1).max() < 1e-12
