"""Audits of whole calls: rows that reveal each other are caught, and only they."""

import functools

import numpy as np
import pytest
from marks import with_slow
from scipy import stats

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.auditing import calls as module
from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.calls import (
    FEWEST_LARGE_ROWS,
    MAX_LARGE_VALUES,
    ROWS,
    CallsStatistic,
    audit_calls,
    choose_statistic,
    run_calls,
    run_statistic,
)
from leakboard.privacy.auditing.events import Pair, corners
from leakboard.privacy.mechanisms.broken import HalvedOutput, RandomBits
from leakboard.privacy.mechanisms.broken_calls import BROKEN_CALLS, SOUND_CALLS, SeedUsedTwice, SharedByRows
from leakboard.privacy.mechanisms.textbook import Gaussian, Laplace

PAIRS = corners(2)[:1]
SOUND = (HalvedOutput(1.0), RandomBits(1.0), *(control(1.0) for control in SOUND_CALLS))


def rng(seed=0):
    return np.random.default_rng(seed)


class Kept(HalvedOutput):
    """Releases the values themselves."""

    def release(self, values, rng):
        return values


class Counted(HalvedOutput):
    """Sound; it notes the numbers of rows of its calls."""

    @functools.cached_property
    def sizes(self):
        return set()

    def release(self, values, rng):
        self.sizes.add(len(values))
        return super().release(values, rng)


@pytest.mark.parametrize("control", BROKEN_CALLS, ids=lambda control: control.__name__)
@pytest.mark.parametrize("epsilon", with_slow([0.5, 1.0, 5.0], 0.5, 5.0))
def test_rows_that_reveal_each_other_are_caught(control, epsilon):
    assert audit_calls(control(epsilon), PAIRS, rng(), 3000, 0.05).epsilon > epsilon


@pytest.mark.parametrize("control", BROKEN_CALLS, ids=lambda control: control.__name__)
def test_row_by_row_they_look_sound(control):
    assert audit(control(1.0), PAIRS, rng(), 2000, confidence=0.999).epsilon <= 1.0
    bound = audit(control(1.0), PAIRS, rng(), 2000, calls=500)
    assert bound.epsilon > 1.0
    assert abs(bound.draws - 250) < 2
    assert bound.trade_off is None


@pytest.mark.parametrize(("digits", "distinct"), [(9, 3), (None, 4)])
def test_rounding_errors_are_no_scores(digits, distinct):
    scores = np.array([0.3, 0.1 + 0.2, 1.0, -1.0])
    assert len(np.unique(CallsStatistic(PAIRS[0], "given", lambda calls: scores, digits).score(None))) == distinct


@pytest.mark.parametrize("mechanism", SOUND, ids=lambda mechanism: type(mechanism).__name__)
def test_sound_ones_are_left_alone(mechanism):
    assert audit_calls(mechanism, corners(2), rng(1), 1000, 0.001).epsilon <= mechanism.epsilon


@pytest.mark.parametrize("mechanism", SOUND, ids=lambda mechanism: type(mechanism).__name__)
def test_large_calls_leave_sound_ones_alone(mechanism, monkeypatch):
    monkeypatch.setattr(module, "_candidates", functools.partial(of_large_calls, module._candidates))
    found = audit_calls(mechanism, corners(2), rng(1), 1000, 0.001, public=np.full(2, 0.5))
    assert found.epsilon <= mechanism.epsilon
    assert "one row of 256" in found.pair


def of_large_calls(candidates, *arguments):
    """Return the candidates, but none of small calls."""
    return candidates(*arguments) if len(arguments) > 5 else []


def test_a_small_delta_does_not_prevent_a_verdict():
    class Shared(SharedByRows):
        delta = 1e-5

    assert audit_calls(Shared(1.0), PAIRS, rng(), 1000, 0.05).epsilon > 3


def antithetic(noise):
    return np.concatenate([noise[: len(noise) // 2], -noise[: len(noise) - len(noise) // 2]])


def centred(noise):
    return noise - noise.mean(0)


@pytest.mark.parametrize("cancelling", [antithetic, centred])
@pytest.mark.parametrize("dimension", [16, 256])
def test_noises_that_cancel_each_other_are_caught(cancelling, dimension):
    class Cancelling(MechanismDefaults):
        epsilon, delta = 1.0, 0.0

        def release(self, values, generator):
            return values + cancelling(generator.laplace(0, values.shape[1], values.shape))

    assert audit_calls(Cancelling(), corners(dimension)[:1], rng(), 500, 0.05).epsilon > 3


class LastAsFirst(MechanismDefaults):
    """Broken: the last row of a call has the noise of the first."""

    epsilon, delta = 1.0, 0.0

    def release(self, values, generator):
        noise = generator.laplace(0, values.shape[1], values.shape)
        noise[-1] = noise[0]
        return values + noise


class SampledTogether(MechanismDefaults):
    """Broken: one secret coin decides whether all rows of a call are used. Row by row it is sound."""

    epsilon, delta = float(np.log1p(0.1 * np.expm1(5.0))), 0.0

    def release(self, values, generator):
        is_used = generator.random() < 0.1
        return values * is_used + generator.laplace(0, values.shape[1] / 5, values.shape)


@pytest.mark.parametrize(("mechanism", "least"), [(LastAsFirst(), 3.0), (SampledTogether(), 2.0)])
def test_noise_of_the_last_row_and_secrets_of_a_call_are_found(mechanism, least):
    assert audit_calls(mechanism, corners(1), rng(), 8000, 0.05).epsilon > least


class Normalised(MechanismDefaults):
    """Broken: each call is normalised by its smallest and largest value, and gets the noise for public bounds."""

    epsilon, delta = 1.0, 0.0

    def release(self, values, generator):
        low, high = values.min(0), values.max(0)
        width = np.where(high > low, high - low, 1)
        return (values - low) / width + generator.laplace(0, values.shape[1], values.shape)


class Divided(MechanismDefaults):
    """Broken: the same, but each call is divided by its largest value."""

    epsilon, delta = 1.0, 0.0

    def release(self, values, generator):
        return values / (values.max() or 1) + generator.laplace(0, values.shape[1], values.shape)


class RelativeToTheFirst(MechanismDefaults):
    """Broken: all rows but the first are published relative to the first, which so spends its epsilon on each row."""

    epsilon, delta = 1.0, 0.0

    def release(self, values, generator):
        shifted = values - np.concatenate([np.zeros_like(values[:1]), np.repeat(values[:1], len(values) - 1, axis=0)])
        return shifted + generator.laplace(0, values.shape[1], values.shape)


@pytest.mark.parametrize(("broken", "dimension"), [(Normalised, 8), (Divided, 8), (RelativeToTheFirst, 1)])
def test_a_row_that_changes_all_others_is_found_in_large_calls(broken, dimension):
    between = np.full(dimension, 0.5)
    found = audit_calls(broken(), corners(dimension)[:1], rng(), 4000, 0.01, public=between)
    assert found.epsilon > 1.5
    assert "one row of 256 in a call; the other rows are another public vector" in found.pair


@pytest.mark.parametrize(("broken", "dimension"), [(Normalised, 8), (Divided, 8), (RelativeToTheFirst, 1)])
def test_small_calls_do_not_find_it(broken, dimension):
    statistic = choose_statistic(broken(), corners(dimension)[:1], rng(), 4000)
    assert run_statistic(broken(), statistic, 4000, rng(1), 0.01).epsilon <= 1.0


def test_large_calls_decide_their_first_middle_and_last_row():
    calls, coins = run_calls(Kept(1.0), PAIRS[0], 6, rng(), 9, np.full(2, 0.5))
    assert calls.released.shape == (6, 9, 2)
    assert calls.positions.tolist() == [0, 4, 8] * 2
    assert calls.decided.tolist() == [[0.0, 0.0] if coin else [1.0, 1.0] for coin in coins]
    assert not calls.public_noise.any()


def test_large_calls_of_many_coordinates_have_fewer_rows():
    mechanism = Counted(1.0)
    audit_calls(mechanism, corners(4096)[:1], rng(), 400, 0.05)
    assert mechanism.sizes == {ROWS, MAX_LARGE_VALUES // (40 * 4096)}


def test_no_large_calls_are_made_where_few_rows_or_calls_fit(monkeypatch):
    mechanism = Counted(1.0)
    audit_calls(mechanism, corners(2)[:1], rng(), 300, 0.05)
    monkeypatch.setattr(module, "MAX_LARGE_VALUES", 40 * 2 * (FEWEST_LARGE_ROWS - 1))
    audit_calls(mechanism, corners(2)[:1], rng(), 400, 0.05)
    assert mechanism.sizes == {ROWS}


def test_calls_out_of_step_with_the_seeds_are_caught_too():
    mechanism = SeedUsedTwice(1.0)
    mechanism.release(np.zeros((1, 2)), rng())
    assert audit_calls(mechanism, PAIRS, rng(), 500, 0.05).epsilon > 1


def test_no_row_is_compared_with_its_own_noise():
    calls, _ = run_calls(Gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0), PAIRS[0], 50, rng())
    noise_of_row = calls.decided - calls.pair.first
    assert all((noise != noise_of_row).all() for noise in calls.possible_noises())


def test_only_the_decided_row_depends_on_the_coin():
    calls, coins = run_calls(Kept(1.0), PAIRS[0], 50, rng())
    assert calls.released.shape == (50, ROWS, 2)
    assert calls.decided.tolist() == [[0.0, 0.0] if coin else [1.0, 1.0] for coin in coins]
    assert not calls.public_noise.any()
    assert calls.positions.tolist() == [1, 2, 3] * 16 + [1, 2]


def test_releases_that_are_not_finite_are_refused():
    class Broken(HalvedOutput):
        def release(self, values, rng):
            return values * np.nan

    with pytest.raises(ValueError, match="NaN or infinity"):
        audit_calls(Broken(1.0), PAIRS, rng(), 10, 0.05)


def test_releases_of_another_shape_are_refused():
    class Narrow(HalvedOutput):
        def release(self, values, rng):
            return values[:, :1]

    message = r"the mechanism released shape \(4, 1\); allowed: that of its rows, \(4, 2\)"
    with pytest.raises(ValueError, match=message):
        audit_calls(Narrow(1.0), PAIRS, rng(), 10, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [*SOUND, Gaussian(epsilon=1.0, delta=0.01, sensitivity=2**0.5), Laplace(epsilon=1.0, sensitivity=2.0)],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_thousand_audits_are_wrong_no_more_often_than_stated(mechanism):
    """Rows and calls together; Laplace noise attains its claim, so ten times the error would fail."""
    generator, audits = rng(7), 1000
    bounds = [audit(mechanism, PAIRS, generator, 400, calls=60).epsilon for _ in range(audits)]
    assert sum(bound > mechanism.epsilon for bound in bounds) <= stats.binom(audits, 0.05).ppf(0.999)


def test_pairs_of_texts_are_refused():
    class Noise(SharedByRows):
        def release(self, values, generator):
            return generator.laplace(size=(len(values), 1))

        def vector_of(self, values):
            return None

    pair = Pair("texts", np.array(["a b"], object), np.array(["a c"], object))
    assert audit(Noise(1.0), [pair], rng(), 200).epsilon <= 1.0
    with pytest.raises(ValueError, match="calls=20 is not allowed with pairs of texts"):
        audit(Noise(1.0), [pair], rng(), 200, calls=20)
