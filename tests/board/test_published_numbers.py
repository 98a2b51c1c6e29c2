"""Test the comparison with numbers of papers: parsing, refusals, and differences worked by hand."""

import math

import pandas as pd
import pytest
from scipy import stats

from leakboard.board.published_numbers import compare, read_reference
from leakboard.board.tables import read_table
from leakboard.errors import RequestError
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record
from leakboard.suite.registry import Registry
from leakboard.suite.suites import find_suite, load_suite, suite_names

HEAD = "dataset,victim,attack,metric,variable,group,value,source\n"


@pytest.fixture
def reference(tmp_path):
    """Return a function that writes a reference of these lines and returns its rows."""

    def read(*lines):
        (tmp_path / "reference.csv").write_text(HEAD + "\n".join(lines) + "\n", "utf-8")
        return read_reference(tmp_path)

    return read


def record(seed, value, attack="guesser", name="task_accuracy", status="ok", **metric_fields):
    return Record("d", "v", attack, seed, status, metrics=[Metric(name, value, **metric_fields)])


def test_differences_are_ours_minus_theirs_over_seeds(reference):
    theirs = reference('d,v,,task_accuracy,,,0.8,"A 2020, table 1"')
    records = [record(0, 0.7, low=0.66, high=0.74), record(1, 0.8, low=0.76, high=0.84), record(0, 0.7, "other")]
    (row,) = compare(records, theirs)
    assert (row["seeds"], row["theirs"], row["source"]) == (2, 0.8, "A 2020, table 1")
    assert row["ours"] == pytest.approx(0.75)
    assert row["difference"] == pytest.approx(-0.05)
    variance = (0.04 / 1.959964) ** 2 + 0.05**2  # of the test texts, and of the mean of two seeds
    reach = stats.t.ppf(0.975, (variance / 0.05**2) ** 2) * math.sqrt(variance)
    assert (row["ours_low"], row["ours_high"]) == pytest.approx((0.75 - reach, 1))
    assert row["standard_errors"] == pytest.approx(-0.05 / ((0.25 + reach) / 2 / 1.959964))


@pytest.mark.parametrize("reverse", [False, True])
def test_of_a_victim_that_was_fitted_twice_the_attack_with_most_seeds_counts(reference, reverse):
    once, twice = [record(0, 0.5, "z")], [record(seed, 0.7, "a") for seed in (0, 1)]
    without = [record(seed, 0.9, "b", name="share") for seed in (0, 1, 2)]
    records = [*once, *twice, *without]
    (row,) = compare(records[::-1] if reverse else records, reference("d,v,,task_accuracy,,,0.8,s"))
    assert (row["ours"], row["seeds"]) == (0.7, 2)


def test_rows_of_other_attacks_and_groups_do_not_count(reference):
    theirs = reference("d,v,other,attack_accuracy,E1,absent,0.9,s", "d,v,other,attack_accuracy,E1,present,0.1,s")
    metric = {"name": "attack_accuracy", "variable": "E1", "group": "absent"}
    absent, present = compare([record(0, 0.5, **metric), record(0, 0.6, "other", **metric)], theirs)
    assert absent["ours"] == 0.6
    assert "ours" not in present
    assert present["seeds"] == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"), [(math.inf, "inf", 0.0), (math.inf, "2", math.inf), (2.0, "inf", -math.inf)]
)
def test_infinity_is_a_number(ours, theirs, difference, reference):
    (row,) = compare([record(0, ours)], reference(f"d,v,,task_accuracy,,,{theirs},s"))
    assert row["difference"] == difference
    assert "standard_errors" not in row


def test_failed_cells_do_not_count(reference):
    assert compare([record(0, 0.1, status="failed")], reference("d,v,,task_accuracy,,,0.8,s"))[0]["seeds"] == 0


@pytest.mark.parametrize("value", ["", "high", "nan"])
def test_a_value_that_is_no_number_is_refused(value, reference):
    with pytest.raises(RequestError, match=f"reference.csv: line 3: value '{value}' is not a number"):
        reference("d,v,,task_accuracy,,,0.8,s", f"d,v,,task_accuracy,,,{value},s")


def test_other_columns_are_refused(tmp_path):
    assert read_reference(tmp_path) == []  # a folder without the file has nothing to compare
    (tmp_path / "reference.csv").write_text("dataset,value\nd,1\n", "utf-8")
    with pytest.raises(RequestError, match="columns dataset, value; allowed: dataset, victim, attack, metric"):
        read_reference(tmp_path)


@pytest.mark.parametrize("name", suite_names())
def test_boards_compare_each_number_of_their_reference_with_ours(name):
    home = find_suite(name).parent
    theirs, compared = read_reference(home), read_table(home / "comparison.csv")
    names = load_suite(name, Registry()).names
    keys = ("dataset", "victim", "attack", "source", "metric", "variable", "group")
    assert [[row[key] for key in keys] for row in compared] == [[names.row(row)[key] for key in keys] for row in theirs]
    assert [row["theirs"] for row in compared] == pytest.approx([row["value"] for row in theirs], abs=5.1e-5)
    assert all(row["ours"] is not None for row in compared)


class TestCommands:
    """`report` prints the differences and `publish` publishes them."""

    @pytest.fixture
    def reference_file(self, copied):
        (copied.folder / "tiny").mkdir(exist_ok=True)
        return copied.folder / "tiny" / "reference.csv"

    def test_report_and_publish(self, reference_file, copied, command_line, output_of):
        cells = pd.read_csv(copied.run / "cells.csv", keep_default_na=False)
        row = cells[(cells["metric"] == "attack_score")].iloc[0]
        line = f'{row["dataset"]},"{row["victim"]}","{row["attack"]}",attack_score,,,0.125,"A 2020"'
        reference_file.write_text(f"{HEAD}{line}\n", "utf-8")
        assert "A 2020: 1 of 1 numbers measured" in output_of(*copied.arguments("report"))
        table = pd.read_csv(copied.run / "comparison.csv")
        assert table["theirs"].tolist() == [0.125]
        assert table["difference"][0] == pytest.approx(table["ours"][0] - 0.125, abs=2e-4)
        command_line(*copied.arguments("publish"))
        assert (copied.folder / "tiny" / "comparison.csv").is_file()

    def test_a_malformed_reference_is_refused_in_one_line(self, reference_file, copied, refusal):
        reference_file.write_text(f"{HEAD}d,v,,m,,,high,s\n", "utf-8")
        assert "line 2: value 'high' is not a number" in refusal(*copied.arguments("report"))
