"""Average over the records of a row: its seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import scipy

from leakboard.metrics.entries import ANY, METRICS
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record

NORMAL = float(scipy.special.ndtri(0.975))
"""Standard errors that a 95 % interval reaches to each side."""


def grouped(records: Sequence[Record], key: Callable[[Record], Hashable]) -> list[list[Record]]:
    """Return the records with one key together, in the order in which the keys come first."""
    groups: dict[Hashable, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return list(groups.values())


def values_of(records: Sequence[Record], name: str, part: str, variable: str, group: str) -> list[float]:
    """Return a part of a metric (``value``, ``low``, ``high``) of every record that has it."""
    metrics: list[Metric | None] = [record.value(name, variable, group) for record in records]
    return [value for metric in metrics if metric and (value := getattr(metric, part)) is not None]


def mean(records: Sequence[Record], name: str, variable: str = "", group: str = "") -> float | None:
    """Return the mean of a metric; None where no record has it."""
    values = values_of(records, name, "value", variable, group)
    return sum(values) / len(values) if values else None


def deviation(records: Sequence[Record], name: str, variable: str = "") -> float | None:
    """Return the standard deviation of a metric over the records; None where fewer than two have it."""
    values = values_of(records, name, "value", variable, "")
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def interval(
    records: Sequence[Record], name: str, variable: str = "", group: str = ""
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the mean of a metric over the records; (None, None) if one has no interval.

    It counts the test texts and the seeds. The records are of the same test texts, so their sampling error s does not
    shrink. The error of training is d / sqrt(k) for the standard deviation d over k seeds. The interval reaches
    t sqrt(s**2 + d**2 / k) to each side, with s from this side's ends. Student's t has the degrees of freedom of
    Satterthwaite (1946). With one record it is the record's interval.
    """
    low, middle, high = (values_of(records, name, part, variable, group) for part in ("low", "value", "high"))
    if not middle or len(low) < len(middle) or len(high) < len(middle) or np.isnan([*low, *high]).any():
        return None, None
    count = len(middle)
    value, least, most = (sum(values) / count for values in (middle, low, high))
    of_training = float(np.var(middle, ddof=1)) / count if count > 1 else 0.0
    if not of_training:
        return least, most
    reach = []
    for end in (least, most):
        total = ((end - value) / NORMAL) ** 2 + of_training
        degrees = (count - 1) * (total / of_training) ** 2
        reach.append(float(scipy.special.stdtrit(degrees, 0.975)) * math.sqrt(total))
    values = METRICS[name].values if name in METRICS else ANY
    return max(values.low, value - reach[0]), min(values.high, value + reach[1])


def combined_p_value(records: Sequence[Record], name: str, variable: str = "", group: str = "") -> float | None:
    """Return the p-value of one record, or twice the mean of several; None where no record has it.

    Twice the mean is a p-value whatever the dependence of the records (Vovk and Wang 2020, Combining p-values via
    averaging, section 3).
    """
    values = values_of(records, name, "value", variable, group)
    average = sum(values) / len(values) if values else None
    return average if average is None or len(values) == 1 else min(1.0, 2 * average)


PARTS: Mapping[str, Callable[[Sequence[Record], str, str], float | None]] = {
    "value": mean,
    "low": lambda records, name, secret: interval(records, name, secret)[0],
    "high": lambda records, name, secret: interval(records, name, secret)[1],
    "sd": deviation,
    "p": combined_p_value,
}
"""The parts of a metric over the records of a row, as columns name them (`leakboard.column.Column.part`)."""
