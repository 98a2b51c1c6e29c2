"""Test the schema: each column and metric is one entry, and an added entry appears in every output."""

import importlib.util
import io
from collections import Counter
from types import SimpleNamespace

import pytest
from bench import CHECKOUT
from made_records import scored, with_metrics
from rich.console import Console

from leakboard.api.report import Report
from leakboard.board import schema, tables
from leakboard.board.gates import broken_limits, read_limits
from leakboard.board.leaderboard import leaderboard
from leakboard.board.schema import COLUMNS, columns
from leakboard.board.table_layouts import TABLES
from leakboard.cli.console import print_leaderboard
from leakboard.column import KINDS, Column
from leakboard.metrics import entries
from leakboard.metrics.entries import METRICS, MetricEntry
from leakboard.metrics.measures import Metric
from leakboard.site.content import make_board
from leakboard.site.readme import board_markdown
from leakboard.site.rendering import RENDERERS
from leakboard.suite.names import Names

ADDED = Column(
    "surprise",
    "How surprised the attacker is.",
    ("leaderboard.csv", "best_known.csv", "report", "console: attacks", "page: attacks", "page: victims"),
    title="surprise, in nats",
    kind="number",
    better="lower is better",
    note="mean surprise of the attacker",
    metric="attack_surprise",
    per_secret=True,
    gate="attack",
    since="0.3.0",
)
MEASURED = MetricEntry("Mean surprise of the attacker, in nats.", since="0.3.0")


def test_every_column_has_a_sentence_and_a_renderer():
    for column in COLUMNS:
        assert column.meaning.endswith("."), column
        assert column.kind in RENDERERS, column
        assert set(column.tables) <= set(TABLES), column
        assert not column.metric or column.metric in METRICS, column


def test_every_kind_of_value_has_a_renderer():
    assert set(RENDERERS) == KINDS


def test_column_names_are_unique_in_a_table():
    for table in TABLES:
        counts = Counter(column.name for column in COLUMNS if table in column.tables)
        assert max(counts.values(), default=1) == 1, (table, counts)
        assert set(TABLES[table].first + TABLES[table].last) <= {column.name for column in columns(table)}, table


@pytest.fixture
def added(monkeypatch):
    """Add a column and a metric to a copy of the schema."""
    monkeypatch.setattr(schema, "COLUMNS", (*COLUMNS, ADDED))
    monkeypatch.setattr(entries, "METRICS", METRICS | {"attack_surprise": MEASURED})
    for module in ("leakboard.board.schema", "leakboard.board.publishing", "leakboard.site.views"):
        monkeypatch.setattr(f"{module}.METRICS", METRICS | {"attack_surprise": MEASURED})


def test_an_added_column_is_in_every_output(added, tmp_path):
    measured = Metric("attack_surprise", 0.123)
    records = [with_metrics(scored(0, 0.7, victim=victim), measured) for victim in ("encoder", "other")]
    tables.write_tables(tmp_path, records, {})
    for file in ("leaderboard.csv", "best_known.csv"):
        head, *lines = (tmp_path / file).read_text().splitlines()
        assert "surprise" in head.split(",")
        assert all("0.1230" in line for line in lines)
    assert "attack_surprise" in (tmp_path / "cells.csv").read_text()
    report = Report("made", "", {}, records)
    assert report.table["surprise"].tolist() == [0.123, 0.123]
    assert "surprise, in nats" in report._repr_html_()
    assert "surprise, in nats" in report.save(tmp_path / "page.html").read_text("utf-8")
    board = board_markdown(make_board("made", "", records, tmp_path, tmp_path))
    assert "| surprise, in nats (lower is better) |" in board
    assert "- surprise, in nats: mean surprise of the attacker." in board
    console = Console(file=io.StringIO(), width=200)
    suite = SimpleNamespace(name="made", names=Names(), file=SimpleNamespace(description=""))
    print_leaderboard(console, SimpleNamespace(suite=suite), records, leaderboard(records))
    printed = console.file.getvalue()
    assert "surprise: mean surprise of the attacker; lower is better" in printed
    assert "0.123" in printed
    (line, *_) = broken_limits(leaderboard(records), read_limits(["surprise=0.1"], []))
    assert "surprise is 0.1230, at most 0.1 was asked" in line


def test_an_added_column_and_metric_are_in_the_reference(added):
    pytest.importorskip("mkdocs", reason="no MkDocs: the docs extra has it")
    spec = importlib.util.spec_from_file_location("reference", CHECKOUT / "docs" / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert ADDED.meaning in reference.columns()
    assert MEASURED.meaning in reference.metrics()
