"""Planted leaks that smooth scores at corners of the cube miss are caught, and sound mechanisms are left alone."""

import numpy as np
import pytest
from scipy import stats

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.auditing import audit as auditing
from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.choosing import choose_event
from leakboard.privacy.auditing.events import corners, interior, normalised_interior, outside
from leakboard.privacy.auditing.points import point_scores
from leakboard.privacy.auditing.rounding import round_releases
from leakboard.privacy.auditing.scores import scores_of
from leakboard.privacy.auditing.thresholds import best_threshold
from leakboard.privacy.mechanisms.broken import Copy
from leakboard.privacy.mechanisms.textbook import DiscreteLaplace, Gaussian, Laplace


class Mechanism(MechanismDefaults):
    """A function of inputs and a generator that claims epsilon 1."""

    epsilon, delta = 1.0, 0.0

    def __init__(self, release):
        self.release = release


def noise(values, rng):
    return rng.laplace(0, values.shape[1], values.shape)


def grid_of_the_input(values, rng):
    return values + np.round(4 * noise(values, rng)) / 4


def no_noise_at_one_half(values, rng):
    return values + np.where(values == 0.5, 0.0, noise(values, rng))


def one_row_in_a_thousand(values, rng):
    return values + np.where(rng.random((len(values), 1)) < 1e-3, 0.0, noise(values, rng))


def word_never_drawn(values, rng):
    words = rng.integers(0, 2000, len(values))
    return np.where((words == 77) & (values[:, 0] > 0.5), 78, words)[:, None] * np.eye(values.shape[1])[0]


def parity_of_signs(values, rng):
    signs = rng.choice([-1.0, 1.0], values.shape)
    signs[:, -1] *= signs.prod(1) * np.where(values[:, 0] > 0.5, 1, -1)
    return signs * rng.exponential(1, values.shape)


def odd_sum(values, rng):
    """Whole numbers, whose sum is odd for some inputs and even for others."""
    numbers = np.round(noise(values, rng))
    numbers[:, -1] += (numbers.sum(1) + (values[:, 0] > 0.5)) % 2
    return numbers


def noise_of_one_size(values, rng):
    """The direction of the noise is random, its length is always the same."""
    added = rng.normal(size=values.shape)
    return values + added / np.linalg.norm(added, axis=1, keepdims=True) * values.shape[1] ** 1.5


def no_noise_in_one_direction(values, rng):
    direction = np.random.default_rng(1).normal(size=values.shape[1])
    direction /= np.linalg.norm(direction)
    added = 2 * noise(values, rng)
    return values + added - np.outer(added @ direction, direction)


def rounded_to_digits_of_the_input(values, rng):
    released = values + noise(values, rng)
    return np.where(values[:, :1] > 0.5, np.round(released), np.round(released, -1))


def digit_of_the_input(values, rng):
    """The last digit of one coordinate is the input."""
    released = np.round(values + noise(values, rng), -1)
    released[:, 0] += values[:, 0]
    return released


def sound_on_a_grid(values, rng):
    return np.round(values * 4) / 4 + np.round(4 * rng.laplace(0, 1.5 * values.shape[1], values.shape)) / 4


def sound_in_single_precision(values, rng):
    """Noise of few values near 0: the uniform numbers behind it have 24 bits."""
    uniform = rng.integers(1 - 2**23, 2**23, values.shape).astype(np.float32) / np.float32(2**23)
    scale = np.float32(values.shape[1])
    return values.astype(np.float32) - scale * np.sign(uniform) * np.log1p(-np.abs(uniform))


LEAKS = [
    (grid_of_the_input, 2, 20_000),
    (grid_of_the_input, 64, 20_000),
    (no_noise_at_one_half, 2, 20_000),
    (one_row_in_a_thousand, 2, 60_000),
    pytest.param(word_never_drawn, 2, 400_000, marks=pytest.mark.slow),
    (parity_of_signs, 64, 20_000),
    (odd_sum, 16, 20_000),
    (noise_of_one_size, 64, 20_000),
    (rounded_to_digits_of_the_input, 64, 20_000),
    (digit_of_the_input, 64, 20_000),
    (no_noise_in_one_direction, 64, 20_000),
]


def rounded(mechanism, dimension):
    """Return a mechanism that rounds its releases, as users' audits do."""
    return round_releases(mechanism, corners(dimension)[:1], np.random.default_rng(1))


def audited(mechanism, dimension, draws, seed=0, **options):
    generator = np.random.default_rng(seed)
    pairs = interior(dimension, generator)
    return audit(mechanism, corners(dimension), generator, draws, more_pairs=pairs, **options)


@pytest.mark.parametrize(("release", "dimension", "draws"), LEAKS, ids=lambda value: getattr(value, "__name__", value))
def test_leaks_are_caught(release, dimension, draws):
    assert audited(rounded(Mechanism(release), dimension), dimension, draws).epsilon > 1.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(epsilon=1.0, sensitivity=2.0),
        Gaussian(epsilon=1.0, delta=1e-3, sensitivity=2**0.5),
        DiscreteLaplace(epsilon=1.0, sensitivity=2.0, grid=0.25),
        Mechanism(sound_on_a_grid),
        Mechanism(sound_in_single_precision),
    ],
    ids=["laplace", "gaussian", "discrete laplace", "grid", "single precision"],
)
def test_sound_mechanisms_are_left_alone(mechanism, seed):
    assert audited(rounded(mechanism, 2), 2, 20_000, seed, confidence=0.999).epsilon <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [Laplace(epsilon=0.5, sensitivity=2.0), DiscreteLaplace(epsilon=0.5, sensitivity=2.0, grid=0.5)],
    ids=["laplace", "discrete laplace"],
)
def test_sound_mechanisms_are_accused_no_more_often_than_stated(mechanism, monkeypatch):
    """Rounds with several pairs, at a confidence of 80 %."""
    monkeypatch.setattr(auditing, "FIRST_DRAWS", 1000)
    audits = 100
    bounds = [audited(mechanism, 2, None, seed, budget=80_000, confidence=0.8).epsilon for seed in range(audits)]
    assert sum(bound > mechanism.epsilon for bound in bounds) <= stats.binom(audits, 0.2).ppf(0.999)
    assert np.mean(bounds) > 0.2


class TestPairs:
    """Pairs are off every grid, and as far inside the cube as the claim allows."""

    def test_of_the_cube(self):
        middle, corner = interior(3, np.random.default_rng(0))
        assert (middle.first == 0.5).all()
        assert np.isin(corner.first, (0, 1)).all()
        for values in (middle.second, corner.second):
            assert ((values > 0) & (values < 1) & (values % 0.01 > 1e-9)).all()

    def test_normalised_ones_have_a_zero_and_a_one(self):
        for values in normalised_interior(4, np.random.default_rng(0))[0].inputs:
            assert (values.min(), values.max()) == (0, 1)
        assert normalised_interior(2, np.random.default_rng(0)) == []

    def test_outside_the_cube(self):
        for dimensions, finite in ((1, 3), (2, 2)):
            seconds = [pair.second for pair in outside(dimensions)]
            assert sum(np.isfinite(values).all() for values in seconds) == finite
            assert all(not ((values >= 0) & (values <= 1)).any() for values in seconds)
            assert min(values[0] for values in seconds if np.isfinite(values).all()) == -1e6

    def test_two_pairs_share_the_releases_of_a_round(self, monkeypatch):
        """A budget is kept however many pairs go through the rounds."""
        monkeypatch.setattr(auditing, "FIRST_DRAWS", 1000)
        numbers = 0

        def release(values, rng):
            nonlocal numbers
            numbers += values.size
            return values + rng.laplace(0, 2, values.shape)

        audited(Mechanism(release), 2, None, budget=400_000)
        learned = 5 * 2 * 2 * 100  # of five pairs, two inputs and two coordinates
        assert 0.99 * 400_000 < numbers - learned <= 400_000


class TestEquality:
    """An event may be a single score."""

    def test_a_score_between_others_is_found(self):
        rng, n = np.random.default_rng(0), 20_000
        second = rng.integers(0, 100, n).astype(float)
        first = np.where(rng.random(n) < 0.05, 50.0, rng.integers(0, 100, n))
        threshold = best_threshold(first, second, n, 0.0, 0.05)
        assert (threshold.side, threshold.value) == ("==", 50.0)
        assert threshold.turned(np.array([49.0, 50.0, 51.0])).tolist() == [0, 1, 0]

    def test_the_luckiest_of_many_scores_promises_little(self):
        rng = np.random.default_rng(1)
        promises = [best_threshold(*rng.integers(0, 500, (2, 5000)), 10**6, 0.0, 0.05).promise for _ in range(30)]
        assert np.mean(np.array(promises) > 0.3) < 0.2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decimals_by_hand(dtype):
    outputs = np.array([[2.0, -40.0], [-0.5, 7.123], [0.25, 0.375], [np.pi, 1.0]], dtype)
    scores, _ = scores_of(Mechanism(noise), corners(2)[0], *np.random.default_rng(0).laplace(size=(2, 100, 2)))
    np.testing.assert_allclose(scores["decimals"](outputs), [0, 3, 3, 6], atol=1e-6)


class TestScores:
    """Scores by hand, in two dimensions."""

    @pytest.fixture
    def scores(self):
        rng = np.random.default_rng(0)
        releases = rng.laplace(size=(2, 500, 2))
        return point_scores(np.zeros(2), np.array([1.0, 0.0]), *releases)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("coordinates without noise", [1, -1, 0]),  # the second coordinate is the same for both inputs
            ("sum modulo 2", [0.75, 1.75, 1.8]),
            ("coordinate 1", [0, 1, -0.5]),
            ("product of the signs of the first 2 coordinates", [1, 1, -1]),
        ],
    )
    def test_of_three_releases(self, name, expected, scores):
        outputs = np.array([[0.0, 0.75], [1.0, 0.75], [-0.5, 0.3]])
        np.testing.assert_allclose(scores[name](outputs), expected, atol=1e-9)

    def test_equal_releases_have_a_table(self):
        first, second = np.array([[0.0, 1.0]] * 90 + [[1.0, 1.0]] * 10), np.array([[1.0, 1.0]] * 100)
        score = point_scores(None, None, first, second)["density ratio of values"]
        expected = [np.log(90.5 / 0.5), np.log(10.5 / 100.5), 0.0]
        np.testing.assert_allclose(score(np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 5.0]])), expected)


class TestCertainty:
    """The choice of an event ends when the claim is refuted beyond doubt."""

    @pytest.mark.parametrize(("mechanism", "is_certain"), [(Copy(1.0), True), (Laplace(1.0, 2.0), False)])
    def test_it_ends_only_then(self, mechanism, is_certain):
        sizes = [1000, 3000, 5000]
        event = choose_event(mechanism, corners(2), np.random.default_rng(0), sizes, 0.05, certain_error=1e-8)
        assert (event.is_certain, event.draws) == (is_certain, 3000 if is_certain else 5000)
