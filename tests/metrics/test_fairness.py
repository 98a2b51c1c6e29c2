"""Test task accuracy by group: gaps with intervals and p-values, and the widest gaps."""

from math import comb

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, equalized_odds_difference
from scipy import stats
from sklearn.metrics import accuracy_score, recall_score

from leakboard.interfaces import Secret
from leakboard.metrics.fairness import group_metrics, group_shares, widest_gaps

GENDER = Secret("gender", ("female", "male"), "attribute")


def by_name(metrics, name, group=None):
    (metric,) = [m for m in metrics if m.name == name and group in (None, m.group)]
    return metric


def two_groups(first, second):
    """Return groups, predictions and labels (all 1) of two groups with (right, wrong) predictions."""
    groups = np.repeat([0, 0, 1, 1], [*first, *second])
    predicted = np.repeat([1, 0, 1, 0], [*first, *second])
    return groups, predicted, np.ones(len(groups), np.int64)


def fisher(a, b, c, d):
    """Return the two-sided p-value of [[a, b], [c, d]]: the probability of all tables that are no likelier."""
    row, column, n = a + b, a + c, a + b + c + d

    def probability(x):
        return comb(column, x) * comb(n - column, row - x) / comb(n, row)

    tables = range(max(0, row + column - n), min(row, column) + 1)
    return sum(p for p in map(probability, tables) if p <= probability(a) * (1 + 1e-9))


@pytest.mark.parametrize(
    ("first", "second"), [((8, 2), (3, 7)), ((50, 50), (60, 40)), ((9, 1), (9, 1)), ((5, 0), (0, 5))]
)
def test_gap_and_p_value_by_hand(first, second):
    metrics = group_metrics(GENDER, *two_groups(first, second))
    gap = by_name(metrics, "task_gap")
    expected = second[0] / sum(second) - first[0] / sum(first)
    assert (gap.variable, gap.group, gap.n) == ("gender", "male", sum(second))
    assert gap.value == pytest.approx(expected, abs=1e-12)
    assert gap.low <= gap.value <= gap.high
    assert by_name(metrics, "task_gap_p").value == pytest.approx(fisher(*first, *second), rel=1e-9)
    assert by_name(metrics, "task_accuracy", "female").value == first[0] / sum(first)


def test_the_interval_of_a_gap_is_close_to_the_normal_one():
    gap = by_name(group_metrics(GENDER, *two_groups((300, 200), (350, 150))), "task_gap")
    half = 1.96 * np.sqrt(0.6 * 0.4 / 500 + 0.7 * 0.3 / 500)
    assert (gap.low, gap.high) == pytest.approx((0.1 - half, 0.1 + half), abs=0.01)


@pytest.mark.parametrize(("first", "second"), [((20, 0), (30, 0)), ((0, 20), (0, 30))])
def test_a_gap_of_zero_has_an_interval_on_both_sides(first, second):
    gap = by_name(group_metrics(GENDER, *two_groups(first, second)), "task_gap")
    assert gap.value == 0
    assert gap.low < -0.05
    assert gap.high > 0.05


def test_newcombes_published_example():
    # Newcombe (1998), Table II: 10/10 against 0/20 by method 10 is (0.6791, 1.0000).
    gap = by_name(group_metrics(GENDER, *two_groups((0, 20), (10, 0))), "task_gap")
    assert (gap.low, gap.high) == pytest.approx((0.6791, 1.0), abs=5e-5)


def test_an_empty_group_has_a_status():
    secret = Secret("age", ("young", "middle", "old"), "attribute")
    groups, predicted, labels = np.array([1, 1, 2]), np.array([0, 1, 0]), np.array([0, 0, 0])
    metrics = group_metrics(secret, groups, predicted, labels)
    empty = by_name(metrics, "task_accuracy", "young")
    assert empty.value is None
    assert (empty.n, empty.status) == (0, "no test text in this group")
    assert by_name(group_shares(secret, groups), "share", "young").value == 0
    assert by_name(metrics, "task_gap", "old").value == pytest.approx(0.5)
    assert not [m for m in metrics if m.name == "task_gap" and m.group == "middle"]


def widest(groups, predicted, labels, units=None, name="fairness_gap"):
    """Return the widest gap of one secret."""
    return by_name(widest_gaps({"gender": groups}, predicted, labels, units), name)


def test_a_single_group_has_no_gap():
    everyone = np.zeros(50, np.int64)
    assert not [m for m in group_metrics(GENDER, everyone, everyone, everyone) if m.name == "task_gap"]
    for metric in widest_gaps({"gender": everyone}, everyone, everyone):
        assert (metric.value, metric.low, metric.status) == (None, None, "one group only")


class TestWidestGap:
    """The widest gap of accuracy between two groups."""

    def test_of_five_groups_against_fairlearn(self):
        groups, labels, predicted = np.random.default_rng(0).integers(0, 5, (3, 600))
        expected = MetricFrame(
            metrics=accuracy_score, y_true=labels, y_pred=predicted, sensitive_features=groups
        ).difference()
        gap = widest(groups, predicted, labels)
        assert gap.value == pytest.approx(expected)
        assert (gap.variable, gap.n, gap.status) == ("gender", 600, "")

    def test_of_two_groups_is_the_gap_with_its_interval(self):
        sides = two_groups((300, 200), (200, 300))
        gap, pair = widest(*sides), by_name(group_metrics(GENDER, *sides), "task_gap")
        assert (gap.value, gap.low, gap.high) == pytest.approx((-pair.value, -pair.high, -pair.low))

    def test_the_interval_holds_for_all_pairs_and_secrets_together(self):
        """Three groups and another secret with two have four pairs: 1 - .05 / 4 is the confidence of each."""
        groups = np.repeat([0, 1, 2], 10_000)
        predicted = np.concatenate([np.repeat([1, 0], [right, 10_000 - right]) for right in (5000, 5400, 6000)])
        labels, halves = np.ones(30_000, np.int64), np.tile([0, 1], 15_000)
        metrics = widest_gaps({"country": groups, "gender": halves}, predicted, labels)
        (gap,) = [m for m in metrics if (m.name, m.variable) == ("fairness_gap", "country")]
        half = stats.norm.isf(0.025 / 4) * np.sqrt((0.5 * 0.5 + 0.6 * 0.4) / 10_000)
        assert (gap.value, gap.low, gap.high) == pytest.approx((0.1, 0.1 - half, 0.1 + half), abs=1e-4)

    def test_small_groups_are_left_out(self):
        """All guesses about the third group are wrong, but it has only 29 texts."""
        groups = np.repeat([0, 1, 2], [100, 100, 29])
        predicted, labels = np.where(groups == 2, 0, np.arange(229) % 4 > 0), np.ones(229, np.int64)
        gap = widest(groups, predicted, labels)
        assert (gap.value, gap.n, gap.status) == (0, 200, "1 groups with fewer than 30 texts left out")
        one_more = [np.append(array, end) for array, end in ((groups, 2), (predicted, 0), (labels, 1))]
        assert (widest(*one_more).value, widest(*one_more).status) == (0.75, "")

    def test_the_size_of_a_group_counts_authors(self):
        sides = two_groups((80, 20), (50, 50))
        few = widest(*sides, np.arange(200) // 5)
        assert (few.value, few.status) == (None, "2 groups with fewer than 30 authors left out")
        assert widest(*sides, np.arange(200) // 2).value == pytest.approx(0.3)

    def test_authors_that_agree_with_themselves_widen_the_interval(self):
        groups, labels = np.repeat([0, 1], 400), np.ones(800, np.int64)
        authors = np.arange(800) // 10
        predicted = np.where(groups == 0, authors % 5 > 1, authors % 5 > 0).astype(np.int64)
        alone, together = widest(groups, predicted, labels), widest(groups, predicted, labels, authors)
        assert alone.value == pytest.approx(0.2)
        assert together.value == alone.value
        assert alone.low > 0.1
        assert together.low < 0.03

    @pytest.mark.parametrize(("sizes", "texts_of_author"), [((300, 40, 40, 40), 1), ((60,) * 8, 1), ((200,) * 4, 5)])
    def test_chance_shows_a_gap_in_at_most_one_of_twenty_samples(self, sizes, texts_of_author):
        """Without the correction for the number of pairs, it does in about four of twenty or more."""
        rng, runs = np.random.default_rng(0), 100
        groups = np.repeat(np.arange(len(sizes)), sizes)
        authors = None if texts_of_author == 1 else np.arange(len(groups)) // texts_of_author
        skill = np.full(len(groups), 0.8) if authors is None else rng.beta(4, 1, authors.max() + 1)[authors]
        labels = np.ones(len(groups), np.int64)
        samples = (rng.random((runs, len(groups))) < skill).astype(np.int64)
        claims = sum(widest(groups, predicted, labels, authors).low > 0 for predicted in samples)
        assert stats.binomtest(claims, runs, 0.05, alternative="greater").pvalue > 1e-3

    def test_a_true_gap_is_shown(self):
        rng, runs, groups = np.random.default_rng(0), 200, np.repeat([0, 1], 300)
        right = rng.random((runs, 600)) < np.where(groups == 0, 0.5, 0.7)
        labels = np.ones(600, np.int64)
        claims = sum(widest(groups, row.astype(np.int64), labels).low > 0 for row in right)
        assert stats.binomtest(claims, runs, 0.95, alternative="less").pvalue > 1e-3


class TestGapWithinClasses:
    """The widest gap of true positive rates within a class of the task: equalised odds."""

    @staticmethod
    def gap(groups, predicted, labels):
        return widest(groups, predicted, labels, name="tpr_gap")

    def test_of_two_classes_against_fairlearn(self):
        rng = np.random.default_rng(0)
        for count in (2, 3):
            groups, (labels, predicted) = rng.integers(0, count, 500), rng.integers(0, 2, (2, 500))
            expected = equalized_odds_difference(labels, predicted, sensitive_features=groups)
            assert self.gap(groups, predicted, labels).value == pytest.approx(expected)

    def test_of_four_classes_against_fairlearn(self):
        groups, labels, predicted = np.random.default_rng(0).integers(0, [[3], [4], [4]], (3, 900))
        expected = max(
            MetricFrame(
                metrics=recall_score, y_true=labels == y, y_pred=predicted == y, sensitive_features=groups
            ).difference()
            for y in range(4)
        )
        assert self.gap(groups, predicted, labels).value == pytest.approx(expected)

    def test_a_constant_guess_has_none_whatever_the_classes_of_the_groups(self):
        """Its accuracies differ by .6, since the groups have other classes."""
        groups = np.repeat([0, 1], 200)
        labels = np.concatenate([np.repeat([0, 1], [160, 40]), np.repeat([0, 1], [40, 160])])
        constant = np.zeros(400, np.int64)
        assert widest(groups, constant, labels).value == pytest.approx(0.6)
        assert widest(groups, constant, labels).low > 0.4
        gap = self.gap(groups, constant, labels)
        assert gap.value == 0
        assert gap.low < 0 < gap.high

    def test_a_classifier_that_is_unfair_within_classes_shows_it(self):
        """Errors are in one class of each group, so the accuracies are equal."""
        groups, labels = np.repeat([0, 1], 200), np.tile([0, 1], 200)
        wrong = (labels == groups) & (np.arange(400) % 8 < 4)
        predicted = np.where(wrong, 1 - labels, labels)
        assert widest(groups, predicted, labels).value == 0
        gap = self.gap(groups, predicted, labels)
        assert gap.value == pytest.approx(0.5)
        assert gap.low > 0.3

    def test_small_groups_of_a_class_are_left_out(self):
        groups, labels = np.repeat([0, 1], 100), np.tile([0, 1], 100)
        labels[:21] = 1
        predicted = np.where(labels == 0, groups, 1)  # all of group 0 are wrong in class 0, which has 39 and 50 texts
        assert (labels[:100] == 0).sum() == 39
        assert self.gap(groups, predicted, labels).value == 1
        labels[:41] = 1
        gap = self.gap(groups, np.where(labels == 0, groups, 1), labels)
        assert (gap.value, gap.n, gap.status) == (0, 121, "1 groups with fewer than 30 texts left out")
        labels[:100] = 1
        assert self.gap(groups, labels, labels).status == "", "a class that a group lacks is no small group"
