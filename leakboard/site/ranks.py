"""Rank the victims of a table by privacy, those that are useless for the task last and without a rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakboard.board.figures import finite
from leakboard.board.schema import Row
from leakboard.site.utility import TASK
from leakboard.suite.names import natural

USELESS = "useless for the task"
"""Note below the name of a victim whose task accuracy is not above that of a constant guess."""


def is_useless(row: Row) -> bool:
    """Return whether the task accuracy, to three decimals, is not above that of a constant guess.

    Such vectors say nothing about the task, so their privacy costs everything. False if an accuracy is unknown, or if
    the board weighs ``search`` against privacy.
    """
    values: list[Any] = [row.get("task_accuracy"), row.get("task_majority")]
    is_weighed = row.get("weighed", TASK) is TASK
    return is_weighed and all(map(finite, values)) and round(values[0], 3) <= round(values[1], 3)


def useful(rows: Sequence[Row]) -> list[Row]:
    """Return the victims that are not useless."""
    return [row for row in rows if not is_useless(row)]


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Return the victims in the order of a table, each with its range of ranks and a note if it is useless.

    Useful victims come first, most privacy first. Useless victims have no rank.

    Args:
        rows: one for each victim, with the strongest attack on it.
    """
    ordered = sorted(rows, key=lambda row: (is_useless(row), -row["empirical_privacy"], natural(row["victim"])))
    kept = useful(ordered)
    return [{**row, **({"small": USELESS} if is_useless(row) else _rank(row, kept))} for row in ordered]


def _rank(row: Row, others: Sequence[Row]) -> Row:
    return {
        "rank": 1 + sum(above(other, row) for other in others),
        "last_rank": len(others) - sum(above(row, other) for other in others),
    }


def above(other: Row, row: Row) -> bool:
    """Return whether the privacy interval of one victim is wholly above that of another."""
    return bool(_end(other, "low") > _end(row, "high"))


def overlap(first: Row, second: Row) -> bool:
    """Return whether the privacy intervals of two victims overlap, so that neither keeps measurably more."""
    return not above(first, second) and not above(second, first)


def _end(row: Row, end: str) -> float:
    value = row[f"empirical_privacy_{end}"]
    return float(row["empirical_privacy"] if value is None else value)
