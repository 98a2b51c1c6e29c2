"""Right guesses against trade-off curves: by hand, by linear programs, and on mechanisms with a known law."""

import bisect
import itertools
import math
from functools import partial

import numpy as np
import pytest
from marks import with_slow
from scipy import optimize, special, stats

from leakboard.privacy.auditing import one_run
from leakboard.privacy.auditing.guesses import SHARES, largest_bound
from leakboard.privacy.auditing.one_run import one_run_bound
from leakboard.privacy.auditing.one_run_curve import best_one_run_bound, epsilon_delta_curve, refuted
from leakboard.privacy.mechanisms.textbook import gaussian_delta

PROFILE = {0.0: 0.3, 0.5: 0.15, 1.0: 0.06, 2.0: 0.01}
"""Deltas by epsilon."""


def gaussian_curve(mu):
    """Return g of mu-Gaussian privacy, f(a) = Phi(Phi^-1(1 - a) - mu) (Dong, Roth and Su 2022, definition 2.6)."""
    return lambda p: float(special.ndtr(special.ndtri(p) - mu))


def profile_curve(profile):
    """Return g of a training that is private for each of several (epsilon, delta)."""
    curves = [epsilon_delta_curve(*pair) for pair in profile.items()]
    return lambda p: max(curve(p) for curve in curves)


def p_value(*counts_and_curve, group=1):
    """Return the largest error, to 1e-9, that is not refuted: a bound on the probability of as many right guesses."""
    if not refuted(*counts_and_curve, 1.0, group=group):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-9 * max(high, 1e-12):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(*counts_and_curve, middle, group=group) else (middle, high)
    return high


def lines(profile):
    """Return slopes and intercepts of lines above 1 - f, for both orders of the neighbours."""
    forth = [(math.exp(e), d) for e, d in profile.items()]
    return forth + [(math.exp(-e), 1 - math.exp(-e) * (1 - d)) for e, d in profile.items()]


def largest_tail(m, r, v, profile, every_set):
    """Return the largest P[W >= v] of a law that satisfies the theorem's inequalities, by a linear program.

    The inequalities hold for every set T, or only for sets of all numbers from some number on.
    """
    numbers = range(1, r + 1)
    tails = [tuple(range(i, r + 1)) for i in numbers]
    sets = [t for size in numbers for t in itertools.combinations(numbers, size)] if every_set else tails
    rows, limits = [], []
    for chosen in sets:
        for slope, intercept in lines(profile):
            row = np.zeros(r + 1)
            for i in chosen:
                row[i] += i / m
                row[i - 1] -= slope * (r - i + 1) / m
            rows.append(row)
            limits.append(intercept)
    gain = -(np.arange(r + 1) >= v).astype(float)
    return -optimize.linprog(gain, rows, limits, np.ones((1, r + 1)), [1.0], method="highs").fun


class TestTheorem:
    def test_one_coin_is_guessed_as_often_as_the_curve_allows(self):
        """Randomised response: with probability e**epsilon / (1 + e**epsilon); Gaussian noise: Phi(mu / 2)."""
        assert p_value(1, 1, 1, epsilon_delta_curve(math.log(3), 0.0)) == pytest.approx(3 / 4)
        assert p_value(1, 1, 1, gaussian_curve(1.7)) == pytest.approx(stats.norm.cdf(0.85))

    def test_by_hand(self):
        """g(p) is p / 3 where p is small."""
        three = math.log(3)
        # P_1 = 2 g(p) + p = 5 p / 3, P_0 = (2 g(4 p / 3) + 8 p / 3) / 2 = 16 p / 9
        assert p_value(2, 2, 2, epsilon_delta_curve(three, 0.0)) == pytest.approx(9 / 16)
        # with delta, g(p) = (p - delta) / 3, of one guess of two coins: P_0 = 2 (p / 2 - delta) / 3 + p
        assert p_value(2, 1, 1, epsilon_delta_curve(three, 0.06)) == pytest.approx((1 + 2 * 0.06 / 3) * 3 / 4)

    def test_without_a_leak_only_luck_is_refuted(self):
        assert p_value(10, 5, 0, gaussian_curve(0.0)) == p_value(10, 0, 0, gaussian_curve(0.0)) == 1
        assert p_value(9, 9, 9, gaussian_curve(0.0)) == pytest.approx(2**-9)
        assert p_value(500, 500, 500, gaussian_curve(0.0)) < 1e-12

    @pytest.mark.parametrize(("m", "r", "v"), [(5, 5, 5), (5, 5, 4), (8, 5, 5), (8, 5, 3), (30, 6, 6)])
    def test_the_recursion_solves_the_linear_program_of_its_sets(self, m, r, v):
        bound = p_value(m, r, v, profile_curve(PROFILE))
        assert bound == pytest.approx(largest_tail(m, r, v, PROFILE, every_set=False), rel=1e-6)
        assert bound >= largest_tail(m, r, v, PROFILE, every_set=True) - 1e-9

    @pytest.mark.parametrize("guesses", with_slow([20, 12], 20))
    @pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
    def test_no_gaussian_mechanism_beats_it(self, mu, guesses):
        """Two releases: Gaussian noise on each coin, and one that sometimes shows coins well and else nothing.

        The second makes the bound nearly tight: its two rates are on the curve.
        """
        m, curve, normal = 20, gaussian_curve(mu), stats.norm
        each = stats.binom(guesses, normal.cdf(mu / 2))
        for v in range(1, guesses + 1):
            bound = p_value(m, guesses, v, curve)
            assert bound >= each.sf(v - 1) - 1e-9
            for chance in np.geomspace(1e-3, 1, 12):
                share = chance * guesses / m

                def beyond(accuracy, share=share):
                    return share * accuracy - normal.cdf(normal.ppf(share * (1 - accuracy)) + mu)

                accuracy = optimize.brentq(beyond, 0.5, 1 - 1e-15) if beyond(1 - 1e-15) > 0 else 1.0
                assert bound >= chance * stats.binom(guesses, accuracy).sf(v - 1) - 1e-9

    def test_abstentions_cost(self):
        """The same guesses of more canaries prove less."""
        values = [p_value(m, 20, 18, gaussian_curve(0.7)) for m in (20, 40, 200)]
        assert values == sorted(values)
        assert values[0] < values[-1] / 2

    def test_a_group_has_the_curve_of_its_chain(self):
        alone = p_value(60, 40, 36, gaussian_curve(1.2))
        assert p_value(60, 40, 36, gaussian_curve(0.4), group=3) == pytest.approx(alone, rel=1e-6)
        epsilon, delta = 0.4, 1e-3
        chain = epsilon_delta_curve(2 * epsilon, delta * (1 + math.exp(epsilon)))
        pair = p_value(60, 40, 36, epsilon_delta_curve(epsilon, delta), group=2)
        assert pair == pytest.approx(p_value(60, 40, 36, chain), rel=1e-6)

    @pytest.mark.parametrize("p", [1e-4, 0.03, 0.5, 0.99])
    def test_the_gaussian_curve_is_that_of_its_epsilons_and_deltas(self, p):
        """A convex curve is the largest of its tangents (Dong, Roth and Su 2022, proposition 2.12)."""
        profile = {e: gaussian_delta(e, 1.0, 1.0) for e in np.linspace(0, 12, 2001)}
        assert profile_curve(profile)(p) == pytest.approx(gaussian_curve(1.0)(p), rel=1e-3)

    @pytest.mark.parametrize(
        ("counts", "group", "message"),
        [
            ((10, 5, 6), 1, "not possible counts"),
            ((10, 11, 6), 1, "not possible counts"),
            ((10, 5, -1), 1, "not possible counts"),
            ((10, 5, 5), 0, "group=0"),
        ],
    )
    def test_impossible_counts_are_refused(self, counts, group, message):
        with pytest.raises(ValueError, match=message):
            refuted(*counts, gaussian_curve(1.0), 0.05, group=group)


class TestBounds:
    def test_for_pure_privacy_it_is_no_larger_than_the_theorem_for_it(self):
        """And equal if all guesses are right."""
        for right in (100, 90):
            bound = one_run_bound(100, 100, right, 0.0)
            assert not refuted(100, 100, right, epsilon_delta_curve(bound + 2e-6, 0.0), 0.05)
        assert refuted(100, 100, 100, epsilon_delta_curve(one_run_bound(100, 100, 100, 0.0) - 3e-6, 0.0), 0.05)

    @pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4, 1e-3])
    @pytest.mark.parametrize("counts", [(500, 450, 450), (500, 450, 440), (123, 62, 62)])
    def test_either_theorem_may_refute_an_epsilon(self, counts, delta):
        """An epsilon is refuted if and only if one of the theorems refutes it; a larger delta refutes less."""
        bound = best_one_run_bound(*counts, delta)
        assert one_run_bound(*counts, delta) <= bound <= best_one_run_bound(*counts, 0.0)
        assert smaller_p_value(*counts, bound, delta) <= 0.05 < smaller_p_value(*counts, bound * 1.001, delta)

    def test_delta_costs_little(self):
        assert best_one_run_bound(500, 450, 450, 1e-3) > 1.4 * one_run_bound(500, 450, 450, 1e-3)
        assert best_one_run_bound(500, 450, 450, 1e-3) > 0.99 * best_one_run_bound(500, 450, 450, 0.0)
        assert 0 < best_one_run_bound(90, 80, 79, 1e-3, group=2) < best_one_run_bound(90, 80, 79, 1e-3) / 2

    def test_for_groups_of_two_the_curve_proves_more_without_delta_too(self):
        """Two steps along the curve of epsilon are more private than the curve of twice epsilon."""
        assert best_one_run_bound(100, 100, 100, 0.0, group=2) > one_run_bound(100, 100, 100, 0.0, group=2)
        assert best_one_run_bound(100, 100, 100, 0.0, group=2) >= best_one_run_bound(100, 100, 100, 1e-9, group=2)

    def test_nothing_proved_is_zero(self):
        assert best_one_run_bound(100, 100, 50, 1e-5) == best_one_run_bound(100, 4, 4, 1e-5) == 0


class TestKnownLaws:
    """Mechanisms with a known curve are refuted as seldom as stated, and often if they leak twice as much."""

    @staticmethod
    def gaussian_noise(m, mu, generator):
        """Return the coins with noise, exactly mu-Gaussian private for each, and the coins."""
        coins = generator.random(m) < 0.5
        return mu * coins + generator.normal(size=m), coins

    @staticmethod
    def largest_mu(m, r, v, error):
        """Return the largest mu of Gaussian privacy that is refuted at this error, to 0.01."""
        grid = np.arange(0, 6, 0.01)
        first_held = bisect.bisect_left(grid, True, key=lambda mu: not refuted(m, r, v, gaussian_curve(mu), error))
        return grid[max(0, first_held - 1)]

    @pytest.mark.parametrize("mu", [0.5, 2.0])
    def test_gaussian_noise_is_left_alone(self, mu):
        generator = np.random.default_rng(1)
        audits = [
            largest_bound(*self.gaussian_noise(150, mu, generator), self.largest_mu, shares=(1.0, 0.3))
            for _ in range(20)
        ]
        assert sum(result.epsilon > mu for result in audits) <= stats.binom(20, 0.05).ppf(0.999)
        assert {result.tried for result in audits} == {2}
        assert np.median([result.epsilon for result in audits]) > 0.05 * mu

    @pytest.mark.parametrize("mu", [1.0, 2.0])
    def test_half_of_the_claimed_noise_is_refuted(self, mu):
        generator = np.random.default_rng(4)
        for _ in range(4):
            scores, coins = self.gaussian_noise(4000, mu, generator)
            assert largest_bound(scores, coins, self.largest_mu, shares=(0.1,)).epsilon > mu / 2

    def test_a_rare_leak_of_all_coins_is_left_alone(self):
        """The worst that (0, delta)-privacy allows: all coins, with probability delta. It uses up the whole error."""
        generator, delta = np.random.default_rng(2), 0.05
        leaks = generator.random(2000) < delta
        is_refuted = partial(refuted, curve=epsilon_delta_curve(0.0, delta), error=0.049)
        refuted_counts = {right: is_refuted(60, 60, right) for right in range(61)}
        right = np.where(leaks, 60, generator.binomial(60, 0.5, 2000))
        assert np.mean([refuted_counts[v] for v in right]) <= stats.binom(2000, 0.049).ppf(0.999) / 2000
        assert p_value(60, 60, 60, epsilon_delta_curve(0.0, delta)) < 1.1 * delta

    def test_randomised_response_is_refuted_as_often_as_stated(self):
        """So a theorem that refuted more often would be wrong."""
        generator, epsilon, m = np.random.default_rng(3), 3.0, 30
        threshold = next(v for v in range(m + 1) if p_value(m, m, v, epsilon_delta_curve(epsilon, 0.0)) <= 0.25)
        right = generator.binomial(m, 1 / (1 + math.exp(-epsilon)), 2000)
        alarms = np.mean(right >= threshold)
        assert threshold == m
        assert 0.2 < alarms <= stats.binom(2000, 0.25).ppf(0.999) / 2000

    def test_randomised_response_at_twice_its_epsilon_is_refuted(self):
        right = int(np.random.default_rng(5).binomial(1000, 1 / (1 + math.exp(-2.0))))
        assert p_value(1000, 1000, right, epsilon_delta_curve(1.0, 0.0)) < 1e-3


def test_each_number_of_guesses_gets_its_share_of_the_error():
    coins = np.random.default_rng(6).random(100) < 0.5
    errors = []
    bound = largest_bound(coins.astype(float), coins, lambda m, r, v, error: errors.append(error) or 0.0)
    assert errors == [0.05 / len(SHARES)] * len(SHARES)
    assert bound.tried == len(SHARES)


def smaller_p_value(m, r, v, epsilon, delta):
    return min(p_value(m, r, v, epsilon_delta_curve(epsilon, delta)), one_run.p_value(m, r, v, epsilon, delta))
