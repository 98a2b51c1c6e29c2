"""Make the rows of ``fairness.csv``: for each group of a secret, the accuracy on the task and of the attacks."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.means import combined_p_value, grouped, interval, mean
from leakboard.board.schema import Row
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
                }
            )
    return rows
