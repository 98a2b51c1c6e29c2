"""Compare task accuracy between the groups of a secret, as in DPNR Tables 6 and 7 (Lyu, He and Li 2020).

The widest of many gaps is large by chance alone. So its interval is for all pairs of groups together, and small groups
do not take part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from leakboard.interfaces import Integers, Secret
from leakboard.metrics.intervals import CONFIDENCE
from leakboard.metrics.measures import Metric, Ratio, accuracy

EMPTY_GROUP = "no test text in this group"

SMALLEST_GROUP = 30
"""Independent texts, or authors, that a group has at least if the widest gap looks at it.

No claim rests on fewer. Two groups of 20 texts with a true accuracy of .8 show a gap of .10 on average.
"""


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
    """Return accuracy, gap and p-value of a secret's groups.

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
    return metrics


def _gap(score: Ratio, first: NDArray[np.bool_], second: NDArray[np.bool_], variable: str, group: str) -> list[Metric]:
    right = score.numerator
    value, low, high = _differences([score.within(first), score.within(second)])[:, 0, 1].tolist()
    table = [[right[part].sum(), (1 - right[part]).sum()] for part in (first, second)]
    p_value = scipy.stats.fisher_exact(np.array(table, dtype=int)).pvalue
    n = int(second.sum())
    return [
        Metric("task_gap", value, variable, group, low, high, n),
        Metric("task_gap_p", float(p_value), variable, group, n=n),
    ]


def _differences(groups: Sequence[Ratio], confidence: float = CONFIDENCE) -> NDArray[np.float64]:
    """Return differences of shares and both ends of their intervals from those of the shares, float64 (3, k, k).

    Entry (i, j) is of group j minus group i (Newcombe 1998, method 10).
    """
    share = np.array([group.value for group in groups])
    low, high = np.transpose([group.interval(confidence) for group in groups])
    gap = share - share[:, None]
    below = np.hypot(share - low, (high - share)[:, None])
    above = np.hypot(high - share, (share - low)[:, None])
    return np.array([gap, gap - below, gap + above])


def widest_gaps(
    groups: Mapping[str, Integers], predicted: Integers, labels: Integers, units: Integers | None = None
) -> list[Metric]:
    """Return the widest gap between two groups of each secret, among all texts and within a class of the task.

    - ``fairness_gap`` compares accuracy. It also shows that groups have different shares of the classes.
    - ``tpr_gap`` compares the true positive rates of each class, and is the widest gap of any class. A constant guess
      has a gap of 0. For two classes it is fairlearn's `equalized_odds_difference`: the false positive rate of a class
      is 1 - the true positive rate of the other (Hardt, Price and Srebro 2016).

    Args:
        groups: the group of each text by secret, int64 (n,).
        predicted: int64 (n,), the predicted class of the task.
        labels: int64 (n,), the true class.
        units: int64 (n,), the author of each text; None: the text itself.
    """
    right = accuracy(predicted, labels, units)
    classes = [labels == label for label in np.unique(labels)]
    everything = np.ones(len(labels), dtype=bool)
    return [*_widest("fairness_gap", groups, right, [everything]), *_widest("tpr_gap", groups, right, classes)]


def _widest(
    name: str, groups: Mapping[str, Integers], right: Ratio, parts: Sequence[NDArray[np.bool_]]
) -> list[Metric]:
    """Return the widest gap of each secret between two groups of the same part of the texts.

    The 95 % intervals of all gaps hold together, over all pairs, parts and secrets (Bonferroni). So the widest true gap
    is at least the largest lower end and at most the largest upper end. If every interval holds 0, the lower end is
    not above 0, and no gap is shown.
    """
    families: dict[str, list[list[Ratio]]] = {}
    statuses = {}
    for secret, codes in groups.items():
        present = [[right.within(part & (codes == code)) for code in np.unique(codes[part])] for part in parts]
        large = [[group for group in family if _is_large(group)] for family in present]
        left_out = sum(map(len, present)) - sum(map(len, large))
        unit = "texts" if right.units is None else "authors"
        statuses[secret] = f"{left_out} groups with fewer than {SMALLEST_GROUP} {unit} left out" if left_out else ""
        families[secret] = [family for family in large if len(family) > 1]
    pairs = sum(math.comb(len(family), 2) for of_secret in families.values() for family in of_secret)
    confidence = 1 - (1 - CONFIDENCE) / max(1, pairs)
    return [_widest_of(name, secret, families[secret], confidence, statuses[secret]) for secret in groups]


def _widest_of(name: str, secret: str, families: Sequence[Sequence[Ratio]], confidence: float, status: str) -> Metric:
    """Return the widest gap between two groups of one of the families, each of at least two groups."""
    if not families:
        return Metric(name, None, secret, status=status or "one group only")
    gaps = [_differences(family, confidence)[:, ~np.eye(len(family), dtype=bool)] for family in families]
    value, low, high = np.concatenate(gaps, axis=1).max(1).tolist()
    return Metric(name, value, secret, "", low, high, sum(len(g.numerator) for f in families for g in f), status)


def _is_large(group: Ratio) -> bool:
    """Return whether a group has enough independent texts, and an interval."""
    units = len(group.numerator) if group.units is None else len(np.unique(group.units))
    return units >= SMALLEST_GROUP and not math.isnan(group.interval()[0])
