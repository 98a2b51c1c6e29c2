"""The local engine and whole runs by the program itself: processes die, hang and are killed; results stay the same."""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from leakboard.execution import local
from leakboard.execution.local import Local, usable_cores
from leakboard.execution.tasks import Task
from leakboard.logs import log_progress, log_warning

WAIT = """        marker = Path(os.environ["TINY_MARKER"])
        if marker.exists():
            (marker.parent / "started").touch()
        while marker.exists():
            time.sleep(0.02)
"""
FIT = "        bare = FittedHashed"
IMPORTS = ("from dataclasses", "import os\nimport time\nfrom pathlib import Path\nfrom dataclasses")


class TwoPartsError(Exception):
    """An exception that pickle cannot rebuild."""

    def __init__(self, left, right):
        super().__init__(f"{left} and {right}")


def answer(value, warn):
    return value


def sleep(seconds, warn):
    time.sleep(seconds)


def start_method(warn):
    return multiprocessing.get_start_method()


def meet(folder, others, warn):
    (folder / str(os.getpid())).touch()
    wait_for(lambda: len(list(folder.iterdir())) == others)


def die(code, warn):
    os._exit(code)


def write_and_die(folder, warn):
    (folder / "writes").touch()
    os._exit(1)


def kill_siblings(warn):
    """Kill every other worker, which has nothing to do; then be there for a while."""
    mine, parent = os.getpid(), os.getppid()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == parent and int(path.parent.name) != mine:
                os.kill(int(path.parent.name), signal.SIGKILL)
    time.sleep(0.5)


def spoil(folder, warn):
    os.chdir(folder)
    os.environ["SPOILT"] = json.decoder.SPOILT = "yes"


def is_spoilt(warn):
    return os.environ.get("SPOILT", "no"), getattr(json.decoder, "SPOILT", "no"), os.getcwd()


def overlap(folder, name, warn):
    """Return whether another task is running at the same time."""
    others = {path.name for path in folder.iterdir()}
    (folder / name).touch()
    time.sleep(0.3)
    others |= {path.name for path in folder.iterdir()} - {name}
    (folder / name).unlink()
    return bool(others)


def raise_odd(left, right, warn):
    raise TwoPartsError(left, right)


def say(text, warn):
    warn(text)


def log(text, warn):
    log_progress(text)
    log_warning(f"careful: {text}")


def run_all(tasks, jobs=1, timeout=None):
    heard = []
    limited = [dataclasses.replace(task, timeout=timeout) for task in tasks]
    outcomes = list(Local(jobs).run(limited, lambda task: False, lambda *event: heard.append(event)))
    return {outcome.task.name: outcome for outcome in outcomes}, heard


def test_tasks_that_fail_fail_alone():
    tasks = [
        Task("slow", sleep, (60,)),
        Task("after slow", answer, (1,), after="slow"),
        Task("after that", answer, (1,), after="after slow"),
        Task("dies", die, (3,)),
        Task("leaves", die, (0,)),
        Task("odd", raise_odd, ("one", "two")),
        Task("good", answer, (5,)),
        Task("after good", answer, (6,), after="good"),
        Task("tells", say, ("careful",)),
    ]
    outcomes, heard = run_all(tasks, timeout=2)
    errors = {name: outcome.failure.reason for name, outcome in outcomes.items() if outcome.failure}
    assert errors == {
        "slow": "TimeoutError: took longer than timeout=2 s",
        "after slow": "TimeoutError: took longer than timeout=2 s",
        "after that": "TimeoutError: took longer than timeout=2 s",
        "dies": "its process died (exit code 3)",
        "leaves": "its process ended before the task did (exit code 0)",
        "odd": "TwoPartsError: one and two",
    }
    assert (outcomes["good"].value, outcomes["after good"].value) == (5, 6)
    assert outcomes["good"].seconds > 0
    assert outcomes["after slow"].seconds == 0
    assert ("tells", "warning", "careful") in heard
    assert ("good", "start", "") in heard
    assert not any(name == "after slow" for name, _, _ in heard)


def test_workers_that_die_while_they_have_nothing_to_do_are_replaced():
    tasks = [Task("kills", kill_siblings, ()), *(Task(str(i), answer, (i,), after="kills") for i in range(8))]
    outcomes, _ = run_all(tasks, jobs=3)
    assert [outcome.failure for outcome in outcomes.values()] == [None] * 9


def die_at_start(*_):
    os._exit(7)


def test_a_task_whose_workers_die_while_they_start_fails_with_that_reason(monkeypatch):
    monkeypatch.setattr(local, "_enter", die_at_start)
    outcomes, _ = run_all([Task("never", answer, (1,))])
    assert outcomes["never"].failure.reason == "3 processes died before they began with it"


def test_plugins_of_others_share_no_process(tmp_path):
    """What one changes in a library is not there for the others, nor for itself: results depend on no history."""
    tasks = [Task("spoils", spoil, (tmp_path,), plugins=("victims/odd",))]
    tasks += [Task(f"{name} after", is_spoilt, (), after="spoils", plugins=(name,)) for name in ("victims/odd", "x")]
    outcomes, _ = run_all([*tasks, Task("own after", is_spoilt, (), after="spoils")])
    assert {outcome.value for outcome in outcomes.values()} == {None, ("no", "no", os.getcwd())}


def test_a_task_that_wrote_its_result_before_its_process_ended_has_ended_well(tmp_path):
    """As one that a plugin's thread ends after the record is written: nothing finished is lost."""
    tasks = [Task("writes", write_and_die, (tmp_path,)), Task("dies", die, (3,))]
    outcomes = {o.task.name: o for o in Local(1).run(tasks, lambda task: (tmp_path / task.name).exists(), print)}
    assert outcomes["writes"].failure is None
    assert outcomes["dies"].failure.reason == "its process died (exit code 3)"


def test_threads_in_use_do_not_exceed_the_cores(tmp_path):
    """Two tasks of as many threads as there are cores run one after the other, although two jobs are allowed."""
    cores = max(2, usable_cores())
    tasks = [Task(name, overlap, (tmp_path, name), threads=cores) for name in ("a", "b")]
    outcomes, _ = run_all(tasks, jobs=2)
    assert [outcome.value for outcome in outcomes.values()] == [False, False]


def test_what_waits_for_nothing_comes_first_then_depth_first():
    tasks = [Task("a", answer, (0,)), Task("a1", answer, (0,), after="a"), Task("a11", answer, (0,), after="a1")]
    tasks += [Task("a2", answer, (0,), after="a"), Task("b", answer, (0,))]
    outcomes, _ = run_all(tasks)
    assert list(outcomes) == ["a", "b", "a1", "a11", "a2"]


def test_workers_are_not_forked_from_this_process():
    """A process that is forked while a library's threads run may hang in it."""
    outcomes, _ = run_all([Task("asks", start_method, ())])
    assert outcomes["asks"].value in ("forkserver", "spawn")


def test_as_many_jobs_as_asked_run_at_once(tmp_path):
    jobs = (os.cpu_count() or 1) + 1
    outcomes, _ = run_all([Task(str(i), meet, (tmp_path, jobs)) for i in range(jobs)], jobs=jobs)
    assert [outcome.failure for outcome in outcomes.values()] == [None] * jobs


def test_a_stage_that_logs_a_warning_is_heard_as_one_that_warns():
    _, heard = run_all([Task("logs", log, ("halfway",))])
    assert heard == [("logs", "start", ""), ("logs", "progress", "halfway"), ("logs", "warning", "careful: halfway")]


@pytest.fixture
def sleepy(bench):
    """Return a bench whose second victim sleeps while a marker exists."""
    bench.plugin("hashed", "sleepy", IMPORTS, (FIT, WAIT + FIT))
    bench.suite(victims=["hashed", "sleepy"])
    return bench


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def is_gone(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return not any(int(state[2]) == group and state[0] != "Z" for state in _states())


def _states():
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # a process may end while it is looked at
            yield path.read_text().rsplit(")", 1)[1].split()


INTERRUPTIONS = {
    "ctrl-c": (signal.SIGINT, os.killpg, 130),
    "kill -9 of all": (signal.SIGKILL, os.killpg, -9),
    "kill -9 of the parent": (signal.SIGKILL, os.kill, -9),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", INTERRUPTIONS)
def test_an_interrupted_run_goes_on_to_the_same_bytes(case, sleepy, command_line, monkeypatch):
    """Whatever the number of jobs, and the seed of hashes in the process that began."""
    number, kill, expected = INTERRUPTIONS[case]
    marker = sleepy.folder / "marker"
    marker.touch()
    process = sleepy.process("run", "--jobs", 1, TINY_MARKER=str(marker), PYTHONHASHSEED="77")
    try:
        wait_for((sleepy.folder / "started").exists)
        kill(process.pid, number)
        wait_for(lambda: is_gone(process.pid), 20)
    finally:
        if not is_gone(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert process.returncode == expected
    assert "Traceback" not in err
    assert ("interrupted: finished cells are kept" in err) == (case == "ctrl-c")
    assert not (sleepy.run / "leaderboard.csv").exists()
    before = sleepy.results()
    assert [path.parent.name[:22] for path in before] == ["letters-hashed-ridge-s"]

    marker.unlink()
    monkeypatch.setenv("TINY_MARKER", str(marker))
    code, out, _ = command_line(*sleepy.arguments("run", "--jobs", 1))
    assert code == 0, out
    assert before.items() <= sleepy.results().items()
    resumed = sleepy.tables()
    sleepy.out = sleepy.folder / "uninterrupted"
    assert command_line(*sleepy.arguments("run", "--jobs", 2))[0] == 0
    assert sleepy.tables() == resumed


@pytest.mark.slow
def test_a_dying_process_and_an_odd_exception_fail_their_cells_alone(bench):
    bench.plugin("hashed", "dying", IMPORTS, (FIT, f"        os._exit(3)\n{FIT}"))
    odd = "class OddError(Exception):\n    def __init__(self, a, b):\n        super().__init__(a + b)\n\n\n@victim\n"
    path = bench.plugin("hashed", "odd", ("@victim\n", odd), (FIT, f'        raise OddError("so", " odd")\n{FIT}'))
    bench.suite(victims=["dying", "odd", "hashed"])
    process = bench.process("run")
    out, err = process.communicate(timeout=200)
    assert process.returncode == 1, out
    assert "Traceback" not in err
    status = bench.leaderboard()["status"]
    assert status["dying", "ridge"] == "failed: its process died (exit code 3)"
    line = path.read_text().splitlines().index('        raise OddError("so", " odd")') + 1
    assert status["odd", "ridge"] == f"failed: OddError: so odd (odd.py:{line})"
    assert status["hashed", "ridge"] == "ok"


@pytest.mark.slow
def test_a_cell_beyond_the_timeout_fails_alone(sleepy):
    sleepy.suite(victims=["sleepy", "hashed"], timeout=15)
    marker = sleepy.folder / "marker"
    marker.touch()
    process = sleepy.process("run", "--jobs", 1, TINY_MARKER=str(marker))
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 1, out
    status = sleepy.leaderboard()["status"]
    assert status["sleepy", "ridge"] == "failed: TimeoutError: took longer than timeout=15 s"
    assert status["hashed", "ridge"] == "ok"


def test_an_unwritable_folder_is_one_line(bench, command_line):
    bench.suite()
    (bench.folder / "file").write_text("in the way")
    bench.out = bench.folder / "file" / "out"
    status, _, err = command_line(*bench.arguments("run"))
    assert status == 2
    assert err.count("\n") == 1, err
    assert str(bench.out) in err
    assert "cannot be written (Not a directory)" in err


def test_victims_that_are_trained_alike_are_fitted_once(bench, command_line):
    """Noise acts at release only here; two lengths of vectors are two fits."""
    bench.plugin(
        "hashed",
        "hashed",
        ("import dataclass", "import dataclass, replace"),
        (
            "    def fit(self",
            "    def training_config(self):\n        return Hashed(dimensions=self.dimensions)\n\n"
            "    def load(self, folder):\n        return replace(super().load(folder), noise=self.noise)\n\n"
            "    def fit(self",
        ),
    )
    bench.files = [path for path in bench.files if path.name != "hashed.py" or path.parent == bench.folder]
    bench.suite(victims=[{"hashed": {"grid": {"dimensions": [8, 24], "noise": [0.0, 0.1, 1.0]}}}], seeds=[0, 1])
    code, out, err = command_line(*bench.arguments("run"))
    assert code == 0, out + err
    assert len(list((bench.out / ".cache" / "victims").glob("letters-hashed-*"))) == 4
    assert len(list((bench.out / ".cache" / "publications").glob("letters-hashed-*"))) == 12
    scores = bench.leaderboard()["attack_score"].astype(float)
    assert scores["hashed (dimensions=24, noise=1.0)"].iloc[0] < scores["hashed (dimensions=24, noise=0.0)"].iloc[0]
    assert out.count(" / fit hashed") >= 4
