"""Test task accuracy by group: gaps with intervals and p-values, and true positive rates."""

from math import comb

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, equal_opportunity_difference, true_positive_rate

from leakboard.interfaces import Secret
from leakboard.metrics.fairness import group_metrics, group_shares

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


def test_a_single_group_has_no_gap():
    metrics = group_metrics(GENDER, np.zeros(30, np.int64), np.ones(30, np.int64), np.ones(30, np.int64))
    assert not [m for m in metrics if m.name == "task_gap"]
    assert by_name(metrics, "tpr_gap").value is None
    assert by_name(metrics, "tpr_gap").status == "one group only"


class TestRateGap:
    """The largest difference of true positive rates."""

    def test_of_two_classes_against_fairlearn(self):
        rng = np.random.default_rng(0)
        groups, labels, predicted = rng.integers(0, 2, (3, 400))
        rates = [equal_opportunity_difference(labels == y, predicted == y, sensitive_features=groups) for y in (0, 1)]
        assert by_name(group_metrics(GENDER, groups, predicted, labels), "tpr_gap").value == pytest.approx(max(rates))

    def test_by_hand(self):
        groups, labels = np.repeat([0, 1], 20), np.ones(40, np.int64)
        predicted = np.concatenate([np.repeat([1, 0], [16, 4]), np.repeat([1, 0], [5, 15])])
        assert by_name(group_metrics(GENDER, groups, predicted, labels), "tpr_gap").value == pytest.approx(0.55)

    def test_rare_classes_are_left_out_and_counted_in_the_status(self):
        rng = np.random.default_rng(0)
        groups, labels = np.repeat([0, 1], 50), np.tile([0, 1], 50)
        labels[:3] = 2
        predicted = rng.integers(0, 2, 100)
        metric = by_name(group_metrics(GENDER, groups, predicted, labels), "tpr_gap")
        assert metric.status == "1 classes with fewer than 10 texts in a group left out"
        rates = [
            MetricFrame(
                metrics=true_positive_rate, y_true=labels == y, y_pred=predicted == y, sensitive_features=groups
            )
            for y in (0, 1)
        ]
        assert metric.value == pytest.approx(max(rate.difference() for rate in rates))
