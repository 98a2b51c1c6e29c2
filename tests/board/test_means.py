"""Test means over the seeds of a row: their intervals count test texts and seeds."""

import numpy as np
import pytest
from made_records import scored, with_metrics
from scipy import stats

from leakboard.board.means import interval
from leakboard.metrics.measures import Metric


def of_seeds(*values, half_width=0.1):
    """Return the interval of the mean of one record for each value."""
    metrics = [Metric("recall@1", value, low=value - half_width, high=value + half_width) for value in values]
    return interval([with_metrics(scored(seed, 0.7), metric) for seed, metric in enumerate(metrics)], "recall@1")


def test_one_seed_has_the_interval_of_its_run():
    assert of_seeds(0.7) == (0.6, pytest.approx(0.8))


def test_equal_seeds_have_the_interval_of_each():
    """They share the test texts, so more seeds do not make it narrower."""
    assert of_seeds(0.7, 0.7, 0.7) == pytest.approx((0.6, 0.8))


def test_different_seeds_without_sampling_error_have_students_interval():
    values = [0.68, 0.7, 0.74]
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert of_seeds(*values, half_width=0.0) == pytest.approx((expected.low, expected.high))


def test_both_errors_are_added():
    """Errors .03 and .02: sqrt(.03**2 + .02**2) with 4 (1 + (3/2)**2)**2 = 42.25 degrees of freedom."""
    values = 0.7 + 0.02 * np.sqrt(5) * np.array([-1, 1, 0, -1, 1])
    low, high = of_seeds(*values, half_width=0.03 * 1.959964)
    reach = stats.t.ppf(0.975, 42.25) * np.hypot(0.03, 0.02)
    assert (low, high) == pytest.approx((0.7 - reach, 0.7 + reach))


def test_the_ends_stay_in_the_range_of_the_metric():
    low, high = of_seeds(0.05, 0.95)
    assert (low, high) == (0, 1)


def test_a_record_without_an_interval_leaves_none():
    records = [scored(0, 0.7), scored(1, 0.7)]
    assert interval(records, "attack_score") == (None, None)
    assert interval([], "attack_score") == (None, None)
    assert of_seeds(0.5, 0.6, half_width=float("nan")) == (None, None)


def test_coverage_with_few_seeds():
    """The true mean over trainings and texts is in the interval in 95 % of experiments, with three seeds."""
    rng, runs, covered = np.random.default_rng(0), 2000, 0
    for _ in range(runs):
        shared = 0.02 * rng.normal()  # of the test texts
        values = 0.5 + shared + 0.02 * rng.normal(size=3)
        low, high = of_seeds(*values, half_width=0.02 * 1.959964)
        covered += low <= 0.5 <= high
    assert stats.binomtest(covered, runs, 0.95, alternative="less").pvalue > 1e-3
