"""Report on vectors that a user has: one page for people who decide, then the details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from leakboard.board.doubts import with_doubts
from leakboard.board.schema import Row, metric_title
from leakboard.board.summary import sentence_rows
from leakboard.column import Column
from leakboard.site import charts
from leakboard.site.board_pages import ALONE, victims
from leakboard.site.content import Board
from leakboard.site.pages import table_data
from leakboard.site.rendering import Cell, cell, decimals
from leakboard.site.views import views
from leakboard.suite.labels import parse
from leakboard.threats.secrets import SecretsThreat
from leakboard.threats.sentence_parts import beats_constant, has_too_few, secrets_of, why_chance
from leakboard.threats.threat import threat_named

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

QUESTION = "What do these vectors give away?"
GIVEN_AWAY, CHANCE, NOT_FOUND = "given away", "may be chance", "not found"
CHIPS = {GIVEN_AWAY: "violated", CHANCE: "unproven", NOT_FOUND: "unaudited"}
"""Classes of the coloured labels. What was not found has no label of safety: another attack may find it."""
CHANGES = {"less": "unaudited", "more": "violated"}
"""Classes of the coloured labels of releases that give away less or more than the first."""
NO_DIFFERENCE = "no difference shown"
"""A release without a label: the caption of the table says what that means."""


@dataclass(frozen=True)
class Finding:
    """What the strongest attack on one secret of a release found."""

    kind: str
    """``given away``, ``may be chance`` or ``not found``."""
    subject: str
    """What was guessed."""
    text: str

    @property
    def chip(self) -> str:
        """The class of the coloured label."""
        return CHIPS[self.kind]


@dataclass(frozen=True)
class Notes:
    """Sentences that the page shows besides the findings."""

    first: Sequence[str] = ()
    """Why the numbers may mean nothing, for instance because vectors and rows do not match."""
    compared: Sequence[str] = ()
    """How releases differ."""
    warnings: Sequence[str] = ()
    tables: Sequence[tuple[str, Sequence[Column], Sequence[Row]]] = ()
    """Title, columns and rows of two tables: how releases differ from the first one, and what they cost."""
    figure: Figure | None = None
    """The gain of each secret from each release."""
    releases: Sequence[str] = ()
    """Names of the releases in the order in which the page shows them."""


def own_report(board: Board, day: str, notes: Notes) -> dict[str, Any]:
    """Return what the template ``report`` shows.

    Args:
        board: with a victim for each release.
        day: of the evaluation, as in 2026-11-27.
        notes: sentences besides the findings.
    """
    attacked = dict.fromkeys(row["victim"] for row in board.rows)
    names = [name for name in dict.fromkeys([*notes.releases, *attacked]) if name in attacked]
    findings = {name: _findings(board, name) for name in names}
    scatters = [figure for view in views(board) if view.is_scored and (figure := charts.scatter(view))]
    return {
        "title": QUESTION,
        "board": board,
        "own": True,
        "facts": _facts(board, day),
        "notes": notes,
        "gains": _gains(notes),
        "conclusion": _conclusion(findings[names[0]], notes) if names else [],
        "findings": findings,
        "first_page": names[:1] if notes.tables else names,
        "victims": sorted(_detailed(board), key=lambda victim: names.index(victim["name"])),
        "scatters": scatters,
        "drawn": charts.plain(notes.figure) if notes.figure else None,
        "data": table_data([*board.rows, *board.secrets]),
    }


def _gains(notes: Notes) -> list[tuple[str, list[Cell]]]:
    """Return, for each secret, what an attacker gains from each release, the first one included."""
    if not notes.tables:
        return []
    _, columns, rows = notes.tables[0]
    before, after = (next(c for c in columns if c.name == name) for name in ("first_advantage", "attack_advantage"))
    of_secrets: dict[str, dict[str, Row]] = {}
    for row in rows:
        of_secrets.setdefault(row["secret"], {})[row["release"]] = row
    return [
        (secret, [_first_gain(before, of), *(_gain(after, of.get(name)) for name in notes.releases[1:])])
        for secret, of in of_secrets.items()
    ]


def _first_gain(column: Column, of_release: Mapping[str, Row]) -> Cell:
    """Return the gain from the first release; if it has no number, why it is not compared."""
    row = next(iter(of_release.values()))
    shown = cell(column, row)
    return shown if shown.text else replace(shown, small=row["gives_away"])


def _gain(column: Column, row: Row | None) -> Cell:
    """Return the gain from a release, with a coloured label if it differs from the first; empty without a row."""
    if row is None:
        return Cell("")
    shown, change = cell(column, row), row["gives_away"]
    if change in CHANGES:
        return replace(shown, chip=CHANGES[change], order=change)
    return shown if change == NO_DIFFERENCE else replace(shown, small=change)


def _detailed(board: Board) -> list[dict[str, Any]]:
    """Return what the details show of each release, with the remarks of the sentences."""
    rows = with_doubts([*board.rows, *board.secrets])
    made = victims(replace(board, rows=rows[: len(board.rows)]), ALONE)
    remarks = {(row["victim"], row["attack"], secrets_of(row)): row["status"] for row in rows if row["status"] != "ok"}
    too_few = {
        (row["victim"], row["attack"], metric_title(row["attack_metric"])) for row in rows if row.get("is_too_few")
    }
    for victim in made:
        name = victim["name"]
        for part in victim["parts"]:
            part["secrets"] = [
                {**row, "status": remarks.get((name, row["attack"], row["secret"]), "")} for row in part["secrets"]
            ]
            part["measures"] = [row for row in part["measures"] if (name, row["attack"], row["metric"]) not in too_few]
    return made


def _findings(board: Board, release: str) -> list[Finding]:
    rows = [row for row in (*board.rows, *board.secrets) if row["victim"] == release]
    return [_finding(row) for row in sentence_rows(rows)]


def _finding(row: Row) -> Finding:
    kind = NOT_FOUND if not beats_constant(row) else CHANCE if why_chance(row) else GIVEN_AWAY
    shown = row if has_too_few(row) else {**row, "test_size": None}  # the details have the counts of each attack
    threat = threat_named(row["threat"])
    return Finding(kind, threat.guessed or secrets_of(row), threat.sentence(shown))


def _conclusion(findings: Sequence[Finding], notes: Notes) -> list[str]:
    """Return what the first release gives away, and where the others differ; empty if the numbers may mean nothing."""
    if notes.first or not findings:
        return []
    titles = {GIVEN_AWAY: "Given away", CHANCE: "May be chance", NOT_FOUND: "Not found, which proves nothing"}
    subjects = {kind: "; ".join(one.subject for one in findings if one.kind == kind) for kind in titles}
    told = [f"{title}: {subjects[kind]}." for kind, title in titles.items() if subjects[kind]]
    rows = notes.tables[0][2] if notes.tables else []
    for release in notes.releases[1:]:
        changed = {
            change: "; ".join(row["secret"] for row in rows if (row["release"], row["gives_away"]) == (release, change))
            for change in CHANGES
        }
        shown = [f"gives away {change} of {secrets}" for change, secrets in changed.items() if secrets]
        told.append(f"'{release}' {' and '.join(shown) or 'shows no difference'}.")
    return told


def _of_stores(board: Board) -> list[tuple[str, str]]:
    """Return the protections of the releases, and the encoder that the attackers know."""
    options = [parse(row["victim_options"])[1] for row in board.rows]
    return [
        (title, ", ".join(dict.fromkeys(given[name] for given in options if name in given)))
        for title, name in (("protection", "protection"), ("encoder that attackers know", "encoder"))
    ]


def _facts(board: Board, day: str) -> list[tuple[str, str]]:
    """Return what was tried, on how many texts, and when; unknown things are left out by the template."""
    first = board.rows[0] if board.rows else {}
    known = [row["known_pairs"] for row in board.rows if row.get("known_pairs")]
    guessing = [row for row in board.rows if issubclass(threat_named(row["threat"]), SecretsThreat)]
    secrets = dict.fromkeys(secret for row in guessing for secret in row["secrets"].split("; "))
    sizes = [row["test_size"] for row in guessing or board.rows]
    constant = decimals(first.get("task_majority"), 2)
    accuracy = decimals(first.get("task_accuracy"), 2)
    several = len({row["victim"] for row in board.rows}) > 1  # then a table has their accuracies
    on = date.fromisoformat(day)
    return [
        ("day", f"{on.day} {on:%B %Y}"),
        ("texts attacked", f"{max(sizes):,}" if sizes else ""),
        ("texts that attackers knew", f"{max(known):,.0f}, with vectors and secrets" if known else ""),
        ("secrets", ", ".join(secrets)),
        *_of_stores(board),
        ("attacks", ", ".join(dict.fromkeys(row["attack"].replace("_", " ") for row in board.rows))),
        ("task accuracy", f"{accuracy} (constant guess: {constant})" if accuracy and not several else ""),
    ]
