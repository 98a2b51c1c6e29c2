"""Files that `new` writes work unchanged: they pass their tests, and run on data with and without a task label."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
NAMES = {"dataset": "my_dataset", "victim": "my_victim", "attack": "my_attack"}


@pytest.fixture
def written(command_line, tmp_path):
    """Return the folder of one plugin a kind, as `new` writes them."""
    for kind, name in NAMES.items():
        status, out, err = command_line("new", kind, name, "--folder", tmp_path / "mine")
        assert status == 0, err
        assert f"{name}.py" in out
    return tmp_path / "mine"


@pytest.fixture
def run(written, bench, command_line):
    """Return how to run the written victim and attack on a dataset: the only row of the leaderboard."""

    def call(dataset):
        bench.files = [written / f"{kind}s" / f"{name}.py" for kind, name in NAMES.items()]
        bench.suite(datasets=[dataset], victims=[NAMES["victim"]], attacks=[NAMES["attack"]], text_classifier=False)
        status, out, err = command_line(*bench.arguments("run"))
        assert status == 0, out + err
        (row,) = bench.leaderboard().reset_index().to_dict("records")
        return row

    return call


@pytest.mark.slow  # their programs start anew
def test_the_written_tests_pass(written):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(written / "tests")]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_the_written_plugins_run_together(run):
    row = run(NAMES["dataset"])
    assert (row["status"], row["secrets"]) == ("ok", "mood")
    assert float(row["attack_score"]) > 0.9  # every text has the mood, as one of two words
    assert float(row["task_accuracy"]) > 0.9


def test_they_work_on_data_without_a_task_label(run, written):
    moods = ["cheerful", "gloomy"] * 100
    words = {"cheerful": ("sunny", "lovely"), "gloomy": ("grey", "tiresome")}
    texts = [f"note {i}: a {words[mood][i // 2 % 2]} day" for i, mood in enumerate(moods)]
    pd.DataFrame({"text": texts, "mood": moods}).to_csv(written / "notes.csv", index=False)
    row = run({"table": {"path": str(written / "notes.csv"), "secrets": ["mood"], "test_share": 0.3}})
    assert (row["status"], row["task_accuracy"], row["task_majority"]) == ("ok", "", "")
    assert float(row["attack_score"]) > 0.9


@pytest.mark.slow
def test_the_written_plugins_pass_the_conformance_suite(written, command_line):
    files = [written / f"{kind}s" / f"{name}.py" for kind, name in NAMES.items()]
    status, out, _ = command_line("check", *(text for path in files for text in ("--plugin", path)))
    assert status == 0, out
    assert out.count(", 0 failed, ") == len(NAMES)
    assert out.count("no revision: it may be run, not published") == len(NAMES)


def test_what_is_there_is_not_written_over(written, command_line):
    mended = written / "victims" / "my_victim.py"
    mended.write_text("# mended")
    status, _, err = command_line("new", "victim", "my_victim", "--folder", written)
    assert (status, err.count("\n")) == (2, 1)
    assert "exists already" in err
    assert mended.read_text() == "# mended"
