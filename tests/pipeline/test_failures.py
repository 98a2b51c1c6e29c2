"""A defect fails its own cells with a reason, and finished cells are kept."""

import errno
import json
import subprocess
import sys

import pandas as pd
import pytest
from bench import CHECKOUT

from leakboard import store

FIT = "        bare = FittedHashed"
SOLVE = "        square ="
GUESS = "name: vectors @ matrix for"
MEANS = "        return means +"


@pytest.fixture
def run(bench, command_line):
    """Return a function that runs a suite and returns exit code, printed text, and status by victim and attack."""

    def run(**content):
        bench.suite(**content)
        code, out, err = command_line(*bench.arguments("run"))
        assert err == ""
        return code, out, bench.leaderboard()["status"]

    return run


def failure(bench):
    """Return the only recorded failure."""
    (path,) = bench.run.glob("cells/*/failure.json")
    return json.loads(path.read_text())


def line_of(path, text):
    """Return file and line of the only line of a plugin that has a text."""
    (number,) = [i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return f"{path.name}:{number}"


def before(line, *statements):
    """Return a replacement that puts statements before a line of a method."""
    return line, "".join(f"        {statement}\n" for statement in statements) + line


DEFECTS = {
    "an exception of its own": (
        "hashed",
        before(FIT, 'raise type("Odd", (BaseException,), {})("strange")'),
        "Odd: strange",
    ),
    "raises": ("hashed", before(FIT, 'raise ValueError("odd data")'), "ValueError: odd data"),
    "no network": (
        "hashed",
        before(FIT, 'raise ConnectionError("hub not reached")'),
        "ConnectionError: hub not reached",
    ),
    "no file": (
        "hashed",
        before(FIT, 'open("/nowhere/w.bin").read()'),
        "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/w.bin'",
    ),
    "no room on a disk of its own": (
        "hashed",
        before(FIT, 'open("/dev/full", "wb", 0).write(b"x")'),
        "OSError: [Errno 28] No space left on device",
    ),
    "publishes NaN": (
        "hashed",
        before(MEANS, "means[2] = np.nan if self.weights.any() else 0"),
        "ValueError: document vectors of train: 1 of 165 hold NaN or infinity; first in row 2",
    ),
    "publishes doubles": (
        "hashed",
        (MEANS, "        return means.astype(float) +"),
        "ValueError: document vectors of train: float64, expected float32",
    ),
    "labels of a wrong shape": (
        "hashed",
        ("> 0).astype(np.int64)", "> 0).astype(np.int64)[:-1]"),
        "ValueError: task labels: shape (89,), expected (90,)",
    ),
    "saves nothing": (
        "hashed",
        ("    def _vector", "    def save(self, folder):\n        pass\n\n    def _vector"),
        "FileNotFoundError: [Errno 2] No such file or directory: ",
    ),
    "guesses too few": (
        "ridge",
        (GUESS, "name: vectors[1:] @ matrix for"),
        "guesses of 'colour' have shape (89, 2), not (90, 2)",
    ),
    "guesses too many values": (
        "ridge",
        (GUESS, "name: np.c_[vectors, vectors] for"),
        "guesses of 'colour' have shape (90, 48), not (90, 2)",
    ),
    "guesses NaN": ("ridge", (GUESS, "name: vectors @ matrix * np.nan for"), "are not finite"),
    "guesses nothing": (
        "ridge",
        ("in weights.items()}", "in weights.items() if not name}"),
        "the attack guesses nothing for 'colour'",
    ),
    "attack raises": ("ridge", before(SOLVE, "1 / 0"), "ZeroDivisionError: division by zero"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", DEFECTS)
def test_a_defect_fails_its_cells_alone_until_it_is_mended(case, bench, run):
    source, replacement, reason = DEFECTS[case]
    bench.plugin(source, "other", replacement)
    kind = "victims" if source == "hashed" else "attacks"
    code, out, status = run(**{kind: ["other", source]})
    assert code == 1
    assert reason in out
    (failed,) = [value for value in status if value != "ok"]
    assert reason in failed
    assert failed.startswith("failed: ")
    recorded = failure(bench)
    assert reason in recorded["reason"]
    assert recorded["traceback"].startswith("Traceback")
    good = bench.results()

    bench.plugin(source, "other")
    code, out, status = run(**{kind: ["other", source]})
    assert (code, out.count("failed")) == (0, 0)
    assert good.items() <= bench.results().items()
    assert status.tolist() == ["ok", "ok"]
    scores = bench.leaderboard()["attack_score"].tolist()
    assert kind == "victims" or scores[0] == scores[1]


@pytest.mark.slow
def test_a_plugin_that_ends_its_process_fails_its_cells(bench, run):
    fit = bench.plugin("hashed", "other", before(FIT, "raise SystemExit(0)"))
    attack = bench.plugin("ridge", "third", before(SOLVE, "raise SystemExit(4)"))
    code, _, status = run(victims=["other", "hashed"], attacks=["third", "ridge"])
    assert code == 1
    assert status["other", "ridge"] == f"failed: SystemExit: 0 ({line_of(fit, 'raise SystemExit')})"
    assert status["hashed", "third"] == f"failed: SystemExit: 4 ({line_of(attack, 'raise SystemExit')})"
    assert status["hashed", "ridge"] == "ok"


def status_by_dataset(bench):
    return pd.read_csv(bench.run / "leaderboard.csv", index_col="dataset")["status"].to_dict()


@pytest.mark.slow
def test_a_plugin_that_cannot_be_identified_fails_its_cells(bench, run):
    path = bench.plugin("letters", "other", ('        return "letters-1"', '        raise OSError("no such shelf")'))
    assert run(datasets=["other", "letters"])[0] == 1
    reason = f"failed: OSError: no such shelf ({line_of(path, 'raise')})"
    assert status_by_dataset(bench) == {"letters": "ok", "other": reason}


@pytest.mark.parametrize("error", [pytest.param("SystemExit(3)", marks=pytest.mark.slow), 'OSError("boom")'])
def test_a_dataset_that_cannot_be_loaded_fails_its_cells_alone(error, bench, run):
    path = bench.plugin("letters", "other", before("        rng = stream(", f"raise {error}"))
    auxiliary = [{"letters": {"auxiliary": choice}} for choice in ("other", {"letters": {"size": 60}})]
    assert run(datasets=["other", *auxiliary])[0] == 1
    reason = f"failed: {'SystemExit: 3' if 'Exit' in error else 'OSError: boom'} ({line_of(path, 'raise')})"
    assert status_by_dataset(bench) == {
        "other": reason,
        "letters (auxiliary=other)": reason,
        "letters (auxiliary=letters(size=60))": "ok",
    }


def with_coverage(bench, answer):
    """Write a victim that gives this answer when it is asked which texts it cuts, and which it does not know."""
    imports = "from leakboard.interfaces import Corpus"
    method = f"    def coverage(self, texts):\n        return {answer}\n\n"
    bench.plugin("hashed", "other", (imports, f"{imports}, Coverage"), ("    def _vector", f"{method}    def _vector"))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param('{"attack_score": 0.0}', "TypeError", marks=pytest.mark.slow),
        ("Coverage(attack_score=0.0)", "unexpected keyword argument 'attack_score'"),
        pytest.param(
            "Coverage(cut=1.5)",
            "coverage: cut_texts=1.5 is not allowed: a share of texts, from 0 to 1",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_victim_cannot_set_a_score_by_its_coverage(answer, reason, bench, run):
    with_coverage(bench, answer)
    code, _, status = run(victims=["other", "hashed"])
    assert code == 1
    assert reason in status["other", "ridge"]
    assert status["hashed", "ridge"] == "ok"


@pytest.mark.slow
def test_coverage_is_in_the_cells_table(bench, run):
    with_coverage(bench, "Coverage(cut=0.25)")
    assert run(victims=["other"])[0] == 0
    cells = pd.read_csv(bench.run / "cells.csv")
    assert cells[cells["metric"] == "cut_texts"]["value"].tolist() == [0.25]
    assert cells[cells["metric"] == "unknown_texts"].empty


@pytest.mark.slow
def test_an_attack_that_knows_the_order_of_the_texts_learns_nothing_from_it(bench, run):
    """The secret depends on the row's number alone. An attack that guesses by the position is at chance."""
    thirds = '{name: frame[i::3] for i, name in enumerate(("train", "dev", "test"))}'
    colour = 'frame["colour"] = np.arange(self.size) // 3 % 2'
    split = ("divide(frame, 0.15, 0.3, 0)", thirds)
    bench.plugin("letters", "ordered", before("        return build_corpus", colour), split)
    bench.plugin("ridge", "by_position", (GUESS, "name: np.eye(2)[np.arange(len(vectors)) % 2] for"))
    assert run(datasets=["ordered"], attacks=["by_position"])[0] == 0
    score = float(bench.leaderboard().loc[("hashed", "by_position"), "attack_score"])
    assert 0.3 < score < 0.7  # 100 texts: 0.5 +- 4 standard deviations


@pytest.mark.slow
def test_a_failure_with_a_cause_outside_is_tried_again(bench, run):
    needed = bench.folder / "needed.txt"
    bench.plugin("hashed", "other", before(FIT, f"open({str(needed)!r}).read()"))
    assert run(victims=["other"])[0] == 1
    assert "needed.txt" in failure(bench)["reason"]
    needed.touch()
    assert run(victims=["other"])[0] == 0
    assert not list(bench.run.glob("cells/*/failure.json"))


@pytest.mark.slow
def test_a_broken_plugin_fails_only_its_cells(bench, run, command_line):
    bench.plugin("hashed", "other", ("@victim\n", "@victim(\n"))
    _, listed, _ = command_line("list", "victims", "--plugin", bench.files[-1])
    (line,) = [line for line in listed.splitlines() if line.startswith("other")]
    assert "broken: SyntaxError" in line
    code, _, status = run(victims=["hashed", {"other": {"grid": {"noise": [0.1, 0.2]}}}])
    assert code == 1
    assert status["hashed", "ridge"] == "ok"
    assert ["is broken: SyntaxError" in value for value in status[1:]] == [True, True]


def test_a_full_disk_ends_the_run_and_keeps_finished_cells(bench, command_line, monkeypatch):
    bench.suite(seeds=[0, 1])
    calls, fsync = [], store.os.fsync

    def fills_up(number):
        calls.append(number)
        if len(calls) > 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(number)

    with monkeypatch.context() as patched:
        patched.setattr(store.os, "fsync", fills_up)
        code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert "No space left on device" in err
    kept = bench.results()
    assert len(kept) == 1
    code, out, _ = command_line(*bench.arguments("run"))
    assert (code, "computed again" in out) == (0, False)
    assert kept.items() <= bench.results().items()
    resumed, bench.out = bench.tables(), bench.folder / "anew"
    command_line(*bench.arguments("run"))
    assert bench.tables() == resumed


def test_an_attack_goes_on_from_its_state_unless_its_code_has_changed(bench, run):
    """The attack fails where it finds no state of its own; the state of a finished attack is removed."""
    goes_on = """from leakboard.workspace import resume_dir
        state = resume_dir("attack") / "state"
        if not state.exists():
            state.write_text("half")
            raise ValueError("interrupted")"""
    bench.plugin("ridge", "goes_on", before(SOLVE, goes_on))
    assert run(attacks=["goes_on"])[2]["hashed", "goes_on"] != "ok"
    (left,) = bench.out.glob(".cache/unfinished/*")
    bench.plugin("ridge", "goes_on", before(SOLVE, goes_on, "other = 1"))
    assert run(attacks=["goes_on"])[2]["hashed", "goes_on"] != "ok"
    assert len(list(bench.out.glob(".cache/unfinished/*"))) == 2
    assert run(attacks=["goes_on"])[2]["hashed", "goes_on"] == "ok"
    assert list(bench.out.glob(".cache/unfinished/*")) == [left]


def test_a_failure_names_the_innermost_line_of_the_plugin(bench, run):
    """The call goes through a library and back. An error that the engine finds has no line in the plugin."""
    call = "np.apply_along_axis(lambda row: 1 / 0, 1, view.vectors)"
    path = bench.plugin("ridge", "deep", before(SOLVE, call))
    bench.plugin("ridge", "short", (GUESS, "name: vectors[1:] @ matrix for"))
    code, out, status = run(attacks=["deep", "short"])
    reason = f"ZeroDivisionError: division by zero ({line_of(path, '1 / 0')})"
    assert code == 1
    assert reason in " ".join(out.split())
    assert status["hashed", "deep"] == f"failed: {reason}"
    assert ".py:" not in status["hashed", "short"]


def test_a_class_that_lacks_a_method_fails_before_anything_is_computed(bench, run):
    bench.plugin("hashed", "other", ("    def fit(", "    def fitt("))
    code, _, (status,) = run(victims=["other"])
    assert code == 1
    assert not (bench.out / ".cache").exists()
    assert "Hashed does not define fit, which every victim has; did you mean 'fitt'? (other.py:" in status


@pytest.mark.slow
def test_what_a_plugin_prints_is_shown_in_part(bench, tmp_path):
    bench.plugin("hashed", "loud", before(FIT, "for _ in range(200): print('z' * 50_000)"))
    bench.suite(victims=["loud"])
    command = [sys.executable, CHECKOUT / "run_benchmark.py", *bench.arguments("run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    assert 5_000 < (done.stdout + done.stderr).count("z" * 10) * 10 <= 10_000
    assert done.stderr.count("more output of this task is not shown") == 1
