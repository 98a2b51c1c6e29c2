"""Runs of the program itself: processes are interrupted, killed or die. The results stay the same."""

import os
import signal

import pytest
from running import is_gone, wait_for

WAIT = """        marker = Path(os.environ["TINY_MARKER"])
        if marker.exists():
            (marker.parent / "started").touch()
        while marker.exists():
            time.sleep(0.02)
"""
FIT = "        bare = FittedHashed"
IMPORTS = ("from dataclasses", "import os\nimport time\nfrom pathlib import Path\nfrom dataclasses")


@pytest.fixture
def sleepy(bench):
    """Return a bench with a victim that sleeps while a marker exists, and the marker."""
    bench.plugin("hashed", "sleepy", IMPORTS, (FIT, WAIT + FIT))
    marker = bench.folder / "marker"
    marker.touch()
    return bench, marker


INTERRUPTIONS = {
    "ctrl-c": (signal.SIGINT, os.killpg, 130),
    "kill -9 of all": (signal.SIGKILL, os.killpg, -9),
    "kill -9 of the parent": (signal.SIGKILL, os.kill, -9),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", INTERRUPTIONS)
def test_an_interrupted_run_goes_on_to_the_same_bytes(case, sleepy, command_line, monkeypatch):
    """The number of jobs does not matter, nor the seed of hashes in the first process."""
    number, kill, expected = INTERRUPTIONS[case]
    bench, marker = sleepy
    bench.suite(victims=["hashed", "sleepy"])
    process = bench.process("run", "--jobs", 1, TINY_MARKER=str(marker), PYTHONHASHSEED="77")
    try:
        wait_for((bench.folder / "started").exists)
        kill(process.pid, number)
        wait_for(lambda: is_gone(process.pid), 20)
    finally:
        if not is_gone(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert process.returncode == expected
    assert "Traceback" not in err
    assert ("interrupted: 1 finished cell is kept in " in err) == (case == "ctrl-c")
    assert not (bench.run / "leaderboard.csv").exists()
    before = bench.results()
    assert [path.parent.name[:22] for path in before] == ["letters-hashed-ridge-s"]

    marker.unlink()
    monkeypatch.setenv("TINY_MARKER", str(marker))
    code, out, _ = command_line(*bench.arguments("run", "--jobs", 1))
    assert code == 0, out
    assert before.items() <= bench.results().items()
    resumed, bench.out = bench.tables(), bench.folder / "uninterrupted"
    assert command_line(*bench.arguments("run", "--jobs", 2))[0] == 0
    assert bench.tables() == resumed


@pytest.mark.slow
def test_cells_fail_alone_by_a_dying_process_an_odd_exception_and_a_timeout(sleepy):
    bench, marker = sleepy
    bench.plugin("hashed", "dying", IMPORTS, (FIT, f"        os._exit(3)\n{FIT}"))
    odd = "class OddError(Exception):\n    def __init__(self, a, b):\n        super().__init__(a + b)\n\n\n@victim\n"
    path = bench.plugin("hashed", "odd", ("@victim\n", odd), (FIT, f'        raise OddError("so", " odd")\n{FIT}'))
    bench.suite(victims=["dying", "odd", "sleepy", "hashed"], timeout=15)
    process = bench.process("run", TINY_MARKER=str(marker))
    out, err = process.communicate(timeout=200)
    assert process.returncode == 1, out
    assert "Traceback" not in err
    line = path.read_text().splitlines().index('        raise OddError("so", " odd")') + 1
    assert bench.leaderboard()["status"].to_dict() == {
        ("dying", "ridge"): "failed: its process died (exit code 3)",
        ("odd", "ridge"): f"failed: OddError: so odd (odd.py:{line})",
        ("sleepy", "ridge"): "failed: TimeoutError: took longer than timeout=15 s",
        ("hashed", "ridge"): "ok",
    }


@pytest.mark.parametrize(
    ("blocked", "reason"),
    [("out", "is a file; allowed: a folder"), ("out/tiny", "cannot be written (Not a directory)")],
)
def test_an_unwritable_folder_is_one_line(blocked, reason, bench, command_line):
    bench.suite()
    path = bench.folder / blocked
    path.parent.mkdir(exist_ok=True)
    path.write_text("in the way")
    bench.out = bench.folder / "out" / "inner" if blocked == "out" else bench.out
    status, _, err = command_line(*bench.arguments("run"))
    assert (status, err.count("\n")) == (2, 1)
    assert str(path) in err
    assert reason in err


def test_victims_with_the_same_training_are_fitted_once(bench, command_line):
    """This victim adds noise only when it publishes, so two dimensions are two fits."""
    training = "    def training_config(self):\n        return Hashed(dimensions=self.dimensions)\n\n"
    load = "    def load(self, folder):\n        return replace(super().load(folder), noise=self.noise)\n\n"
    fit = "    def fit(self"
    bench.plugin("hashed", "hashed", ("import dataclass", "import dataclass, replace"), (fit, training + load + fit))
    bench.files = [path for path in bench.files if path.name != "hashed.py" or path.parent == bench.folder]
    bench.suite(victims=[{"hashed": {"grid": {"dimensions": [8, 24], "noise": [0.0, 0.1, 1.0]}}}], seeds=[0, 1])
    code, out, err = command_line(*bench.arguments("run"))
    assert code == 0, out + err
    assert len(list((bench.out / ".cache" / "victims").glob("letters-hashed-*"))) == 4
    assert len(list((bench.out / ".cache" / "publications").glob("letters-hashed-*"))) == 12
    scores = bench.leaderboard()["attack_score"].astype(float)
    assert scores["hashed (dimensions=24, noise=1.0)"].iloc[0] < scores["hashed (dimensions=24, noise=0.0)"].iloc[0]
    assert out.count(" / fit hashed") >= 4
