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
LEARNED_WIDTHS = 2
"""An advantage on dev is believed up to so many widths of its interval above the advantage on test."""
COMPETE_WITHIN = ("dataset", "victim", "victim_options", "attack_metric", "secrets", "secret")
"""Columns that the rows of competing attacks have in common."""


def best_known(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of ``best_known.csv``: the strongest attacks, each with how many competed.

    Args:
        rows: of a leaderboard. Only attacks that see equally many publications of a text are compared.
    """
    return [strongest(group) for group in competing([row for row in rows if row.get("empirical_privacy") is not None])]


def competing(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of a leaderboard that attack the same, seeing as many publications of a text, together."""
    return _together(rows, (*COMPETE_WITHIN, "observations"))


def strongest(rows: Sequence[Row], score: Callable[[Row], float] | None = None) -> Row:
    """Return the row of the strongest attack among competing rows; the first, if several are equal.

    The row says how many competed (``attacks``), and whether dev or test decided (``chosen_on``).

    Args:
        rows: at least one.
        score: of a row, higher is stronger; it decides unless dev does. None: the advantage, or the score where one of
            the rows has no advantage.
    """
    on_dev, measure = chosen_on_dev(rows), _measure(rows)
    column = f"{measure}_dev" if on_dev else measure
    row = max(rows, key=score if score and not on_dev else lambda row: float(row[column]))
    return {**row, "attacks": len(rows), "chosen_on": "dev" if on_dev else "test"}


def chosen_on_dev(rows: Sequence[Row]) -> bool:
    """Return whether the score on dev decides.

    All competing rows have one, none learned dev by heart, and no other attack is surely stronger on test than the one
    that dev chooses: the chosen attack's test score is not below another attack's interval.
    """
    measure = _measure(rows)
    if not all(_known(row, f"{measure}_dev") is not None and not _learned_dev(row, measure) for row in rows):
        return False
    chosen = max(rows, key=lambda row: float(row[f"{measure}_dev"]))
    if measure == "attack_advantage":
        lows = [_known(row, "attack_advantage_low") for row in rows]
        return all(low is None or low <= chosen[measure] for low in lows)
    left = _known(chosen, "empirical_privacy")
    highs = [_known(row, "empirical_privacy_high") for row in rows]
    return left is None or all(high is None or left <= high for high in highs)


def _measure(rows: Sequence[Row]) -> str:
    """Return the measure that compares attacks: the advantage, or the score if a row has no advantage."""
    return "attack_advantage" if all(_known(row, "attack_advantage") is not None for row in rows) else "attack_score"


def _learned_dev(row: Row, measure: str) -> bool:
    """Return whether the attack's score on dev is farther above the one on test than is believed."""
    believed = math.inf
    if measure == "attack_advantage":
        low, high = (_known(row, f"attack_advantage_{end}") for end in ("low", "high"))
        if low is not None and high is not None:
            believed = LEARNED_WIDTHS * (high - low)
    elif size := _known(row, "test_size"):
        believed = LEARNED / math.sqrt(size)
    score = _known(row, measure)
    return score is not None and float(row[f"{measure}_dev"]) - score > believed


def headlines(rows: Sequence[Row], score: Callable[[Row], float] | None = None) -> list[Row]:
    """Return the row of the strongest attack for each victim and secrets, in the order of the rows.

    Args:
        rows: of a leaderboard.
        score: as `strongest` takes it.
    """
    return [strongest(group, score) for group in comparable(rows)]


def comparable(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the attacks on each victim and secrets together, in the order of the rows.

    Attacks are left out if they see more publications of a text than another attack on the same secrets.
    """
    groups = _together(rows, COMPETE_WITHIN)
    fewest = [min(map(observations, group)) for group in groups]
    return [[row for row in group if observations(row) == seen] for group, seen in zip(groups, fewest, strict=True)]


def _together(rows: Sequence[Row], names: Sequence[str]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_known(row, name) for name in names), []).append(row)
    return list(groups.values())


def observations(row: Row) -> int:
    """Return how many publications of each text an attack saw."""
    return int(_known(row, "observations") or 1)


def _known(row: Row, name: str) -> Any:
    """Return a cell; None where it is empty, which a data frame writes as NaN."""
    value = row.get(name)
    return None if isinstance(value, float) and math.isnan(value) else value
