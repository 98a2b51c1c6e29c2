"""Audits: the bound is valid and not empty, catches broken mechanisms and leaves sound ones alone."""

import math

import numpy as np
import pytest
from marks import with_slow
from scipy import stats

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.events import Pair, corners, normalised_corners
from leakboard.privacy.mechanisms.broken import BROKEN, SOUND, AdeptSensitivity, Copy
from leakboard.privacy.mechanisms.textbook import DiscreteLaplace, Gaussian, Laplace

AUDITS = 400
DRAWS = 20_000


def rng(seed=0):
    return np.random.default_rng(seed)


class TestCorners:
    def test_by_hand(self):
        pairs = {pair.name: [pair.first.tolist(), pair.second.tolist()] for pair in corners(3)}
        assert pairs == {
            "zeros and ones": [[0, 0, 0], [1, 1, 1]],
            "alternating": [[0, 1, 0], [1, 0, 1]],
            "one coordinate": [[0, 0, 0], [1, 0, 0]],
        }
        assert [pair.name for pair in corners(1)] == ["zeros and ones"]

    def test_normalised_ones_have_a_zero_and_a_one(self):
        pairs = {pair.name: [pair.first.tolist(), pair.second.tolist()] for pair in normalised_corners(3)}
        assert pairs == {"alternating": [[0, 1, 0], [1, 0, 1]], "one coordinate": [[1, 0, 0], [1, 1, 0]]}
        assert [pair.name for pair in normalised_corners(2)] == ["alternating"]

    def test_a_swapped_pair(self):
        swapped = Pair("x", np.zeros(1), np.ones(1)).swapped()
        assert (swapped.name, swapped.first, swapped.second) == ("x, swapped", 1, 0)


class TestFalseAlarms:
    """At most one audit of twenty calls a correct mechanism violated, and the bound is not empty."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "mechanism",
        [
            Laplace(epsilon=0.5, sensitivity=1.0),
            Gaussian(epsilon=2.0, delta=0.01, sensitivity=1.0),
            DiscreteLaplace(epsilon=0.5, sensitivity=1.0, grid=0.125),
        ],
        ids=["laplace", "gaussian", "discrete laplace"],
    )
    def test_over_many_audits(self, mechanism):
        generator = rng(11)
        bounds = [audit(mechanism, corners(1), generator, draws_per_input=1000).epsilon for _ in range(AUDITS)]
        alarms = sum(bound > mechanism.epsilon for bound in bounds)
        assert alarms <= stats.binom(AUDITS, 0.05).ppf(0.999)
        assert np.mean(np.array(bounds) > 0) > 0.3
        # with a delta, 1,000 draws prove little
        assert max(bounds) > (0.1 if mechanism.delta else 0.5) * mechanism.epsilon

    def test_a_constant_release_proves_nothing(self):
        class Constant(MechanismDefaults):
            epsilon, delta = 1.0, 0.0

            def release(self, values, generator):
                return np.zeros_like(values)

        assert audit(Constant(), corners(3), rng(), draws_per_input=1000, confidence=0.999).epsilon == 0

    @pytest.mark.parametrize("control", SOUND, ids=lambda control: control.__name__)
    @pytest.mark.parametrize("dimensions", [1, 2, 8])
    def test_sound_controls_are_left_alone(self, control, dimensions):
        assert audit(control(1.0), corners(dimensions), rng(), DRAWS, confidence=0.999).epsilon <= 1.0


class TestPower:
    """Broken mechanisms are caught by few draws."""

    @pytest.mark.parametrize("control", BROKEN, ids=lambda control: control.__name__)
    @pytest.mark.parametrize("epsilon", with_slow([0.5, 1.0], 0.5))
    def test_every_broken_control_is_caught(self, control, epsilon):
        assert audit(control(epsilon), corners(2), rng(), 6 * DRAWS).epsilon > epsilon

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
    def test_a_correct_laplace_reaches_most_of_its_epsilon(self, epsilon):
        bound = audit(Laplace(epsilon=epsilon, sensitivity=1.0), corners(1), rng(), 2 * DRAWS, confidence=0.999)
        assert 0.8 * epsilon <= bound.epsilon <= epsilon
        assert bound.draws == DRAWS
        assert 0 < bound.second_rate < bound.first_rate <= 1

    def test_a_copy_gives_the_largest_bound_of_its_draws(self):
        largest = math.log(DRAWS / 2 / -math.log(0.05))
        assert audit(Copy(1.0), corners(3), rng(), DRAWS).epsilon == pytest.approx(largest, abs=0.05)

    @pytest.mark.parametrize("dimensions", [4, 32])
    def test_adept_grows_with_the_dimensions(self, dimensions):
        assert audit(AdeptSensitivity(0.5), corners(dimensions), rng(), draws_per_input=20_000).epsilon > 2 * 0.5

    @pytest.mark.slow
    def test_gaussian_noise_of_half_the_scale_is_caught(self):
        class Half(Gaussian):
            @property
            def scale(self):
                return super().scale / 2

        options = {"epsilon": 1.0, "delta": 1e-3, "sensitivity": 1.0}
        assert 0.3 < audit(Gaussian(**options), corners(1), rng(), DRAWS).epsilon <= 1.0
        assert audit(Half(**options), corners(1), rng(), DRAWS).epsilon > 1.0

    def test_delta_is_subtracted(self):
        """A bit that is 1 with probability 0.3 or 0.2 is (ln 1.25, 0.05)-private, and (ln 1.5, 0)-private."""

        class Bit(Copy):
            delta = 0.05

            def release(self, values, rng):
                return (rng.random(values.shape) < 0.2 + 0.1 * values).astype(float)

        class WithoutDelta(Bit):
            delta = 0.0

        assert 0.12 < audit(Bit(1.0), corners(1), rng(), 5 * DRAWS).epsilon <= math.log(1.25)
        assert math.log(1.25) + 0.1 < audit(WithoutDelta(1.0), corners(1), rng(), 5 * DRAWS).epsilon <= math.log(1.5)

    def test_a_value_of_one_input_is_separated_from_the_values_next_to_it(self):
        class Atoms(Copy):
            """Often 0 for an input of 0, else a number just above or one of 40 integers."""

            def release(self, values, rng):
                noise = np.where(rng.random(values.shape) < 0.5, rng.random(values.shape), 0.0)
                noise += (noise == 0) * rng.integers(2, 42, values.shape)
                return np.where((rng.random(values.shape) < 0.3) & (values == 0), 0.0, noise)

        assert audit(Atoms(1.0), corners(1), rng(), 2 * DRAWS).epsilon > 7

    @pytest.mark.slow
    def test_all_digits_catch_the_floating_point_of_a_textbook_release(self):
        """And not of a discrete one."""
        textbook = Laplace(epsilon=1.0, sensitivity=2.0)
        assert audit(textbook, corners(2), rng(), 5 * DRAWS, digits=None).epsilon > 1.5
        assert audit(textbook, corners(2), rng(), DRAWS).epsilon <= 1.0
        discrete = DiscreteLaplace(epsilon=1.0, sensitivity=2.0)
        for digits in (9, None):
            assert audit(discrete, corners(2), rng(), DRAWS, digits=digits).epsilon <= 1.0


def test_the_same_generator_gives_the_same_bound():
    laplace = Laplace(epsilon=1.0, sensitivity=2.0)
    first, second = (audit(laplace, corners(2), rng(3), draws_per_input=2000) for _ in range(2))
    assert first == second


def test_releases_that_are_not_finite_are_refused():
    class Broken(Copy):
        def release(self, values, rng):
            return values * np.nan

    with pytest.raises(ValueError, match="NaN or infinity"):
        audit(Broken(1.0), corners(1), rng(), draws_per_input=200)


@pytest.mark.parametrize(("draws", "pairs"), [(99, corners(1)), (1000, [])])
def test_too_few_draws_and_pairs_are_refused(draws, pairs):
    with pytest.raises(ValueError, match="at least one pair, and 50 draws of each input for each pair"):
        audit(Copy(1.0), pairs, rng(), draws_per_input=draws)


class TestDefaults:
    """A mechanism needs no log ratio and no vector of its input."""

    def test_a_mechanism_with_the_defaults_is_audited(self):
        class Silent(MechanismDefaults):
            epsilon, delta = 1.0, 0.0

            def release(self, values, rng):
                return values + rng.laplace(0, 1, values.shape)

        inputs = np.zeros(1), np.ones(1)
        assert Silent().log_ratio(np.zeros((1, 1)), *inputs) is None
        assert Silent().vector_of(inputs[1]) is inputs[1]
        assert 0.5 < audit(Silent(), corners(1), rng(), draws_per_input=20_000, confidence=0.999).epsilon <= 1.0

    @pytest.mark.parametrize("kind", [*BROKEN, *SOUND], ids=lambda kind: kind.__name__)
    def test_a_known_log_ratio_is_one_number_a_release(self, kind):
        ratio = kind(1.0).log_ratio(np.zeros((3, 2)), np.zeros(2), np.ones(2))
        assert ratio is None or ratio.shape == (3,)
