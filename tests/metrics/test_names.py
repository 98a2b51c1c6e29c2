"""Every metric that was ever published is explained."""

import pytest

from leakboard.metrics.names import MEANINGS
from leakboard.pipeline.records import published_records
from leakboard.suite.suites import suite_folder, suite_names


@pytest.mark.parametrize("board", suite_names())
def test_every_published_metric_has_a_sentence(board):
    measured = {metric.name for record in published_records(suite_folder() / board) for metric in record.metrics}
    assert measured
    assert measured <= set(MEANINGS)


def test_sentences_are_sentences():
    assert all(text.endswith(".") for text in MEANINGS.values())
