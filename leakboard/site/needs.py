"""Say in words what an attacker had: texts, queries, publications of each text, and time."""

from __future__ import annotations

from leakboard.board.schema import Row
from leakboard.site.content import Board


def needs(row: Row, seconds: float | None) -> str:
    """Return what the attacker of a leaderboard's row had; boards of version 0.1.0 count no texts and no queries.

    Args:
        row: of one attack on one victim.
        seconds: that the attack took.
    """
    counts = (
        ("known_pairs", "known texts"),
        ("own_texts", "own texts"),
        ("queries", "queries"),
    )
    parts = [f"{value:,.0f} {things}" for name, things in counts if (value := row.get(name))]
    if row.get("queries") == 0:
        parts.append("no queries")
    if (observations := row.get("observations") or 1) > 1:
        parts.append(f"{observations:.0f} publications of each text")
    if seconds is not None:
        parts.append(duration(seconds))
    return ", ".join(parts)


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
