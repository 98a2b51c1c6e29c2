"""One-run audits: the paper's numbers, the theorem term by term, and bounds for mechanisms with a known law."""

import math

import numpy as np
import pytest
from marks import with_slow
from scipy import stats

from leakboard.privacy.auditing.guesses import SHARES, audit_scores, guess
from leakboard.privacy.auditing.one_run import one_run_bound, p_value
from leakboard.privacy.auditing.one_run_curve import epsilon_delta_curve, refuted

RUNS = 200


def rng(seed=0):
    return np.random.default_rng(seed)


def slow_p_value(m, r, v, epsilon, delta):
    """Compute the theorem term by term, with its maximum over all of i = 1, ..., m."""
    law = stats.binom(r, math.exp(epsilon) / (1 + math.exp(epsilon)))

    def f(k):
        return sum(law.pmf(j) for j in range(max(k, 0), r + 1))

    return min(1.0, f(v) + 2 * m * delta * max((f(v - i) - f(v)) / i for i in range(1, m + 1)))


def randomised_response(m, epsilon, generator):
    """Return the coins with noise, exactly epsilon-private for each, and the coins."""
    coins = generator.random(m) < 0.5
    kept = generator.random(m) < 1 / (1 + math.exp(-epsilon))
    return np.where(kept, coins, ~coins).astype(float), coins


class TestPValue:
    @pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (5, 5, 3), (12, 8, 8), (12, 8, 5), (12, 8, 1), (30, 20, 16)])
    @pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
    @pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
    def test_against_the_theorem_term_by_term(self, m, r, v, epsilon, delta):
        assert p_value(m, r, v, epsilon, delta) == pytest.approx(slow_p_value(m, r, v, epsilon, delta), rel=1e-9)

    def test_by_hand(self):
        assert p_value(2, 2, 2, 0.0, 0.0) == pytest.approx(1 / 4)
        assert p_value(9, 3, 2, math.log(3), 0.0) == pytest.approx(27 / 64 + 27 / 64)  # q = 3/4
        # q = 1/2 and v = 2 of 2: f(2) = 1/4, f(1) = 3/4, f(0) = 1; the steps are 1/2 and 3/8
        assert p_value(10, 2, 2, 0.0, 0.01) == pytest.approx(1 / 4 + 2 * 10 * 0.01 / 2)

    def test_without_right_guesses_it_is_one(self):
        assert p_value(10, 5, 0, 0.0, 0.1) == p_value(10, 0, 0, 0.0, 0.0) == 1

    @pytest.mark.parametrize("group", [1, 3])
    @pytest.mark.parametrize("delta", [0.0, 1e-4])
    def test_it_grows_with_epsilon_while_it_is_small(self, delta, group):
        values = [p_value(500, 200, 160, e, delta, group=group) for e in np.linspace(0, 3, 61)]
        small = [value for value in values if value < 0.5]
        assert len(small) > 5
        assert small == sorted(small)

    @pytest.mark.parametrize("delta", [0.001, 0.02])
    @pytest.mark.parametrize("epsilon", with_slow([0.0, 1.0], 0.0))
    def test_no_known_leak_beats_either_theorem(self, epsilon, delta):
        """Leaks of each coin, of all coins and of k coins at once have exact laws; both theorems must be above them.

        With probability delta m / k a random k of the m coins leak: delta for each coin.
        """
        m, q = 20, 1 / (1 + math.exp(-epsilon))
        each = stats.binom(m, q + delta * (1 - q))
        for v in range(1, m + 1):
            shares = [min(1.0, delta * m / k) for k in range(1, m + 1)]
            leaks = [
                share * stats.binom(m - k, q).sf(v - k - 1) + (1 - share) * stats.binom(m, q).sf(v - 1)
                for k, share in enumerate(shares, 1)
            ]
            most = max(each.sf(v - 1), *leaks)
            assert p_value(m, m, v, epsilon, delta) >= most - 1e-12
            assert not refuted(m, m, v, epsilon_delta_curve(epsilon, delta), most - 1e-9)

    def test_a_group_has_the_deltas_of_its_chain(self):
        epsilon, delta = 0.4, 1e-4
        chain = delta * (1 + math.exp(epsilon) + math.exp(2 * epsilon))
        assert p_value(90, 40, 33, epsilon, delta, group=3) == pytest.approx(p_value(90, 40, 33, 3 * epsilon, chain))
        assert p_value(90, 40, 33, 0.0, delta, group=3) == pytest.approx(p_value(90, 40, 33, 0.0, 3 * delta))
        assert p_value(90, 40, 33, 500.0, delta, group=3) == 1


class TestBound:
    @pytest.mark.parametrize(
        ("m", "r", "v", "delta", "published"),
        [
            (100, 100, 75, 0.0, 0.702),
            (100, 100, 75, 1e-4, 0.699),
            (1000, 100, 75, 1e-4, 0.673),
            (100_000, 1510, 1439, 1e-5, 2.675),
        ],
    )
    def test_the_papers_numbers(self, m, r, v, delta, published):
        """Appendix D (pages 45 and 46) and section 7 (page 28), which round or cut off after three digits."""
        assert one_run_bound(m, r, v, delta) == pytest.approx(published, abs=1e-3)

    @pytest.mark.parametrize("r", [5, 16, 1000])
    @pytest.mark.parametrize("error", [0.05, 0.001])
    def test_all_right_has_a_closed_form(self, r, error):
        x = error ** (1 / r)
        expected = max(0.0, math.log(x / (1 - x)))
        assert one_run_bound(r, r, r, 0.0, error) == pytest.approx(expected, abs=2e-6)

    @pytest.mark.parametrize("delta", [0.0, 1e-5])
    @pytest.mark.parametrize("group", [1, 4])
    def test_it_is_refuted_and_larger_epsilons_are_not(self, delta, group):
        bound = one_run_bound(400, 200, 170, delta, group=group)
        assert p_value(400, 200, 170, bound, delta, group=group) < 0.05
        assert p_value(400, 200, 170, bound + 2e-6, delta, group=group) >= 0.05

    def test_nothing_proved_is_zero(self):
        assert one_run_bound(100, 100, 50, 0.0) == one_run_bound(100, 0, 0, 0.0) == 0
        assert one_run_bound(100, 4, 4, 0.0) == 0  # 1/16 is above the error
        assert one_run_bound(100, 100, 100, 0.5) == 0

    def test_delta_abstentions_and_groups_cost(self):
        single = one_run_bound(100, 100, 90, 0.0)
        assert one_run_bound(100, 100, 90, 1e-3) < single
        assert one_run_bound(900, 100, 90, 1e-3) < one_run_bound(100, 100, 90, 1e-3)
        assert one_run_bound(900, 100, 90, 0.0) == single
        assert one_run_bound(100, 100, 90, 0.0, group=2) == pytest.approx(single / 2, abs=2e-6)
        assert 0 < one_run_bound(100, 100, 90, 1e-4, group=2) < one_run_bound(100, 100, 90, 1e-4) / 2

    @pytest.mark.parametrize(
        ("arguments", "group", "message"),
        [
            ((10, 5, 6, 0.0), 1, "6 right of 5 guesses of 10"),
            ((10, 11, 6, 0.0), 1, "6 right of 11 guesses of 10"),
            ((10, 5, -1, 0.0), 1, "-1 right"),
            ((10, 5, 5, 1.5), 1, "delta=1.5"),
            ((10, 5, 5, math.nan), 1, "delta=nan"),
            ((10, 5, 5, 0.0, 0.0), 1, "error=0.0"),
            ((10, 5, 5, 0.0, 1.0), 1, "error=1.0"),
            ((10, 5, 5, 0.0), 0, "group=0"),
        ],
    )
    def test_impossible_numbers_are_refused(self, arguments, group, message):
        with pytest.raises(ValueError, match=message):
            one_run_bound(*arguments, group=group)

    @pytest.mark.parametrize("epsilon", [-1.0, math.inf, math.nan])
    def test_impossible_epsilons_are_refused(self, epsilon):
        with pytest.raises(ValueError, match="epsilon="):
            p_value(10, 5, 5, epsilon, 0.0)


class TestGuess:
    def test_by_hand(self):
        scores = np.array([0.1, 0.9, 0.5, 0.7, 0.3])
        assert guess(scores, 4).tolist() == [-1, 1, 0, 1, -1]
        assert guess(scores, 3).tolist() == [-1, 1, 0, 1, 0]
        assert guess(scores, 5).tolist() == [-1, 1, 1, 1, -1]
        assert guess(scores, 0).tolist() == [0] * 5

    def test_of_equal_scores_the_first_is_the_higher(self):
        assert guess(np.zeros(6), 4).tolist() == [1, 1, 0, 0, -1, -1]

    @pytest.mark.parametrize("scores", [np.array([0.0, np.nan]), np.array([np.inf, 0.0]), np.zeros((2, 2))])
    def test_impossible_scores_are_refused(self, scores):
        with pytest.raises(ValueError, match="one finite number for each canary"):
            guess(scores, 1)

    @pytest.mark.parametrize("count", [-1, 3])
    def test_counts_out_of_range_are_refused(self, count):
        with pytest.raises(ValueError, match=f"count={count}"):
            guess(np.zeros(2), count)


class TestAudit:
    """Bounds for a known epsilon: valid, not empty, and large if everything leaks."""

    @pytest.mark.slow
    def test_randomised_response(self):
        generator, epsilon = rng(1), 1.0
        bounds = [audit_scores(*randomised_response(1000, epsilon, generator), delta=0.0) for _ in range(RUNS)]
        epsilons = np.array([bound.epsilon for bound in bounds])
        assert np.count_nonzero(epsilons > epsilon) <= stats.binom(RUNS, 0.05).ppf(0.999)
        assert 0.7 < np.median(epsilons) < epsilon
        assert {bound.tried for bound in bounds} == {len(SHARES)}

    def test_one_number_of_guesses_nearly_uses_up_the_error(self):
        """So a much tighter bound would be wrong."""
        generator, epsilon, m = rng(2), 1.0, 1000
        right = generator.binomial(m, 1 / (1 + math.exp(-epsilon)), 2000)
        is_alarm = {v: one_run_bound(m, m, int(v), 0.0) > epsilon for v in set(right)}
        alarms = np.mean([is_alarm[v] for v in right])
        assert 0.02 < alarms <= stats.binom(2000, 0.05).ppf(0.999) / 2000

    @pytest.mark.parametrize("delta", [0.0, 1e-5])
    def test_a_release_of_the_coins_is_caught(self, delta):
        coins = rng(3).random(1000) < 0.5
        bound = audit_scores(coins.astype(float), coins, delta)
        assert bound.epsilon > 4
        assert (bound.canaries, bound.guesses, bound.right) == (1000, 900, 900)
        assert bound.confidence == 0.95

    def test_few_memorised_canaries_are_found_by_few_guesses(self):
        generator = rng(4)
        coins = generator.random(2000) < 0.5
        scores = generator.normal(size=2000)
        scores[:60] += np.where(coins[:60], 20, -20)
        bound = audit_scores(scores, coins, 0.0)
        assert bound.guesses == bound.right == 40
        assert bound.epsilon > 1.5

    def test_random_scores_prove_next_to_nothing(self):
        generator = rng(5)
        bounds = [audit_scores(generator.random(1000), generator.random(1000) < 0.5, 0.0) for _ in range(RUNS)]
        epsilons = [bound.epsilon for bound in bounds]
        assert np.count_nonzero(epsilons) <= stats.binom(RUNS, 0.05).ppf(0.999)
        assert np.median(epsilons) == 0

    def test_reversed_scores_prove_nothing(self):
        coins = rng(6).random(500) < 0.5
        assert audit_scores(-coins.astype(float), coins, 0.0).epsilon == 0

    def test_each_number_of_guesses_costs_a_share_of_the_error(self):
        coins = rng(7).random(100) < 0.5
        scores = coins.astype(float)
        assert audit_scores(scores, coins, 0.0, 0.05, (0.5,)).epsilon == one_run_bound(100, 50, 50, 0.0, 0.05)
        both = audit_scores(scores, coins, 0.0, 0.05, (0.5, 0.25, 0.501))  # 0.501 is 50 guesses again
        assert both.epsilon == one_run_bound(100, 50, 50, 0.0, 0.025)
        assert both.tried == 2

    def test_a_group_of_two_halves_the_bound(self):
        coins = rng(8).random(400) < 0.5
        single, double = (audit_scores(coins.astype(float), coins, 0.0, group=g).epsilon for g in (1, 2))
        assert double == pytest.approx(single / 2, abs=2e-6)

    def test_coins_may_be_zeros_and_ones(self):
        scores, coins = randomised_response(300, 3.0, rng(9))
        assert audit_scores(scores, coins.astype(int), 0.0) == audit_scores(scores, coins, 0.0)

    @pytest.mark.parametrize(
        ("included", "shares", "message"),
        [
            (np.ones(3, bool), (0.5,), r"coins of shape \(3,\)"),
            (np.full(4, 2), (0.5,), "not one bool"),
            (np.ones(4, bool), (0.0, 0.5), "shares="),
            (np.ones(4, bool), (1.5,), "shares="),
            (np.ones(4, bool), (0.01,), "make no guess"),
            (np.ones(4, bool), (), "make no guess"),
        ],
    )
    def test_wrong_requests_are_refused(self, included, shares, message):
        with pytest.raises(ValueError, match=message):
            audit_scores(np.zeros(4), included, 0.0, 0.05, shares)
