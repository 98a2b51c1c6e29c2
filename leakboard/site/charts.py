"""Draw the charts of the pages from published records, as Plotly figures in plain JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from leakboard.board import figures
from leakboard.board.curves import LENGTH, length_families, line_style, option_curves, option_families, ticks
from leakboard.board.figures import COLOURS, HOVER, escape, finite, layout, privacy_utility
from leakboard.board.schema import Row
from leakboard.metrics.audits import DELTA, DISTANCE, FALSE_POSITIVES, TRADE_OFF, TRUE_POSITIVES
from leakboard.pipeline.records import Record
from leakboard.site.choices import keeps_most
from leakboard.site.content import Board
from leakboard.site.ranks import USELESS, WEAKER_ATTACKS, is_useless
from leakboard.site.utility import TASK, Utility
from leakboard.site.views import View
from leakboard.suite.labels import number, without
from leakboard.suite.names import natural

Figure = dict[str, Any]

CURVES = (
    ("epsilon", "empirical_privacy", "Privacy against epsilon", "empirical privacy (higher is better)"),
    ("epsilon", "task_accuracy", "Task accuracy against epsilon", "task accuracy (higher is better)"),
    (
        "mu",
        "empirical_privacy",
        "Privacy against the share of words dropped, mu",
        "empirical privacy (higher is better)",
    ),
    ("mu", "task_accuracy", "Task accuracy against the share of words dropped, mu", "task accuracy (higher is better)"),
    ("published_step", "map_word", "MAP-Word against the training step", "MAP-Word (higher is better)"),
    ("published_step", "map_char", "MAP-Char against the training step", "MAP-Char (random vectors have much)"),
)
"""Option, column, title and axis of the curves that papers show.

Lyu et al. (2020), figure 3, tables 2 and 3; Vu et al. (2019), figure 3.
"""
CONSTANT = {"line_dash": "dot", "line_color": "#808080", "layer": "below"}
"""How the line of a constant guess is drawn: below the names of points."""
NAMED = {"textposition": "top center", "textfont": {"size": 12}}
"""How points have their names."""


def scatter(view: View) -> Figure | None:
    """Return privacy against utility of a board's table, with named points; None if fewer than two victims have both.

    Victims that are useless for the task are grey, and victims that met weaker attacks only are hollow. Neither is on
    the Pareto front. The page's script places the names; rings and the first points of the figure keep theirs.
    """
    import pandas as pd

    if len(view.drawn) < 2:
        return None
    axes = (view.utility.column, "empirical_privacy")
    names = ["victim", "attack", *(f"{name}{end}" for name in axes for end in ("", "_low", "_high", "_sd"))]
    choice = keeps_most(view)
    named_first = [row for row in (choice.best if choice else None, view.reference, *view.front) if row]
    order = {row["slug"]: i for i, row in enumerate(reversed(named_first))}
    comparable = sorted(view.comparable, key=lambda row: -order.get(row["slug"], -1))
    rows = [{name: row.get(name) for name in names} | {"link": row["slug"]} for row in comparable]
    figure = privacy_utility(pd.DataFrame(rows, columns=[*names, "link"]).astype(object), view.utility.column)
    rings = [(view.reference, "no defence", 22, COLOURS[4])] if view.reference and view.undefended else []
    if choice and choice.is_kept:
        name = f"most privacy at a loss of at most {view.utility.loss:g} points"
        rings.append((choice.best, name, 18, COLOURS[2]))
    ringed = {row["slug"] for row, *_ in rings}
    for trace in figure.select_traces({"mode": "markers"}):
        names = ["" if row["link"] in ringed else _name(str(row["victim"])) for row in rows]
        trace.update(mode="markers+text", text=names, **NAMED)
    hollow = {"symbol": "circle-open", "size": 10, "color": COLOURS[0], "line": {"width": 2}}
    _apart(figure, view.left_out, axes, WEAKER_ATTACKS, hollow)
    grey = {"color": "#808080", "symbol": "x-thin", "size": 9, "line": {"width": 2, "color": "#808080"}}
    useless = [row for row in view.drawn if is_useless(row)]
    _apart(figure, useless, axes, USELESS, grey)
    if view.utility is TASK and len(constants := {row["task_majority"] for row in useless}) == 1:
        figure.add_vline(x=constants.pop(), annotation_text="constant guess", **CONSTANT)
    for row, name, size, colour in rings:
        _ring(figure, row, view.utility, name, size, colour)
    return plain(figure)


def _name(victim: str) -> str:
    """Return the name of a point, in two lines if it has options or a remark."""
    for mark in (" (", ", "):
        head, found, rest = victim.partition(mark)
        if found:
            return f"{escape(head)}<br>{escape(found.strip(', ') + rest)}"
    return escape(victim)


def _apart(figure: Any, rows: Sequence[Row], axes: tuple[str, str], name: str, marker: dict[str, Any]) -> None:
    """Draw victims that are never chosen, with the reason."""
    if not rows:
        return
    figure.add_scatter(
        x=[row[axes[0]] for row in rows],
        y=[row[axes[1]] for row in rows],
        name=name,
        mode="markers+text",
        text=[_name(row["victim"]) for row in rows],
        hovertext=[f"<b>{escape(row['victim'])}</b><br>{name}" for row in rows],
        customdata=[row["slug"] for row in rows],
        hovertemplate=HOVER,
        marker=marker,
        **NAMED,
    )


def _ring(figure: Any, row: Row, utility: Utility, name: str, size: int, colour: str) -> None:
    """Draw a ring around a victim's point, with a name in the legend; the victim's name is outside the ring."""
    figure.add_scatter(
        x=[row[utility.column]],
        y=[row["empirical_privacy"]],
        name=escape(name),
        mode="markers+text",
        text=[_name(row["victim"])],
        marker={"symbol": "circle-open", "size": size, "color": colour, "line": {"width": 3}},
        hoverinfo="skip",
        **NAMED,
    )


def curves(view: View) -> list[tuple[str, Figure]]:
    """Return titles and charts of accuracy and privacy against the options that a board varies."""
    charts = []
    seen: dict[str, int] = {}
    constants = {row["task_majority"] for row in view.rows}
    for option, column, title, axis in CURVES:
        families = option_families(view.rows, option, column)
        figure = option_curves(families, option, axis, seen)
        if families and view.reference and view.undefended and column in view.reference:
            level, word = view.reference[column], f"no defence: {escape(view.reference['victim'])}"
            figure.add_hline(y=level, line_dash="dash", annotation_text=word, line_color="#808080", layer="below")
        if column == "task_accuracy" and len(constants) == 1 and None not in constants:
            figure.add_hline(y=next(iter(constants)), annotation_text="constant guess", **CONSTANT)
        if families:
            charts.append((title, plain(figure)))
    return charts


def lengths(views: Sequence[View]) -> list[tuple[str, Figure]]:
    """Return, for each threat, title and chart of what attackers gain against the length of the texts.

    The titles of several threats name them.
    """
    drawn = {}
    for threat in dict.fromkeys(view.threat for view in views):
        rows = [row for view in views if view.threat is threat for row in view.rows]
        if families := length_families(rows, "attack_advantage"):
            name = threat.title.partition(":")[0] or threat.name
            drawn[name] = plain(option_curves(families, LENGTH, "attack advantage"))
    title = "Advantage of the strongest attack against the length of texts"
    return [(f"{title} ({name})" if len(drawn) > 1 else title, figure) for name, figure in drawn.items()]


def plug_in_losses(board: Board) -> list[tuple[str, Figure]]:
    """Return the estimated privacy loss against epsilon: a chart for each mechanism, with a line for each dataset.

    This is figure 1 of Habernal (2022). Infinite estimates (one kind of error never occurred) cannot be drawn.
    """
    import plotly.graph_objects as go

    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for record in board.records:
        metric, epsilon = record.value("plug_in_loss"), number(board.label("victim", record.victim), "epsilon")
        if metric and epsilon is not None and finite(metric.value) and metric.value and metric.value > 0:
            panel = panels.setdefault(without(record.victim, "epsilon"), {})
            panel.setdefault(record.dataset, []).append((epsilon, metric.value))
    datasets = sorted(
        {name for panel in panels.values() for name in panel},
        key=lambda name: (number(board.label("dataset", name), "dimension") or 1, natural(name)),
    )
    charts = []
    for title, panel in panels.items():
        figure = go.Figure(layout=layout("claimed epsilon", "estimated loss"))
        claims = sorted({epsilon for line in panel.values() for epsilon, _ in line})
        figure.add_scatter(
            x=claims, y=claims, name="as claimed", mode="lines", line={"color": "#808080", "dash": "dash"}
        )
        for i, name in enumerate(datasets):
            if name in panel:
                x, y = zip(*sorted(panel[name]), strict=True)
                figure.add_scatter(x=x, y=y, name=escape(name), **line_style(i))
        figure.update_xaxes(type="log", **ticks(claims))
        figure.update_yaxes(type="log", dtick=1)
        figure.update_layout(showlegend=False)
        charts.append((title, plain(figure)))
    return charts


def projections(board: Board) -> list[tuple[str, Figure]]:
    """Return the projected test texts of each victim, coloured by a secret (Lyu et al. 2020, figure 4)."""
    import plotly.graph_objects as go

    colours: dict[str, str] = {}
    several = len({dataset for dataset, _ in board.projections}) > 1
    charts = []
    for (dataset, victim), rows in board.projections.items():
        figure = go.Figure(layout=layout("", ""))
        for value in sorted({row["value"] for row in rows}, key=natural):
            x, y = zip(*((row["x"], row["y"]) for row in rows if row["value"] == value), strict=True)
            name = f"{rows[0]['secret']}: {value}"
            colour = colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
            marker = {"color": colour, "size": 5}
            figure.add_scatter(x=x, y=y, name=escape(name), mode="markers", marker=marker, hoverinfo="name")
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False, scaleanchor="x")
        figure.update_layout(showlegend=False)
        charts.append((f"{victim} on {dataset}" if several else victim, plain(figure)))
    return charts


def key(charts: Sequence[tuple[str, Figure]]) -> dict[str, str]:
    """Return the colours of several charts by name, for one common legend."""
    return {
        part["name"]: part.get("line", part.get("marker"))["color"] for _, chart in charts for part in chart["data"]
    }


def trade_off(records: Sequence[Record], claimed: float | None) -> Figure | None:
    """Return the errors that audits of one release reached, with the errors that the claim allows.

    Audits by calls of a mechanism have guesses and no such rates; they are not drawn.
    """
    events, curves = [], []
    for record in records:
        name = f"{record.attack}, seed {record.seed}"
        hits, misses = record.value(TRUE_POSITIVES), record.value(FALSE_POSITIVES)
        if hits and misses and hits.n and misses.n:
            rates = (misses.value or 0) / misses.n, 1 - (hits.value or 0) / hits.n
            events.append((*rates, f"{name}: {record.details}"))
        corners = [(m.variable.removeprefix("fpr="), m.value) for m in record.metrics if m.name == TRADE_OFF]
        if corners:
            curves.append((name, [float(alarms) for alarms, _ in corners], [missed or 0.0 for _, missed in corners]))
    if not events:
        return None
    distances = {m.value for r in records if (m := r.value(DISTANCE))} or {1.0}
    # audits at several distances have several limits
    allowed = claimed * (distances.pop() or 0) if claimed is not None and len(distances) == 1 else None
    delta = next((m.value for r in records if (m := r.value(DELTA))), 0.0) or 0.0
    return plain(figures.trade_off(None if allowed is None else (allowed, delta), events, curves))


def plain(figure: Any) -> Figure:
    """Return a figure as data and layout in plain JSON; NaN becomes null."""
    content: Figure = json.loads(figure.to_json())
    content["layout"].pop("template", None)
    return content
