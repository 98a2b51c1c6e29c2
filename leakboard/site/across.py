"""Compare boards: what they say of the same victims, and of defences of one encoder on the same texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from leakboard.board.schema import Row
from leakboard.site.choices import keeps_most
from leakboard.site.claim_notes import NOT_REFUTED
from leakboard.site.ranks import most_private, ranked
from leakboard.site.views import VERDICTS, View, compared_with, encoder_of, reference_of
from leakboard.suite.labels import parse

Views = Mapping[str, Sequence[View]]
"""The tables of each board, by its name."""


def joined(boards: Views, like: View, encoder: str) -> View:
    """Return one table of an encoder and of the defences that are built on it, from all boards.

    A victim of several boards is in the table once. Its ``slug`` is the path of its page below the root of the site.
    Left out are victims with an option that several attacks did not meet (``mu``).

    Args:
        boards: the first that has a victim gives its row.
        like: a table with the dataset, the threat, the secrets, the known pairs and the utility.
        encoder: the name of its plugin.
    """
    rows: dict[str, Row] = {}
    for board, views in boards.items():
        for view in views:
            if _subject(view) == _subject(like):
                for row in view.rows:
                    if _is_of(row["victim_options"], encoder):
                        page = f"boards/{board}/{row['slug']}.html"
                        rows.setdefault(row["victim_options"], {**row, "slug": page, "board": board})
    ordered = sorted(rows.values(), key=most_private)
    reference, undefended = reference_of(ordered, like.utility)
    return replace(
        like, rows=ranked(ordered, compared_with(like.threat, reference)), reference=reference, undefended=undefended
    )


def _subject(view: View) -> tuple[object, ...]:
    dataset = view.rows[0]["dataset_options"]
    return dataset, view.threat.name, sorted(view.secrets.split("; ")), view.pairs, view.utility


def _is_of(label: str, encoder: str) -> bool:
    plugin, options = parse(label)
    return "mu" not in options and encoder in (plugin, parse(options.get("encoder", ""))[0])


def chosen_elsewhere(view: View, boards: Views) -> Row | None:
    """Return the defence of the same encoder that keeps most privacy, if it is on another board; else None."""
    if keeps_most(view) is None or view.reference is None:
        return None
    choice = keeps_most(joined(boards, view, parse(encoder_of(view.reference))[0]))
    known = {row["victim_options"] for row in view.rows}
    return None if choice is None or not choice.is_kept or choice.best["victim_options"] in known else choice.best


def judged(boards: Views) -> dict[str, list[View]]:
    """Return the tables of boards, where each claim has the worst verdict of all boards, and where it was reached."""
    worst: dict[tuple[object, ...], tuple[str, str]] = {}
    for board, views in boards.items():
        for row in (row for view in views for row in view.rows if row["verdict"]):
            claim = _claim(row)
            if claim not in worst or VERDICTS.index(row["verdict"]) < VERDICTS.index(worst[claim][0]):
                worst[claim] = row["verdict"], board
    return {board: [_judged(view, board, worst) for view in views] for board, views in boards.items()}


def _claim(row: Row) -> tuple[object, ...]:
    """Return what a claim is about: claims about training data depend on the data."""
    numbers = (None if row[name] is None else round(row[name], 9) for name in ("epsilon_claimed", "delta"))
    return row["victim_options"], row["privacy_unit"], *numbers


def _judged(view: View, board: str, worst: Mapping[tuple[object, ...], tuple[str, str]]) -> View:
    if not any(row["verdict"] for row in view.rows):
        return view
    rows = []
    for row in view.rows:
        verdict, where = worst.get(_claim(row), ("", board))
        is_elsewhere = verdict != row["verdict"] and where != board
        here = NOT_REFUTED if row["verdict"] == "unproven" else "" if row["verdict"] else "no claim"
        small = f"on the board {where}" if is_elsewhere else here
        rows.append({**row, "verdict": verdict if is_elsewhere else row["verdict"], "verdict_small": small})
    slug = view.reference["slug"] if view.reference else None
    return replace(view, rows=rows, reference=next((row for row in rows if row["slug"] == slug), None))
