"""Choose the attack that is a victim's headline: the strongest on the same secrets.

A victim is as private as its strongest attacker leaves it, so its headline is the worst case over all attacks on the
same secrets. Where every attack has a score on dev, that score decides: the best of several test scores is partly luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from leakboard.board.schema import Row

LEARNED = 4
"""A score on dev is believed up to ``LEARNED / sqrt(test texts)`` above the score on test: 8 standard deviations.

An attack that is beyond has learned its dev texts by heart before it scored them. Smaller differences may be chance, or
may come from the victim's fit, which saw dev.
"""
COMPETE_WITHIN = ("dataset", "victim", "victim_options", "attack_metric", "secrets", "secret")
"""Columns that the rows of competing attacks have in common."""


def best_known(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of ``best_known.csv``: the strongest attacks, each with how many competed.

    Args:
        rows: of a leaderboard. Only attacks that see equally many publications of a text are compared.
    """
    groups = competing([row for row in rows if row.get("empirical_privacy") is not None])
    return [
        {**strongest(group), "attacks": len(group), "chosen_on": "dev" if chosen_on_dev(group) else "test"}
        for group in groups
    ]


def competing(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of a leaderboard that attack the same, seeing as many publications of a text, together."""
    return _together(rows, (*COMPETE_WITHIN, "observations"))


def strongest(rows: Sequence[Row], score: Callable[[Row], float] | None = None) -> Row:
    """Return the row of the strongest attack among competing rows; the first, if several are equal.

    Args:
        rows: at least one.
        score: of a row, higher is stronger; it decides unless dev does. None: the score on test.
    """
    return max(rows, key=_on_dev if chosen_on_dev(rows) else score or _on_test)


def chosen_on_dev(rows: Sequence[Row]) -> bool:
    """Return whether the score on dev decides.

    All competing rows have one, none learned dev by heart, and no other attack is surely stronger on test than the one
    that dev chooses: the chosen one leaves no more privacy than the interval of each other attack allows.
    """
    if not all(_known(row, "attack_score_dev") is not None and not _learned_dev(row) for row in rows):
        return False
    left = _known(max(rows, key=_on_dev), "empirical_privacy")
    ends = [_known(row, "empirical_privacy_high") for row in rows]
    return left is None or all(end is None or left <= end for end in ends)


def _learned_dev(row: Row) -> bool:
    score, size = _known(row, "attack_score"), _known(row, "test_size")
    return bool(score is not None and size and _on_dev(row) - score > LEARNED / math.sqrt(size))


def headlines(rows: Sequence[Row], score: Callable[[Row], float] | None = None) -> list[Row]:
    """Return the row of the strongest attack for each victim and secrets, in the order of the rows.

    Attacks are left out if they see more publications of a text than another attack on the same secrets.

    Args:
        rows: of a leaderboard.
        score: as `strongest` takes it.
    """
    chosen = []
    for group in _together(rows, COMPETE_WITHIN):
        fewest = min(_observations(row) for row in group)
        seeing = [row for row in group if _observations(row) == fewest]
        chosen.append(strongest(seeing, score))
    return chosen


def _together(rows: Sequence[Row], names: Sequence[str]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_known(row, name) for name in names), []).append(row)
    return list(groups.values())


def _observations(row: Row) -> int:
    return int(_known(row, "observations") or 1)


def _on_test(row: Row) -> float:
    return float(row["attack_score"])


def _on_dev(row: Row) -> float:
    return float(row["attack_score_dev"])


def _known(row: Row, name: str) -> Any:
    """Return a cell; None where it is empty, which a data frame writes as NaN."""
    value = row.get(name)
    return None if isinstance(value, float) and math.isnan(value) else value
