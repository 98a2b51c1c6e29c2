"""Compare releases of the same rows: which of them gives away less of each secret."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from leakboard.board.schema import Row
from leakboard.board.strongest import headlines
from leakboard.board.summary import rows_of_secrets
from leakboard.threats.sentence_parts import is_number, secrets_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def compare_releases(rows: Sequence[Row], releases: Sequence[str]) -> list[str]:
    """Return a sentence for each secret and each release but the first, which it is compared with.

    A difference of the advantages of the strongest attacks is stated if their intervals do not overlap, which is
    stricter than a test at the level of 5 %. With several comparisons, the 95 % intervals are widened as those of a
    normal distribution, to share the 5 % (Bonferroni).

    Args:
        rows: of a leaderboard; its victims are the releases.
        releases: their names.
    """
    pairs = [
        (secret, of_secret[releases[0]], of_secret[release])
        for (_, secret), of_secret in _by_secret(rows).items()
        for release in releases[1:]
        if releases[0] in of_secret and release in of_secret
    ]
    level = NormalDist().inv_cdf(1 - 0.025 / max(1, len(pairs)))
    return [_sentence(*pair, level / NormalDist().inv_cdf(0.975)) for pair in pairs]


def draw_releases(rows: Sequence[Row], releases: Sequence[str], column: str) -> Figure:
    """Return a column of the table for each release, one line a secret, with 95 % intervals where they are known."""
    import plotly.graph_objects as go

    from leakboard.board.figures import COLOURS, SYMBOLS, escape, layout

    figure = go.Figure(layout=layout("release", column.replace("_", " ")))
    for i, ((_, secret), of_secret) in enumerate(_by_secret(rows).items()):
        shown = [of_secret[name] for name in releases if name in of_secret and is_number(of_secret[name].get(column))]
        ends = {
            sign: [abs(end - row[column]) if is_number(end := row.get(f"{column}_{sign}")) else 0 for row in shown]
            for sign in ("low", "high")
        }
        figure.add_scatter(
            x=[escape(row["victim"]) for row in shown],
            y=[row[column] for row in shown],
            error_y={"type": "data", "array": ends["high"], "arrayminus": ends["low"]},
            mode="lines+markers",
            marker={"color": COLOURS[i % len(COLOURS)], "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 10},
            name=escape(secret),
        )
    return figure


def _by_secret(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    """Return the row of the strongest attack on each release, by threat and secret."""
    scored = [row for row in rows if is_number(row.get("empirical_privacy"))]
    result: dict[tuple[str, str], dict[str, Row]] = {}
    for row in headlines(rows_of_secrets(scored)):
        result.setdefault((row["threat"], secrets_of(row)), {})[row["victim"]] = row
    return result


def _sentence(secret: str, first: Row, other: Row, widening: float) -> str:
    names = [f"'{row['victim']}'" for row in (first, other)]
    gains = [_gain(row, widening) for row in (first, other)]
    (old, old_low, old_high), (new, new_low, new_high) = gains
    if not all(map(is_number, (old_low, old_high, new_low, new_high))):
        return f"{secret}: {names[1]} is not compared with {names[0]}: an interval is missing"
    shown = [f"{gain:.2f} ({low:.2f} to {high:.2f})" for gain, low, high in gains]
    if new_low <= old_high and old_low <= new_high:
        return (
            f"{secret}: no difference between {' and '.join(names)} is shown: "
            f"an attacker gains {' and '.join(shown)}; the intervals overlap"
        )
    direction = "less" if new < old else "more"
    return f"{secret}: {names[1]} gives away {direction} than {names[0]}: an attacker gains {shown[1]}, not {shown[0]}"


def _gain(row: Row, widening: float) -> tuple[float, float, float]:
    """Return the advantage of the strongest attack, and the ends of its widened 95 % interval, at most 1."""
    known = [row.get(f"attack_advantage{end}") for end in ("", "_low", "_high")]
    gain, low, high = (value if is_number(value) else math.nan for value in known)
    return gain, gain - widening * (gain - low), min(1.0, gain + widening * (high - gain))
