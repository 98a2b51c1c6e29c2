"""A board as one Markdown page, the ``README.md`` beside its suite: the same rows and columns as on the site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakboard.board.leaderboard import ON_NEW_TEXTS
from leakboard.site import page_columns as columns
from leakboard.site.content import Board, Row
from leakboard.site.details import measure_rows
from leakboard.site.page_columns import Column, shown
from leakboard.site.rendering import Cell
from leakboard.site.views import LOSS, View, keeps_most, views
from leakboard.store import write_file

UNSEEN = (
    *("cut_texts", "unknown_texts", "privacy_label", "privacy_text_classifier", "privacy_bayes", "plug_in_loss"),
    *("attack_score_dev", *ON_NEW_TEXTS),
)
"""Measures of the texts, those that have a column of their own, and those of attacks, which may happen to agree."""
HEAD = "<!-- Written by `report` and `publish` from records and findings.md: change those. -->"


def write_readme(board: Board, folder: Path) -> list[Path]:
    """Write a board's page as ``README.md``, and return its path; one that somebody wrote by hand is left alone.

    Raises:
        StorageError: the folder cannot be written.
    """
    path = folder / "README.md"
    if path.is_file() and not path.read_text("utf-8").startswith(HEAD):
        return []
    write_file(path, board_markdown(board))
    return [path]


def board_markdown(board: Board) -> str:
    """Return the page of a board: question, answer, what it shows, and a table a dataset and secrets."""
    parts = [HEAD, f"# {board.question}", board.findings.answer]
    parts += [f"`suite.yaml` is the question in full: {board.description}."] if board.description else []
    parts += ["## What it shows", board.findings.details] if board.findings.details else []
    told: list[str | set[str]] = []
    for view in views(board):
        parts += _view(view)
        measures = _measures(board, view)
        lines = set(measures.splitlines())
        if view.dataset not in told and lines not in told:  # another attacker's texts change nothing in them
            parts.append(measures)
        told += [view.dataset, lines]
    parts += ["## What the columns mean", _legend(columns.VICTIMS)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _view(view: View) -> list[str]:
    constant = columns.common(columns.VICTIMS, view.rows)
    same = "; ".join(f"{c.title} {text}" for c in constant if (text := c.cell(view.rows[0]).text))
    kept = [
        column for column in columns.VICTIMS if column not in constant and column.key not in ("seconds", "provenance")
    ]
    return [
        f"## {_escape(view.dataset)}, {_escape(view.title)}",
        _answer(view),
        f"For every victim of this table: {same}." if same else "",
        _table(kept, view.rows),
    ]


def _answer(view: View) -> str:
    choice = keeps_most(view)
    if not choice:
        return ""
    best, limit = choice.best, f"at a loss of at most {LOSS:g} points of task accuracy"
    name, numbers = _escape(best["victim"]), f"{best['privacy']:.3f} at {best['accuracy']:.3f}"
    if choice.no_better:
        return f"No defence keeps measurably more than none {limit}. The highest value is that of {name}: {numbers}."
    return f"At{limit[2:]} {name} keeps most privacy: {numbers}."


def _measures(board: Board, view: View) -> str:
    """Return what was measured of each victim's vectors whatever the attack; nothing where that is nothing."""
    rows: list[Row] = []
    for row in view.rows:
        found = [m for m in measure_rows(board, view.dataset, row["victim"]) if not m["attack"]]
        rows.append({"victim": row["victim"], **{m["metric"]: m["value"] for m in found if m["metric"] not in UNSEEN}})
    names = list(dict.fromkeys(name for row in rows for name in row if name != "victim"))
    if not names:
        return ""
    kept = [Column("victim", "victim", "name"), *(Column(name, name, "number") for name in names)]
    return f"Of the vectors, whatever the attack:\n\n{_table(kept, rows)}"


def _table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    kept = shown(columns, rows)
    head = [f"{column.title} ({column.better})" if column.better else column.title for column in kept]
    lines = [head, ["---:" if column.is_number else "---" for column in kept]]
    lines += [[_cell(column.cell(row)) for column in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    return _escape(f"{cell.text} ({cell.small})" if cell.small else cell.text)


def _legend(columns: Sequence[Column]) -> str:
    return "\n".join(f"- {column.title}: {column.note}." for column in columns if column.note)


def _escape(text: str) -> str:
    """Return a name as Markdown shows it unchanged, also inside a table."""
    for letter in "\\`*_<>|[]":
        text = text.replace(letter, f"\\{letter}")
    return " ".join(text.split())
