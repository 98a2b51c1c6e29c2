"""What a victim's page tells of it: every attack, every secret, and all that was measured besides."""

from __future__ import annotations

from typing import Any

from leakboard.board.means import mean
from leakboard.pipeline.records import Record
from leakboard.site.content import AUDIT, Board, Row, slug


def attack_rows(board: Board, dataset: str, victim: str) -> list[Row]:
    """Return every attack on a victim, strongest first; audits come last."""
    rows = [r for r in board.rows if (r["dataset"], r["victim"]) == (dataset, victim)]
    return sorted(rows, key=lambda r: (r["attack_metric"] == AUDIT, r["secrets"], r.get("empirical_privacy") or 0))


def _records(board: Board, row: Row) -> list[Record]:
    key = row["dataset"], row["victim"], row["attack"]
    return [record for record in board.records if (record.dataset, record.victim, record.attack) == key]


def secret_rows(board: Board, dataset: str, victim: str) -> list[Row]:
    """Return how well each secret of a victim is guessed by each attack, from the records' own metrics."""
    rows = []
    for row in attack_rows(board, dataset, victim):
        records = _records(board, row)
        for secret in records[0].secrets if records else ():
            guessed = {name: mean(records, f"attack_{name}", "value", secret) for name in GUESSED}
            if guessed["accuracy"] is not None:
                low, high = (mean(records, "attack_accuracy", end, secret) for end in ("low", "high"))
                rows.append(
                    {
                        "attack": row["attack"],
                        "attack_slug": slug(row["attack_options"]),
                        "secret": secret,
                        "accuracy_low": low,
                        "accuracy_high": high,
                        **guessed,
                    }
                )
    return rows


def measure_rows(board: Board, dataset: str, victim: str) -> list[Row]:
    """Return what else was measured of a victim as a whole, mean over seeds: a metric of every attack alike once."""
    rows: dict[tuple[Any, ...], Row] = {}
    for row in attack_rows(board, dataset, victim):
        records = _records(board, row)
        for name in dict.fromkeys(m.name for r in records for m in r.metrics if not m.variable and m.name not in TOLD):
            value, low, high = (mean(records, name, part) for part in ("value", "low", "high"))
            if value is not None:
                found = rows.setdefault((name, value), {"metric": name, "value": value, "attacks": []})
                found |= {"value_low": low, "value_high": high}
                found["attacks"].append(row["attack"])
    every = len(attack_rows(board, dataset, victim))
    return [
        {**row, "attack": "" if len(row["attacks"]) == every else "; ".join(row["attacks"])} for row in rows.values()
    ]


TOLD = ("task_accuracy", "task_majority", "attack_score", "empirical_privacy", "privacy_best_constant", "audit_delta")
"""Metrics that have a column of their own elsewhere on the page, or are no measurement."""
GUESSED = ("accuracy", "balanced_accuracy", "f1", "auc")
