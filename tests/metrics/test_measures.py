"""Test scores as ratios of sums, their intervals, and remaining privacy."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score

from leakboard.errors import RequestError
from leakboard.metrics.measures import Ratio, accuracy, advantage, best_offset, micro_f1, remaining_privacy


class TestScores:
    """Compare with values worked by hand and with scikit-learn."""

    @pytest.mark.parametrize(
        ("guessed", "truth", "score"),
        [
            ([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 1, 1]], 0.4),
            ([[0, 0]], [[0, 0]], 0),
            ([[0, 0], [0, 0]], [[1, 0], [0, 1]], 0),
            ([[1, 1], [0, 0]], [[1, 0], [0, 1]], 0.5),
            # True negatives do not count.
            ([[1, 1, 0, 0, 0, 0, 0, 0, 0], [0] * 9], [[1, 0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0]], 0.5),
        ],
    )
    def test_micro_f1_by_hand(self, guessed, truth, score):
        assert micro_f1(np.array(guessed), np.array(truth)).value == pytest.approx(score, abs=1e-15)

    @pytest.mark.parametrize("seed", range(5))
    def test_micro_f1_equals_scikit_learns(self, seed):
        rng = np.random.default_rng(seed)
        truth, guessed = rng.integers(0, 2, (2, 40, 5))
        expected = f1_score(truth, guessed, average="micro")
        assert micro_f1(guessed, truth).value == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("seed", range(5))
    def test_accuracy_equals_scikit_learns(self, seed):
        truth, guessed = np.random.default_rng(seed).integers(0, 3, (2, 40, 2))
        expected = np.mean([accuracy_score(truth[:, c], guessed[:, c]) for c in range(2)])
        assert accuracy(guessed, truth).value == pytest.approx(expected, abs=1e-12)
        assert accuracy(guessed[:, 0], truth[:, 0]).value == accuracy_score(truth[:, 0], guessed[:, 0])

    def test_guesses_of_another_length_are_refused(self):
        with pytest.raises(RequestError, match=r"guesses of shape \(1,\) are not allowed; allowed: \(3,\)"):
            accuracy(np.array([1]), np.array([1, 0, 1]))


class TestIntervals:
    """F1 has the interval of a share; parts of a score keep their authors."""

    def test_none_of_fifteen_positives_found_does_not_prove_an_f1_of_0(self):
        """Wilson's interval of 0 of 15 ends at .2039 for J, so at .3387 for F1; the 985 other texts do not matter."""
        truth = (np.arange(1000) < 15).astype(np.int64)
        low, high = micro_f1(np.zeros(1000, np.int64), truth).interval()
        assert (low, high) == pytest.approx((0.0, 0.3387), abs=5e-5)

    def test_five_of_five_found_does_not_prove_an_f1_of_1(self):
        truth = (np.arange(1000) < 5).astype(np.int64)
        low, high = micro_f1(truth, truth).interval()
        wilson = stats.binomtest(5, 5).proportion_ci(method="wilson").low
        assert (low, high) == pytest.approx((2 * wilson / (1 + wilson), 1.0))

    def test_nothing_to_find_and_nothing_guessed_has_no_interval(self):
        low, high = micro_f1(np.zeros(9, np.int64), np.zeros(9, np.int64)).interval()
        assert math.isnan(low)
        assert math.isnan(high)

    @pytest.mark.parametrize(("prevalence", "n"), [(0.02, 60), (0.05, 60), (0.02, 300), (0.4, 200)])
    def test_coverage_of_f1(self, prevalence, n):
        """If few texts have the entity, Wald's interval for a share of the texts seldom holds the true F1."""
        rng, experiments = np.random.default_rng(1), 1000
        found, false = 0.7, 0.02
        true_f1 = 2 * prevalence * found / (prevalence * (1 + found) + (1 - prevalence) * false)
        hits = hits_of_wald = known = 0
        for _ in range(experiments):
            truth = rng.random(n) < prevalence
            guess = rng.random(n) < np.where(truth, found, false)
            score = micro_f1(guess.astype(np.int64), truth.astype(np.int64))
            low, high = score.interval()
            known += not math.isnan(low)
            hits += low <= true_f1 <= high
            hits_of_wald += abs(score.value - true_f1) <= 1.96 * math.sqrt(score.value * (1 - score.value) / n)
        is_empty = ((1 - prevalence) * (1 - false)) ** n  # nothing to find, and nothing guessed
        assert stats.binomtest(known, experiments, 1 - is_empty).pvalue > 1e-3
        assert stats.binomtest(hits, known, 0.95, alternative="less").pvalue > 1e-3
        if prevalence < 0.1:
            assert hits_of_wald < 0.6 * known

    def test_a_part_keeps_its_authors(self):
        whole = Ratio(np.arange(4.0), np.ones(4), np.array([7, 7, 8, 9]), is_dice=True)
        part = whole.within(np.array([True, False, True, True]))
        assert part.numerator.tolist() == [0, 2, 3]
        assert part.units.tolist() == [7, 8, 9]
        assert part.is_dice


class TestRemainingPrivacy:
    """1 - the better of the attack and the best constant."""

    @pytest.mark.parametrize(("right", "expected"), [(90, 0.1), (20, 0.4), (60, 0.4), (0, 0.4)])
    def test_an_attack_that_loses_to_the_constant_leaves_the_constants_privacy(self, right, expected):
        attack = Ratio(np.repeat([1.0, 0.0], [right, 100 - right]), np.ones(100))
        constant = Ratio(np.repeat([1.0, 0.0], [60, 40]), np.ones(100))
        metric = remaining_privacy(attack, constant)
        assert metric.value == pytest.approx(expected)
        assert metric.low <= metric.value <= metric.high
        assert metric.high <= 1 - constant.interval(0.975)[0] + 1e-12

    def test_a_worse_attack_never_raises_it(self):
        rng = np.random.default_rng(0)
        constant = Ratio(rng.integers(0, 2, 60).astype(float), np.ones(60))
        for _ in range(20):
            attack = Ratio(rng.integers(0, 2, 60).astype(float), np.ones(60))
            assert remaining_privacy(attack, constant).value <= 1 - constant.value + 1e-12

    @pytest.mark.parametrize(
        ("n", "majority", "skill", "misses"),
        [
            (60, 0.5, 0.5, ""),
            (300, 0.7, 0.7, ""),
            (300, 0.7, 0.62, "attack"),
            (300, 0.7, 0.78, "constant"),
        ],
    )
    def test_coverage_near_the_constant_guess(self, n, majority, skill, misses):
        """The true privacy is that of the better guess. The interval of the other guess seldom holds it."""
        rng, experiments, true_privacy = np.random.default_rng(1), 1000, 1 - max(majority, skill)
        hits = dict.fromkeys(("both", "attack", "constant"), 0)
        for _ in range(experiments):
            truth = (rng.random(n) < majority).astype(np.int64)
            guess = np.where(rng.random(n) < skill, truth, 1 - truth)
            best = np.full(n, int(truth.mean() >= 0.5))  # chosen on test, as on boards
            attack, constant = accuracy(guess, truth), accuracy(best, truth)
            metric = remaining_privacy(attack, constant)
            hits["both"] += metric.low <= true_privacy <= metric.high
            for name, side in (("attack", attack), ("constant", constant)):
                low, high = side.interval()
                hits[name] += low <= 1 - true_privacy <= high
        assert stats.binomtest(hits["both"], experiments, 0.95, alternative="less").pvalue > 1e-3
        if misses:
            assert hits[misses] < 0.3 * experiments


class TestAdvantage:
    """(a - c) / (1 - c), with a paired interval and a p-value."""

    def test_by_hand(self):
        """70 of 100 are right where a constant is right in 40; the attack is right wherever the constant is."""
        attack, constant = (Ratio(np.repeat([1.0, 0.0], [k, 100 - k]), np.ones(100)) for k in (70, 40))
        value, p_value = advantage(attack, constant)
        assert value.value == pytest.approx(0.5)
        # The standard error of the mean of thirty ones and seventy zeros.
        error = np.std(np.repeat([1.0, 0.0], [30, 70]), ddof=1) / 10
        assert p_value.value == pytest.approx(stats.norm.sf(0.3 / error))
        # (a - c) / (1 - c) = 1 - (1 - a) / (1 - c): by the delta method its variance is that of the residuals.
        lost, left = 1 - attack.numerator, 1 - constant.numerator
        width = 1.96 * np.std(lost - 0.5 * left, ddof=1) / 10 / 0.6
        assert (value.low, value.high) == pytest.approx((0.5 - width, 0.5 + width), abs=0.005)

    def test_a_perfect_attack_on_few_texts_is_no_proof(self):
        value, p_value = advantage(Ratio(np.ones(4), np.ones(4)), Ratio(np.zeros(4), np.ones(4)))
        assert (value.value, value.high) == (1, 1)
        assert value.low < 0.6
        assert p_value.value == 0.5**4

    def test_rounding_errors_are_no_certain_gain(self):
        """Without rounding all texts agree, and 20 texts that agree are a p-value of 2**-20 with a wide interval."""
        attack = Ratio(np.full(20, 0.3) + np.spacing(0.3) * np.arange(20), np.ones(20))
        value, p_value = advantage(attack, Ratio(np.zeros(20), np.ones(20)))
        assert value.high - value.low > 0.3
        assert p_value.value == 0.5**20

    def test_one_author_leaves_no_interval(self):
        attack, constant = (Ratio(np.repeat([1.0, 0.0], [k, 10 - k]), np.ones(10), np.zeros(10, int)) for k in (7, 4))
        value, p_value = advantage(attack, constant)
        assert math.isnan(value.low)
        assert math.isnan(value.high)
        assert p_value.value == 1

    def test_a_perfect_constant_leaves_nothing_to_gain(self):
        for metric in advantage(Ratio(np.repeat([1.0, 0.0], [9, 1]), np.ones(10)), Ratio(np.ones(10), np.ones(10))):
            assert metric.value is None
            assert metric.status == "the best constant guess is always right: there is nothing to gain"

    def test_an_attack_like_the_constant_gains_nothing(self):
        constant = Ratio(np.repeat([1.0, 0.0], [6, 4]), np.ones(10))
        value, p_value = advantage(constant, constant)
        assert value.value == 0
        assert p_value.value == 1

    @pytest.mark.slow
    def test_false_claims_are_rare(self):
        """Both guess at random: at most 2.5 % of the p-values are below .025, as far as 1,000 runs can tell."""
        rng, runs, units = np.random.default_rng(2), 1000, np.repeat(np.arange(40), 5)
        for of_users in (None, units):
            claims = 0
            for _ in range(runs):
                attack, constant = ((rng.random(40) < 0.3)[units].astype(float) for _ in range(2))
                if of_users is None:
                    attack, constant = (rng.random(200) < 0.3).astype(float), (rng.random(200) < 0.3).astype(float)
                scores = (Ratio(side, np.ones(200), of_users) for side in (attack, constant))
                claims += advantage(*scores)[1].value <= 0.025
            assert stats.binomtest(claims, runs, 0.025, alternative="greater").pvalue > 1e-3


def test_the_best_threshold_is_halfway_between_two_margins():
    """F1 is 1 if margins from 20 up count as present, 2/3 from 30 up, and 4/5 from 10 up."""
    assert best_offset(np.array([10.0, 30.0, 20.0]), np.array([0, 1, 1])) == -15
    assert best_offset(np.array([10.0, 30.0, 20.0]), np.array([0, 1, 0])) == -25
    assert best_offset(np.array([10.0, 30.0, 20.0]), np.array([0, 1, 0]), missed=2) == -25  # the choice stays
    many = np.array([1.0, 2.0, 3.0, 4.0])
    assert best_offset(many, np.array([0, 0, 0, 1]), missed=9) == -3.5
    assert best_offset(np.array([10.0, 30.0, 20.0]), np.array([1, 1, 1])) == -9.5  # below all: half a unit
