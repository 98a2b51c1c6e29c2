"""The Markdown page of a board: its bytes are what the published records give."""

from dataclasses import replace

import pytest
from made_records import record

from leakboard.metrics.measures import Metric
from leakboard.site.content import make_board, read_board
from leakboard.site.readme import HEAD, board_markdown, write_readme
from leakboard.suite.suites import find_suite, suite_names


@pytest.mark.parametrize("name", suite_names())
def test_the_page_beside_a_suite_is_that_of_its_records(name):
    text = (find_suite(name).parent / "README.md").read_text("utf-8")
    assert text == board_markdown(read_board(name))
    assert text.startswith(HEAD)


def test_a_page_that_was_written_by_hand_is_left_alone(tmp_path, made):
    assert write_readme(made, tmp_path) == write_readme(made, tmp_path) == [tmp_path / "README.md"]
    (tmp_path / "README.md").write_text("by hand")
    assert write_readme(made, tmp_path) == []
    assert (tmp_path / "README.md").read_text() == "by hand"


def test_names_stay_text_in_cells(tmp_path):
    text = board_markdown(make_board("b", "", [record("a|b <i> *x*"), record("c", privacy=0.2)], tmp_path, tmp_path))
    assert "a\\|b \\<i\\> \\*x\\*" in text
    assert "| 1 | a\\" in text
    assert "0.300 (0.280 to 0.320)" in text


@pytest.mark.parametrize(("of_second", "tables"), [(0.2, 1), (0.3, 2)])
def test_the_same_measures_of_the_same_vectors_stand_once(of_second, tables, tmp_path):
    """Two datasets that differ in the attacker's texts alone give the same vectors."""
    found = [record("a", dataset=name) for name in ("first", "second")]
    values = {"first": 0.2, "second": of_second}
    measured = [replace(r, metrics=[*r.metrics, Metric("map_word", values[r.dataset])]) for r in found]
    text = board_markdown(make_board("b", "", measured, tmp_path, tmp_path))
    assert text.count("| victim | map_word |") == tables
