"""Give rows of a leaderboard the remarks that their sentences make: too small a test, or a gain that may be chance."""

from __future__ import annotations

from collections.abc import Sequence

from leakboard.board.schema import Row
from leakboard.board.strongest import COMPETE_WITHIN, headlines
from leakboard.board.summary import rows_of_secrets
from leakboard.threats.sentence_parts import is_number
from leakboard.threats.threat import threat_named

SCORES = ("attack_score", "attack_advantage", "empirical_privacy")
"""Columns with the score of an attack, besides the column that is called like the headline of its threat."""


def hides_score(row: Row, column: str) -> bool:
    """Return whether a column has a score of a row that `with_doubts` marked, so that its value tells nothing."""
    return bool(row.get("is_too_few")) and column in (*SCORES, threat_named(row["threat"]).headline)


def with_doubts(rows: Sequence[Row]) -> list[Row]:
    """Return rows whose ``status`` says why their sentence claims no finding.

    ``is_too_few`` marks rows from too small a test: no table shows their scores, and they keep no limit. A mean over
    secrets with rows of their own is left as it is, since no sentence is about it. A row counts as many attacks as the
    sentence about the strongest attack on its secret.
    """
    of_secrets = rows_of_secrets([row for row in rows if is_number(row.get("attack_score"))])
    strongest = {_subject(row): row for row in headlines(of_secrets)}
    has_sentence = {id(row) for row in of_secrets}
    return [_doubted(row, strongest[_subject(row)]) if id(row) in has_sentence else row for row in rows]


def _subject(row: Row) -> tuple[str, ...]:
    return tuple(str(row.get(name) or "") for name in COMPETE_WITHIN)


def _doubted(row: Row, strongest: Row) -> Row:
    chosen = {name: strongest[name] for name in ("attacks", "chosen_on")}
    doubt = threat_named(row["threat"]).doubt({**row, **chosen})
    if not doubt.why:
        return row
    known = row.get("status") or "ok"
    return {**row, "is_too_few": doubt.is_too_few, "status": doubt.why if known == "ok" else f"{known}; {doubt.why}"}
