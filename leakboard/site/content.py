"""What the pages are made of: the published files of a leaderboard, read once. Nothing is computed anew.

Whatever the columns of the tables are called is known here and in `leakboard.site.views` alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakboard.board.tables import fairness, leaderboard
from leakboard.errors import RequestError
from leakboard.pipeline.records import PUBLISHED, Record, published_records
from leakboard.site.labels import differing, parse
from leakboard.suite.suites import find_suite, suite_names
from leakboard.suite.yaml_files import read_yaml

FINDINGS, VERIFIED = "findings.md", "verified.json"
AUDIT = "epsilon"
"""The metric of an attack that bounds epsilon: it has no empirical privacy."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Findings:
    """What people wrote about a board: ``# question``, the answer as first paragraph, then the details (Markdown)."""

    question: str = ""
    answer: str = ""
    details: str = ""


@dataclass(frozen=True)
class Board:
    """A leaderboard: its rows as `leakboard.board.tables` gives them, and the files beside them."""

    name: str
    description: str
    records: Sequence[Record]
    findings: Findings = Findings()
    costs: Sequence[Row] = ()
    comparison: Sequence[Row] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    verified: Mapping[str, Any] | None = None
    rows: Sequence[Row] = ()
    """Means over secrets, of cells that have a result."""
    secrets: Sequence[Row] = ()
    """One row a secret, where the leaderboard has them."""
    skipped: Sequence[Row] = ()
    groups: Sequence[Row] = ()

    @property
    def question(self) -> str:
        """The question that the board answers."""
        return self.findings.question or self.description or self.name


def read_board(name: str) -> Board:
    """Return a leaderboard from what is published beside its suite.

    Raises:
        RequestError: there is no such suite, or nothing of it is published.
    """
    path = find_suite(name)
    home = path.parent if path.name == "suite.yaml" else path.with_suffix("")
    records = published_records(home)
    if not records:
        raise RequestError(f"{home / PUBLISHED}: no published records; `run {name}` and `publish {name}` make them")
    return make_board(home.resolve().name, str(read_yaml(path).get("description", "")), records, home, home)


def published_boards(names: Sequence[str] = ()) -> list[Board]:
    """Return published leaderboards: these, or all that come with LeakBoard and have published records.

    Raises:
        RequestError: one that is named does not exist, or is not published.
    """
    known = [name for name in suite_names() if (find_suite(name).parent / PUBLISHED).is_file()]
    return [read_board(name) for name in names or known]


def make_board(name: str, description: str, records: Sequence[Record], tables: Path, home: Path) -> Board:
    """Return a leaderboard from its records.

    Args:
        name: of the suite.
        description: of the suite.
        records: one a cell, in any order.
        tables: the folder with ``costs.csv``, ``comparison.csv`` and ``meta.json``; what is missing is left out.
        home: the folder with ``findings.md`` and ``verified.json``, where there are any.
    """
    ordered = sorted(records, key=lambda r: (r.dataset, r.victim, r.attack, r.seed))
    rows = [
        {**row, "victim_options": options_of(row, "victim"), "attack_options": options_of(row, "attack")}
        for row in leaderboard(ordered)
    ]
    names_of = {kind: _names(rows, kind) for kind in ("victim", "attack")}
    rows = [_renamed(row, names_of) for row in rows]
    measured = [row for row in rows if row.get("attack_score") is not None]
    return Board(
        name=name,
        description=description,
        records=[record for record in ordered if record.status == "ok"],
        findings=parse_findings(_text(home / FINDINGS)),
        costs=_table(tables / "costs.csv"),
        comparison=[
            {**_renamed(row, names_of), "ours_low": row["low"], "ours_high": row["high"]}
            for row in _table(tables / "comparison.csv")
        ],
        meta=json.loads(_text(tables / "meta.json") or "{}"),
        verified=json.loads(_text(home / VERIFIED) or "null"),
        rows=[row for row in measured if not row.get("secret")],
        secrets=[row for row in measured if row.get("secret")],
        skipped=[row for row in rows if row.get("attack_score") is None],
        groups=fairness(ordered),
    )


def options_of(row: Mapping[str, Any], kind: str) -> str:
    """Return the full options of a row's victim or attack: by these its records are found."""
    return str(row.get(f"{kind}_options") or row[kind])


def _names(rows: Sequence[Row], kind: str) -> dict[str, str]:
    """Return the name by which pages call each victim or attack: the suite's own, or one that is short."""
    short = short_names([row[f"{kind}_options"] for row in rows])
    return {row[f"{kind}_options"]: short[row[kind]] if row[kind] in short else row[kind] for row in rows}


def _renamed(row: Row, names_of: Mapping[str, Mapping[str, str]]) -> Row:
    """Return a row whose victim and attack have the names of pages, and their full options beside them."""
    given = {kind: options_of(row, kind) for kind in names_of}
    options = {f"{kind}_options": label for kind, label in given.items()}
    return {**row, **options, **{kind: names.get(given[kind], given[kind]) for kind, names in names_of.items()}}


def short_names(labels: Sequence[str]) -> dict[str, str]:
    """Return each label without the options that it shares with all labels of its plugin; no two become the same."""
    groups: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        groups.setdefault(parse(label)[0], []).append(label)
    return {label: name for members in groups.values() for label, name in zip(members, differing(members), strict=True)}


def parse_findings(text: str) -> Findings:
    """Return the question, the answer and the details of a ``findings.md``."""
    blocks = [block.strip() for block in text.strip().split("\n\n") if block.strip()]
    question = blocks.pop(0).removeprefix("# ") if blocks and blocks[0].startswith("# ") else ""
    answer = blocks.pop(0) if blocks else ""
    return Findings(question, " ".join(answer.split()), "\n\n".join(blocks))


def slug(label: str) -> str:
    """Return a name for files and anchors: readable, and unlike that of any other label."""
    readable = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40].strip("-")
    return f"{readable or 'x'}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"


def mean(
    records: Sequence[Record], name: str, part: str = "value", variable: str = "", group: str = ""
) -> float | None:
    """Return the mean over records of a metric's value or of an end of its interval; None where no record has it."""
    metrics = (record.value(name, variable, group) for record in records)
    values = [value for metric in metrics if metric and (value := getattr(metric, part)) is not None]
    return sum(values) / len(values) if values else None


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""


def _table(path: Path) -> list[Row]:
    """Return a CSV as rows, numbers as numbers and empty cells as None; no rows where there is no file."""
    import pandas as pd

    if not path.is_file():
        return []
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    return [{str(key): _value(str(key), value) for key, value in row.items()} for row in table.to_dict("records")]


TEXTS = frozenset(["dataset", "victim", "attack", "metric", "variable", "group", "source", "stage", "device"])
"""Columns whose cells stay text even where they look like numbers."""


def _value(column: str, text: str) -> Any:
    if column in TEXTS:
        return text
    return float(text) if text else None
