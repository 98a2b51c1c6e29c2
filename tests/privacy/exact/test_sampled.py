"""Sampled bounds of sanitisers: planted faults are found, sound rules are not accused."""

import importlib
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leakboard.privacy.auditing.bound import clopper_pearson_high, clopper_pearson_low
from leakboard.privacy.channels.noisy_vectors import (
    Mahalanobis,
    MahalanobisAsInMLDP,
    MahalanobisAsInPyPantera,
    MultivariateLaplace,
    Vickrey,
    VickreyAsInMLDP,
)
from leakboard.privacy.channels.words import WordSpace

ROOT = Path(__file__).parents[3]
SEEDS = range(4)


@pytest.fixture(scope="module")
def samples():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        yield importlib.import_module("_sampled_sanitisers")


@pytest.fixture(scope="module")
def plane(samples):
    """The eight words of the page of released sanitisers, in a plane."""
    return importlib.import_module("_released_cases").PLANE


def made_up(dimension, gap):
    """40 random words, and two words ``gap`` apart that are far from all others."""
    rng = np.random.default_rng(0)
    others = rng.normal(size=(40, dimension))
    others *= (3 + rng.random((40, 1))) / np.linalg.norm(others, axis=1, keepdims=True)
    pair = np.zeros((2, dimension))
    pair[1, 0] = gap
    return WordSpace(["one", "two", *(f"w{i}" for i in range(40))], np.concatenate([pair, others]))


def fitted(recipe, space):
    return recipe.fit(space, np.random.default_rng(0))


def verdicts(samples, channel, words=("one", "two"), draws=4_000):
    return {samples.audited(channel, *words, draws, seed).verdict for seed in SEEDS}


def test_an_input_that_is_struck_out_is_found_and_the_papers_vickrey_is_not_accused(samples):
    space = made_up(3, 0.1)
    assert verdicts(samples, fitted(VickreyAsInMLDP(epsilon=5.0), space)) == {"violated"}
    assert verdicts(samples, fitted(Vickrey(epsilon=5.0), space)) == {"not refuted"}


def test_a_direction_that_is_scaled_is_found_and_the_papers_mahalanobis_is_not_accused(samples, plane):
    def of(channel):
        return verdicts(samples, channel, ("gin", "tea"), 20_000)

    assert of(fitted(MahalanobisAsInPyPantera(epsilon=0.2), plane)) == {"violated"}
    assert of(samples.vickrey_mhl(plane, 0.2)) == {"violated"}
    assert of(fitted(Mahalanobis(epsilon=0.2, covariance=1.0), plane)) == {"not refuted"}


def test_a_variance_about_one_mean_is_found(samples, plane):
    channel = fitted(MahalanobisAsInMLDP(epsilon=0.2, covariance=1.0), plane)
    assert verdicts(samples, channel, ("gin", "wine")) == {"violated"}


def test_noise_that_is_too_short_is_found_and_the_claimed_noise_is_not_accused(samples):
    space = made_up(30, 1.0)
    claimed = fitted(MultivariateLaplace(epsilon=2.0), space)
    short = replace(claimed, shape=claimed.shape / 30, claimed_shape=claimed.shape)
    assert verdicts(samples, short) == {"violated"}
    assert verdicts(samples, claimed) == {"not refuted"}


@pytest.mark.parametrize(
    "recipe",
    [VickreyAsInMLDP(epsilon=0.7), Vickrey(epsilon=0.7, second=0.25), MahalanobisAsInPyPantera(epsilon=0.7)],
)
def test_draws_by_a_fast_search_agree_with_the_exact_law(samples, recipe):
    line = importlib.import_module("_released_cases").SPACE
    channel, words = fitted(recipe, line), np.repeat(np.arange(8), 5_000)
    drawn = samples.drawn(channel, words, np.random.default_rng(0))
    counts = np.stack([np.bincount(drawn[words == word], minlength=8) for word in range(8)])
    chances = np.exp(channel.log_probabilities(np.arange(8)))
    assert (clopper_pearson_low(counts, 5_000, 1e-5) <= chances).all()
    assert (clopper_pearson_high(counts, 5_000, 1e-5) >= chances).all()


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("rule", [Mahalanobis, MahalanobisAsInPyPantera])
def test_losses_are_those_of_a_ratio_of_densities(samples, rule, epsilon):
    """The mean of e^-loss is 1, as the integral of the other density."""
    channel = fitted(rule(epsilon=epsilon, covariance=0.8), made_up(3, 0.4))
    losses = samples.noise_losses(channel, 0, 1, 200_000, np.random.default_rng(0))
    inverse = np.exp(-losses)
    assert losses.std() > 0.01
    assert inverse.mean() == pytest.approx(1, abs=4 * inverse.std() / math.sqrt(len(losses)))


def test_losses_of_the_papers_rule_stay_within_its_claim(samples):
    channel = fitted(Mahalanobis(epsilon=2.0), made_up(3, 0.4))
    claim = 2 * channel.distances(np.array([0]), np.array([1]))[0, 0]
    losses = samples.noise_losses(channel, 0, 1, 10_000, np.random.default_rng(0))
    assert 0.9 * claim < losses.max() <= claim * (1 + 1e-9)


def test_draws_of_truncated_gumbel_noise_agree_with_the_matrix(samples):
    space = WordSpace([f"w{i}" for i in range(30)], np.cumsum(np.linspace(1, 3, 30))[:, None])
    channel = samples.drawn_gumbel(space, 14.0)
    drawn = channel.sample(np.full(40_000, 12), np.random.default_rng(0))
    counts, chances = np.bincount(drawn, minlength=30), np.exp(channel.log_probabilities(np.array([12]))[0])
    assert (chances > 0.01).sum() > 5
    assert (clopper_pearson_low(counts, 40_000, 1e-5) <= chances * 1.01).all()
    assert (clopper_pearson_high(counts, 40_000, 1e-5) >= chances * 0.99).all()


def test_coordinates_with_distant_means_are_those_of_the_largest_excess(samples):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 5))
    vectors[:, 1] += 3
    vectors[:, 4] = 0.5 * vectors[:, 4] - 3
    chosen = samples.distant_means(WordSpace([f"w{i}" for i in range(200)], vectors)).vectors
    assert {tuple(column) for column in chosen.T} == {tuple(vectors[:, 1]), tuple(vectors[:, 4])}


def test_components_keep_the_largest_variances(samples):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(300, 4)) * [1, 5, 2, 0.1]
    kept = samples.components(2, WordSpace([f"w{i}" for i in range(300)], vectors))
    assert np.abs(np.corrcoef(kept.vectors.T, vectors[:, [1, 2]].T))[[0, 1], [2, 3]] == pytest.approx(1, abs=0.02)


def rows_of(page, first):
    """Return the rows below the head that begins with a cell, as lists of cells."""
    below = (ROOT / page).read_text("utf-8").partition(f"\n| {first} |")[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in below[2:]]


def test_the_readme_has_a_row_for_each_case_that_agrees_with_itself(samples):
    rows = rows_of("benchmarks/README.md", "rule | numbers of a word | epsilon | inputs")
    assert [row[:4] for row in rows] == [
        [case.name, case.numbers, f"{case.epsilon:g}", f"`{case.first}`, `{case.other}`"] for case in samples.CASES
    ]
    for name, _, epsilon, _, distance, claim, bound, verdict, draws, *_ in rows:
        assert float(claim) == pytest.approx(float(epsilon) * float(distance), rel=0.02)
        assert (float(bound) > float(claim)) == (verdict == "violated")
        assert float(bound) <= math.log(int(draws.replace(",", "")) / 6.7)
        assert verdict == "not refuted" or name not in samples.SOUND


def test_the_page_of_released_sanitisers_has_rows_of_the_readme():
    readme = rows_of("benchmarks/README.md", "rule | numbers of a word | epsilon | inputs")
    page = rows_of("docs/released_sanitisers.md", "rule | numbers of a word | claim (nats)")
    assert len(page) > 8
    assert {tuple(row) for row in page} <= {(*row[:2], *row[5:8]) for row in readme}
