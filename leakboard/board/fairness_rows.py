"""Make the rows of ``fairness.csv``: for each group of a secret, the accuracy on the task and of the attacks."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.means import grouped, mean
from leakboard.board.schema import Row
from leakboard.pipeline.records import Record


def fairness(records: Sequence[Record]) -> list[Row]:
    """Return one row for each (dataset, victim, variable, group): means over seeds, and the strongest attack.

    The p-value over several seeds is twice the mean of the runs' (valid under any dependence: Vovk and Wang 2020,
    Combining p-values via averaging, section 3).
    """
    rows = []
    for group in grouped([r for r in records if r.status == "ok"], lambda r: (r.dataset, r.victim)):
        one_attack = grouped(group, lambda r: r.attack)
        shares = [m for m in group[0].metrics if m.name == "share"]
        for share in shares:
            of_group = (share.variable, share.group)
            fullest = max(one_attack, key=len)
            p_values = [m.value for r in fullest if (m := r.value("task_gap_p", *of_group)) and m.value is not None]
            scores = {a[0].attack: mean(a, "attack_accuracy", "value", *of_group) for a in one_attack}
            measured = {attack: score for attack, score in scores.items() if score is not None}
            best = max(measured, key=lambda attack: measured[attack], default=None)
            rows.append(
                {
                    "dataset": group[0].dataset,
                    "victim": group[0].victim,
                    "variable": share.variable,
                    "group": share.group,
                    "n": share.n,
                    "share": share.value,
                    "task_accuracy": mean(fullest, "task_accuracy", "value", *of_group),
                    "gap": mean(fullest, "task_gap", "value", *of_group),
                    "gap_low": mean(fullest, "task_gap", "low", *of_group),
                    "gap_high": mean(fullest, "task_gap", "high", *of_group),
                    "p_value": _combined(p_values),
                    "tpr_gap": mean(fullest, "tpr_gap", "value", share.variable),
                    "attack_accuracy": measured.get(best) if best else None,
                    "attack": best,
                }
            )
    return rows


def _combined(p_values: Sequence[float]) -> float | None:
    if not p_values:
        return None
    average = sum(p_values) / len(p_values)
    return average if len(p_values) == 1 else min(1.0, 2 * average)
