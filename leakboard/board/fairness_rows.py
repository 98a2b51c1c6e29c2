"""Make the rows of ``fairness.csv``, one for each group of a secret, and the columns of the widest gaps."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.means import combined_p_value, grouped, interval, mean, values_of
from leakboard.board.schema import Row
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record


def fairness(records: Sequence[Record]) -> list[Row]:
    """Return one row for each (dataset, victim, variable, group): means over seeds, and the strongest attack."""
    rows = []
    for group in grouped([r for r in records if r.status == "ok"], lambda r: (r.dataset, r.victim)):
        one_attack = grouped(group, lambda r: r.attack)
        shares = [m for m in group[0].metrics if m.name == "share"]
        for share in shares:
            of_group = (share.variable, share.group)
            fullest = max(one_attack, key=len)
            scores = {a[0].attack: mean(a, "attack_accuracy", *of_group) for a in one_attack}
            measured = {attack: score for attack, score in scores.items() if score is not None}
            best = max(measured, key=lambda attack: measured[attack], default=None)
            low, high = interval(fullest, "task_gap", *of_group)
            accuracy_low, accuracy_high = interval(fullest, "task_accuracy", *of_group)
            rows.append(
                {
                    "dataset": group[0].dataset,
                    "victim": group[0].victim,
                    "variable": share.variable,
                    "group": share.group,
                    "n": share.n,
                    "share": share.value,
                    "task_accuracy": mean(fullest, "task_accuracy", *of_group),
                    "gap": mean(fullest, "task_gap", *of_group),
                    "gap_low": low,
                    "gap_high": high,
                    "p_value": combined_p_value(fullest, "task_gap_p", *of_group),
                    "tpr_gap": mean(fullest, "tpr_gap", share.variable),
                    "attack_accuracy": measured.get(best) if best else None,
                    "attack": best,
                    "task_accuracy_low": accuracy_low,
                    "task_accuracy_high": accuracy_high,
                }
            )
    return rows


def gap_columns(records: Sequence[Record], secret: str = "") -> Row:
    """Return the columns of the widest gaps of a secret, or of the secret with the clearest gap.

    The clearest gap has the largest lower end. A lower end below 0 becomes 0: no gap is shown.
    """
    row: Row = {}
    for name in ("fairness_gap", "tpr_gap"):
        gaps = [gap for gap in _gaps(records, name) if secret in ("", gap.variable)]
        gap = max(gaps, key=lambda gap: (-1.0 if gap.low is None else gap.low, gap.value), default=Metric(name, None))
        low = None if gap.low is None else max(0.0, gap.low)
        stem = name.removesuffix("_gap")
        row |= {name: gap.value, f"{name}_low": low, f"{name}_high": gap.high}
        row |= {f"{stem}_n": gap.n, f"{stem}_variable": gap.variable or None}
    return row


def _gaps(records: Sequence[Record], name: str) -> list[Metric]:
    """Return the widest gap of each secret, mean over seeds, with its interval."""
    names = {metric.name for metric in records[0].metrics}
    if "fairness_gap" not in names:
        return _gaps_of_all_groups(records) if name == "fairness_gap" else []
    gaps = []
    for variable in dict.fromkeys(metric.variable for metric in records[0].metrics if metric.name == name):
        value, sizes = mean(records, name, variable), values_of(records, name, "n", variable, "")
        if value is not None:
            gaps.append(Metric(name, value, variable, "", *interval(records, name, variable), max(map(int, sizes))))
    return gaps


def _gaps_of_all_groups(records: Sequence[Record]) -> list[Metric]:
    """Return the widest gaps of records of version 0.1.0: without interval, over groups of any size."""
    groups: dict[str, list[float]] = {}
    for metric in records[0].metrics:
        if metric.name == "task_accuracy" and metric.group:
            accuracy = mean(records, "task_accuracy", metric.variable, metric.group)
            if accuracy is not None:
                groups.setdefault(metric.variable, []).append(accuracy)
    gaps = {variable: max(values) - min(values) for variable, values in groups.items() if len(values) > 1}
    return [Metric("fairness_gap", gap, variable) for variable, gap in gaps.items()]
