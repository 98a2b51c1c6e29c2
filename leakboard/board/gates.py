"""Check the limits that a team sets for a leaderboard: ``--at-most attack_score=0.6 --at-least task_accuracy=0.7``.

A limit on ``attack_score`` does not apply to audits: their score is an epsilon, which has a column of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from leakboard.board.doubts import hides_score, with_doubts
from leakboard.board.leaderboard import join_warnings
from leakboard.board.schema import Row, columns
from leakboard.errors import RequestError, nearest
from leakboard.pipeline.records import Record
from leakboard.suite.names import Names
from leakboard.threats.threat import known_threats, threat_named


@dataclass(frozen=True)
class Limit:
    """A limit on a column of every row that has it; the limit itself is allowed."""

    column: str
    side: Literal["at most", "at least"]
    bound: float

    def is_broken(self, value: float) -> bool:
        """Return whether a value is beyond the limit."""
        return value > self.bound if self.side == "at most" else value < self.bound


def read_limits(at_most: Sequence[str], at_least: Sequence[str]) -> list[Limit]:
    """Return limits written as ``column=number``.

    Raises:
        RequestError: an unknown column, or no number.
    """
    written: list[tuple[Literal["at most", "at least"], str]] = [("at most", text) for text in at_most]
    written += [("at least", text) for text in at_least]
    return [_limit(side, text) for side, text in written]


def _limit(side: Literal["at most", "at least"], text: str) -> Limit:
    column, equals, number = text.partition("=")
    option = f"--{side.replace(' ', '-')} {text}"
    if column not in (limited := list(_gates())):
        allowed = f"COLUMN=NUMBER, with a column of {', '.join(limited)}{nearest(column, limited)}"
        raise RequestError(f"{option}: allowed is {allowed}")
    if not equals:
        raise RequestError(f"{option}: allowed is COLUMN=NUMBER, as in {column}=0.1")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise RequestError(f"{option}: {number!r} is not a finite number")
    if _is_share(column) and not 0 <= bound <= 1:
        raise RequestError(f"{option}: {column} is a share; allowed: 0 to 1")
    return Limit(column, side, bound)


def _is_share(name: str) -> bool:
    """Return whether a column holds a share, or an end of a share's interval."""
    known = {column.name: column for column in columns("leaderboard.csv", known_threats())}
    shares = {column.metric or column.name for column in known.values() if column.kind in ("interval", "score", "gap")}
    return (known[name].metric or name) in shares


def failures(
    records: Sequence[Record],
    rows: Sequence[Row],
    names: Names,
    limits: Sequence[Limit],
    unlimited: Collection[str] = (),
) -> list[str]:
    """Return why a run fails its limits: first own vectors that seem not to belong to their rows, then broken limits.

    Without limits nothing fails.

    Args:
        records: of the run.
        rows: of its leaderboard.
        names: of its datasets and victims.
        limits: to check.
        unlimited: names of victims that no limit is for.
    """
    if not limits:
        return []
    unmatched = [
        f"{names.name('dataset', dataset)} / {names.name('victim', victim)}: {warning}"
        for (dataset, victim), warning in join_warnings(records, rows).items()
    ]
    named = [names.row(row) for row in with_doubts(rows)]
    return [*unmatched, *broken_limits([row for row in named if row["victim"] not in unlimited], limits)]


def broken_limits(rows: Sequence[Row], limits: Sequence[Limit]) -> list[str]:
    """Return a line for every row of a leaderboard that breaks a limit, and for every limit without a row."""
    lines = []
    for limit in limits:
        values = _values(rows, limit.column)
        if not values:
            lines.append(f"{limit.column} {limit.side} {limit.bound:g}: no row has this column")
        for subject, measured in values.items():
            if any(math.isnan(value) for value in measured):
                lines.append(f"{subject}: {limit.column} cannot be told, {limit.side} {limit.bound:g} was asked")
            elif limit.is_broken(worst := max(measured) if limit.side == "at most" else min(measured)):
                lines.append(f"{subject}: {limit.column} is {worst:.4f}, {limit.side} {limit.bound:g} was asked")
    return lines


def _gates() -> dict[str, str]:
    """Return the columns of ``leaderboard.csv`` that may have a limit: of an attack, a victim, or one release."""
    return {column.name: column.gate for column in columns("leaderboard.csv", known_threats()) if column.gate}


def _values(rows: Sequence[Row], column: str) -> dict[str, list[float]]:
    """Return the values of a column by the victim, or the attack and secret, that they are about."""
    gate = _gates()[column]
    about = ("dataset", "victim", "attack", "secret") if gate == "attack" else ("dataset", "victim")
    stated = [row for row in rows if row.get(column) is not None and (gate == "attack" or not row.get("secret"))]
    if gate == "attack":
        stated = [row for row in stated if not threat_named(row.get("threat", "")).bounds_epsilon]
    values: dict[str, list[float]] = {}
    for row in stated:
        releases = row.get("observations") or 1 if gate == "release" else 1
        value = math.nan if hides_score(row, column) else row[column] / releases
        values.setdefault(" / ".join(row[part] for part in about if row.get(part)), []).append(value)
    return values
