"""Put together the front page: one figure that carries the message, and a card with one number for each board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.board.schema import Row, metric_title
from leakboard.site import charts
from leakboard.site.across import Views, joined
from leakboard.site.choices import keeps_most
from leakboard.site.content import Board
from leakboard.site.matrix import matrix
from leakboard.site.needs import needs
from leakboard.site.rendering import decimals
from leakboard.site.views import View

FIGURE_OF = ("ag(duplicates=keep)", "entities", "bert")
"""The dataset, the threat and the encoder of the figure."""
CLAIMS = {"violated": " An audit refutes its claim.", "unproven": " Its claim is not proved."}
"""What is said of a privacy claim, by its verdict."""
LEAST_SHOWN = 0.005
"""A smaller score is shown as 0.00, and is no headline."""
NEARLY_ALL = 0.99
"""Share of linked vectors that a card counts."""


def figure(tables: Views) -> dict[str, Any] | None:
    """Return the figure of the front page and its message; None if no board has its dataset."""
    dataset, threat, encoder = FIGURE_OF
    for view in (view for views in tables.values() for view in views):
        if view.threat.name == threat and view.rows[0]["dataset_options"] == dataset:
            together = joined(tables, view, encoder)
            if len(together.rows) > 1:
                return {"scatter": charts.scatter(together), "message": _message(together), "view": together}
    return None


def _message(view: View) -> str:
    """Return what the figure shows, in one or two sentences."""
    choice = keeps_most(view)
    if choice is None or view.reference is None:
        return ""
    best, limit = choice.best, f"Within {view.utility.loss:g} points of {view.utility.name}"
    most = "" if view.constant is None else f"; guessing without the vectors leaves {decimals(view.constant, 2)}"
    start = (
        f"Privacy is 1 minus the attacker's {' or '.join(view.metrics)}{most}. "
        f"Without a defence it is {decimals(view.reference['empirical_privacy'], 2)}."
    )
    if choice.no_better:
        return f"{start} {limit} no defence keeps measurably more."
    had = f"Its strongest attacker {_had(best)}."
    repeated = f" ({best['repeated']})" if best.get("repeated") else ""
    kept = f"{decimals(best['empirical_privacy'], 2)}{repeated}"
    return f"{start} {limit} {best['victim']} keeps most: {kept}.{CLAIMS.get(best['verdict'], '')} {had}"


def _had(row: Row) -> str:
    """Return what the attacker of a row knew and asked, for readers who know no term."""
    if not (pairs := row.get("known_pairs")):
        return f"had: {needs(row, None)}"
    knew = f"knew {pairs:,.0f} other texts with their vectors and secrets"
    asked = f", and asked the encoder for {queries:,.0f} vectors" if (queries := row.get("queries")) else ""
    return f"{knew}{asked}"


@dataclass(frozen=True)
class Headline:
    """The number of a board's card, and what it is."""

    number: str
    text: str


def headline(board: Board, made: Sequence[View]) -> Headline:
    """Return the one number of a board and its tables.

    Broken mechanisms; or stores whose vectors are linked; or the privacy that is kept at a small loss; or, for other
    threats than secrets of texts, the score of the strongest attack.
    """
    if compared := matrix(made):
        broken = sum(bool(mechanism.violated) for mechanism in compared.published)
        return Headline(f"{broken} of {len(compared.published)}", "mechanisms of papers break their claim")
    if made and made[0].links:
        linked = sum(row["attack_score"] >= NEARLY_ALL for row in made[0].rows)
        known = f"{made[0].dataset}, {made[0].pairs or 0:,} known pairs"
        text = f"stores with at least {100 * NEARLY_ALL:g} % of the vectors linked to their texts ({known})"
        return Headline(f"{linked} of {len(made[0].rows)}", text)
    for view in made:
        if not view.threat.title and (choice := keeps_most(view)):
            kept = view.reference if choice.no_better and view.reference else choice.best
            most = "" if view.constant is None else f" of at most {decimals(view.constant, 2)}"
            loss = f"at a loss of at most {view.utility.loss:g} points of {view.utility.name}"
            if view.reference and view.counted_from:
                loss = f"{loss}, counted from {view.reference['victim']}"
            text = f"privacy kept{most}: {kept['victim']}, {loss}"
            if choice.no_better:
                text = f"privacy kept{most}: {kept['victim']}; no defence here keeps measurably more {loss}"
            text = f"{text} ({view.dataset}).{CLAIMS.get(kept['verdict'], '')}"
            return Headline(decimals(kept["empirical_privacy"], 2), text)
    scored = [(row, view) for view in made if view.is_scored for row in view.rows if row["attack_score"] >= LEAST_SHOWN]
    if not scored:
        return Headline(str(len({row["victim"] for row in board.rows})), "victims")
    row, view = max(scored, key=lambda pair: pair[0]["attack_score"])
    given = f"given away by the strongest attack ({metric_title(row['attack_metric'], [row['threat']])})"
    text = f"{given}: {row['victim']}, {view.short_title} ({view.dataset})"
    return Headline(decimals(row["attack_score"], 2), text)


def doors(documentation: str) -> list[dict[str, str]]:
    """Return the three ways into the site, each with a link; without documentation one names the README instead."""
    added, how = documentation.replace("index.html", "how_to/own_defence.html"), "Add it, and measure it on all boards"
    text = (
        f"{how}." if added else f"{how}: the README of LeakBoard, under 'How to go on', names the pages that show it."
    )
    return [
        {"title": "I have vectors", "href": "#own", "text": "See what they give away, on your own machine."},
        {"title": "I have a defence or an attack", "href": added, "text": text},
        {"title": "Show me the boards", "href": "#boards", "text": "What was attacked, and what held."},
    ]


def cards(boards: Sequence[Board], tables: Views) -> list[dict[str, Any]]:
    """Return a card for each board."""
    return [
        {
            "name": board.name,
            "question": board.question,
            "answer": board.findings.lead,
            "headline": headline(board, tables[board.name]),
        }
        for board in boards
    ]
