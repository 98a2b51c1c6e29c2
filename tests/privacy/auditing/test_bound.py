"""Bounds from counts and coins: as tight as the theorems allow, and valid if rows of a call depend on each other."""

import math

import numpy as np
import pytest
from scipy import special, stats

from leakboard.privacy.auditing import trials
from leakboard.privacy.auditing.bound import (
    bound_from_counts,
    clopper_pearson_high,
    clopper_pearson_low,
    log_ratios_from_counts,
)
from leakboard.privacy.auditing.choosing import bound_on_fresh_draws
from leakboard.privacy.auditing.events import Event, Threshold, corners
from leakboard.privacy.auditing.trials import coin_flip_releases, count_event, releases
from leakboard.privacy.mechanisms.broken import Copy
from leakboard.privacy.mechanisms.broken_calls import SharedAndOwn, SharedByRows

INPUTS = np.zeros(1), np.ones(1)


def flipped(release, draws, rng, inputs=INPUTS, delta=0.0):
    """Return all releases and all coins."""
    chunks = list(coin_flip_releases(release, inputs, draws, delta, rng))
    return tuple(np.concatenate(part) for part in zip(*chunks, strict=True))


class TestWithDelta:
    """With delta above 0: calls of 16 rows that are independent of each other."""

    @pytest.mark.parametrize(("right", "wrong"), [(7000, 120), (90_000, 10_000), (500_000, 100)])
    @pytest.mark.parametrize("delta", [1e-9, 1e-3])
    def test_at_the_bound_the_two_parts_share_the_error(self, right, wrong, delta):
        rows = 600_000, 590_000
        bound = bound_from_counts(right, wrong, rows, delta, 0.05)
        mean, nats = 1_190_000 * delta / 2 / (1 + math.exp(bound)), math.log(2 / 0.05)
        shown = mean + math.sqrt(2 * 16 * mean * nats) + 16 * nats / 3
        share = stats.beta(right - shown, right + wrong - right + shown + 1).ppf(0.025)
        assert bound == pytest.approx(math.log(share / (1 - share)), abs=1e-3)

    def test_a_tiny_delta_costs_a_few_calls(self):
        """The limit is then 16 ln(2 / error) / 3 rows, 20 at an error of 5 %."""
        tiny, none = (bound_from_counts(5000, 1000, (10**4, 10**4), delta, 0.05) for delta in (1e-12, 0.0))
        less = bound_from_counts(5000 - 20, 1000 + 20, (10**4, 10**4), 0.0, 0.025)
        assert less < none
        assert tiny == pytest.approx(less, abs=1e-3)

    def test_it_is_finite_and_grows_with_the_draws(self):
        bounds = [bound_from_counts(n, 0, (n, n), 1e-9, 0.05) for n in (10**2, 10**4, 10**6)]
        assert bounds == sorted(bounds)
        assert bounds[-1] == pytest.approx(math.log(1e6 / stats.gamma(20 + 1).ppf(0.975)), abs=0.05)

    @pytest.mark.parametrize("together", [True, False])
    @pytest.mark.parametrize("event", [(4,), (0, 4)], ids=["shown", "shown or answered"])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.04), (1.5, 0.01)])
    def test_rows_of_a_call_may_depend_on_each_other(self, together, event, epsilon, delta):
        """A row is shown with probability delta, else it is a random answer: (epsilon, delta)-private for each row.

        If all rows of a call are shown together, Clopper-Pearson bounds of independent rows are wrong too often.
        """
        rng, audits, alarms, naive = np.random.default_rng(6), 150, 0, 0

        def release(values, generator):
            shown = generator.random((1 if together else len(values), 1)) < delta
            lies = generator.random(values.shape) > special.expit(epsilon)
            return np.where(shown, 4.0 + values, np.where(lies, 1.0 - values, values))

        def holds(outputs):
            return np.isin(outputs[:, 0], event)

        for _ in range(audits):
            counts, rows = count_event(release, INPUTS, holds, 2000, delta, rng)
            alarms += bound_from_counts(*counts, rows, delta, 0.05) > epsilon
            low = clopper_pearson_low(counts[0], rows[0], 0.025)
            naive += low - delta > math.exp(epsilon) * clopper_pearson_high(counts[1], rows[1], 0.025)
        often = stats.binom(audits, 0.05).ppf(0.999)
        assert alarms <= often
        if together and event == (4,) and epsilon == 0:
            assert naive > often

    def test_calls_with_a_delta_are_small(self):
        sizes = []

        def release(values, rng):
            sizes.append(len(values))
            return np.zeros((len(values), 1))

        texts = np.array(["a"], object), np.array(["b"], object)
        for inputs, draws in ((INPUTS, 200_000), (texts, 6_400)):
            flipped(release, draws, np.random.default_rng(0), inputs, delta=1e-9)
            assert max(sizes) == 16
            assert sum(sizes) == draws
            sizes.clear()


class TestCoins:
    """With delta = 0: the theorem for coins."""

    @pytest.mark.parametrize(("right", "wrong"), [(40, 3), (1, 0), (700, 300), (1000, 0)])
    def test_at_the_bound_as_many_right_guesses_have_the_probability_of_the_error(self, right, wrong):
        bound = bound_from_counts(right, wrong, (1000, 1000), 0.0, 0.05)
        if bound > 0:
            assert stats.binom(right + wrong, special.expit(bound)).sf(right - 1) == pytest.approx(0.05)
        else:
            assert stats.binom(right + wrong, 0.5).sf(right - 1) >= 0.05

    @pytest.mark.slow
    def test_the_best_of_many_events_needs_fresh_draws(self):
        rng, n, alarms = np.random.default_rng(12), 300, 0
        for _ in range(200):
            first, second = (rng.random((2, n, 40)) < 0.5).sum(1)  # 40 events with an epsilon of 0
            alarms += max(map(lambda a, b: bound_from_counts(a, b, (n, n), 0.0, 0.05), first, second)) > 0
        assert alarms > stats.binom(200, 0.05).ppf(0.999)

    def test_dependent_rows_raise_no_false_alarm(self):
        """For a sound mechanism with noise shared by all rows; samples of one call each raise alarms."""
        mechanism, rng, n, alarms = SharedAndOwn(0.5), np.random.default_rng(1), 500, {"coins": 0, "samples": 0}

        def holds(outputs):
            return outputs[:, 0] < 0.5

        for _ in range(200):
            samples = [np.concatenate(list(releases(mechanism.release, value, n, rng))) for value in INPUTS]
            hits, misses = (int(holds(sample).sum()) for sample in samples)
            alarms["samples"] += bound_from_counts(hits, misses, (n, n), 0.0, 0.05) > 0.5
            outputs, coins = flipped(mechanism.release, 2 * n, rng)
            event = holds(outputs)
            alarms["coins"] += bound_from_counts((event & coins).sum(), (event & ~coins).sum(), (n, n), 0.0, 0.05) > 0.5
        assert alarms["coins"] <= stats.binom(200, 0.05).ppf(0.999)
        assert alarms["samples"] > 40


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_events_that_prove_nothing_can_be_compared(delta):
    counts = np.array([50, 500])
    logs = log_ratios_from_counts(counts, counts, (1000, 1000), delta, 0.05)
    assert logs[0] < logs[1] < 0
    assert all(bound_from_counts(n, n, (1000, 1000), delta, 0.05) == 0 for n in (0, 50))
    assert bound_from_counts(10, 900, (1000, 1000), delta, 0.05) == 0


class TestTrials:
    def test_coins_are_fair_independent_and_decide(self):
        outputs, coins = flipped(Copy(1.0).release, 600_000, np.random.default_rng(0))
        assert len(outputs) > trials.VALUES_AT_ONCE  # several chunks
        assert (outputs[:, 0] == ~coins).all()
        assert abs(coins.mean() - 0.5) < 4 * 0.5 / math.sqrt(600_000)
        assert abs(np.mean(coins[1:] == coins[:-1]) - 0.5) < 4 * 0.5 / math.sqrt(600_000)

    @pytest.mark.parametrize("wanted", [pytest.param(trials.WANTED_CALLS, marks=pytest.mark.slow), trials.MIN_CALLS])
    def test_rows_are_of_many_calls(self, wanted, monkeypatch):
        """Each row of a call with shared noise is sound by itself, so it proves at most epsilon.

        With few calls, one lucky draw of the noise proves anything.
        """
        monkeypatch.setattr(trials, "WANTED_CALLS", wanted)
        threshold = Threshold(6.0, ">=", promise=5.0)
        event = Event(corners(2)[0].swapped(), "sum", lambda outputs: outputs.sum(1), threshold)
        bounds = [
            bound_on_fresh_draws(SharedByRows(1.0), event, 30_000, np.random.default_rng(seed), 0.05)
            for seed in range(10)
        ]
        assert (max(bounds) > 5) == (wanted == trials.MIN_CALLS)
        assert wanted == trials.MIN_CALLS or max(bounds) <= 1.2

    @pytest.mark.parametrize(
        ("draws", "calls"),
        [(32, 16), (500, 16), (10_000, 39 * 16), (600_000, 250 * 16)],
        ids=["few", "some", "more", "most"],
    )
    def test_number_of_calls(self, draws, calls):
        sizes = []

        def release(values, rng):
            sizes.append(len(values))
            return values

        outputs, coins = flipped(release, draws, np.random.default_rng(0))
        assert len(outputs) == len(coins) == sum(sizes) == draws
        assert len(set(sizes[:-1])) == 1
        assert 0.9 * calls <= len(sizes) <= calls

    def test_texts_are_encoded_many_at_once(self):
        sizes = []

        def release(values, rng):
            sizes.append(len(values))
            return np.zeros((len(values), 1))

        texts = np.array(["a"], object), np.array(["b"], object)
        flipped(release, 6_400, np.random.default_rng(0), texts)
        assert sizes == [400] * trials.MIN_CALLS
