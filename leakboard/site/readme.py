"""Write a board as one Markdown page, the ``README.md`` next to its suite, with the rows and columns of the site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leakboard.board.schema import Row, columns, threats_of
from leakboard.column import Column
from leakboard.metrics.entries import METRICS
from leakboard.site.choices import keeps_most
from leakboard.site.content import Board
from leakboard.site.matrix import Matrix, matrix
from leakboard.site.pages import sentence
from leakboard.site.rendering import cell, filled, same_in_all
from leakboard.site.sections import markdown_table, write_sections
from leakboard.site.views import View, measure_rows, views
from leakboard.store import write_file
from leakboard.threats.threat import threat_named

HEAD = "<!-- Written by `report` and `publish` from records and findings.md: change those. -->"


def write_readme(board: Board, folder: Path) -> list[Path]:
    """Write a board's page as ``README.md``, and return its path; a page written by hand is kept.

    Raises:
        StorageError: the folder cannot be written.
    """
    path = folder / "README.md"
    if path.is_file() and not path.read_text("utf-8").startswith(HEAD):
        return []
    write_file(path, board_markdown(board))
    return [path]


def board_markdown(board: Board) -> str:
    """Return the page of a board: question, answer, a table for each dataset and secrets; findings after the first."""
    suite = f"`suite.yaml` is the question in full: {sentence(board.description)}" if board.description else ""
    made = views(board)
    compared = matrix(made)
    sections: list[tuple[str, list[str]]] = []
    sections += [("Which mechanisms break their claim?", _matrix(compared))] if compared else []
    findings = ("What it shows", [board.findings.more])
    shown: list[str | set[str]] = []
    for view in made:
        heading, blocks = f"{_escape(view.dataset)}, {_escape(view.title)}", _view(view)
        measures = _measures(board, view)
        lines = set(measures.splitlines())
        if view.dataset not in shown and lines not in shown:  # another attacker's texts change nothing in them
            blocks.append(measures)
        shown += [view.dataset, lines]
        sections.append((heading, blocks))
    sections.insert(1, findings)
    explained = [column for view in made for part in _shown(view) for column in part]
    every = columns("page: victims", threats_of(board.rows))
    sections.append(("What the columns mean", [_legend([column for column in every if column in explained])]))
    return f"{HEAD}\n\n{write_sections(board.question, [board.findings.lead, suite], sections)}"


def _matrix(compared: Matrix) -> list[str]:
    """Return the answer and a table of mechanisms by datasets, those of papers before the planted ones."""
    lines = [
        [
            _escape(f"{mechanism.name} ({mechanism.paper.title})" if mechanism.paper else mechanism.name),
            "planted" if mechanism.control else "published",
            *(cell.text for cell in mechanism.cells),
        ]
        for mechanism in (*compared.published, *compared.controls)
    ]
    return [compared.answer, markdown_table(["mechanism", "kind", *map(_escape, compared.datasets)], lines)]


def _view(view: View) -> list[str]:
    constant, kept = _shown(view)
    same = "; ".join(f"{column.heading} {cell(column, view.rows[0]).text}" for column in constant)
    return [
        _answer(view),
        f"For every victim of this table: {same}." if same else "",
        _table(kept, view.rows),
    ]


def _shown(view: View) -> tuple[list[Column], list[Column]]:
    """Return the columns that have one value in all rows of a view, and the columns of its table."""
    shown = columns("README", threats_of(view.rows))
    constant = same_in_all(shown, view.rows)
    kept = [column for column in shown if column not in constant]
    return filled(constant, view.rows), filled(kept, view.rows)


def _answer(view: View) -> str:
    choice = keeps_most(view)
    if not choice:
        return ""
    best, used = choice.best, view.utility
    counted_from = f" {_escape(view.counted_from)}" if view.counted_from else ""
    limit = f"at a loss of at most {used.loss:g} points of {used.name}"
    name, numbers = _escape(best["victim"]), f"{best['empirical_privacy']:.3f} at {best[used.column]:.3f}"
    if choice.hides_nothing:
        first = f"the first candidate is right for at least {choice.linked_first:.3f} of the vectors"
        linked = f"links {1 - best['empirical_privacy']:.3f} with one false link in a hundred (privacy {numbers})"
        return f"No victim hides its texts {limit}: {first}. A thief is least sure with {name}, where it {linked}."
    if choice.no_better:
        return f"No defence keeps measurably more than none {limit}. The highest value is that of {name}: {numbers}."
    claim = f" Its privacy claim: {best['verdict']}." if best.get("verdict") else ""
    caveat = f" {choice.caveat}" if choice.caveat else ""
    return f"At{limit[2:]} {name} keeps most privacy: {numbers}.{claim}{caveat}{counted_from}"


def _measures(board: Board, view: View) -> str:
    """Return the measures of each victim's vectors that do not depend on the attack; empty if there are none."""
    rows: list[Row] = []
    for row in view.rows:
        measured = measure_rows(board, view.dataset, row["victim"], "board")
        shown = [
            m for m in measured if not m["attack"] or (_is_of_victim(m["metric"]) and row["attack"] in m["attacks"])
        ]
        rows.append({"victim": row["victim"], **{m["metric"]: m["value"] for m in shown}})
    names = list(dict.fromkeys(name for row in rows for name in row if name != "victim"))
    if not names:
        return ""
    kept = [Column("victim", "", ()), *(Column(name, "", (), title=name, kind="number") for name in names)]
    table = f"Measures of the vectors, which do not depend on the attack:\n\n{_table(kept, rows)}"
    several, with_audits = (
        sum(_has_several_fits(board, view.dataset, row["victim"], audits) for row in view.rows)
        for audits in (False, True)
    )
    notes = [table]
    if several:
        notes.append(
            f"For {several} of {len(rows)} victims, not all attacks met the same fit (`meta.json` has the machines). "
            "The table is about the fit that the strongest attack met."
        )
    if with_audits > several:
        counted = "more" if several else f"of {len(rows)} victims"
        notes.append(f"For {with_audits - several} {counted}, only audits met another fit.")
    return "\n\n".join(notes)


def _has_several_fits(board: Board, dataset: str, victim: str, audits: bool) -> bool:
    """Return whether a measure of a victim's vectors has two values for one seed: not all attacks met the same fit.

    Args:
        board: the leaderboard.
        dataset: the victim's.
        victim: its name.
        audits: whether audits count as attacks.
    """
    values: dict[tuple[str, int], set[float]] = {}
    for record in board.records:
        if threat_named(record.threat).bounds_epsilon and not audits:
            continue
        if (record.dataset, record.victim, record.status) == (dataset, victim, "ok"):
            for metric in record.metrics:
                if _is_of_victim(metric.name) and not metric.variable and metric.value is not None:
                    values.setdefault((metric.name, record.seed), set()).add(metric.value)
    return any(len(found) > 1 for found in values.values())


def _is_of_victim(metric: str) -> bool:
    """Return whether the board's page lists a metric that measures the victim's vectors, whatever the attack."""
    entry = METRICS.get(metric)
    return entry is not None and (entry.of, entry.listed) == ("victim", "board")


def _table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    kept = filled(columns, rows)
    head = [f"{column.heading} ({column.better})" if column.better else column.heading for column in kept]
    cells = [[cell(column, row) for column in kept] for row in rows]
    lines = [[_escape(f"{c.text} ({c.small})" if c.small else c.text) for c in line] for line in cells]
    return markdown_table(head, lines, [column.is_number for column in kept])


def _legend(columns: Sequence[Column]) -> str:
    return "\n".join(f"- {column.heading}: {column.note}." for column in columns if column.note)


def _escape(text: str) -> str:
    """Return a name escaped, so that Markdown shows it unchanged, also inside a table."""
    for letter in "\\`*_<>|[]":
        text = text.replace(letter, f"\\{letter}")
    return " ".join(text.split())
