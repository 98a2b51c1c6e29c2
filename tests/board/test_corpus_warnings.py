"""Test the warnings of rows that a dataset left out."""

import pytest

from leakboard.board.summary import corpus_warnings
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record
from leakboard.suite.names import Names


@pytest.mark.parametrize(
    ("checks", "warnings"),
    [
        (
            {"dropped_rows": 7, "source_rows": 100},
            ["7 of 100 rows were left out, since they lack a value or are unreadable"],
        ),
        ({"dropped_rows": 0, "source_rows": 100}, []),
        ({"dropped_rows": 7}, []),  # trustpilot: its paper's rule drops them
        ({"test_copies": 0.25}, ["25.0 % of the test texts occur verbatim in train"]),
    ],
)
def test_rows_left_out_are_told_where_the_dataset_counts_its_source(checks, warnings):
    record = Record("rows", "v", "a", 0, "ok", metrics=[], threat="attributes", checks=checks)
    assert corpus_warnings([record], Names()) == warnings


def test_the_dataset_is_named_where_there_are_several():
    records = [
        Record(d, "v", "a", 0, "ok", metrics=[], threat="attributes", checks={"test_copies": 0.25}) for d in "ab"
    ]
    ending = "25.0 % of the test texts occur verbatim in train"
    assert corpus_warnings(records, Names()) == [f"a: {ending}", f"b: {ending}"]


@pytest.mark.parametrize(("share", "warned"), [(0.002, False), (0.05, True)])
def test_a_few_near_copies_deserve_no_warning(share, warned):
    metric = Metric("near_copies", share, n=600)
    record = Record("rows", "v", "a", 0, "ok", metrics=[metric], threat="attributes", checks={})
    assert any("near copy" in warning for warning in corpus_warnings([record], Names())) == warned
