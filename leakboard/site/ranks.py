"""Rank the victims of a table by privacy. Victims that cannot be compared come last, without a rank."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

from leakboard.board.figures import finite
from leakboard.board.schema import Row
from leakboard.site.utility import TASK
from leakboard.suite.labels import parse, without
from leakboard.suite.names import natural

USELESS = "useless for the task"
"""Note below the name of a victim whose task accuracy is not above that of a constant guess."""
WEAKER_ATTACKS = "met weaker attacks only"
"""Note below the name of a victim that did not meet the strongest attack on the reference."""
ADDED_SOURCES = ("bayes", "made_texts", "ranks")
"""Options that give an attack one more source to learn from: with it, an attack counts as no weaker than without."""


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


def attack_of(options: str) -> str:
    """Return an attack's label without ``starts``, and without ``alignment`` if it undoes whitening."""
    ignored = ("alignment", "starts") if parse(options)[1].get("alignment") == "unwhitened" else ("starts",)
    return without(options, *ignored)


def attacks_met(options: str) -> set[str]:
    """Return the labels that an attack counts as: its own, and those without some or all of its added sources."""
    left_out = chain.from_iterable(combinations(ADDED_SOURCES, count) for count in range(len(ADDED_SOURCES) + 1))
    return {attack_of(without(options, *names)) for names in left_out}


def met_weaker_attacks(row: Row, reference: Row | None) -> bool:
    """Return whether a victim did not meet the strongest attack on the reference: other attacks prove nothing."""
    return reference is not None and attack_of(reference["attack_options"]) not in row["met"]


def most_private(row: Row) -> tuple[Any, ...]:
    """Return the sort key of a victim: most privacy first."""
    return -row["empirical_privacy"], natural(row["victim"])


def ranked(rows: Sequence[Row], reference: Row | None) -> list[Row]:
    """Return the victims in the order of a table, each with its range of ranks or with a note why it has none.

    Comparable victims come first, then those that met weaker attacks only, then useless ones; each most privacy first.

    Args:
        rows: one for each victim, with the strongest attack on it, and the attacks that it ``met``.
        reference: the victim from which losses are counted.
    """

    def note(row: Row) -> str:
        return USELESS if is_useless(row) else WEAKER_ATTACKS if met_weaker_attacks(row, reference) else ""

    groups = ("", WEAKER_ATTACKS, USELESS)
    noted = [{**row, "small": note(row), "rank": None, "last_rank": None} for row in rows]
    noted.sort(key=lambda row: (groups.index(row["small"]), most_private(row)))
    kept = [row for row in noted if not row["small"]]
    return [{**row, **({} if row["small"] else _rank(row, kept))} for row in noted]


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
