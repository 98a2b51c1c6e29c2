"""Compare task accuracy between the groups of a secret, as in DPNR Tables 6 and 7 (Lyu, He and Li 2020)."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Integers, Secret
from leakboard.metrics.measures import Metric, Ratio, accuracy

EMPTY_GROUP = "no test text in this group"

SMALLEST_CLASS = 10
"""True positive rates of a task class are compared only if every group has this number of texts of the class."""


def group_shares(secret: Secret, groups: Integers) -> list[Metric]:
    """Return each group's share of the test texts."""
    inside = [groups == code for code in range(len(secret.values))]
    return [
        Metric("share", float(part.mean()), secret.name, group, n=int(part.sum()))
        for part, group in zip(inside, secret.values, strict=True)
    ]


def group_metrics(
    secret: Secret, groups: Integers, predicted: Integers, labels: Integers, units: Integers | None = None
) -> list[Metric]:
    """Return accuracy, gap, p-value and true-positive-rate gap of a secret's groups.

    - The gap is a group's accuracy minus that of the first group that has texts.
    - Its interval is Newcombe's, from the intervals of the two groups over independent units. An author with texts in
      both groups makes it wider than necessary.
    - Its p-value is Fisher's exact test of right and wrong answers in the two groups. The test assumes that texts are
      independent.
    - An empty group has no values; its status says that it is empty.
    """
    right = accuracy(predicted, labels, units)
    metrics: list[Metric] = []
    reference: int | None = None
    for code, group in enumerate(secret.values):
        inside = groups == code
        if not inside.any():
            metrics.append(Metric("task_accuracy", None, secret.name, group, n=0, status=EMPTY_GROUP))
            continue
        metrics.append(right.within(inside).metric("task_accuracy", secret.name, group))
        if reference is None:
            reference = code
            continue
        metrics += _gap(right, groups == reference, inside, secret.name, group)
    metrics.append(_rate_gap(secret, groups, predicted, labels))
    return metrics


def _gap(score: Ratio, first: NDArray[np.bool_], second: NDArray[np.bool_], variable: str, group: str) -> list[Metric]:
    right = score.numerator
    low, high = _newcombe(score.within(first), score.within(second))
    value = right[second].mean() - right[first].mean()
    table = [[right[part].sum(), (1 - right[part]).sum()] for part in (first, second)]
    p_value = scipy.stats.fisher_exact(np.array(table, dtype=int)).pvalue
    n = int(second.sum())
    return [
        Metric("task_gap", float(value), variable, group, low, high, n),
        Metric("task_gap_p", float(p_value), variable, group, n=n),
    ]


def _newcombe(first: Ratio, second: Ratio) -> tuple[float, float]:
    """Return the interval of the difference of two shares from their intervals (Newcombe 1998, method 10)."""
    gap = second.value - first.value
    (low_a, high_a), (low_b, high_b) = first.interval(), second.interval()
    below = np.hypot(second.value - low_b, high_a - first.value)
    above = np.hypot(high_b - second.value, first.value - low_a)
    return float(gap - below), float(gap + above)


def _rate_gap(secret: Secret, groups: Integers, predicted: Integers, labels: Integers) -> Metric:
    """Return the largest difference, over task classes, of true positive rates between groups.

    For one class against the others this is fairlearn's `equal_opportunity_difference`.
    """
    present = np.unique(groups)
    counts = np.array([[np.sum((groups == g) & (labels == y)) for g in present] for y in np.unique(labels)])
    compared = np.unique(labels)[(counts >= SMALLEST_CLASS).all(1)]
    left_out = len(counts) - len(compared)
    status = f"{left_out} classes with fewer than {SMALLEST_CLASS} texts in a group left out" if left_out else ""
    if len(present) < 2 or not len(compared):
        return Metric("tpr_gap", None, secret.name, status=status or "one group only")
    rates = [[np.mean(predicted[(groups == g) & (labels == y)] == y) for g in present] for y in compared]
    return Metric("tpr_gap", float(np.ptp(rates, axis=1).max()), secret.name, status=status)
