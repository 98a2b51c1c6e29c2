"""Draw a leaderboard: privacy against utility, one point a victim; and the trade-off of errors that a claim allows.

Names come from suites and plugins of strangers: Plotly reads some HTML in texts, so every name is escaped.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leakboard.board.schema import Row, columns
from leakboard.board.strongest import headlines

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure

COLOURS = ("#2f7fb8", "#c2681a", "#3a9a62", "#a454a8", "#b8433f", "#7d7a2f", "#5d6b7c")
"""Readable on white and on black: 3 : 1 and more against both."""
HOVER = "%{hovertext}<br>%{x:.3f}, %{y:.3f}<extra></extra>"
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "hexagon")


def privacy_utility(table: DataFrame, x: str = "task_accuracy", y: str = "empirical_privacy") -> Figure:
    """Return the scatter of two columns of a leaderboard, higher is better in both, with its Pareto front.

    Each victim is drawn with its strongest attack on the same secrets: by ``attack_score_dev`` if the table has it,
    else the row with the least ``y``. Victims of each dataset and secrets have their own colour and front. The bars are
    the intervals ``..._low`` and ``..._high`` if the table has them, else ``..._sd``.

    Args:
        table: rows of a leaderboard, with columns ``victim``, ``x`` and ``y``. Optional columns are ``dataset``,
            ``secrets``, ``attack``, and ``link``, the custom data of a point. Rows without a number in ``x`` or ``y``
            are left out.
        x: column of the horizontal axis.
        y: column of the vertical axis.
    """
    import plotly.graph_objects as go

    records: list[Row] = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    rows = [row for row in records if finite(row.get(x)) and finite(row.get(y))]
    figure = go.Figure(layout=layout(_axis(x), _axis(y)))
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in headlines(rows, lambda row: -row[y]):
        groups.setdefault((str(row.get("dataset", "")), str(row.get("secrets", ""))), []).append(row)
    for i, (group, members) in enumerate(groups.items()):
        colour, name = COLOURS[i % len(COLOURS)], escape(", ".join(filter(None, group)) or "victims")
        front = pareto_front(members, x, y)
        figure.add_scatter(
            x=[row[x] for row in front],
            y=[row[y] for row in front],
            mode="lines",
            line={"color": colour, "dash": "dot", "shape": "vh"},
            name=f"Pareto front of {name}" if len(groups) > 1 else "Pareto front: nothing is better in both",
            hoverinfo="skip",
        )
        figure.add_scatter(
            x=[row[x] for row in members],
            y=[row[y] for row in members],
            error_x=_bars(members, x, colour),
            error_y=_bars(members, y, colour),
            mode="markers",
            marker={"color": colour, "symbol": SYMBOLS[i % len(SYMBOLS)], "size": 10},
            name=name if len(groups) > 1 else "a victim, with 95 % intervals",
            hovertext=[_hover(row) for row in members],
            customdata=[row.get("link", "") for row in members],
            hovertemplate=HOVER,
        )
    return figure


def pareto_front(rows: Sequence[Row], x: str, y: str) -> list[Row]:
    """Return the Pareto front, ordered by ``x``: rows that no row beats in one column without losing in the other."""
    front: list[Row] = []
    for row in sorted(rows, key=lambda row: (-row[x], -row[y])):
        if not front or row[y] > front[-1][y]:
            front.append(row)
    return front[::-1]


def layout(x: str, y: str) -> dict[str, Any]:
    """Return the layout of all charts: no background, room for titles, and a horizontal legend."""
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 14},
        "margin": {"l": 10, "r": 16, "t": 24, "b": 10},
        "xaxis": {"title": {"text": escape(x)}, "automargin": True, "zeroline": False},
        "yaxis": {"title": {"text": escape(y)}, "automargin": True, "zeroline": False},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "hovermode": "closest",
    }


def escape(text: object) -> str:
    """Return a name escaped, so that Plotly shows it unchanged."""
    return html.escape(str(text), quote=False)


def finite(value: Any) -> bool:
    """Return whether a cell of a table is a number that can be drawn."""
    return isinstance(value, int | float) and math.isfinite(value)


def _hover(row: Row) -> str:
    attack = row.get("attack")
    return f"<b>{escape(row['victim'])}</b>" + (f"<br>strongest attack: {escape(attack)}" if attack else "")


def _bars(rows: Sequence[Row], column: str, colour: str) -> dict[str, Any]:
    """Return the error bars of a column; a row without interval and deviation has none."""
    up, down = [], []
    for row in rows:
        low, high, spread = (row.get(f"{column}_{end}") for end in ("low", "high", "sd"))
        known = finite(low) and finite(high)
        up.append(high - row[column] if known else spread if finite(spread) else 0)
        down.append(row[column] - low if known else spread if finite(spread) else 0)
    return {"type": "data", "array": up, "arrayminus": down, "color": colour, "thickness": 1, "width": 3}


def _axis(column: str) -> str:
    """Return the title of an axis; a column that the schema does not know has its own name."""
    known = {entry.name: entry for entry in columns("leaderboard.csv")}
    if column not in known or not known[column].better:
        return column
    return f"{column.replace('_', ' ')} ({known[column].better})"


def least_false_negatives(epsilon: float, delta: float, false_positives: np.ndarray) -> np.ndarray:
    """Return the least false negative rate that a claim allows for each false positive rate, float64 (n,).

    A test takes a release for one of the first input. For an (epsilon, delta)-private mechanism its false negative rate
    is at least max(0, 1 - delta - e**epsilon a, e**-epsilon (1 - delta - a)), with a its false positive rate (Wasserman
    and Zhou 2010; Kairouz, Oh and Viswanath 2015, theorem 2.1). `approximate_curve` of audits in one run is 1 minus it.
    """
    rates = np.asarray(false_positives, np.float64)
    above = 1 - delta - np.exp(min(epsilon, 700.0)) * rates
    below = np.exp(-epsilon) * (1 - delta - rates)
    return np.maximum(0.0, np.maximum(above, below))


def trade_off(
    claim: tuple[float, float] | None,
    events: Sequence[tuple[float, float, str]],
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]] = (),
) -> Figure:
    """Return the curve of the errors that a claim allows, and the rates of tests.

    A test whose true rates lie below the curve refutes the claim. The shares that an audit counted estimate these
    rates, and may lie below the curve by chance; only the audit's bound says whether the claim is refuted.

    Args:
        claim: epsilon and delta; None or an infinite epsilon draws no curve.
        events: the counted shares of false positives and of false negatives of each test, with what it is.
        curves: proved upper bounds on the mechanism's trade-off curve: name, false positive rates, false negative
            rates.
    """
    import plotly.graph_objects as go

    figure = go.Figure(layout=layout("false positive rate", "false negative rate"))
    grey = {"color": "#808080", "dash": "dot"}
    figure.add_scatter(x=[0, 1], y=[1, 0], name="no information", mode="lines", line=grey, hoverinfo="skip")
    if claim is not None and math.isfinite(claim[0]):
        rates = np.concatenate([[0.0], np.logspace(-5, 0, 200)])
        figure.add_scatter(
            x=rates.tolist(),
            y=least_false_negatives(*claim, rates).tolist(),
            mode="lines",
            line={"color": COLOURS[2]},
            name=f"least that the claimed epsilon {claim[0]:.4g} allows",
            hoverinfo="skip",
        )
    for i, (name, false_positives, false_negatives) in enumerate(curves):
        figure.add_scatter(
            x=list(false_positives),
            y=list(false_negatives),
            mode="lines",
            line={"color": COLOURS[4]},
            name="upper bound on the mechanism's curve",
            legendgroup="curves",
            showlegend=i == 0,
            text=[escape(name)] * len(false_positives),
            hoverinfo="text",
        )
    x, y, texts = zip(*events, strict=True) if events else ((), (), ())
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        text=[escape(text) for text in texts],
        marker={"color": COLOURS[4], "symbol": "diamond", "size": 11},
        name="shares that audits counted",
        hovertemplate="%{text}<br>false positives %{x:.4f}, false negatives %{y:.4f}<extra></extra>",
    )
    figure.update_xaxes(range=[-0.02, 1.02])
    figure.update_yaxes(range=[-0.02, 1.04])
    return figure
