"""Published numbers beside ours: what is read, what is refused, and differences by hand."""

import math

import pandas as pd
import pytest

from leakboard.board.reference import compare, read_reference
from leakboard.errors import RequestError
from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record

HEAD = "dataset,victim,attack,metric,variable,group,value,source\n"


@pytest.fixture
def reference(tmp_path):
    """Write a reference of these lines and return its rows."""

    def read(*lines):
        (tmp_path / "reference.csv").write_text(HEAD + "\n".join(lines) + "\n", "utf-8")
        return read_reference(tmp_path)

    return read


def record(seed, value, low=None, high=None, attack="guesser", name="task_accuracy", **place):
    return Record("d", "v", attack, seed, "ok", metrics=[Metric(name, value, low=low, high=high, **place)])


def test_differences_are_ours_minus_theirs_over_seeds(reference):
    rows = reference('d,v,,task_accuracy,,,0.8,"A 2020, table 1"')
    found = compare([record(0, 0.7, 0.66, 0.74), record(1, 0.8, 0.76, 0.84), record(0, 0.7, attack="other")], rows)[0]
    assert (found["seeds"], found["theirs"], found["source"]) == (2, 0.8, "A 2020, table 1")
    assert found["ours"] == pytest.approx(0.75)
    assert found["difference"] == pytest.approx(-0.05)
    assert (found["ours_low"], found["ours_high"]) == pytest.approx((0.71, 0.79))
    assert found["standard_errors"] == pytest.approx(-0.05 / (0.04 / 1.959964))


def test_groups_and_attacks_are_told_apart(reference):
    rows = reference("d,v,other,attack_accuracy,E1,absent,0.9,s", "d,v,other,attack_accuracy,E1,present,0.1,s")
    records = [
        record(0, 0.5, name="attack_accuracy", variable="E1", group="absent"),
        record(0, 0.6, attack="other", name="attack_accuracy", variable="E1", group="absent"),
    ]
    found = compare(records, rows)
    assert found[0]["ours"] == 0.6
    assert "ours" not in found[1]
    assert found[1]["seeds"] == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"), [(math.inf, "inf", 0.0), (math.inf, "2", math.inf), (2.0, "inf", -math.inf)]
)
def test_infinity_is_a_number(ours, theirs, difference, reference):
    found = compare([record(0, ours)], reference(f"d,v,,task_accuracy,,,{theirs},s"))[0]
    assert found["difference"] == difference
    assert "standard_errors" not in found


def test_failed_cells_do_not_count(reference):
    failed = Record("d", "v", "guesser", 0, "failed", "broke", metrics=[Metric("task_accuracy", 0.1)])
    assert compare([failed], reference("d,v,,task_accuracy,,,0.8,s"))[0]["seeds"] == 0


@pytest.mark.parametrize("value", ["", "high", "nan"])
def test_a_value_that_is_no_number_is_named(value, reference):
    with pytest.raises(RequestError, match=f"reference.csv: line 3: value '{value}' is not a number"):
        reference("d,v,,task_accuracy,,,0.8,s", f"d,v,,task_accuracy,,,{value},s")


def test_other_columns_are_refused(tmp_path):
    (tmp_path / "reference.csv").write_text("dataset,value\nd,1\n", "utf-8")
    with pytest.raises(RequestError, match="columns dataset, value; allowed: dataset, victim, attack, metric"):
        read_reference(tmp_path)


def test_without_a_file_there_is_nothing_to_compare(tmp_path):
    assert read_reference(tmp_path) == []


class TestEndToEnd:
    """A suite with a reference prints and publishes its differences."""

    def test_report_and_csv(self, copied, command_line):
        cells = pd.read_csv(copied.run / "cells.csv", keep_default_na=False)
        row = cells[(cells["metric"] == "attack_score")].iloc[0]
        home = copied.folder / "tiny"
        home.mkdir(exist_ok=True)
        line = f'{row["dataset"]},"{row["victim"]}","{row["attack"]}",attack_score,,,0.125,"A 2020"'
        (home / "reference.csv").write_text(f"{HEAD}{line}\n", "utf-8")
        code, out, _ = command_line(*copied.arguments("report"))
        assert code == 0
        assert "A 2020: 1 of 1 numbers measured" in out
        table = pd.read_csv(copied.run / "comparison.csv")
        assert table["theirs"].tolist() == [0.125]
        assert table["difference"][0] == pytest.approx(table["ours"][0] - 0.125, abs=2e-4)
        command_line(*copied.arguments("publish"))
        assert (home / "comparison.csv").is_file()

    def test_a_malformed_reference_is_one_line_and_status_2(self, copied, command_line):
        (copied.folder / "tiny").mkdir(exist_ok=True)
        (copied.folder / "tiny" / "reference.csv").write_text(f"{HEAD}d,v,,m,,,high,s\n", "utf-8")
        code, _, err = command_line(*copied.arguments("report"))
        assert (code, err.count("\n")) == (2, 1)
        assert "line 2: value 'high' is not a number" in err
