"""A defect fails its own cells, with a reason, and what is finished is kept."""

import errno
import json

import pandas as pd
import pytest

from leakboard import store
from leakboard.errors import StopRun
from leakboard.execution import local
from leakboard.execution.engines import Task

FIT = "        bare = FittedHashed"


def failure(bench):
    """Return the only recorded failure."""
    (path,) = bench.run.glob("cells/*/failure.json")
    return json.loads(path.read_text())


def place(path, text):
    """Return file and line of the only line of a plugin that holds a text."""
    (number,) = [i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return f"{path.name}:{number}"


DEFECTS = {
    "raises": ("hashed", (FIT, f'        raise ValueError("odd data")\n{FIT}'), "ValueError: odd data"),
    "no network": (
        "hashed",
        (FIT, f'        raise ConnectionError("hub not reached")\n{FIT}'),
        "ConnectionError: hub not reached",
    ),
    "no file": (
        "hashed",
        (FIT, f'        open("/nowhere/w.bin").read()\n{FIT}'),
        "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/w.bin'",
    ),
    "no room on a disk of its own": (
        "hashed",
        (FIT, f'        open("/dev/full", "wb", 0).write(b"x")\n{FIT}'),
        "OSError: [Errno 28] No space left on device",
    ),
    "publishes NaN": (
        "hashed",
        ("        return means +", "        means[2] = np.nan if self.weights.any() else 0\n        return means +"),
        "ValueError: document vectors of train: 1 of 165 hold NaN or infinity; first in row 2",
    ),
    "publishes doubles": (
        "hashed",
        ("        return means +", "        return means.astype(float) +"),
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
        ("name: vectors @ matrix for", "name: vectors[1:] @ matrix for"),
        "guesses of 'colour' have shape (89, 2), not (90, 2)",
    ),
    "guesses too many values": (
        "ridge",
        ("name: vectors @ matrix for", "name: np.c_[vectors, vectors] for"),
        "guesses of 'colour' have shape (90, 48), not (90, 2)",
    ),
    "guesses NaN": ("ridge", ("name: vectors @ matrix for", "name: vectors @ matrix * np.nan for"), "are not finite"),
    "guesses nothing": (
        "ridge",
        ("in weights.items()}", "in weights.items() if not name}"),
        "the attack guesses nothing for 'colour'",
    ),
    "attack raises": (
        "ridge",
        ("        square =", "        1 / 0\n        square ="),
        "ZeroDivisionError: division by zero",
    ),
}


@pytest.mark.parametrize("case", DEFECTS)
def test_a_defect_fails_its_cells_alone_until_it_is_mended(case, bench, command_line):
    source, replacement, reason = DEFECTS[case]
    bench.plugin(source, "other", replacement)
    kind = "victims" if source == "hashed" else "attacks"
    bench.suite(**{kind: ["other", source]})
    code, out, err = command_line(*bench.arguments("run"))
    assert (code, err) == (1, "")
    assert reason in out
    status = bench.leaderboard()["status"]
    (told,) = [value for value in status if value != "ok"]
    assert reason in told
    assert told.startswith("failed: ")
    recorded = failure(bench)
    assert reason in recorded["reason"]
    assert recorded["traceback"].startswith("Traceback")
    good = bench.results()

    bench.plugin(source, "other")
    code, out, _ = command_line(*bench.arguments("run"))
    assert (code, out.count("failed")) == (0, 0)
    assert good.items() <= bench.results().items()
    assert bench.leaderboard()["status"].tolist() == ["ok", "ok"]
    scores = bench.leaderboard()["attack_score"].tolist()
    assert kind == "victims" or scores[0] == scores[1]


def test_a_plugin_that_ends_its_process_fails_its_cells(bench, command_line):
    fit = bench.plugin("hashed", "other", (FIT, f"        raise SystemExit(0)\n{FIT}"))
    attack = bench.plugin("ridge", "third", ("        square =", "        raise SystemExit(4)\n        square ="))
    bench.suite(victims=["other", "hashed"], attacks=["third", "ridge"])
    assert command_line(*bench.arguments("run"))[0] == 1
    status = bench.leaderboard()["status"]
    assert status["other", "ridge"] == f"failed: SystemExit: 0 ({place(fit, 'raise SystemExit')})"
    assert status["hashed", "third"] == f"failed: SystemExit: 4 ({place(attack, 'raise SystemExit')})"
    assert status["hashed", "ridge"] == "ok"


def test_a_plugin_that_cannot_be_identified_fails_its_cells(bench, command_line):
    path = bench.plugin("letters", "other", ('        return "letters-1"', '        raise OSError("no such shelf")'))
    bench.suite(datasets=["other", "letters"])
    assert command_line(*bench.arguments("run"))[0] == 1
    table = pd.read_csv(bench.run / "leaderboard.csv", index_col="dataset")
    assert table["status"].to_dict() == {
        "letters": "ok",
        "other": f"failed: OSError: no such shelf ({place(path, 'raise')})",
    }


@pytest.mark.parametrize("end", ["SystemExit(3)", 'OSError("boom")'])
def test_a_dataset_that_cannot_be_loaded_fails_its_cells_alone(end, bench, command_line):
    load = "        rng = stream("
    path = bench.plugin("letters", "other", (load, f"        raise {end}\n{load}"))
    bench.suite(
        datasets=["other", {"letters": {"auxiliary": "other"}}, {"letters": {"auxiliary": {"letters": {"size": 60}}}}]
    )
    assert command_line(*bench.arguments("run"))[0] == 1
    status = pd.read_csv(bench.run / "leaderboard.csv", index_col="dataset")["status"].to_dict()
    reason = f"failed: {'SystemExit: 3' if 'Exit' in end else 'OSError: boom'} ({place(path, 'raise')})"
    assert status == {
        "other": reason,
        "letters (auxiliary=other)": reason,
        "letters (auxiliary=letters(size=60))": "ok",
    }


COVERAGE = (
    ("from leakboard.interfaces import Corpus", "from leakboard.interfaces import Corpus, Coverage"),
    "    def _vector",
)


def with_coverage(bench, answer):
    """Write a victim that answers so when it is asked which texts it cuts, and which it does not know."""
    imports, place = COVERAGE
    method = f"    def coverage(self, texts):\n        return {answer}\n\n{place}"
    bench.plugin("hashed", "other", imports, (place, method))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"attack_score": 0.0}', "TypeError"),
        ("Coverage(attack_score=0.0)", "unexpected keyword argument 'attack_score'"),
        ("Coverage(cut=1.5)", "coverage: cut_texts=1.5 is not allowed: a share of texts, from 0 to 1"),
    ],
)
def test_a_victims_coverage_is_no_way_to_a_score(answer, reason, bench, command_line):
    with_coverage(bench, answer)
    bench.suite(victims=["other", "hashed"])
    assert command_line(*bench.arguments("run"))[0] == 1
    status = bench.leaderboard()["status"]
    assert reason in status["other", "ridge"]
    assert status["hashed", "ridge"] == "ok"


def test_coverage_stands_in_the_cells_table(bench, command_line):
    with_coverage(bench, "Coverage(cut=0.25)")
    bench.suite(victims=["other"])
    assert command_line(*bench.arguments("run"))[0] == 0
    cells = pd.read_csv(bench.run / "cells.csv")
    assert cells[cells["metric"] == "cut_texts"]["value"].tolist() == [0.25]
    assert cells[cells["metric"] == "unknown_texts"].empty


def test_an_attack_that_knows_the_order_of_the_texts_is_told_nothing(bench, command_line):
    """The victim publishes noise; an attack that answers by a vector's place must be at chance."""
    letters = (
        "        return build_corpus",
        '        frame["colour"] = np.arange(self.size) // 3 % 2\n        return build',
    )
    bench.plugin("letters", "ordered", (letters[0], letters[1] + "_corpus"), ("divide(frame, 0.15, 0.3, 0)", THIRDS))
    places = "np.arange(len(vectors)) % 2"
    bench.plugin("ridge", "by_place", ("name: vectors @ matrix for", f"name: np.eye(2)[{places}] for"))
    bench.suite(datasets=["ordered"], attacks=["by_place"])
    assert command_line(*bench.arguments("run"))[0] == 0, bench.run
    score = float(bench.leaderboard().loc[("hashed", "by_place"), "attack_score"])
    assert 0.3 < score < 0.7  # 100 texts: 0.5 +- 4 standard deviations


THIRDS = '{name: frame[i::3] for i, name in enumerate(("train", "dev", "test"))}'


def test_a_failure_from_outside_is_tried_again(bench, command_line):
    needed = bench.folder / "needed.txt"
    bench.plugin("hashed", "other", (FIT, f"        open({str(needed)!r}).read()\n{FIT}"))
    bench.suite(victims=["other"])
    assert command_line(*bench.arguments("run"))[0] == 1
    assert "needed.txt" in failure(bench)["reason"]
    needed.touch()
    assert command_line(*bench.arguments("run"))[0] == 0
    assert not list(bench.run.glob("cells/*/failure.json"))


def test_a_broken_plugin_fails_only_its_cells(bench, command_line):
    bench.plugin("hashed", "other", ("@victim\n", "@victim(\n"))
    bench.suite(victims=["hashed", {"other": {"grid": {"noise": [0.1, 0.2]}}}])
    _, out, _ = command_line("list", "victims", "--plugin", bench.files[-1])
    (line,) = [line for line in out.splitlines() if line.startswith("other")]
    assert "broken: SyntaxError" in line
    assert command_line(*bench.arguments("run"))[0] == 1
    status = bench.leaderboard()["status"]
    assert status["hashed", "ridge"] == "ok"
    assert [("is broken: SyntaxError" in value) for value in status[1:]] == [True, True]


def test_a_full_disk_ends_the_run_and_keeps_what_is_finished(bench, command_line, monkeypatch):
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
    resumed = bench.tables()
    bench.out = bench.folder / "anew"
    command_line(*bench.arguments("run"))
    assert bench.tables() == resumed


def test_an_unwritable_folder_of_cells_is_one_line(bench, command_line):
    bench.suite()
    bench.out.mkdir()
    bench.run.write_text("in the way")
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be written (Not a directory)" in err


def test_a_failure_names_the_innermost_line_that_is_the_plugins_own(bench, command_line):
    """Of calls through libraries and back; an error that the engine finds has no line in the plugin."""
    calls = ("        square =", "        np.apply_along_axis(lambda row: 1 / 0, 1, view.vectors)\n        square =")
    path = bench.plugin("ridge", "deep", calls)
    bench.plugin("ridge", "short", ("name: vectors @ matrix for", "name: vectors[1:] @ matrix for"))
    bench.suite(attacks=["deep", "short"])
    code, out, _ = command_line(*bench.arguments("run"))
    reason = f"ZeroDivisionError: division by zero ({place(path, '1 / 0')})"
    assert code == 1
    assert reason in " ".join(out.split())
    status = bench.leaderboard()["status"]
    assert status["hashed", "deep"] == f"failed: {reason}"
    assert ".py:" not in status["hashed", "short"]


def test_a_class_that_lacks_a_part_fails_before_anything_is_computed(bench, command_line):
    bench.plugin("hashed", "other", ("    def fit(", "    def fitt("))
    bench.suite(victims=["other"])
    assert command_line(*bench.arguments("run"))[0] == 1
    assert not (bench.out / ".cache").exists()
    (status,) = bench.leaderboard()["status"]
    assert "Hashed does not define fit, which every victim has; did you mean 'fitt'? (other.py:" in status


@pytest.mark.parametrize("part", ["Listener", "ProcessPool"])
def test_processes_without_room_to_begin_end_the_run_with_one_line(part, monkeypatch):
    """Sockets, temporary folders and locks are files, and a disk may be full before a run begins."""

    def no_room(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local, part, no_room)
    line = r"^processes cannot be started \(OSError: \[Errno 28\] No space left on device\); what was finished before"
    with pytest.raises(StopRun, match=line), local.Workers(1, print) as workers:
        workers.start([Task("task", print, ())])
