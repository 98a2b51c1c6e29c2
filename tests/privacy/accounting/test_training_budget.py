"""The cost of training: against the binomial sum of the sampled Gaussian, closed forms, and the other accountant."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import special

from leakboard.errors import RequestError
from leakboard.privacy.accounting import accountant
from leakboard.privacy.accounting.training_budget import FAILURE_SHARE, TrainingBudget
from leakboard.privacy.mechanisms.textbook import gaussian_epsilon

SHARED_ORDERS = [*range(2, 64), 128, 256, 512, 1024]
"""Integer orders that dp-accounting uses too."""

RUNS = {
    "many small batches": (TrainingBudget(1.3, 0.004, 1e-5), 500),
    "few large batches": (TrainingBudget(4.0, 0.3, 1e-3), 20),
    "little noise": (TrainingBudget(0.8, 0.01, 1e-6), 10),
    "no sampling": (TrainingBudget(6.0, 1.0, 1e-5), 10),
    "a counted vocabulary": (TrainingBudget(2.0, 0.02, 1e-4, 5.0), 30),
    "a vocabulary that costs more than training": (TrainingBudget(5.0, 0.02, 1e-4, 2.0), 10),
}


def by_binomial_sum(budget, steps, orders):
    """Compute epsilon by RDP at integer orders, from theorem 4 of Mironov, Talwar and Zhang 2019."""
    best, q = math.inf, budget.sampling_probability
    failure = 0.0 if budget.vocabulary_noise is None else FAILURE_SHARE * budget.delta
    for order in orders:
        k = np.arange(order + 1)
        logs = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
        logs += special.xlogy(k, q) + special.xlogy(order - k, 1 - q)
        moment = special.logsumexp(logs + (k * k - k) / (2 * budget.noise_multiplier**2))
        divergence = steps * moment / (order - 1)
        if budget.vocabulary_noise:
            divergence += order / (2 * budget.vocabulary_noise**2)
        slack = math.log1p(-1 / order) - math.log((budget.delta - failure) * order) / (order - 1)
        best = min(best, divergence + slack)
    return best - math.log1p(-failure)


@pytest.mark.parametrize("run", RUNS)
def test_epsilon_is_that_of_the_binomial_sum(run):
    budget, steps = RUNS[run]
    epsilon = budget.epsilon(steps)
    assert epsilon <= by_binomial_sum(budget, steps, SHARED_ORDERS) * (1 + 1e-9)
    assert epsilon == pytest.approx(by_binomial_sum(budget, steps, range(2, 1025)), rel=0.03)  # fractional orders


@pytest.mark.parametrize("run", RUNS)
def test_pld_is_at_most_rdp_and_at_least_half_of_it(run):
    budget, steps = RUNS[run]
    loose = budget.epsilon(steps)
    assert loose / 2 < budget.epsilon(steps, "pld") <= loose


@pytest.mark.parametrize("vocabulary_noise", [None, 1.5])
@pytest.mark.parametrize(("noise", "visits"), [(1.0, 1), (3.0, 7)])
def test_known_visits_are_whole_gaussian_releases(vocabulary_noise, noise, visits):
    budget = TrainingBudget(noise, 0.01, 1e-4, vocabulary_noise)
    counting = [accountant.gaussian_releases(vocabulary_noise)] if vocabulary_noise else []
    event = accountant.together(accountant.gaussian_releases(noise, visits), *counting)
    failure = 1e-5 if vocabulary_noise else 0.0
    expected = accountant.epsilon_at(event, 1e-4 - failure) - math.log1p(-failure)
    epsilon = budget.epsilon_of_visits(visits)
    assert epsilon - 1e-6 <= expected <= epsilon * 1.001 + 1e-3  # the library rounds up


def test_without_steps_only_the_vocabulary_costs():
    assert TrainingBudget(1.0, 0.1, 1e-4).epsilon_of_visits(0) == 0
    assert TrainingBudget(1.0, 0.1, 1e-4).epsilon(0) == 0
    counted = TrainingBudget(1.0, 0.1, 1e-4, 2.0)
    alone = gaussian_epsilon(0.9e-4, 2.0, 1.0) - math.log1p(-1e-5)
    assert counted.epsilon_of_visits(0) == pytest.approx(alone, rel=1e-9)
    assert alone < counted.epsilon(0) < 1.2 * alone
    assert counted.epsilon(0, "pld") == pytest.approx(alone, rel=2e-3)


def test_secret_sampling_costs_less_than_known_visits():
    sampled, known = TrainingBudget(4.0, 0.05, 1e-4), TrainingBudget(4.0, 1.0, 1e-4)
    assert sampled.epsilon(40, "pld") < sampled.epsilon_of_visits(40) / 10
    assert known.epsilon(40, "pld") == pytest.approx(known.epsilon_of_visits(40), rel=2e-3)


@pytest.mark.parametrize(("method", "tolerance"), [("rdp", 1e-6), ("pld", 1e-3)])
def test_a_counted_vocabulary_uses_a_share_of_delta(method, tolerance):
    """With very large noise on the counts, their remaining cost is a smaller delta and the failure probability p."""
    free = TrainingBudget(4.0, 0.1, 1e-3)
    counted = TrainingBudget(4.0, 0.1, 1e-3, 1e5)
    assert (free.failure, counted.failure) == (0.0, pytest.approx(1e-4))
    epsilon = counted.epsilon(20, method)
    assert epsilon > free.epsilon(20, method)
    expected = TrainingBudget(4.0, 0.1, 0.9e-3).epsilon(20, method) - math.log1p(-1e-4)
    assert epsilon == pytest.approx(expected, rel=tolerance)
    assert counted.epsilon_of_visits(3) > free.epsilon_of_visits(3)


class TestCalibration:
    @pytest.mark.slow
    @pytest.mark.parametrize(("vocabulary_noise", "target"), [(None, 0.7), (8.0, 2.0)])
    def test_the_target_is_met_and_less_noise_misses_it(self, vocabulary_noise, target):
        calibrated = TrainingBudget(1.0, 0.02, 1e-4, vocabulary_noise).calibrated(target, 30)
        assert calibrated.epsilon(30) <= target
        less = dataclasses.replace(calibrated, noise_multiplier=0.99 * calibrated.noise_multiplier)
        assert less.epsilon(30) > target
        assert calibrated == TrainingBudget(calibrated.noise_multiplier, 0.02, 1e-4, vocabulary_noise)

    def test_a_counted_vocabulary_needs_more_noise_in_training(self):
        free, counted = (TrainingBudget(1.0, 1.0, 1e-4, noise).calibrated(1.0, 30) for noise in (None, 8.0))
        assert counted.noise_multiplier > 1.1 * free.noise_multiplier

    def test_a_target_below_the_cost_of_counting_is_refused(self):
        budget = TrainingBudget(1.0, 1.0, 1e-4, 2.0)
        cost = budget.epsilon(0)
        with pytest.raises(RequestError, match=f"vocabulary_noise 2 alone costs {cost:.4g} at delta 0.0001") as caught:
            budget.calibrated(0.99 * cost, 10)
        assert "\n" not in str(caught.value)
        assert budget.calibrated(1.05 * cost, 10).epsilon(10) <= 1.05 * cost

    def test_a_public_vocabulary_uses_up_no_target(self):
        TrainingBudget(1.0, 1.0, 1e-4).check(0.0)

    def test_a_target_below_the_reach_of_noise_is_refused(self):
        """At order 1024, the largest, the conversion alone leaves (ln 1e9 - ln 1024) / 1023 - 1 / 1024 = 0.0125."""
        budget = TrainingBudget(1.0, 1.0, 1e-9)
        with pytest.raises(
            RequestError, match=r"epsilon 0.012 cannot be reached: at delta .* RDP proves no epsilon below 0.0"
        ):
            budget.calibrated(0.012, 10)
        assert budget.calibrated(0.014, 10).epsilon(10) <= 0.014


class TestStepsWithin:
    @pytest.mark.parametrize("vocabulary_noise", [None, 5.0])
    @pytest.mark.parametrize("epsilon", [1.0, 1.37])
    def test_one_more_step_exceeds_the_target(self, vocabulary_noise, epsilon):
        budget = TrainingBudget(2.0, 0.05, 1e-4, vocabulary_noise)
        steps = budget.steps_within(epsilon, 1000)
        assert 0 < steps < 1000
        assert budget.epsilon(steps) <= epsilon < budget.epsilon(steps + 1)

    def test_the_limit_is_kept(self):
        budget = TrainingBudget(40.0, 1.0, 1e-4)
        steps = budget.steps_within(1.0, 1000)
        assert [budget.steps_within(1.0, limit) for limit in (0, 1, steps - 1, steps)] == [0, 1, steps - 1, steps]

    def test_targets_below_one_step_and_below_counting(self):
        free, counted = TrainingBudget(2.0, 1.0, 1e-4), TrainingBudget(2.0, 1.0, 1e-4, 4.0)
        assert free.steps_within(0.99 * free.epsilon(1), 10) == 0
        between = (counted.epsilon(0) + counted.epsilon(1)) / 2
        assert counted.steps_within(between, 10) == 0
        assert counted.steps_within(counted.epsilon(0), 10) == 0
        assert counted.steps_within(0.999 * counted.epsilon(0), 10) == -1
