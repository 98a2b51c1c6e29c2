"""Test scores as ratios of sums, their intervals, and remaining privacy."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score

from leakboard.errors import RequestError
from leakboard.metrics.measures import Ratio, accuracy, best_offset, bootstrap, micro_f1, remaining_privacy


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
    """The 95 % interval holds the truth in 95 % of experiments and never has width zero."""

    @pytest.mark.parametrize("kind", ["share", "f1"])
    def test_coverage(self, kind):
        rng, n, experiments = np.random.default_rng(1), 200, 300
        hits = 0
        for _ in range(experiments):
            if kind == "share":
                truth = 0.3
                score = Ratio((rng.random(n) < truth).astype(float), np.ones(n))
            else:
                gold, guess = rng.random(n) < 0.4, rng.random(n) < 0.5
                truth = 2 * 0.4 * 0.5 / (0.4 + 0.5)
                score = micro_f1(guess.astype(np.int64), gold.astype(np.int64))
            low, high = score.interval()
            hits += low <= truth <= high
        low, high = stats.binom(experiments, 0.95).interval(0.999)
        assert low <= hits <= high

    def test_the_interval_of_a_share_is_close_to_wilsons(self):
        score = Ratio(np.repeat([1.0, 0.0], [300, 700]), np.ones(1000))
        wilson = stats.binomtest(300, 1000).proportion_ci(method="wilson")
        assert score.interval() == pytest.approx((wilson.low, wilson.high), abs=0.005)

    def test_it_equals_scipys_interval_of_two_thousand_resamples(self):
        x = np.random.default_rng(1).random(30)
        options = {"n_resamples": 2_000, "method": "percentile", "rng": np.random.default_rng(0)}
        expected = stats.bootstrap((x,), np.mean, **options).confidence_interval
        assert Ratio(x, np.ones(30)).interval() == pytest.approx((expected.low, expected.high), rel=1e-12)

    @pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
    def test_equal_texts_have_wilsons_interval(self, value):
        low, high = Ratio(np.full(20, value), np.ones(20)).interval()
        wilson = stats.binomtest(int(20 * value), 20).proportion_ci(method="wilson")
        assert (low, high) == (wilson.low, wilson.high)
        assert high - low > 0.15

    def test_one_text_has_no_interval(self):
        metric = Ratio(np.ones(1), np.ones(1)).metric("x")
        assert (metric.value, metric.n) == (1, 1)
        assert math.isnan(metric.low)
        assert math.isnan(metric.high)

    def test_samples_are_resampled_together(self):
        x = np.random.default_rng(0).normal(size=50)
        wilson = stats.binomtest(0, 50).proportion_ci(method="wilson")
        assert bootstrap(lambda a, b, axis=-1: (a - b).sum(axis), x, x) == (wilson.low, wilson.high)

    def test_texts_of_one_author_are_one_observation(self):
        rng = np.random.default_rng(3)
        right, weights = rng.integers(0, 2, 40).astype(float), rng.uniform(1, 3, 40)
        once = Ratio(right, weights)
        authors = rng.permutation(np.repeat(np.arange(40), 4))
        four_times = Ratio(right[authors], weights[authors], authors)
        assert four_times.interval() == pytest.approx(once.interval(), abs=1e-12)
        low, high = Ratio(right[authors], weights[authors]).interval()
        assert high - low < 0.6 * np.diff(once.interval())[0]

    @pytest.mark.slow
    def test_coverage_where_authors_differ(self):
        rng, experiments = np.random.default_rng(2), 300
        hits = {"authors": 0, "texts": 0}
        authors = np.repeat(np.arange(60), 10)
        for _ in range(experiments):
            right = (rng.random(600) < rng.beta(1, 1, 60)[authors]).astype(float)
            for name, units in (("authors", authors), ("texts", None)):
                low, high = Ratio(right, np.ones(600), units).interval()
                hits[name] += low <= 0.5 <= high
        low, high = stats.binom(experiments, 0.95).interval(0.999)
        assert low <= hits["authors"] <= high
        assert hits["texts"] < low

    def test_a_part_keeps_its_authors(self):
        part = Ratio(np.arange(4.0), np.ones(4), np.array([7, 7, 8, 9])).within(np.array([True, False, True, True]))
        assert part.numerator.tolist() == [0, 2, 3]
        assert part.units.tolist() == [7, 8, 9]

    def test_the_interval_is_reproducible(self):
        score = Ratio(np.arange(10.0), np.arange(1.0, 11.0))
        assert score.interval() == score.interval()


class TestRemainingPrivacy:
    """1 - the better of the attack and the best constant."""

    @pytest.mark.parametrize(("right", "expected"), [(90, 0.1), (20, 0.4), (60, 0.4), (0, 0.4)])
    def test_an_attack_that_loses_to_the_constant_leaves_the_constants_privacy(self, right, expected):
        attack = Ratio(np.repeat([1.0, 0.0], [right, 100 - right]), np.ones(100))
        constant = Ratio(np.repeat([1.0, 0.0], [60, 40]), np.ones(100))
        metric = remaining_privacy(attack, constant)
        assert metric.value == pytest.approx(expected)
        assert metric.low <= metric.value <= metric.high
        assert metric.high <= 1 - constant.interval()[0] + 1e-12

    def test_a_worse_attack_never_raises_it(self):
        rng = np.random.default_rng(0)
        constant = Ratio(rng.integers(0, 2, 60).astype(float), np.ones(60))
        for _ in range(20):
            attack = Ratio(rng.integers(0, 2, 60).astype(float), np.ones(60))
            assert remaining_privacy(attack, constant).value <= 1 - constant.value + 1e-12


def test_the_best_threshold_is_halfway_between_two_margins():
    """F1 is 1 if margins from 20 up count as present, 2/3 from 30 up, and 4/5 from 10 up."""
    assert best_offset(np.array([10.0, 30.0, 20.0]), np.array([0, 1, 1])) == -15
    assert best_offset(np.array([10.0, 30.0, 20.0]), np.array([1, 1, 1])) == -9.5  # below all: half a unit
