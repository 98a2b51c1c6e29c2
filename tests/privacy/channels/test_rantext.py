"""RANTEXT: the law of its radius, and lists of candidates that prove the input."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from leakboard.privacy.channels.rantext import RANTEXT, radius_law, z_of
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.audit import audit_channel


def rng(seed=0):
    return np.random.default_rng(seed)


def space_of(count, dimension):
    vectors = rng(5).normal(size=(count, dimension)) + 3 * rng(6).normal(size=dimension)
    return WordSpace([f"w{i}" for i in range(count)], vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_one_coordinate_has_an_exponential_radius():
    radii, logs = radius_law(np.array([2.0]))
    for radius in (1.0, 3.0, 10.0):
        assert np.exp(logs)[radii < radius].sum() == pytest.approx(1 - np.exp(-radius / 2), abs=0.05)
    assert np.exp(logs[:-1]) @ radii[:-1] == pytest.approx(2, rel=0.03)


def test_many_coordinates_have_the_law_of_their_noise():
    scales = rng().uniform(0.5, 2, 12)
    radii, logs = radius_law(scales)
    drawn = np.linalg.norm(rng(1).laplace(0, scales, (4_000, 12)), axis=1)
    at = np.quantile(radii[:-1], [0.05, 0.1, 0.2, 0.3])
    expected = np.array([np.exp(logs)[radii < radius].sum() for radius in at])
    assert np.abs((drawn[:, None] < at).mean(0) - expected).max() < 4 * 0.5 / np.sqrt(4_000)
    assert np.exp(logs[:-1]) @ radii[:-1] ** 2 == pytest.approx(2 * (scales**2).sum(), rel=0.01)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_matrix_agrees_with_draws_of_the_released_algorithm(epsilon):
    space = space_of(60, 12)
    channel = RANTEXT(epsilon=epsilon).fit(space, rng())
    row = np.exp(channel.log_probabilities(np.array([3]))[0])
    assert abs(row.sum() - 1) < 1e-12
    distances = np.linalg.norm(space.vectors - space.vectors[3], axis=1)
    scales = np.ptp(space.vectors, axis=0) / (epsilon if epsilon < 2 else z_of(epsilon))
    generator, counts = rng(2), np.zeros(60)
    for _ in range(3_000):
        radius = np.linalg.norm(generator.laplace(0, scales))
        near = np.flatnonzero(distances < radius)
        weights = np.exp(epsilon / 2 * (1 - distances[near] / radius))
        counts[generator.choice(near, p=weights / weights.sum())] += 1
    rare = row * 3_000 < 8
    expected = np.append(row[~rare], row[rare].sum()) * 3_000
    expected, seen = expected[expected > 1], np.append(counts[~rare], counts[rare].sum())[expected > 1]
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-3


def test_radii_beyond_all_words_are_not_refuted_and_short_ones_prove_the_input():
    """Below epsilon 2 the radius covers the vocabulary. From 2 on the noise is 4.6 times shorter."""
    space = space_of(60, 60)
    sound, broken = (audit_channel(RANTEXT(epsilon=e).fit(space, rng()), rng()) for e in (1.99, 2.0))
    assert sound.true_epsilon < 1.99
    assert sound.verdict == "not refuted"
    assert broken.verdict == "violated"
    assert 4 < broken.true_epsilon < np.inf


def test_capped_ratios_show_no_claim():
    """No log-ratio exceeds about 23 + ln V, so at epsilon 60 a comparison of all pairs proves nothing."""
    audit = audit_channel(RANTEXT(epsilon=60.0).fit(space_of(30, 12), rng()), rng())
    assert 20 < audit.true_epsilon < 23 + np.log(30) + 1
    assert audit.verdict == "not refuted"


LINE = WordSpace([f"w{i}" for i in range(5)], np.array([[0.0], [1.0], [1.5], [4.0], [4.2]]))


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_on_a_line_it_is_the_integral_over_the_radius(epsilon):
    """SciPy's quadrature of the rule, between any two distances of words."""
    channel = RANTEXT(epsilon=epsilon).fit(LINE, rng())
    scale, distances = 4.2 / (epsilon if epsilon < 2 else z_of(epsilon)), LINE.euclidean(np.arange(5))
    pieces = np.append(np.unique(distances.round(12)), [20.0, 60.0, 180.0])

    def density(radius, word, output):
        weights = np.where(distances[word] < radius, np.exp(-epsilon / 2 * distances[word] / radius), 0)
        return weights[output] / weights.sum() * np.exp(-radius / scale) / scale

    for word in (0, 2):
        expected = [sum(integrate.quad(density, a, b, (word, y))[0] for a, b in pairwise(pieces)) for y in range(5)]
        assert np.exp(channel.log_probabilities(np.array([word]))[0]) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "verdict"),
    [(0.5, "violated"), (1.99, "violated"), (2.0, "violated"), (14.0, "violated"), (20.0, "holds")],
)
def test_on_a_line_the_list_proves_the_input_at_small_epsilons(epsilon, verdict):
    """From 2 on the radius is the same, so a large claim holds and a small one does not."""
    audit = audit_channel(RANTEXT(epsilon=epsilon).fit(LINE, rng()), rng())
    assert (audit.precision, audit.verdict) == ("exact", verdict)


def test_the_matrix_of_many_words_on_a_line_is_rounded():
    many = WordSpace([f"w{i}" for i in range(31)], np.arange(31.0)[:, None])
    assert RANTEXT(epsilon=1.0).fit(many, rng()).precision == "lower bound"
