"""Audits: the bound is valid, is not empty, catches what is broken and leaves alone what is sound."""

import math

import numpy as np
import pytest
from scipy import stats

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.bound import bound_of_tosses
from leakboard.privacy.auditing.events import Pair, corners, normalised_corners
from leakboard.privacy.mechanisms.broken import BROKEN, SOUND, AdeptSensitivity, Copy
from leakboard.privacy.mechanisms.textbook import DiscreteLaplace, Gaussian, Laplace

AUDITS = 400
DRAWS = 20_000


def rng(seed=0):
    return np.random.default_rng(seed)


class TestBound:
    """ln((p - delta) / q) with Clopper and Pearson's bounds, where delta is above 0."""

    @pytest.mark.parametrize(("hits", "misses"), [(0, 0), (1, 0), (500, 500), (1000, 0), (1000, 1000), (700, 12)])
    @pytest.mark.parametrize("delta", [1e-9, 0.01])
    def test_against_scipys_intervals(self, hits, misses, delta):
        p, q = (stats.binomtest(k, 1000).proportion_ci(0.95, method="exact") for k in (hits, misses))
        expected = max(0.0, math.log((p.low - delta) / q.high)) if p.low > delta else 0.0
        assert bound_of_tosses(hits, misses, (1000, 1000), delta, 0.05) == pytest.approx(expected)

    def test_it_is_finite_and_grows_with_the_draws(self):
        bounds = [bound_of_tosses(n, 0, (n, n), 1e-9, 0.05) for n in (10**2, 10**4, 10**6)]
        assert bounds == sorted(bounds)
        assert math.isfinite(bounds[-1])
        assert bounds[-1] == pytest.approx(math.log(1e6 / -math.log(0.025)), abs=0.01)

    def test_nothing_seen_proves_nothing(self):
        assert bound_of_tosses(0, 0, (1000, 1000), 1e-9, 0.05) == 0
        assert bound_of_tosses(10, 900, (1000, 1000), 1e-9, 0.05) == 0


def test_corners_by_hand():
    pairs = {pair.name: [pair.first.tolist(), pair.second.tolist()] for pair in corners(3)}
    assert pairs == {
        "zeros and ones": [[0, 0, 0], [1, 1, 1]],
        "alternating": [[0, 1, 0], [1, 0, 1]],
        "one coordinate": [[0, 0, 0], [1, 0, 0]],
    }


def test_normalised_corners_by_hand():
    """Each holds a 0 and a 1, as what comes out of min-max normalisation."""
    pairs = {pair.name: [pair.first.tolist(), pair.second.tolist()] for pair in normalised_corners(3)}
    assert pairs == {"alternating": [[0, 1, 0], [1, 0, 1]], "one coordinate": [[1, 0, 0], [1, 1, 0]]}
    assert [pair.name for pair in normalised_corners(2)] == ["alternating"]


class Constant(MechanismDefaults):
    """A mechanism that releases zeros, whatever it is given."""

    epsilon, delta = 1.0, 0.0

    def release(self, values, generator):
        return np.zeros_like(values)


def test_a_constant_release_proves_nothing():
    assert audit(Constant(), corners(3), rng(), draws=1000, confidence=0.999).epsilon == 0


class TestFalseAlarms:
    """A correct mechanism is called violated in at most one audit of twenty, by a bound that is not empty."""

    @pytest.mark.parametrize(
        ("mechanism", "dimensions"),
        [
            pytest.param(Laplace(epsilon=0.5, sensitivity=1.0), 1, marks=pytest.mark.slow),
            pytest.param(Gaussian(epsilon=0.5, delta=0.05, sensitivity=1.0), 1, marks=pytest.mark.slow),
            pytest.param(DiscreteLaplace(epsilon=0.5, sensitivity=1.0, grid=0.125), 1, marks=pytest.mark.slow),
        ],
        ids=["laplace", "gaussian", "discrete laplace"],
    )
    def test_over_many_audits(self, mechanism, dimensions):
        generator = rng(11)
        bounds = [audit(mechanism, corners(dimensions), generator, draws=1000).epsilon for _ in range(AUDITS)]
        alarms = sum(bound > mechanism.epsilon for bound in bounds)
        assert alarms <= stats.binom(AUDITS, 0.05).ppf(0.999)
        assert np.mean(np.array(bounds) > 0) > 0.3
        assert max(bounds) > 0.5 * mechanism.epsilon

    def test_the_error_that_is_stated_is_needed(self):
        """Without a second half the best of many events promises more than is true."""
        generator, n, alarms = rng(12), 300, 0
        for _ in range(200):
            first, second = generator.random((2, n, 40)) < 0.5  # 40 events that tell nothing: epsilon is 0
            best = max(
                bound_of_tosses(a, b, (n, n), 0.0, 0.05) for a, b in zip(first.sum(0), second.sum(0), strict=True)
            )
            alarms += best > 0
        assert alarms > stats.binom(200, 0.05).ppf(0.999)


class TestPower:
    """What is broken is caught, by few draws."""

    @pytest.mark.parametrize("control", BROKEN, ids=lambda control: control.__name__)
    @pytest.mark.parametrize("epsilon", [0.5, 1.0])
    def test_every_broken_control_is_caught(self, control, epsilon):
        assert audit(control(epsilon), corners(2), rng(), DRAWS).epsilon > epsilon

    @pytest.mark.parametrize("control", SOUND, ids=lambda control: control.__name__)
    @pytest.mark.parametrize("dimensions", [1, 2, 8])
    def test_no_sound_control_is(self, control, dimensions):
        assert audit(control(1.0), corners(dimensions), rng(), DRAWS, confidence=0.999).epsilon <= 1.0

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
    def test_a_correct_laplace_reaches_most_of_its_epsilon(self, epsilon):
        bound = audit(Laplace(epsilon=epsilon, sensitivity=1.0), corners(1), rng(), DRAWS, confidence=0.999)
        assert 0.8 * epsilon <= bound.epsilon <= epsilon
        assert bound.draws == DRAWS / 2
        assert 0 < bound.second < bound.first <= 1

    def test_a_copy_exceeds_what_draws_can_show(self):
        assert audit(Copy(1.0), corners(3), rng(), DRAWS).epsilon == pytest.approx(
            math.log(DRAWS / 2 / -math.log(0.05)), abs=0.05
        )

    @pytest.mark.parametrize("dimensions", [4, 32])
    def test_adept_grows_with_the_dimensions(self, dimensions):
        assert audit(AdeptSensitivity(0.5), corners(dimensions), rng(), draws=20_000).epsilon > 2 * 0.5

    def test_delta_counts(self):
        sound = Gaussian(epsilon=1.0, delta=1e-3, sensitivity=1.0)
        assert 0.3 < audit(sound, corners(1), rng(), DRAWS).epsilon <= 1.0

        class Half(Gaussian):
            @property
            def scale(self):
                return super().scale / 2

        assert audit(Half(epsilon=1.0, delta=1e-3, sensitivity=1.0), corners(1), rng(), DRAWS).epsilon > 1.0

    def test_what_delta_allows_is_taken_off(self):
        """A bit that is 1 with probability 0.3 or 0.2 is (ln 1.25, 0.05)-private, and (ln 1.5, 0)-private."""

        class Bit(Copy):
            delta = 0.05

            def release(self, values, rng):
                return (rng.random(values.shape) < 0.2 + 0.1 * values).astype(float)

        class WithoutDelta(Bit):
            delta = 0.0

        assert 0.15 < audit(Bit(1.0), corners(1), rng(), 5 * DRAWS).epsilon <= math.log(1.25)
        assert math.log(1.25) + 0.1 < audit(WithoutDelta(1.0), corners(1), rng(), DRAWS).epsilon <= math.log(1.5)

    def test_a_value_that_one_input_alone_gives_is_parted_from_what_lies_next_to_it(self):
        class Atoms(Copy):
            """Often 0 for an input of 0, else a number just above or one of 40 integers."""

            def release(self, values, rng):
                others = np.where(rng.random(values.shape) < 0.5, rng.random(values.shape), 0.0)
                others += (others == 0) * rng.integers(2, 42, values.shape)
                return np.where((rng.random(values.shape) < 0.3) & (values == 0), 0.0, others)

        assert audit(Atoms(1.0), corners(1), rng(), 2 * DRAWS).epsilon > 7

    def test_floating_point_gives_a_textbook_release_away_and_not_a_discrete_one(self):
        textbook = Laplace(epsilon=1.0, sensitivity=2.0)
        assert audit(textbook, corners(2), rng(), 5 * DRAWS, digits=None).epsilon > 1.5
        assert audit(textbook, corners(2), rng(), DRAWS).epsilon <= 1.0
        discrete = DiscreteLaplace(epsilon=1.0, sensitivity=2.0)
        for digits in (9, None):
            assert audit(discrete, corners(2), rng(), DRAWS, digits=digits).epsilon <= 1.0


def test_the_same_generator_gives_the_same_bound():
    first, second = (audit(Laplace(epsilon=1.0, sensitivity=2.0), corners(2), rng(3), draws=2000) for _ in range(2))
    assert first == second


def test_releases_that_are_not_finite_are_refused():
    class Broken(Copy):
        def release(self, values, rng):
            return values * np.nan

    with pytest.raises(ValueError, match="NaN or infinity"):
        audit(Broken(1.0), corners(1), rng(), draws=200)


@pytest.mark.parametrize(("draws", "pairs"), [(99, corners(1)), (1000, [])])
def test_too_little_to_go_by_is_refused(draws, pairs):
    with pytest.raises(ValueError, match="at least 50 draws for each pair, and one pair"):
        audit(Copy(1.0), pairs, rng(), draws=draws)


def test_corners_are_neighbours_of_the_cube():
    assert [pair.name for pair in corners(1)] == ["zeros and ones"]
    distances = {pair.name: np.abs(pair.first - pair.second).sum() for pair in corners(6)}
    assert distances == {"zeros and ones": 6, "alternating": 6, "one coordinate": 1}
    assert Pair("x", np.zeros(1), np.ones(1)).swapped().first == 1


class TestDefaults:
    """What a mechanism need not know of itself."""

    def test_a_mechanism_that_knows_nothing_gives_no_log_ratio_and_its_own_input(self):
        class Silent(MechanismDefaults):
            epsilon, delta = 1.0, 0.0

            def release(self, values, rng):
                return values + rng.laplace(0, 1, values.shape)

        inputs = np.zeros(1), np.ones(1)
        assert Silent().log_ratio(np.zeros((1, 1)), *inputs) is None
        assert Silent().vector_of(inputs[1]) is inputs[1]
        assert 0.5 < audit(Silent(), corners(1), rng(), draws=20_000, confidence=0.999).epsilon <= 1.0

    def test_every_mechanism_has_what_audits_ask(self):
        for mechanism in (
            *(control(1.0) for control in (*BROKEN, *SOUND)),
            DiscreteLaplace(epsilon=1.0, sensitivity=1),
        ):
            assert isinstance(mechanism, MechanismDefaults)
            ratio = mechanism.log_ratio(np.zeros((3, 2)), np.zeros(2), np.ones(2))
            assert ratio is None or ratio.shape == (3,)
