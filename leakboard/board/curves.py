"""Draw a column of a leaderboard against a numeric option, such as epsilon: a line for each family of victims.

A family is victims that differ only in this option.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leakboard.board.figures import COLOURS, SYMBOLS, escape, finite, layout
from leakboard.board.schema import Row
from leakboard.suite.labels import number, without

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LOGARITHMIC = ("epsilon", "published_step")
MIN_POINTS = 3
"""Fewest values of an option that make a curve."""

Families = Mapping[str, Sequence[tuple[Any, ...]]]
"""By name, the points of a line: option, value, distances to the lower and upper end of the interval, link."""


def option_families(rows: Sequence[Row], option: str, column: str) -> Families:
    """Return the points of victims that differ only in one option, by their common name without it.

    Args:
        rows: of a leaderboard, one for each victim.
        option: a numeric option of the victims.
        column: of the rows.
    """
    families: dict[str, list[Any]] = {}
    names: dict[str, str] = {}
    for row in rows:
        x, y = number(row["victim_options"], option), row[column]
        if x is None and option == "published_step":
            x = number(row["victim_options"], "steps") or None  # what is published is then the last one
        if x is not None and finite(y):
            low, high = row.get(f"{column}_low"), row.get(f"{column}_high")
            ends = (y - low, high - y) if finite(low) and finite(high) else (0, 0)
            label = without(row["victim_options"], option)
            names.setdefault(label, without(row["victim"], option))
            families.setdefault(label, []).append((x, y, *ends, row.get("slug", "")))
    kept = {label: points for label, points in families.items() if len({point[0] for point in points}) >= MIN_POINTS}
    called = [names[label] for label in kept]
    return {label if called.count(names[label]) > 1 else names[label]: sorted(points) for label, points in kept.items()}


def option_curves(families: Families, option: str, axis: str, styles: dict[str, int] | None = None) -> Figure:
    """Return the chart of `option_families`.

    Args:
        families: the lines.
        option: title of the horizontal axis.
        axis: title of the vertical axis.
        styles: style numbers by name; names without one are added.
    """
    import plotly.graph_objects as go

    styles = {} if styles is None else styles
    figure = go.Figure(layout=layout(option, axis))
    for name, points in families.items():
        x, y, low, high, links = zip(*points, strict=True)
        bars = {"type": "data", "array": high, "arrayminus": low, "thickness": 1}
        style = line_style(styles.setdefault(name, len(styles)))
        figure.add_scatter(x=x, y=y, error_y=bars, name=escape(name), customdata=links, **style)
    values = sorted({x for points in families.values() for x, *_ in points})
    figure.update_xaxes(type="log" if option in LOGARITHMIC else "linear", **ticks(values))
    return figure


def ticks(values: Sequence[float]) -> dict[str, Any]:
    """Return ticks at the tried values."""
    return {"tickvals": list(values), "ticktext": [f"{value:g}" for value in values]}


def line_style(i: int) -> dict[str, Any]:
    """Return colour and symbol of the i-th line."""
    colour = COLOURS[i % len(COLOURS)]
    return {
        "mode": "lines+markers",
        "line": {"color": colour},
        "marker": {"color": colour, "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 8},
    }
