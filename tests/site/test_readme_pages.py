"""Test the Markdown page of a board: its bytes follow from the published records."""

import pytest
from made_records import record, with_metrics
from marks import with_slow

from leakboard.metrics.measures import Metric
from leakboard.site.content import make_board, read_board
from leakboard.site.readme import HEAD, board_markdown, write_readme
from leakboard.suite.suites import find_suite, suite_names

LARGE = ("defences", "dp_word_vectors", "dpnr", "mechanisms", "noise_training")


@pytest.mark.parametrize("name", with_slow(suite_names(), *LARGE))
def test_the_published_page_follows_from_the_records(name):
    text = (find_suite(name).parent / "README.md").read_text("utf-8")
    assert text == board_markdown(read_board(name))
    assert text.startswith(HEAD)


def test_a_page_written_by_hand_is_kept(tmp_path, made):
    assert write_readme(made, tmp_path) == write_readme(made, tmp_path) == [tmp_path / "README.md"]
    (tmp_path / "README.md").write_text("by hand")
    assert write_readme(made, tmp_path) == []
    assert (tmp_path / "README.md").read_text() == "by hand"


def test_the_legend_explains_the_columns_of_the_tables_alone(tmp_path):
    text = board_markdown(make_board("b", "", [record("a"), record("c", privacy=0.2)], tmp_path, tmp_path))
    tables, _, legend = text.partition("## What the columns mean")
    assert "- privacy: 1 - the score" in legend
    for heading in (line[2:].partition(":")[0] for line in legend.splitlines() if line.startswith("- ")):
        assert f"| {heading} |" in tables or f"| {heading} (" in tables or f"{heading} " in tables


@pytest.mark.parametrize("heading", ["claimed", "verdict", "seconds"])
def test_the_legend_explains_no_column_without_values(heading, tmp_path):
    text = board_markdown(make_board("b", "", [record("a"), record("c", privacy=0.2)], tmp_path, tmp_path))
    assert f"\n- {heading}:" not in text


def test_names_in_cells_are_escaped(tmp_path):
    text = board_markdown(make_board("b", "", [record("a|b <i> *x*"), record("c", privacy=0.2)], tmp_path, tmp_path))
    assert "a\\|b \\<i\\> \\*x\\*" in text
    assert "| 1 | a\\" in text
    assert "0.300 (0.280 to 0.320)" in text


@pytest.mark.parametrize(("of_second", "tables"), [(0.2, 1), (0.3, 2)])
def test_equal_measures_of_the_same_vectors_are_one_table(of_second, tables, tmp_path):
    """Two datasets that differ only in the attacker's texts give the same vectors."""
    values = {"first": 0.2, "second": of_second}
    records = [with_metrics(record("a", dataset=name), Metric("map_word", value)) for name, value in values.items()]
    text = board_markdown(make_board("b", "", records, tmp_path, tmp_path))
    assert text.count("| victim | map_word |") == tables
