"""Compare what several boards show of the same victims, or of defences of the same encoder on the same texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leakboard.board.schema import Row
from leakboard.site.choices import keeps_most
from leakboard.site.content import Board
from leakboard.site.ranks import ranked
from leakboard.site.views import VERDICTS, View, encoder_of, reference_of, views
from leakboard.suite.labels import parse


def joined(boards: Sequence[Board], dataset: str, threat: str, encoder: str) -> View | None:
    """Return one table of an encoder and of the defences that are built on it, from all boards.

    A victim of several boards is in the table once. Its ``slug`` is the path of its page below the root of the site.
    Left out are victims with an option that several attacks did not meet (``mu``). None with fewer than two victims.

    Args:
        boards: the first that has a victim gives its row.
        dataset: its label.
        threat: its name.
        encoder: the name of its plugin.
    """
    rows: dict[str, Row] = {}
    members: list[View] = []
    for board in boards:
        for view in views(board):
            if view.threat.name == threat and view.rows[0]["dataset_options"] == dataset:
                members.append(view)
                for row in view.rows:
                    if _is_of(row["victim_options"], encoder):
                        page = f"boards/{board.name}/{row['slug']}.html"
                        rows.setdefault(row["victim_options"], {**row, "slug": page, "board": board.name})
    if len(rows) < 2:
        return None
    shown, first = ranked(list(rows.values())), members[0]
    return View(first.dataset, first.threat, first.secrets, shown, *reference_of(shown))


def _is_of(label: str, encoder: str) -> bool:
    plugin, options = parse(label)
    return "mu" not in options and encoder in (plugin, parse(options.get("encoder", ""))[0])


def chosen_elsewhere(view: View, boards: Sequence[Board]) -> Row | None:
    """Return the defence of the same encoder that keeps most privacy, if it is on another board; else None."""
    if view.reference is None:
        return None
    encoder = parse(encoder_of(view.reference))[0]
    together = joined(boards, view.reference["dataset_options"], view.threat.name, encoder)
    choice = keeps_most(together) if together else None
    here = {row["victim_options"] for row in view.rows}
    return None if choice is None or choice.no_better or choice.best["victim_options"] in here else choice.best


def judged(view: View, board: Board, boards: Sequence[Board]) -> View:
    """Return a table of a board with the worst verdict on each claim of all boards, and where it was reached."""
    if not any(row["verdict"] for row in view.rows):
        return view
    worst = {row["victim_options"]: (row["verdict"], "") for row in view.rows}
    for other in (one for one in boards if one.name != board.name):
        for row in other.rows:
            label, verdict = row["victim_options"], row.get("verdict")
            if verdict and VERDICTS.index(verdict) < VERDICTS.index(worst.get(label, (VERDICTS[0], ""))[0]):
                worst[label] = verdict, f"on {other.name}"
    rows = []
    for row in view.rows:
        verdict, where = worst[row["victim_options"]]
        rows.append({**row, "verdict": verdict, "verdict_small": where or ("" if verdict else "no claim")})
    reference = next((row for row in rows if view.reference and row["slug"] == view.reference["slug"]), None)
    return replace(view, rows=rows, reference=reference)
