"""Test that every published metric has an entry with a sentence."""

import re
from pathlib import Path

import pytest
from marks import with_slow
from packaging.version import Version

import leakboard
from leakboard.board.schema import COLUMNS
from leakboard.metrics.entries import METRICS
from leakboard.pipeline.records import published_records
from leakboard.pipeline.victim_metrics import FAULTS
from leakboard.suite.suites import suite_folder, suite_names


@pytest.mark.parametrize("board", with_slow(suite_names(), "dp_word_vectors", "dpnr", "noise_training"))
def test_every_published_metric_has_a_sentence(board):
    measured = {metric.name for record in published_records(suite_folder() / board) for metric in record.metrics}
    assert measured
    assert measured <= set(METRICS)


def test_every_metric_that_the_code_names_has_an_entry():
    sources = [path.read_text("utf-8") for path in Path(leakboard.__file__).parent.rglob("*.py")]
    named = {name for source in sources for name in re.findall(r'(?:\bMetric|\.metric)\("([^"]+)"', source)}
    assert {"rows_match", "near_copies"} < named <= set(METRICS)
    assert set(FAULTS) <= set(METRICS)


def test_meanings_are_sentences():
    assert all(entry.meaning.endswith(".") for entry in METRICS.values())


def test_every_metric_and_column_is_known_since_a_version():
    known = {Version("0.1.0"), Version("0.2.0"), Version("0.3.0.dev1")}
    assert {Version(entry.since) for entry in (*METRICS.values(), *COLUMNS)} == known
