"""Test the metrics of membership inference: by hand, against scikit-learn, and the coverage of intervals."""

import math

import numpy as np
import pytest
from marks import with_slow
from scipy import stats
from sklearn.metrics import roc_auc_score

from leakboard.errors import RequestError
from leakboard.metrics.member_scores import membership_metrics, text_only_area
from leakboard.metrics.rates import true_positive_rate_at

AREAS = ["attack_auc", "attack_advantage", "attack_advantage_p"]
NAMES = ["attack_score", "empirical_privacy", "privacy_best_constant", *AREAS, "tpr@fpr=0.001", "tpr@fpr=0.01"]


def metrics_of(scores, members, units=None):
    return {metric.name: metric for metric in membership_metrics(np.asarray(scores), np.asarray(members), units)}


def planted(n, shift, seed=0):
    """Return scores and membership of n members and n others, and the true area under the curve.

    Scores are normal; the mean of the members is higher by ``shift``.
    """
    generator = np.random.default_rng(seed)
    members = np.arange(2 * n) < n
    return generator.normal(size=2 * n) + shift * members, members, stats.norm.cdf(shift / math.sqrt(2))


RUNS = 300
"""Number of experiments in a test of coverage."""


def covers(intervals, truth):
    """Return whether the share of intervals with the truth is compatible with a coverage of at least 95 %."""
    covered = sum(interval.low <= truth <= interval.high for interval in intervals)
    return stats.binomtest(covered, len(intervals), 0.95, alternative="less").pvalue > 1e-3


class TestArea:
    def test_by_hand_with_ties(self):
        # members 3, 2, 1 and others 2, 1, 0: of 9 pairs 6 are won and 2 are ties
        metrics = metrics_of([3.0, 2.0, 1.0, 2.0, 1.0, 0.0], [1, 1, 1, 0, 0, 0])
        assert metrics["attack_score"].value == pytest.approx(7 / 9)
        assert metrics["attack_auc"].value == metrics["attack_score"].value
        assert metrics["empirical_privacy"].value == pytest.approx(2 / 9)
        assert metrics["privacy_best_constant"].value == 0.5

    @pytest.mark.parametrize("seed", range(3))
    def test_it_equals_scikit_learns(self, seed):
        generator = np.random.default_rng(seed)
        scores, members = generator.integers(0, 20, 300) / 7, generator.random(300) < 0.3
        value = metrics_of(scores, members)["attack_score"].value
        assert value == pytest.approx(roc_auc_score(members, scores), abs=1e-12)
        units = generator.integers(0, 40, 300)
        assert metrics_of(scores, members, units)["attack_score"].value == pytest.approx(value, abs=1e-12)

    @pytest.mark.parametrize("kinds", [(3, 100), (100, 3)])
    def test_a_perfect_attack_has_the_interval_of_the_rarer_kind(self, kinds):
        area = metrics_of(np.repeat([2.0, 1.0], kinds), np.repeat([1, 0], kinds))["attack_score"]
        exact = stats.binomtest(3, 3).proportion_ci(method="exact")
        assert (area.value, area.low, area.high) == pytest.approx((1, exact.low, 1))

    def test_the_interval_of_a_perfect_attack_has_a_width(self):
        metrics = metrics_of(np.repeat([2.0, 1.0], [40, 2000]), np.repeat([1, 0], [40, 2000]))
        area = metrics["attack_score"]
        exact = stats.binomtest(40, 40).proportion_ci(method="exact")
        assert (area.value, area.low, area.high) == pytest.approx((1, exact.low, 1))
        assert metrics["empirical_privacy"].value == 0
        for name in NAMES[-2:]:
            rate = metrics[name]
            assert (rate.value, rate.high, rate.n, rate.status) == (1, 1, 40, "")
        # With 2000 others the threshold at 0.01 is surely below some of them; the threshold at 0.001 may not be.
        assert metrics["tpr@fpr=0.01"].low == pytest.approx(0.0125 ** (1 / 40))
        assert metrics["tpr@fpr=0.001"].low == 0

    def test_independent_scores_are_near_chance(self):
        scores, members, _ = planted(1000, 0.0)
        metrics = metrics_of(scores, members)
        area, privacy = metrics["attack_score"], metrics["empirical_privacy"]
        assert area.low < 0.5 < area.high
        assert area.high - area.low < 0.06
        assert privacy.low <= privacy.value <= privacy.high == 0.5
        assert metrics["tpr@fpr=0.01"].low < 0.01 < metrics["tpr@fpr=0.01"].high

    def test_privacy_is_one_minus_the_area_and_at_most_a_half(self):
        scores, members, _ = planted(200, 1.0)
        area, privacy = (metrics_of(scores, members)[name] for name in ("attack_score", "empirical_privacy"))
        assert (privacy.value, privacy.low, privacy.high) == pytest.approx(
            (1 - area.value, 1 - area.high, 1 - area.low)
        )
        assert area.low < area.value < area.high
        below_chance = metrics_of([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0])
        assert below_chance["attack_score"].value == 0
        assert below_chance["empirical_privacy"].value == 0.5

    @pytest.mark.parametrize("shift", [0.0, 1.0])
    def test_coverage(self, shift):
        runs = 150
        covered = 0
        for seed in range(runs):
            scores, members, area = planted(100, shift, seed)
            interval = metrics_of(scores, members)["attack_score"]
            covered += interval.low <= area <= interval.high
        low, high = stats.binom(runs, 0.95).ppf([0.0005, 0.9995])
        assert low <= covered <= high

    def test_the_interval_is_close_to_a_plain_bootstrap(self):
        scores, members, _ = planted(60, 0.7)
        generator, areas = np.random.default_rng(5), []
        for _ in range(2000):
            inside, outside = (generator.choice(scores[kind], 60) for kind in (members, ~members))
            areas.append((inside[:, None] > outside).mean())
        area = metrics_of(scores, members)["attack_score"]
        assert (area.low, area.high) == pytest.approx(np.percentile(areas, [2.5, 97.5]), abs=0.015)


class TestUnits:
    def test_copies_of_one_author_are_one_observation(self):
        scores, members, _ = planted(50, 0.5)
        once = metrics_of(scores, members)["attack_score"]
        units = np.repeat(np.arange(100), 9)
        copied = metrics_of(np.repeat(scores, 9), np.repeat(members, 9), units)
        area = copied["attack_score"]
        assert (area.value, area.low, area.high) == pytest.approx((once.value, once.low, once.high), abs=0.01)
        as_independent = metrics_of(np.repeat(scores, 9), np.repeat(members, 9))
        for name in ("attack_score", "tpr@fpr=0.01"):
            widths = [metrics[name].high - metrics[name].low for metrics in (as_independent, copied)]
            assert widths[0] < 0.6 * widths[1]

    def test_the_rates_interval_covers_if_authors_have_copies(self):
        """With 8 copies each, the interval of independent candidates is far too narrow."""
        truth = stats.norm.sf(stats.norm.isf(0.01) - 2.0)
        units = np.repeat(np.arange(2000), 8)
        drawn = [[np.repeat(kind, 8) for kind in planted(1000, 2.0, seed)[:2]] for seed in range(RUNS)]
        assert covers([true_positive_rate_at(0.01, *both, units) for both in drawn], truth)
        assert not covers([true_positive_rate_at(0.01, *both) for both in drawn], truth)

    def test_copies_widen_the_rates_interval_only_slightly(self):
        scores, members, _ = planted(2000, 2.0)
        copied = true_positive_rate_at(0.01, np.repeat(scores, 5), np.repeat(members, 5), np.repeat(np.arange(4000), 5))
        once = true_positive_rate_at(0.01, scores, members, np.arange(4000))
        assert once == true_positive_rate_at(0.01, scores, members)
        assert copied.low < once.low < once.high < copied.high
        assert copied.high - copied.low < 1.2 * (once.high - once.low)

    def test_the_rates_interval_covers_if_authors_have_both_kinds_and_different_sizes(self):
        truth = stats.norm.sf(stats.norm.isf(0.01) - 1.0)
        intervals = []
        for seed in range(RUNS):
            generator = np.random.default_rng(seed)
            units = np.repeat(np.arange(900), generator.integers(1, 6, 900))
            members = generator.random(len(units)) < 0.5
            of_author, of_text = generator.normal(size=900)[units], generator.normal(size=len(units))
            scores = 0.9**0.5 * of_author + 0.1**0.5 * of_text + members
            intervals.append(true_positive_rate_at(0.01, scores, members, units))
        assert covers(intervals, truth)

    def test_an_author_may_have_members_and_others(self):
        """An author shifts the scores of both kinds equally, which says nothing about the difference of the kinds."""
        generator = np.random.default_rng(1)
        units = np.repeat(np.arange(200), 2)
        members = np.tile([True, False], 200)
        scores = np.repeat(generator.normal(size=200), 2) + 0.3 * generator.normal(size=400) + 0.5 * members
        by_author, by_text = (metrics_of(scores, members, u)["attack_score"] for u in (units, None))
        assert by_author.low < by_author.value < by_author.high
        assert by_author.high - by_author.low < 1.02 * (by_text.high - by_text.low)

    def test_one_author_of_a_kind_has_no_interval(self):
        area = metrics_of([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0], np.array([0, 0, 1, 2]))["attack_score"]
        assert area.value == 0
        assert math.isnan(area.low)
        assert math.isnan(area.high)


class TestTruePositiveRate:
    def test_by_hand_with_ties(self):
        # At 0.01, 2 of 200 others may be reported: those at 9. Three more are tied at 8, so 8 is too low.
        others = np.repeat([9.0, 8.0, 0.0], [2, 3, 195])
        inside = np.array([10.0, 9.0, 8.5, 8.0, 0.0])
        rate = metrics_of(np.concatenate([inside, others]), np.repeat([1, 0], [5, 200]))["tpr@fpr=0.01"]
        assert (rate.value, rate.n, rate.status) == (0.6, 5, "")
        # Lower end: P(B(200, 0.01) < 1) = 0.13 > 0.0125, so the threshold may be above all others.
        # Upper end: P(B >= 6) = 0.016 and P(B >= 7) = 0.004, so the threshold is at least the seventh, at 0.
        # Four members exceed 0.
        assert rate.low == 0
        assert rate.high == pytest.approx(stats.binomtest(4, 5).proportion_ci(0.975, method="exact").high)

    def test_a_tie_that_would_exceed_the_rate_is_not_counted(self):
        others = np.repeat([9.0, 8.0, 0.0], [1, 2, 197])  # 3 of 200 reach 8: above 0.01
        rate = metrics_of(np.concatenate([[9.0, 8.0], others]), np.repeat([1, 0], [2, 200]))["tpr@fpr=0.01"]
        assert rate.value == 0.5

    def test_equal_scores_find_no_member(self):
        metrics = metrics_of(np.zeros(400), np.repeat([1, 0], [200, 200]))
        assert metrics["tpr@fpr=0.01"].value == 0
        assert metrics["attack_score"].value == 0.5
        assert metrics["attack_score"].low < 0.5 < metrics["attack_score"].high

    @pytest.mark.parametrize("n", [100, 300, 700, 1000, 1234])
    def test_the_rate_is_reached_and_not_exceeded(self, n):
        others = np.arange(n, dtype=float)
        inside = others + 0.5  # each just above one of the others
        rate = metrics_of(np.concatenate([inside, others]), np.repeat([1, 0], [n, n]))["tpr@fpr=0.01"]
        assert rate.value == pytest.approx((n // 100 + 1) / n)

    @pytest.mark.parametrize("target", [0.001, 0.01])
    @pytest.mark.parametrize("shift", with_slow([0.5, 1.0, 2.0], 0.5, 2.0))
    def test_coverage(self, shift, target):
        truth = stats.norm.sf(stats.norm.isf(target) - shift)
        intervals = [true_positive_rate_at(target, *planted(2000, shift, seed)[:2]) for seed in range(RUNS)]
        assert covers(intervals, truth)
        assert all(rate.low <= rate.value <= rate.high for rate in intervals)

    def test_coverage_of_tied_scores(self):
        """Only 2.5, 3, ... may be reported at 0.01: P(other >= 2.5) = 0.006, P(other >= 2) = 0.023."""
        drawn = [planted(2000, 1.0, seed)[:2] for seed in range(RUNS)]
        intervals = [true_positive_rate_at(0.01, np.floor(2 * scores) / 2, members) for scores, members in drawn]
        assert covers(intervals, stats.norm.sf(2.5 - 1.0))

    def test_the_interval_is_informative(self):
        rate = true_positive_rate_at(0.01, *planted(2000, 2.0)[:2])  # the truth is 0.37
        assert 0.2 < rate.low < rate.high < 0.55
        narrow = true_positive_rate_at(0.01, *planted(200_000, 2.0)[:2])
        assert narrow.high - narrow.low < (rate.high - rate.low) / 8

    @pytest.mark.parametrize(("target", "enough"), [(0.01, 437), (0.001, 4380)])
    def test_too_few_others_give_a_lower_end_of_zero(self, target, enough):
        for n, known in ((enough - 1, False), (enough, True)):
            scores, members = np.repeat([1.0, 0.0], [50, n]), np.repeat([True, False], [50, n])
            assert (true_positive_rate_at(target, scores, members).low > 0) == known

    def test_too_few_others_give_a_status(self):
        scores, members, _ = planted(500, 3.0)
        metrics = metrics_of(scores, members)
        assert metrics["tpr@fpr=0.001"].status == "threshold above every non-member: only 500 non-members"
        assert metrics["tpr@fpr=0.001"].value == (scores[members] > scores[~members].max()).mean()
        assert metrics["tpr@fpr=0.01"].status == ""

    @pytest.mark.parametrize(("others", "has_status"), [(99, True), (100, False)])
    def test_a_hundred_others_are_enough_for_one_in_a_hundred(self, others, has_status):
        scores, members = np.arange(50.0 + others), np.arange(50 + others) < 50
        assert bool(metrics_of(scores, members)["tpr@fpr=0.01"].status) == has_status


def test_names_and_counts():
    scores, members, _ = planted(30, 1.0)
    metrics = membership_metrics(scores, members[: len(scores)].astype(np.int64))
    assert [metric.name for metric in metrics] == NAMES
    assert [metric.n for metric in metrics] == [60] * 6 + [30] * 2
    assert metrics == membership_metrics(scores, members)


@pytest.mark.parametrize(
    ("scores", "members", "units", "message"),
    [
        ([0.0, np.nan, 1.0], [1, 0, 1], None, "not finite"),
        ([0.0, np.inf, 1.0], [1, 0, 1], None, "not finite"),
        ([0.0, 1.0], [1, 0, 1], None, r"scores of membership have shape \(2,\), not \(3,\)"),
        ([[0.0], [1.0]], [1, 0], None, r"scores of membership have shape \(2, 1\)"),
        ([0.0, 1.0], [[1], [0]], None, r"members of shape \(2, 1\)"),
        ([0.0, 1.0], [1, 2], None, "not one bool for each candidate"),
        ([0.0, 1.0], [1, 1], None, "2 of 2 candidates are members"),
        ([0.0, 1.0], [0, 0], None, "0 of 2 candidates are members"),
        ([], [], None, "0 of 0 candidates are members"),
        ([0.0, 1.0], [1, 0], [0], r"units of membership have shape \(1,\), not \(2,\)"),
    ],
)
def test_wrong_requests_are_refused(scores, members, units, message):
    with pytest.raises(RequestError, match=message):
        metrics_of(scores, members, None if units is None else np.array(units))


@pytest.mark.parametrize("texts", [["", "", ""], ["one two", "three four", "five six"]])
def test_no_classifier_of_texts_is_no_value_and_no_error(texts):
    metric = text_only_area(texts, np.array([True, True, False]), np.array([0, 0, 0]))
    assert metric.value is None
    assert metric.status.startswith("no classifier of the texts")
