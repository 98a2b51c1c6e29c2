"""Average over the records of a row: its seeds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record


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


def mean(
    records: Sequence[Record], name: str, part: str = "value", variable: str = "", group: str = ""
) -> float | None:
    """Return the mean of a part of a metric; None where no record has it."""
    values = values_of(records, name, part, variable, group)
    return sum(values) / len(values) if values else None


def deviation(records: Sequence[Record], name: str, variable: str = "") -> float | None:
    """Return the standard deviation of a metric over the records; None where fewer than two have it."""
    values = values_of(records, name, "value", variable, "")
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def combined_p_value(records: Sequence[Record], name: str, variable: str = "", group: str = "") -> float | None:
    """Return the p-value of one record, or twice the mean of several; None where no record has it.

    Twice the mean is a p-value whatever the dependence of the records (Vovk and Wang 2020, Combining p-values via
    averaging, section 3).
    """
    values = values_of(records, name, "value", variable, group)
    average = sum(values) / len(values) if values else None
    return average if average is None or len(values) == 1 else min(1.0, 2 * average)
