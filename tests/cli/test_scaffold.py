"""Test the plugins that `new` writes: they pass lint and their tests, and run on data with and without a task label."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from bench import CHECKOUT

from leakboard.board.leaderboard import PERFECT

NAMES = {"dataset": "written_dataset", "victim": "written_victim", "attack": "written_attack"}
"""By kind; not the names of CONTRIBUTING.md, which a checkout may have already."""


@pytest.fixture
def written(output_of, tmp_path):
    """Return a folder with one plugin of each kind that `new` wrote."""
    for kind, name in NAMES.items():
        assert f"{name}.py" in output_of("new", kind, name, "--folder", tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def files(written):
    return [written / f"{kind}s" / f"{name}.py" for kind, name in NAMES.items()]


@pytest.fixture
def run(files, bench, output_of):
    """Return a function that runs the written victim and attack on a dataset and returns the leaderboard's only row."""

    def call(dataset):
        bench.files = files
        bench.suite(datasets=[dataset], victims=[NAMES["victim"]], attacks=[NAMES["attack"]], text_classifier=False)
        output_of(*bench.arguments("run"))
        (row,) = bench.leaderboard().reset_index().to_dict("records")
        return row

    return call


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_the_written_files_pass_the_linter(written, command):
    ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "--config", str(CHECKOUT / "pyproject.toml"), "."]
    process = subprocess.run(ruff, cwd=written, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    assert len(list(written.rglob("*.py"))) == 2 * len(NAMES)  # so that it had files to read


@pytest.mark.slow  # starts new processes
def test_the_written_tests_pass(written):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(written / "tests")]
    process = subprocess.run(
        command, cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout
    assert "4 passed" in process.stdout


def test_the_written_plugins_run_together(run):
    row = run(NAMES["dataset"])
    assert (row["status"], row["secrets"]) == (PERFECT, "mood")
    assert float(row["attack_score"]) > 0.9  # every text holds one of two words of its mood
    assert float(row["task_accuracy"]) > 0.9


def test_the_written_plugins_run_without_a_task_label(run, written):
    moods = ["cheerful", "gloomy"] * 100
    words = {"cheerful": ("sunny", "lovely"), "gloomy": ("grey", "tiresome")}
    texts = [f"note {i}: a {words[mood][i // 2 % 2]} day" for i, mood in enumerate(moods)]
    pd.DataFrame({"text": texts, "mood": moods}).to_csv(written / "notes.csv", index=False)
    row = run({"table": {"path": str(written / "notes.csv"), "secrets": ["mood"], "test_share": 0.3}})
    assert (row["status"], row["task_accuracy"], row["task_majority"]) == (PERFECT, "", "")
    assert float(row["attack_score"]) > 0.9


@pytest.mark.slow
def test_the_written_plugins_pass_the_conformance_suite(files, output_of):
    out = output_of("check", *(text for path in files for text in ("--plugin", path)))
    assert out.count(", 0 failed, ") == len(NAMES)
    assert out.count("it declares no revision yet") == len(NAMES)


def test_an_existing_file_is_not_overwritten(written, refusal):
    edited = written / "victims" / f"{NAMES['victim']}.py"
    edited.write_text("# edited")
    assert "exists already" in refusal("new", "victim", NAMES["victim"], "--folder", written)
    assert edited.read_text() == "# edited"
