"""Words near a noisy vector: exact on a line and for the nearest word in a plane, samples everywhere."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special

from leakboard.errors import RequestError
from leakboard.privacy.channels import plane
from leakboard.privacy.channels.noisy_vectors import (
    Mahalanobis,
    MahalanobisAsInMLDP,
    MahalanobisAsInPyPantera,
    MultivariateLaplace,
    Vickrey,
    VickreyAsInMLDP,
)
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.audit import audit_channel


def space_of(vectors):
    return WordSpace([f"w{i}" for i in range(len(vectors))], np.asarray(vectors, np.float64))


def rng(seed=0):
    return np.random.default_rng(seed)


POINTS = [0.0, 0.2, 1.0, 1.1, 2.5, 4.0, 4.3, 7.0]
LINE = space_of(np.array(POINTS)[:, None])
PLANE = space_of(rng().normal(size=(8, 2)) * [3.0, 0.3])
RECIPES = [
    MultivariateLaplace(epsilon=1.0),
    Mahalanobis(epsilon=1.0, covariance=0.9),
    MahalanobisAsInMLDP(epsilon=1.0, covariance=0.9),
    MahalanobisAsInPyPantera(epsilon=1.0, covariance=0.9),
    Vickrey(epsilon=1.0),
    VickreyAsInMLDP(epsilon=1.0),
    VickreyAsInMLDP(epsilon=1.0, squared=False),
]
every = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)


def fitted(recipe, space=LINE):
    return recipe.fit(space, rng())


def matrix(channel):
    return channel.log_probabilities(np.arange(len(channel)))


@every
def test_rows_sum_to_one_on_a_line(recipe):
    assert np.abs(np.exp(matrix(fitted(recipe))).sum(1) - 1).max() < 1e-12


@every
@pytest.mark.parametrize("space", [LINE, pytest.param(PLANE, marks=pytest.mark.slow)], ids=["line", "plane"])
def test_samples_agree_with_the_matrix(recipe, space):
    channel, drawn = fitted(recipe, space), 4_000
    row = np.exp(channel.log_probabilities(np.array([2]))[0])
    counts = np.bincount(channel.sample(np.full(drawn, 2), rng(1)), minlength=8)
    deviations = (counts - drawn * row) / np.sqrt(drawn * row * (1 - row) + 1e-9)
    assert np.abs(deviations[row > 0.005]).max() < 4
    assert counts[row < 1e-7].sum() == 0


def test_the_nearest_word_on_a_line_has_a_closed_form():
    """Differences of the Laplace law's distribution function at the midpoints."""
    ends = np.concatenate([[-np.inf], (np.array(POINTS[1:]) + POINTS[:-1]) / 2, [np.inf]])
    for epsilon in (0.1, 1.0, 10.0):
        rows = np.exp(matrix(fitted(MultivariateLaplace(epsilon=epsilon))))
        for word, point in enumerate(POINTS):
            below = [
                0.5 * math.exp(epsilon * (e - point)) if e < point else 1 - 0.5 * math.exp(epsilon * (point - e))
                for e in ends
            ]
            assert np.allclose(rows[word], np.diff(below), rtol=1e-10, atol=1e-14)


def test_far_words_have_exact_logarithms_at_a_huge_epsilon():
    """From 0 to beyond 0.6, the midpoint of 0.2 and 1: half of exp(-0.6 epsilon), minus what lies beyond 1.05."""
    logs = matrix(fitted(MultivariateLaplace(epsilon=1e6)))
    assert logs[0, 2] == pytest.approx(math.log(0.5) - 0.6e6, rel=1e-12)


def test_vickrey_is_the_integral_over_the_line():
    """SciPy's quadrature of the rule, point by point."""
    channel, epsilon = fitted(Vickrey(epsilon=1.0, second=0.3)), 1.0

    def density(z, output):
        apart = sorted((abs(z - point), word) for word, point in enumerate(POINTS))
        (d1, first), (d2, second) = apart[:2]
        p = 0.7 * d2 / (0.3 * d1 + 0.7 * d2)
        return (
            (p * (first == output) + (1 - p) * (second == output))
            * epsilon
            / 2
            * math.exp(-epsilon * abs(z - POINTS[2]))
        )

    breaks = sorted({*POINTS, *((a + b) / 2 for a in POINTS for b in POINTS)})
    expected = [
        sum(integrate.quad(density, a, b, (output,))[0] for a, b in zip([-40, *breaks], [*breaks, 50], strict=True))
        for output in range(8)
    ]
    assert np.allclose(np.exp(channel.log_probabilities(np.array([2]))[0]), expected, atol=1e-9)


@pytest.mark.parametrize("recipe", [MultivariateLaplace, Mahalanobis, Vickrey, VickreyAsInMLDP])
@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_the_papers_rules_hold_and_mldps_vickrey_does_not(recipe, epsilon):
    audit = audit_channel(fitted(recipe(epsilon=epsilon)), rng())
    assert audit.verdict == ("violated" if recipe is VickreyAsInMLDP else "holds")
    assert audit.used > 0.5 if recipe is VickreyAsInMLDP else 0.5 < audit.used <= 1 + 1e-9


def test_the_witness_against_mldps_vickrey_is_recomputed_by_a_sum():
    """The rule on a fine grid, point by point; nothing of the project is used."""
    witness, epsilon = audit_channel(fitted(VickreyAsInMLDP(epsilon=2.0, squared=False)), rng()).witness, 2.0
    step, chances = 0.005, []  # divides all distances of midpoints
    for word in (witness.likelier, witness.other):
        total = 0.0
        for i in range(-3_000, 4_400):
            z = (i + 0.5) * step
            apart = sorted((abs(z - point), candidate) for candidate, point in enumerate(POINTS))
            (d1, first), (_, second) = apart[1:3] if apart[0][1] == word else apart[:2]
            p = 1 / (1 + math.exp(d1))
            chance = p * (first == witness.output) + (1 - p) * (second == witness.output)
            total += chance * epsilon / 2 * math.exp(-epsilon * abs(z - POINTS[word])) * step
        chances.append(math.log(total))
    assert np.allclose(chances, [witness.log_likelier, witness.log_other], atol=1e-3)
    assert chances[0] - chances[1] > 2 * epsilon * abs(POINTS[witness.likelier] - POINTS[witness.other])


OFFSET = space_of(np.stack([[0, 1, 2, 3.5, 5, 8, 9, 12], 20 + 0.5 * np.array([0, 0, 1, 0, 1, 1, 0, 0])], axis=1))
"""Words in a plane whose coordinates have different means and variances."""


@pytest.mark.parametrize("released", [MahalanobisAsInMLDP, MahalanobisAsInPyPantera])
@pytest.mark.parametrize("covariance", [0.2, 0.9])
def test_the_papers_mahalanobis_holds_in_a_plane_and_released_ones_do_not(released, covariance):
    paper, code = (
        audit_channel(fitted(rule(epsilon=1.0, covariance=covariance), OFFSET), rng())
        for rule in (Mahalanobis, released)
    )
    assert (paper.verdict, code.verdict) == ("holds", "violated")
    assert paper.used <= 1 < 1.04 < code.used


def test_mldps_scale_is_the_papers_where_all_coordinates_have_the_same_mean():
    centred = space_of(OFFSET.centred)
    logs = [matrix(fitted(rule(epsilon=1.0), centred)) for rule in (Mahalanobis, MahalanobisAsInMLDP)]
    sampled = np.sqrt(0.2 * 8 / 7 + 0.8)  # the code mixes the sample covariance with the variance of the population
    assert np.abs(logs[0] - logs[1]).max() < 2 * (sampled - 1) * np.abs(logs[0]).max()
    far = [matrix(fitted(rule(epsilon=1.0), OFFSET)) for rule in (Mahalanobis, MahalanobisAsInMLDP)]
    assert np.abs(far[0] - far[1]).max() > 4 * np.abs(logs[0] - logs[1]).max()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_one_word_of_two_in_a_plane_is_a_bessel_integral(epsilon):
    """One coordinate of the noise has the density epsilon^2 |t| K_1(epsilon |t|) / pi."""
    logs = matrix(fitted(MultivariateLaplace(epsilon=epsilon), space_of([[0.0, 0.0], [0.6, 0.8]])))
    scaled, _ = integrate.quad(lambda t: t * special.k1e(t) * np.exp(epsilon / 2 - t) / np.pi, epsilon / 2, np.inf)
    assert logs[0, 1] == pytest.approx(np.log(scaled) - epsilon / 2, abs=1e-9)


@pytest.mark.parametrize("recipe", RECIPES[:4], ids=lambda recipe: type(recipe).__name__)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 20.0, 1e4])
def test_the_integral_in_a_plane_has_converged(recipe, epsilon, monkeypatch):
    assert_converged(fitted(replace(recipe, epsilon=epsilon), PLANE), monkeypatch)


@pytest.mark.parametrize("recipe", [Mahalanobis, MahalanobisAsInPyPantera])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0])
def test_the_integral_over_elongated_noise_has_converged(recipe, epsilon, monkeypatch):
    elongated = space_of(rng().normal(size=(8, 2)) * [300.0, 1.0])
    assert_converged(fitted(recipe(epsilon=epsilon, covariance=1.0), elongated), monkeypatch)


def assert_converged(channel, monkeypatch):
    """Twice the nodes change no logarithm by more than 1e-9."""
    rows = np.array([0, 3])
    logs = channel.log_probabilities(rows)
    assert np.abs(np.exp(logs).sum(1) - 1).max() < 1e-12
    monkeypatch.setattr(plane, "NODES", 2 * plane.NODES)
    monkeypatch.setattr(plane, "RAYS", 1_000)
    assert np.abs(channel.log_probabilities(rows) - logs).max() < 1e-9


CLOSE = [[-6.0, 0.0], [6.0, 0.0], [-6.0, 0.05], [6.0, 0.05]]
"""Rays at equal angles would show these words with more than the claimed ratio."""
SIX = rng().normal(size=(6, 2))


@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1.0])
@pytest.mark.parametrize("vectors", [CLOSE, SIX], ids=["four", "six"])
def test_close_words_in_a_plane_keep_the_theorem(vectors, epsilon):
    audit = audit_channel(fitted(MultivariateLaplace(epsilon=epsilon), space_of(vectors)), rng())
    assert 0.5 < audit.used <= 1
    assert audit.verdict == "holds"


@pytest.mark.slow
def test_rays_in_a_plane_are_too_few_to_refute_a_theorem():
    audit = audit_channel(fitted(Vickrey(epsilon=1.0, second=0.0), space_of(CLOSE)), rng())
    assert audit.used > 1.1
    assert audit.verdict == "holds"  # proved


def test_of_equal_words_in_a_plane_the_first_is_published():
    twins = space_of([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    rows = np.exp(matrix(fitted(MultivariateLaplace(epsilon=1.0), twins)))
    assert rows[:, 2].tolist() == [0, 0, 0]
    assert rows[0] == pytest.approx(rows[2])
    everywhere = space_of(np.ones((3, 2)))
    assert np.exp(matrix(fitted(MultivariateLaplace(epsilon=1.0), everywhere))).round(12).tolist() == [[1, 0, 0]] * 3


@every
def test_a_matrix_is_exact_on_a_line_and_for_the_nearest_of_few_words_in_a_plane(recipe):
    assert fitted(recipe).precision == "exact"
    is_nearest = not isinstance(recipe, Vickrey | VickreyAsInMLDP)
    assert fitted(recipe, PLANE).precision == ("exact" if is_nearest else "approximate")
    many = space_of(rng().normal(size=(plane.MAX_WORDS + 1, 2)))
    assert fitted(recipe, many).precision == "approximate"


def test_defaults_are_those_of_the_packages():
    assert MahalanobisAsInPyPantera(epsilon=1.0).covariance == 1
    assert VickreyAsInMLDP(epsilon=1.0).squared


def test_a_ray_in_blocks_is_the_ray(monkeypatch):
    whole = matrix(fitted(Vickrey(epsilon=1.0)))
    monkeypatch.setattr("leakboard.privacy.channels.rays.POINTS", 1_000)
    assert np.allclose(matrix(fitted(Vickrey(epsilon=1.0))), whole, rtol=1e-12)


class TestRefused:
    def test_large_vocabularies_take_too_long(self):
        channel = fitted(MultivariateLaplace(epsilon=1.0), space_of(np.arange(201.0)[:, None]))
        with pytest.raises(RequestError) as caught:
            channel.log_probabilities(np.array([0]))
        assert str(caught.value) == "channel: a matrix of 201 noisy words is not allowed: up to 200"

    def test_many_dimensions_have_samples_only(self):
        channel = fitted(MultivariateLaplace(epsilon=30.0), space_of(rng().normal(size=(50, 6))))
        with pytest.raises(RequestError, match="6 dimensions have no exact matrix"):
            matrix(channel)
        assert (channel.sample(np.arange(50), rng()) == np.arange(50)).mean() > 0.5

    def test_two_words_are_too_few_for_the_strike(self):
        with pytest.raises(RequestError, match="2 words"):
            fitted(VickreyAsInMLDP(epsilon=1.0), space_of([[0.0], [1.0]]))

    def test_a_singular_covariance_alone_has_directions_without_noise(self):
        flat = space_of(np.arange(4)[:, None] * [1.0, 0.0])
        with pytest.raises(RequestError, match="covariance=1"):
            fitted(Mahalanobis(epsilon=1.0, covariance=1.0), flat)
        assert fitted(Mahalanobis(epsilon=1.0, covariance=0.5), flat).shape.shape == (2, 2)
