"""The rows of ``best_known.csv``: of each victim and secret the strongest attack, which is the victim's headline.

A victim is as private as its strongest attacker leaves it, so its row is the worst case over all attacks on the same
secret that see as many publications of a text. Where every one of them says what it scored on dev, that decides: the
best of several test scores would be their luck, too. Elsewhere the test score decides, and the row says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakboard.board.leaderboard import leaderboard
from leakboard.board.means import Row, grouped, mean
from leakboard.pipeline.records import Record

BEST_KNOWN = (
    "dataset, victim, secret, secrets, observations, attack, attacks, chosen_on, attack_metric, attack_score, "
    "empirical_privacy, empirical_privacy_low, empirical_privacy_high, privacy_best_constant, "
    "privacy_text_classifier, privacy_bayes, attack_score_new, empirical_privacy_new, status"
)


def best_known(records: Sequence[Record]) -> list[Row]:
    """Return a row for each dataset, victim and secret, and for all secrets together, of its strongest attack."""
    done = {_cells(group[0]): group for group in grouped([r for r in records if r.status == "ok"], _cells)}
    competing: dict[tuple[Any, ...], list[Row]] = {}
    for row in leaderboard(records):
        if row.get("empirical_privacy") is not None:
            place = ("dataset", "victim", "attack_metric", "secrets", "secret", "observations")
            competing.setdefault(tuple(row.get(name) for name in place), []).append(row)
    rows = []
    for group in competing.values():
        of_dev = [mean(done[_row_cells(row)], "attack_score_dev", "value", row["secret"]) for row in group]
        dev = [score for score in of_dev if score is not None]
        known = len(dev) == len(group)
        scores = dev if known else [row["attack_score"] for row in group]
        best = max(zip(scores, group, strict=True), key=lambda entry: entry[0])[1]
        rows.append({**best, "attacks": len(group), "chosen_on": "dev" if known else "test"})
    return rows


def _cells(record: Record) -> tuple[str, str, str]:
    return record.dataset, record.victim, record.attack


def _row_cells(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["victim"], row["attack"]
