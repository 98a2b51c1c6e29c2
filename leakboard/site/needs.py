"""Say in words what an attacker had: texts, queries, publications of each text, and time."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.schema import Row
from leakboard.board.strongest import observations
from leakboard.site.content import Board
from leakboard.threats.threat import threat_named


def needs(row: Row, seconds: float | None) -> str:
    """Return what the attacker of a leaderboard's row had; rows of version 0.1.0 say that texts were not counted.

    Audits use no texts.

    Args:
        row: of one attack on one victim.
        seconds: that the attack took.
    """
    counts = (
        ("known_pairs", "known pairs"),
        ("own_texts", "own texts"),
        ("queries", "queries"),
    )
    parts = [f"{value:,.0f} {things}" for name, things in counts if (value := row.get(name))]
    if all(row.get(name) is None for name, _ in counts) and not threat_named(row.get("threat", "")).bounds_epsilon:
        parts.append("texts not counted")
    if row.get("queries") == 0:
        parts.append("no queries")
    if (many := observations(row)) > 1:
        parts.append(f"{many} publications of each text")
    if seconds is not None:
        parts.append(duration(seconds))
    return ", ".join(parts)


def needs_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return what an attack had on all victims together, as pairs of a name and a value; unknown things are left out.

    Args:
        rows: of one attack, with the ``seconds`` that it took.
    """
    facts = [("it sees", threat_named(rows[0]["threat"]).sees)]
    for name, title in (("known_pairs", "known pairs"), ("own_texts", "texts of its own"), ("queries", "queries")):
        known = [row[name] for row in rows if row.get(name) is not None]
        facts.append((title, _range([f"{value:,.0f}" for value in (min(known), max(known))]) if known else ""))
    many = max(map(observations, rows))
    facts.append(("publications of each text", str(many) if many > 1 else ""))
    taken = [row["seconds"] for row in rows if row["seconds"] is not None]
    facts.append(("time, one seed", _range([duration(value) for value in (min(taken), max(taken))]) if taken else ""))
    return [(name, value) for name, value in facts if value]


def _range(ends: Sequence[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def duration(seconds: float) -> str:
    """Return a time in the unit that people would use."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"


def attack_seconds(board: Board, row: Row) -> float | None:
    """Return the seconds of an attack, mean over seeds; None if they are unknown."""
    names = ("dataset", "victim", "attack")
    taken = [
        cost["seconds"]
        for cost in board.costs
        if cost["stage"] == "attack" and cost["seconds"] is not None and all(cost[n] == row[n] for n in names)
    ]
    return sum(taken) / len(taken) if taken else None
