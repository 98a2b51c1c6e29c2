"""Test the Markdown page of a board: its bytes follow from the published records."""

import dataclasses

import pytest
from made_records import record, with_metrics
from marks import with_slow

from leakboard.metrics.measures import Metric
from leakboard.site.content import make_board, read_board
from leakboard.site.readme import HEAD, board_markdown, write_readme
from leakboard.suite.suites import find_suite, suite_names

LARGE = ("defences", "dp_word_vectors", "dpnr", "mechanisms", "noise_training")


@pytest.fixture
def page_of(tmp_path):
    """Return a function that returns the page of a board of these records."""
    return lambda *records: board_markdown(make_board("board", "", records, tmp_path, tmp_path))


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


@pytest.mark.parametrize(("second", "said"), [(0.5, False), (0.625, True)])
def test_a_page_says_that_attacks_met_different_fits_and_shows_that_of_the_strongest(page_of, second, said):
    def measured(victim, attack, value, privacy=0.3):
        return with_metrics(record(victim, attack, privacy=privacy), Metric("task_f1_macro", value))

    records = [measured("a", "one", 0.5), measured("a", "two", second, privacy=0.1)]
    page = page_of(*records, measured("b", "one", 0.7), measured("b", "two", 0.7))
    assert ("For 1 of 2 victims, not all attacks met the same fit" in page) is said
    assert f"| a | {second:.3f} |" in page


@pytest.mark.parametrize(("audited", "said"), [(0.5, False), (0.625, True)])
def test_a_page_says_that_audits_met_another_fit(page_of, audited, said):
    attacked = with_metrics(record("a", "one"), Metric("task_f1_macro", 0.5))
    audit = dataclasses.replace(
        with_metrics(record("a", "audit"), Metric("task_f1_macro", audited)), threat="releases", secrets=("claim",)
    )
    page = page_of(attacked, audit, record("b", "one"))
    assert ("For 1 of 2 victims, only audits met another fit." in page) is said
    assert "not all attacks met the same fit" not in page


def test_victims_for_which_only_audits_met_another_fit_are_counted_apart(page_of):
    def measured(victim, attack, value):
        return with_metrics(record(victim, attack), Metric("task_f1_macro", value))

    def audit(victim, value):
        return dataclasses.replace(measured(victim, "audit", value), threat="releases", secrets=("claim",))

    both = [measured("a", "one", 0.5), measured("a", "two", 0.6), audit("a", 0.7)]
    page = page_of(*both, measured("b", "one", 0.5), measured("b", "two", 0.5), audit("b", 0.7))
    assert "For 1 of 2 victims, not all attacks met the same fit" in page
    assert "For 1 more, only audits met another fit." in page


def test_attacks_with_fewer_seeds_met_the_same_fit(page_of):
    seeds = [with_metrics(record("a", "one"), Metric("task_f1_macro", 0.5))]
    seeds += [dataclasses.replace(with_metrics(record("a", "one"), Metric("task_f1_macro", 0.7)), seed=1)]
    fewer = with_metrics(record("a", "two"), Metric("task_f1_macro", 0.5))
    assert "same fit" not in page_of(*seeds, fewer, record("b", "one"))
