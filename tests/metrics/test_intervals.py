"""Test intervals of ratios: by hand, their coverage, and the effect of authors."""

import math

import numpy as np
import pytest
from scipy import stats

from leakboard.metrics.intervals import ratio_interval, wilson


def interval(values, units=None):
    return ratio_interval(np.asarray(values, np.float64), np.ones(len(values)), units)


def test_a_share_has_nearly_wilsons_interval():
    """The jackknife's variance is that of a share times n / (n - 1)."""
    expected = stats.binomtest(300, 1000).proportion_ci(method="wilson")
    assert interval(np.repeat([1.0, 0.0], [300, 700])) == pytest.approx((expected.low, expected.high), abs=5e-5)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_equal_texts_have_wilsons_interval(value):
    low, high = interval(np.full(20, value))
    expected = stats.binomtest(int(20 * value), 20).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high))


def test_rounding_errors_are_no_differences():
    values = np.full(20, 0.3) + np.spacing(0.3) * np.arange(20)
    low, high = interval(values)
    assert high - low > 0.3


def test_rows_without_a_denominator_do_not_count():
    numerator, denominator = np.array([1.0, 0.0, 1.0, 0.0, 1.0]), np.ones(5)
    padded = [np.concatenate([part, np.zeros(40)]) for part in (numerator, denominator)]
    units = np.arange(45) // 2
    for before, after in ((None, None), (units[:5], units)):
        assert ratio_interval(*padded, after) == ratio_interval(numerator, denominator, before)


@pytest.mark.parametrize("factor", [1e-7, 1e7])
def test_whether_rows_agree_is_decided_relative_to_the_ratio(factor):
    values, ones = np.array([-1.0, 1.1, 1.3, 1.2]), np.ones(4)
    wanted = np.array(ratio_interval(values, ones, None))
    assert np.array(ratio_interval(factor * values, ones, None)) == pytest.approx(factor * wanted, rel=1e-9)


def test_one_text_may_be_anything():
    low, high = interval(np.ones(1))
    assert low < 0.25
    assert high == 1


def test_wilson_takes_a_number_of_trials_that_is_not_whole():
    assert wilson(0.5, 20.5, 1.96)[0] == pytest.approx(np.mean([wilson(0.5, n, 1.96)[0] for n in (20, 21)]), abs=1e-3)


def test_ratios_above_one_have_students_interval():
    values = np.array([1.0, 2.0, 4.0, 5.0])
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert interval(values) == pytest.approx((expected.low, expected.high))


def test_unequal_denominators_agree_with_the_bootstrap():
    rng = np.random.default_rng(4)
    denominator = rng.integers(1, 30, 400).astype(float)
    numerator = rng.binomial(denominator.astype(int), rng.beta(2, 3, 400)).astype(float)
    sums = stats.bootstrap(
        (numerator, denominator), lambda a, b, axis: a.sum(axis) / b.sum(axis), paired=True, rng=rng
    ).confidence_interval
    assert ratio_interval(numerator, denominator, None) == pytest.approx((sums.low, sums.high), abs=0.004)


class TestAuthors:
    def test_copies_of_texts_are_one_observation(self):
        rng = np.random.default_rng(3)
        right = rng.integers(0, 2, 40).astype(float)
        authors = rng.permutation(np.repeat(np.arange(40), 4))
        once, copied, as_texts = interval(right), interval(right[authors], authors), interval(right[authors])
        assert copied[0] < once[0]  # Student's t with 39 degrees of freedom
        assert copied == pytest.approx(once, abs=0.01)
        assert as_texts[1] - as_texts[0] < 0.6 * (copied[1] - copied[0])

    def test_authors_who_all_agree_count_as_one_text_each(self):
        low, high = interval(np.ones(100), np.repeat(np.arange(5), 20))
        assert high == 1
        assert low < wilson(1.0, 5, 1.96)[0]

    def test_one_author_has_no_interval(self):
        assert all(map(math.isnan, interval(np.repeat([1.0, 0.0], 10), np.zeros(20, int))))

    @pytest.mark.parametrize(("authors", "similarity"), [(12, 0.5), (60, 0.0), (60, 0.5)])
    def test_coverage_where_few_authors_wrote_most_texts(self, authors, similarity):
        """Sizes are heavy-tailed. Intervals over texts cover much less often where authors differ."""
        rng, experiments, truth = np.random.default_rng(2), 400, 0.8
        hits = {"authors": 0, "texts": 0}
        for _ in range(experiments):
            sizes = np.minimum(1 + (3 * rng.pareto(1.5, authors)).astype(int), 500)
            units = np.repeat(np.arange(authors), sizes)
            spread = 1 / similarity - 1 if similarity else math.inf
            skill = rng.beta(truth * spread, (1 - truth) * spread, authors) if similarity else np.full(authors, truth)
            right = (rng.random(len(units)) < skill[units]).astype(float)
            for name, of_units in (("authors", units), ("texts", None)):
                low, high = interval(right, of_units)
                hits[name] += low <= truth <= high
        assert stats.binomtest(hits["authors"], experiments, 0.95, alternative="less").pvalue > 1e-3
        if similarity:
            assert hits["texts"] < 0.7 * experiments
