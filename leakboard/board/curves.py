"""Draw a column of a leaderboard against a numeric option, such as epsilon: a line for each family of victims.

A family is victims that differ only in this option, or a victim on datasets that differ only in the length of texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leakboard.board.figures import COLOURS, SYMBOLS, escape, finite, layout
from leakboard.board.schema import Row
from leakboard.suite.labels import number, without

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LENGTH = "words of each text"
"""Title of the axis of `length_families`."""
LOGARITHMIC = ("epsilon", "published_step", LENGTH)
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
            label = without(row["victim_options"], option)
            names.setdefault(label, without(row["victim"], option))
            families.setdefault(label, []).append((x, y, *_ends(row, column), row.get("slug", "")))
    kept = {label: points for label, points in families.items() if len({point[0] for point in points}) >= MIN_POINTS}
    called = [names[label] for label in kept]
    return {label if called.count(names[label]) > 1 else names[label]: sorted(points) for label, points in kept.items()}


def length_families(rows: Sequence[Row], column: str) -> Families:
    """Return the points of victims on datasets that differ only in the length of their texts, by the victim's name.

    Args:
        rows: of a leaderboard, one for each dataset and victim.
        column: of the rows.
    """
    families: dict[tuple[str, str, str], dict[float, tuple[Any, ...]]] = {}
    for row in rows:
        words, value = number(row["dataset_options"], "words"), row[column]
        if words is not None and finite(value):
            label = row["victim"], row["secrets"], without(row["dataset_options"], "words")
            families.setdefault(label, {})[words] = (words, value, *_ends(row, column), row.get("slug", ""))
    kept = {label: sorted(points.values()) for label, points in families.items() if len(points) >= MIN_POINTS}
    victims = [victim for victim, *_ in kept]
    return {
        victim if victims.count(victim) == 1 else f"{victim}, {secrets}, {dataset}": points
        for (victim, secrets, dataset), points in kept.items()
    }


def _ends(row: Row, column: str) -> tuple[float, float]:
    """Return the distances from a value to the ends of its interval; 0 without an interval."""
    value, low, high = row[column], row.get(f"{column}_low"), row.get(f"{column}_high")
    return (value - low, high - value) if finite(low) and finite(high) else (0.0, 0.0)


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
    """Return colour, symbol and dashes of the i-th line; each colour is used twice, then all repeat."""
    colour, again = COLOURS[i % len(COLOURS)], i // len(COLOURS) % 2
    return {
        "mode": "lines+markers",
        "line": {"color": colour, "dash": "dot" if again else "solid"},
        "marker": {"color": colour, "symbol": SYMBOLS[i % len(SYMBOLS)] + "-open" * again, "size": 8},
    }
