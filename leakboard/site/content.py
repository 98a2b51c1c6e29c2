"""Read the published files of a leaderboard for its pages. Nothing is computed anew."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakboard.board.examples import EXAMPLES_FILE
from leakboard.board.fairness_rows import fairness
from leakboard.board.joined import join
from leakboard.board.kept_neighbours import NEIGHBOURS_FILE
from leakboard.board.leaderboard import leaderboard, skipped
from leakboard.board.projections import read_projections
from leakboard.board.run_meta import read_meta
from leakboard.board.schema import Row
from leakboard.board.tables import published_names, read_table
from leakboard.errors import RequestError
from leakboard.pipeline.records import PUBLISHED, Record, in_natural_order
from leakboard.site.sections import FINDINGS, Findings, read_findings
from leakboard.site.sources import common_names
from leakboard.site.utility import TASK, UTILITIES, Utility
from leakboard.suite.names import KINDS, Names
from leakboard.suite.suites import find_suite, home_of, suite_names
from leakboard.suite.yaml_files import read_yaml


@dataclass(frozen=True)
class Board:
    """A leaderboard: its rows as `leakboard.board` makes them, and its other files.

    Datasets, victims and attacks have their names everywhere, also in records; their labels are in ``..._options``.
    """

    name: str
    description: str
    records: Sequence[Record]
    findings: Findings = field(default_factory=Findings)
    costs: Sequence[Row] = ()
    comparison: Sequence[Row] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    """Rows that average over secrets, of cells with a result."""
    secrets: Sequence[Row] = ()
    """Rows of single secrets."""
    failed: Sequence[Row] = ()
    """Rows without a result; their status has the reason."""
    skipped: Sequence[Row] = ()
    groups: Sequence[Row] = ()
    provenance: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """``project`` or ``submission``, by the labels of dataset, victim and attack; empty for a local run."""
    apart: Sequence[Row] = ()
    """Rows of submissions that were computed again, but not against the same attacks, with their ``submission``."""
    reported: Sequence[Row] = ()
    """Rows that only their sender computed, each with the name of its ``submission``."""
    submitted: frozenset[str] = frozenset()
    """Labels of the victims that only submissions have."""
    utility: Utility = TASK
    """What is weighed against privacy."""
    labels: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Labels by kind and name: the plugin with all options that differ from their defaults or are always named."""
    examples: Sequence[Row] = ()
    """Invented texts next to what attacks read from their vectors."""
    kept: Mapping[tuple[str, str], Row] = field(default_factory=dict)
    """The neighbours that victims keep of an undefended one, by dataset and victim."""
    projections: Mapping[tuple[str, str], Sequence[Row]] = field(default_factory=dict)
    """Two-dimensional points of the vectors of test texts, with a secret of each text, by dataset and victim."""

    @property
    def question(self) -> str:
        """The question that the board answers."""
        return self.findings.question or self.description or self.name

    def mark(self, row: Row) -> str:
        """Return the provenance of a row; empty for a local run."""
        return self.provenance.get((row["dataset_options"], row["victim_options"], row["attack_options"]), "")

    def label(self, kind: str, name: str) -> str:
        """Return the label of the dataset, victim or attack of this name."""
        return self.labels.get((kind, name), name)


def read_board(name: str) -> Board:
    """Return a leaderboard from the files that are published next to its suite.

    Raises:
        RequestError: there is no such suite, or nothing of it is published.
    """
    path = find_suite(name)
    home = home_of(path)
    joined = join(home)
    if not joined.records and not joined.apart and not joined.reported:
        raise RequestError(f"{home / PUBLISHED}: no published records; `run {name}` and `publish {name}` make them")
    suite = read_yaml(path)
    description, weighed = str(suite.get("description", "")), suite.get("utility", "task")
    if weighed not in UTILITIES:
        raise RequestError(f"{path}: utility: {weighed!r}; allowed: {', '.join(UTILITIES)}")
    board = make_board(home.resolve().name, description, joined.records, home, home, UTILITIES[weighed], common=True)

    def listed(sent: Mapping[str, Sequence[Record]]) -> list[Row]:
        return [
            {"submission": submission, **row}
            for submission, records in sent.items()
            for row in leaderboard(in_natural_order(records))
            if not row.get("secret")
        ]

    return dataclasses.replace(
        board,
        provenance=joined.provenance,
        apart=listed(joined.apart),
        reported=listed(joined.reported),
        submitted=joined.submitted_victims,
    )


def published_boards(names: Sequence[str] = ()) -> list[Board]:
    """Return the named leaderboards, or all published ones that come with LeakBoard.

    Raises:
        RequestError: a named leaderboard does not exist, or is not published.
    """
    known = [name for name in suite_names() if (find_suite(name).parent / PUBLISHED).is_file()]
    return [read_board(name) for name in names or known]


def make_board(
    name: str,
    description: str,
    records: Sequence[Record],
    tables: Path,
    home: Path,
    utility: Utility = TASK,
    *,
    common: bool = False,
) -> Board:
    """Return a leaderboard from its records.

    Args:
        name: of the suite.
        description: of the suite.
        records: one for each cell, in any order. If a name equals the label of a record, labels are shown.
        tables: the folder with ``costs.csv``, ``comparison.csv``, ``examples.csv``, ``neighbours.csv``,
            ``projections.csv`` and ``meta.json``, if they exist.
        home: the folder with ``findings.md``, if there is one.
        utility: what is weighed against privacy.
        common: give victims, attacks and datasets the names that they have on all published boards.
    """
    used = {(kind, getattr(record, kind)) for record in records for kind in KINDS}
    published = published_names(tables / "leaderboard.csv").names
    own = {key: name for key, name in published.items() if name == key[1] or (key[0], name) not in used}
    names = Names(common_names({key: own.get(key, key[1]) for key in sorted({*used, *own})}) if common else own)
    renamed = {(kind, name): names.name(kind, label) for (kind, label), name in own.items()}

    def read(file: str) -> list[Row]:
        return [
            {**row, **{kind: renamed.get((kind, row[kind]), row[kind]) for kind in KINDS if kind in row}}
            for row in read_table(tables / file)
        ]

    labels = {(kind, name): label for (kind, label), name in names.names.items()}
    ordered = in_natural_order(records)
    named = [
        dataclasses.replace(record, **names.row({kind: getattr(record, kind) for kind in KINDS})) for record in ordered
    ]
    rows = [names.row(row) for row in leaderboard(ordered)]
    with_result = [row for row in rows if "threat" in row]
    return Board(
        name=name,
        description=description,
        records=[record for record in named if record.status == "ok"],
        findings=read_findings(_text(home / FINDINGS)),
        costs=read("costs.csv"),
        comparison=read("comparison.csv"),
        meta=read_meta(tables / "meta.json"),
        rows=[row for row in with_result if not row.get("secret")],
        secrets=[row for row in with_result if row.get("secret")],
        failed=[row for row in rows if "threat" not in row],
        skipped=skipped(named),
        groups=fairness(named),
        labels=labels,
        utility=utility,
        examples=read(EXAMPLES_FILE),
        kept={(row["dataset"], row["victim"]): row for row in read(NEIGHBOURS_FILE)},
        projections={
            (renamed.get(("dataset", dataset), dataset), renamed.get(("victim", victim), victim)): points
            for (dataset, victim), points in read_projections(tables).items()
        },
    )


def slug(label: str) -> str:
    """Return a readable name for files and anchors that is unique for each label."""
    readable = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40].strip("-")
    return f"{readable or 'x'}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.is_file() else ""
