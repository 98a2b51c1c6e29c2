"""One-run tests of a trade-off curve: by hand, by linear programs, and on mechanisms that are known exactly."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy import optimize, stats

from leakboard.privacy.auditing import one_run
from leakboard.privacy.auditing.guesses import SHARES, largest_bound
from leakboard.privacy.auditing.one_run import one_run_bound
from leakboard.privacy.auditing.one_run_curve import (
    approximate_curve,
    epsilon_bound,
    epsilon_if_gaussian,
    gaussian_curve,
    largest_refuted,
    p_value,
    profile_curve,
)
from leakboard.privacy.mechanisms.textbook import gaussian_delta, gaussian_epsilon

RUNS = 200
PROFILE = ([0.0, 0.5, 1.0, 2.0], [0.3, 0.15, 0.06, 0.01])
"""Epsilons, and deltas that go with them."""


def lines(epsilons, deltas):
    """Return slopes and intercepts of lines above 1 - f, both orders of the neighbours."""
    pairs = list(zip(epsilons, deltas, strict=True))
    forth = [(math.exp(e), d) for e, d in pairs]
    return forth + [(math.exp(-e), 1 - math.exp(-e) * (1 - d)) for e, d in pairs]


def largest_tail(m, r, v, epsilons, deltas, every_set):
    """Return the largest P[W >= v] of a law that keeps the theorem's inequalities, by a linear program.

    They hold for every set T, or for those of all numbers from some number on alone.
    """
    numbers = range(1, r + 1)
    tails = [tuple(range(i, r + 1)) for i in numbers]
    sets = [t for size in numbers for t in itertools.combinations(numbers, size)] if every_set else tails
    rows, limits = [], []
    for chosen in sets:
        for slope, intercept in lines(epsilons, deltas):
            row = np.zeros(r + 1)
            for i in chosen:
                row[i] += i / m
                row[i - 1] -= slope * (r - i + 1) / m
            rows.append(row)
            limits.append(intercept)
    gain = -(np.arange(r + 1) >= v).astype(float)
    return -optimize.linprog(gain, rows, limits, np.ones((1, r + 1)), [1.0], method="highs").fun


class TestPValue:
    def test_one_coin_is_told_as_often_as_the_curve_lets_it(self):
        """RR tells a coin with probability e**epsilon / (1 + e**epsilon), Gaussian noise with Phi(mu / 2)."""
        assert p_value(1, 1, 1, approximate_curve(math.log(3), 0.0)) == pytest.approx(3 / 4)
        assert p_value(1, 1, 1, gaussian_curve(1.7)) == pytest.approx(stats.norm.cdf(0.85))

    def test_by_hand(self):
        """g(p) is p / 3 where p is small."""
        three = math.log(3)
        # P_1 = 2 g(p) + p = 5 p / 3, P_0 = (2 g(4 p / 3) + 8 p / 3) / 2 = 16 p / 9
        assert p_value(2, 2, 2, approximate_curve(three, 0.0)) == pytest.approx(9 / 16)
        # with delta, g(p) = (p - delta) / 3, of one guess of two coins: P_0 = 2 (p / 2 - delta) / 3 + p
        assert p_value(2, 1, 1, approximate_curve(three, 0.06)) == pytest.approx((1 + 2 * 0.06 / 3) * 3 / 4)

    def test_no_right_guess_says_nothing(self):
        assert p_value(10, 5, 0, gaussian_curve(0.0)) == p_value(10, 0, 0, gaussian_curve(0.0)) == 1

    def test_what_tells_nothing_is_refuted_by_luck_alone(self):
        assert p_value(9, 9, 9, gaussian_curve(0.0)) == pytest.approx(2**-9)
        assert p_value(500, 500, 500, gaussian_curve(0.0)) < 1e-12

    @pytest.mark.parametrize(("m", "r", "v"), [(5, 5, 5), (5, 5, 4), (8, 5, 5), (8, 5, 3), (30, 6, 6)])
    def test_it_is_the_linear_program_of_the_sets_that_it_uses(self, m, r, v):
        found = p_value(m, r, v, profile_curve(*PROFILE))
        assert found == pytest.approx(largest_tail(m, r, v, *PROFILE, every_set=False), rel=1e-6)
        assert found >= largest_tail(m, r, v, *PROFILE, every_set=True) - 1e-9

    @pytest.mark.parametrize("guesses", [20, 12])
    @pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
    def test_no_known_mechanism_beats_it(self, mu, guesses):
        """Gaussian noise on each coin, and a release that sometimes tells coins well, at other times nothing.

        The second is what makes the bound nearly tight: its two rates lie on the curve.
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

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.02), (1.0, 0.001), (1.0, 0.02)])
    def test_no_known_leak_beats_it(self, epsilon, delta):
        """Leaks of each coin and, with probability delta m / k, of a random k of them: delta for each coin."""
        m, q = 20, 1 / (1 + math.exp(-epsilon))
        for v in range(1, m + 1):
            bound = p_value(m, m, v, approximate_curve(epsilon, delta))
            assert bound >= stats.binom(m, q + delta * (1 - q)).sf(v - 1) - 1e-9
            for k in range(1, m + 1):
                share = min(1.0, delta * m / k)
                leaking = share * stats.binom(m - k, q).sf(v - k - 1) + (1 - share) * stats.binom(m, q).sf(v - 1)
                assert bound >= leaking - 1e-9

    def test_abstentions_cost(self):
        """The same guesses of more canaries prove less."""
        values = [p_value(m, 20, 18, gaussian_curve(0.7)) for m in (20, 40, 200)]
        assert values == sorted(values)
        assert values[0] < values[-1] / 2

    def test_a_group_has_the_curve_of_its_chain(self):
        alone = p_value(60, 40, 36, gaussian_curve(1.2))
        assert p_value(60, 40, 36, gaussian_curve(0.4), group=3) == pytest.approx(alone, rel=1e-6)
        epsilon, delta = 0.4, 1e-3
        chain = approximate_curve(2 * epsilon, delta * (1 + math.exp(epsilon)))
        found = p_value(60, 40, 36, approximate_curve(epsilon, delta), group=2)
        assert found == pytest.approx(p_value(60, 40, 36, chain), rel=1e-6)

    @pytest.mark.parametrize("counts", [(10, 5, 6), (10, 11, 6), (10, 5, -1)])
    def test_impossible_counts_are_refused(self, counts):
        with pytest.raises(ValueError, match="not possible counts"):
            p_value(*counts, gaussian_curve(1.0))


class TestCurves:
    @pytest.mark.parametrize("p", [1e-4, 0.03, 0.5, 0.99])
    def test_that_of_gaussian_noise_is_that_of_its_epsilons_and_deltas(self, p):
        """A convex curve is the largest of its tangents (Dong, Roth and Su 2022, proposition 2.12)."""
        epsilons = np.linspace(0, 12, 2001)
        deltas = [gaussian_delta(e, 1.0, 1.0) for e in epsilons]
        assert profile_curve(epsilons, deltas)(p) == pytest.approx(gaussian_curve(1.0)(p), rel=1e-3)


class TestBounds:
    def test_it_is_refuted_and_what_is_larger_is_not(self):
        mu = largest_refuted(500, 450, 440, gaussian_curve)
        assert p_value(500, 450, 440, gaussian_curve(mu)) <= 0.05 < p_value(500, 450, 440, gaussian_curve(mu + 2e-6))
        assert epsilon_if_gaussian(500, 450, 440, 1e-5) == pytest.approx(gaussian_epsilon(1e-5, 1 / mu, 1.0))

    def test_nothing_proved_is_zero(self):
        assert epsilon_if_gaussian(100, 100, 50, 1e-5) == epsilon_if_gaussian(100, 4, 4, 1e-5) == 0

    def test_of_pure_privacy_it_is_no_larger_than_the_bound_that_is_made_for_it(self):
        """And equal where all guesses are right."""
        family = partial(approximate_curve, delta=0.0)
        for right in (100, 90):
            assert largest_refuted(100, 100, right, family) <= one_run_bound(100, 100, right, 0.0) + 2e-6
        assert largest_refuted(100, 100, 100, family) == pytest.approx(one_run_bound(100, 100, 100, 0.0), abs=3e-6)

    @pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4, 1e-3])
    @pytest.mark.parametrize("counts", [(500, 450, 450), (500, 450, 440), (123, 62, 62)])
    def test_either_theorem_may_refute_an_epsilon(self, counts, delta):
        """What both leave alone is left alone, what one of them refutes is refuted; the larger delta, the less."""
        bound, other = epsilon_bound(*counts, delta), one_run_bound(*counts, delta)
        assert other <= bound <= epsilon_bound(*counts, 0.0)
        assert min(by_both(*counts, bound, delta)) <= 0.05 < min(by_both(*counts, bound * 1.001, delta))

    def test_it_loses_little_to_delta(self):
        assert epsilon_bound(500, 450, 450, 1e-3) > 1.4 * one_run_bound(500, 450, 450, 1e-3)
        assert epsilon_bound(500, 450, 450, 1e-3) > 0.99 * epsilon_bound(500, 450, 450, 0.0)
        assert 0 < epsilon_bound(90, 80, 79, 1e-3, group=2) < epsilon_bound(90, 80, 79, 1e-3) / 2

    def test_of_pairs_of_units_the_curve_tells_more_without_a_delta_too(self):
        """Twice the curve of epsilon is more private than that of twice epsilon."""
        assert epsilon_bound(100, 100, 100, 0.0, group=2) > one_run_bound(100, 100, 100, 0.0, group=2)
        assert epsilon_bound(100, 100, 100, 0.0, group=2) >= epsilon_bound(100, 100, 100, 1e-9, group=2)

    @pytest.mark.parametrize(("m", "r", "v"), [(500, 450, 450), (500, 450, 440), (123, 62, 62), (1000, 100, 97)])
    def test_where_noise_is_gaussian_it_is_half_as_large_again(self, m, r, v):
        assert epsilon_if_gaussian(m, r, v, 1e-6, 0.05 / 6) > 1.5 * one_run_bound(m, r, v, 1e-6, 0.05 / 6)

    def test_a_pair_of_units_is_told_more_easily_than_one(self):
        assert 0 < epsilon_if_gaussian(200, 180, 175, 1e-5, group=2) < epsilon_if_gaussian(200, 180, 175, 1e-5)

    def test_deltas_of_no_use_are_refused(self):
        for delta in (0.0, 1.0, math.nan):
            with pytest.raises(ValueError, match="delta="):
                epsilon_if_gaussian(10, 5, 5, delta)
        with pytest.raises(ValueError, match="error="):
            epsilon_if_gaussian(10, 5, 5, 1e-5, 0.0)
        with pytest.raises(ValueError, match="group=0"):
            epsilon_if_gaussian(10, 5, 5, 1e-5, group=0)


class TestAudit:
    """Mechanisms whose curve is known: refuted as seldom as is stated, and refuted where they leak twice as much."""

    @staticmethod
    def gaussian_noise(m, mu, generator):
        """Return the coins with noise, exactly mu-Gaussian private for each, and the coins."""
        coins = generator.random(m) < 0.5
        return mu * coins + generator.normal(size=m), coins

    @pytest.mark.parametrize("mu", [0.5, 2.0])
    def test_gaussian_noise_is_left_alone(self, mu):
        generator, epsilon = np.random.default_rng(1), gaussian_epsilon(1e-5, 1 / mu, 1.0)
        bound = partial(epsilon_if_gaussian_at, delta=1e-5)
        found = [largest_bound(*self.gaussian_noise(150, mu, generator), bound, shares=(1.0, 0.3)) for _ in range(20)]
        assert sum(result.epsilon > epsilon for result in found) <= stats.binom(20, 0.05).ppf(0.999)
        assert {result.tried for result in found} == {2}
        assert np.median([result.epsilon for result in found]) > 0.05 * epsilon

    def test_what_comes_seldom_and_tells_all_is_left_alone(self):
        """The worst that (0, delta)-privacy allows: all coins, with probability delta. Nothing is left of the error."""
        generator, delta = np.random.default_rng(2), 0.05
        told = generator.random(2000) < delta
        refuted = {right: p_value(60, 60, right, approximate_curve(0.0, delta)) <= 0.049 for right in range(61)}
        right = np.where(told, 60, generator.binomial(60, 0.5, 2000))
        assert np.mean([refuted[v] for v in right]) <= stats.binom(2000, 0.049).ppf(0.999) / 2000
        assert p_value(60, 60, 60, approximate_curve(0.0, delta)) < 1.1 * delta

    def test_randomised_response_is_refuted_as_often_as_is_stated(self):
        """So what is refuted more often would not be valid."""
        generator, epsilon, m = np.random.default_rng(3), 3.0, 30
        threshold = next(v for v in range(m + 1) if p_value(m, m, v, approximate_curve(epsilon, 0.0)) <= 0.25)
        right = generator.binomial(m, 1 / (1 + math.exp(-epsilon)), 2000)
        alarms = np.mean(right >= threshold)
        assert threshold == m
        assert 0.2 < alarms <= stats.binom(2000, 0.25).ppf(0.999) / 2000

    @pytest.mark.parametrize("mu", [1.0, 2.0])
    def test_twice_the_privacy_loss_is_refuted(self, mu):
        generator, claimed = np.random.default_rng(4), gaussian_epsilon(1e-5, 1 / mu, 1.0) / 2
        bound = partial(epsilon_if_gaussian_at, delta=1e-5)
        found = [largest_bound(*self.gaussian_noise(4000, mu, generator), bound, shares=(0.1,)) for _ in range(4)]
        assert min(result.epsilon for result in found) > claimed

    def test_randomised_response_at_twice_its_epsilon_is_refuted(self):
        right = int(np.random.default_rng(5).binomial(1000, 1 / (1 + math.exp(-2.0))))
        assert p_value(1000, 1000, right, approximate_curve(1.0, 0.0)) < 1e-3

    def test_each_number_of_guesses_gets_its_share_of_the_error(self):
        coins = np.random.default_rng(6).random(100) < 0.5
        errors = []
        bound = largest_bound(coins.astype(float), coins, lambda m, r, v, error: errors.append(error) or 0.0)
        assert errors == [0.05 / len(SHARES)] * len(SHARES)
        assert bound.tried == len(SHARES)


def epsilon_if_gaussian_at(m, r, v, error, *, delta):
    return epsilon_if_gaussian(m, r, v, delta, error)


def by_both(m, r, v, epsilon, delta):
    return p_value(m, r, v, approximate_curve(epsilon, delta)), one_run.p_value(m, r, v, epsilon, delta)
