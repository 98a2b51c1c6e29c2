"""Several runs in one folder: a piece of work is done by one of them, and what a dead one has left by another."""

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from leakboard.errors import DataError, StorageError
from leakboard.execution import reservations, tasks
from leakboard.execution.engines import _Calls, called, drive
from leakboard.execution.local import Local
from leakboard.execution.reservations import ABANDONED, Reservation, ReservedError, file_clock
from leakboard.execution.tasks import Task

CHECKOUT = Path(__file__).resolve().parent.parent.parent
ELSEWHERE = {"host": "far", "process": 1, "machine": "another", "started": "7", "run": "theirs"}


def left_behind(path, age=0.0, **changes):
    """Write a reservation that was touched so long ago: of a process of another machine, or as the changes have it."""
    path.write_text(json.dumps(ELSEWHERE | changes))
    then = file_clock(path.parent) - age
    os.utime(path, (then, then))
    return Reservation(path, "mine")


def is_free(reservation):
    try:
        with reservation.held():
            return True
    except ReservedError:
        return False


def compete(folder, name, rounds, barrier):
    """Try for one reservation a round with others, and keep it until all have tried."""
    for number in range(rounds):
        barrier.wait(60)
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(ReservedError):
                stack.enter_context(Reservation(folder / str(number), name).held())
                (folder / f"{number} is won by {name}").touch()
            barrier.wait(60)


@pytest.mark.parametrize("what", ["new", "abandoned"])
def test_one_of_several_processes_has_it(what, tmp_path):
    rounds = 200
    if what == "abandoned":
        for number in range(rounds):
            left_behind(tmp_path / str(number), age=2 * ABANDONED)
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(3)
    rivals = [spawn.Process(target=compete, args=(tmp_path, name, rounds, barrier)) for name in "abc"]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join(120)
    won = [path.name.split()[0] for path in tmp_path.glob("* is won by *")]
    assert sorted(won, key=int) == [str(number) for number in range(rounds)]
    assert not [path for path in tmp_path.iterdir() if "won" not in path.name]


def test_who_finds_it_abandoned_removes_no_successors(tmp_path, monkeypatch):
    """One that looked before another took it over: between the look and the removal there is time for that."""
    slow = left_behind(tmp_path / "work", age=2 * ABANDONED)
    look, successor = Reservation._look, contextlib.ExitStack()

    def overtaken(self):
        seen = look(self)
        monkeypatch.setattr(Reservation, "_look", look)
        successor.enter_context(Reservation(slow.path, "faster").held())
        return seen

    monkeypatch.setattr(Reservation, "_look", overtaken)
    assert not is_free(slow)
    assert json.loads(slow.path.read_text())["run"] == "faster"
    successor.close()
    assert is_free(slow)


def test_it_is_abandoned_when_it_was_not_touched_for_long(tmp_path):
    assert not is_free(left_behind(tmp_path / "live", age=ABANDONED / 2))
    assert is_free(left_behind(tmp_path / "dead", age=ABANDONED + 1))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_one_is_held_until_nobody_touches_it(content, tmp_path):
    path = tmp_path / "work"
    path.write_text(content)
    damaged = Reservation(path, "mine")
    damaged.clear_own()
    assert damaged.holder() == "another run"
    os.utime(path, (0, 0))
    assert is_free(damaged)


def test_only_the_own_is_cleared(tmp_path):
    left_behind(tmp_path / "theirs").clear_own()
    left_behind(tmp_path / "own", run="mine").clear_own()
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_the_clock_is_the_file_systems(tmp_path, monkeypatch):
    live = left_behind(tmp_path / "live")
    monkeypatch.setattr(time, "time", lambda: 2**33)
    assert live.holder() == "far, process 1"


def test_what_this_runs_lost_worker_left_is_abandoned(tmp_path):
    assert left_behind(tmp_path / "own", run="mine").holder() == ""
    assert is_free(Reservation(tmp_path / "own", "mine"))
    assert not is_free(left_behind(tmp_path / "other"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell which processes there are")
def test_a_dead_process_of_this_machine_holds_nothing(tmp_path):
    holds = (
        "import sys, pathlib\nfrom leakboard.execution.reservations import Reservation\n"
        "with Reservation(pathlib.Path(sys.argv[1]), 'theirs').held():\n"
        "    print('holds', flush=True)\n    sys.stdin.read()"
    )
    path = tmp_path / "work"
    command = [sys.executable, "-c", holds, path]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        mine = Reservation(path, "mine")
        assert str(process.pid) in mine.holder()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has taken notice
        assert mine.holder() == ""
        process.wait()
        assert mine.holder() == ""
        follows = json.loads(path.read_text()) | {"process": os.getpid()}  # another that was given its number
        path.write_text(json.dumps(follows))
        assert is_free(mine)


def test_a_holder_touches_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reservations, "TOUCH", 0.01)
    monkeypatch.setattr(reservations, "_toucher", None)
    path = tmp_path / "work"
    with Reservation(path, "mine").held():
        os.utime(path, (0, 0))
        end = time.monotonic() + 60
        while path.stat().st_mtime == 0:
            assert time.monotonic() < end, "it is not touched"
            time.sleep(0.01)


def test_a_successors_is_left_alone(tmp_path):
    path = tmp_path / "work"
    with Reservation(path, "slow").held():
        path.unlink()
        left_behind(path)
    assert json.loads(path.read_text()) == ELSEWHERE


def test_a_folder_that_cannot_be_written_is_the_usual_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot be written \(Not a directory\)"):
        is_free(Reservation(tmp_path / "file" / "folder" / "work", "mine"))


def fail(warn):
    raise ValueError("odd data")


def stop(warn):
    raise DataError("datasets: mine: no such file")


def leave(warn):
    raise SystemExit(3)


@pytest.mark.parametrize(("call", "raised"), [(fail, None), (leave, None), (stop, DataError)])
def test_it_is_removed_however_a_task_ends(call, raised, tmp_path):
    task = Task("ends", call, (), reservation=Reservation(tmp_path / "work", "mine"))
    with pytest.raises(raised) if raised else contextlib.nullcontext():
        assert called(task, print).failure
    assert not list(tmp_path.iterdir())


def die(warn):
    os._exit(1)


@pytest.mark.slow  # workers start anew
def test_it_is_removed_when_the_tasks_process_is_killed(tmp_path):
    work = [Reservation(tmp_path / name, "mine") for name in ("dies", "slow")]
    given = [Task("dies", die, (), reservation=work[0])]
    given += [Task("slow", wait, (tmp_path / "never",), reservation=work[1], timeout=1.0)]
    outcomes = list(Local(2).run(given, lambda task: False, lambda *event: None))
    assert all(outcome.failure for outcome in outcomes)
    assert not list(tmp_path.iterdir())


def wait(path, warn):
    while not path.exists():
        time.sleep(0.02)


def append(log, text, warn):
    with log.open("a") as file:
        file.write(f"{text}\n")


def release(stack, warn):
    stack.close()


def run_here(given, is_done, listen):
    return list(drive(_Calls(print), given, 1, 1, 0.0, is_done, listen))


def names_of(outcomes):
    return [outcome.task.name for outcome in outcomes]


def test_what_another_run_does_is_tried_again_when_that_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "PAUSE", 0.001)
    stack, log, heard = contextlib.ExitStack(), tmp_path / "log", []
    stack.enter_context(Reservation(tmp_path / "work", "theirs").held())
    given = [Task("theirs", append, (log, "ran"), reservation=Reservation(tmp_path / "work", "mine"))]
    given += [Task("after", append, (log, "after"), after="theirs"), Task("ours", release, (stack,))]
    outcomes = run_here(given, lambda task: False, lambda *event: heard.append(event))
    assert names_of(outcomes) == ["ours", "theirs", "after"]
    assert heard[0][:2] == ("theirs", "reserved")
    assert str(os.getpid()) in heard[0][2]


def test_what_another_run_has_done_is_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "PAUSE", 0.001)
    stack, log = contextlib.ExitStack(), tmp_path / "log"
    stack.enter_context(Reservation(tmp_path / "work", "theirs").held())
    given = [Task("theirs", append, (log, "ran"), reservation=Reservation(tmp_path / "work", "mine"))]
    given += [Task("ours", release, (stack,))]

    def is_done(task):
        return task.name == "theirs" and not (tmp_path / "work").exists()

    outcomes = run_here(given, is_done, print)
    assert [outcome.failure for outcome in outcomes] == [None, None]
    assert not log.exists()


def test_two_runs_do_each_task_once(tmp_path, monkeypatch):
    """Both meet at the first task, which ends when both have begun; each task leaves what the other finds."""
    monkeypatch.setattr(tasks, "PAUSE", 0.001)
    log, ended = tmp_path / "log", {}

    def work(name, run, warn):
        if is_done(name):  # as a cell and the store do, when they have the reservation
            return
        append(log, name, warn)
        if name == "0":
            wait(tmp_path / "met", warn)
        (tmp_path / f"{name}.done").touch()

    def is_done(name):
        return (tmp_path / f"{name}.done").exists()

    def go(run):
        names = [str(number) for number in range(12)]
        held = {name: Reservation(tmp_path / f"{name}.reserved", run) for name in names}
        given = [
            Task(name, work, (name, run), after="0" if int(name) else "", reservation=held[name]) for name in names
        ]
        met = (tmp_path / "met").touch
        ended[run] = names_of(run_here(given, lambda task: is_done(task.name), lambda *event: met()))

    runs = [threading.Thread(target=go, args=(run,)) for run in ("a", "b")]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert sorted(ended) == ["a", "b"]
    assert sorted(ended["a"], key=int) == sorted(ended["b"], key=int) == [str(number) for number in range(12)]
    assert sorted(log.read_text().split(), key=int) == [str(number) for number in range(12)]


LOGS = """        with open(os.environ["TINY_LOG"], "a") as file:
            file.write("{}\\n")
"""
WAITS = """        while not os.path.exists(os.environ["TINY_MARKER"]):
            time.sleep(0.02)
"""


@pytest.mark.slow  # the protocol is tested above
def test_two_runs_in_one_folder_share_the_work(bench, command_line, monkeypatch):
    """The second meets the first while it fits, and both go on when they have met."""
    imports = ("from dataclasses", "import os\nimport time\nfrom dataclasses")
    place = "        bare = FittedHashed"
    bench.plugin("hashed", "logged", imports, (place, LOGS.format("fit") + WAITS + place))
    attack = "        square ="
    bench.plugin(
        "ridge", "logging", ("import numpy", "import os\n\nimport numpy"), (attack, LOGS.format("attack") + attack)
    )
    bench.suite(victims=["logged"], attacks=["logging", {"logging": {"penalty": 0.5}}], seeds=[0, 1])
    log, marker = bench.folder / "log", bench.folder / "met"
    environment = {"TINY_LOG": str(log), "TINY_MARKER": str(marker)}
    first = bench.process("run", "--jobs", 1, **environment)
    end = time.monotonic() + 60
    while not log.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    second = bench.process("run", "--jobs", 1, **environment)
    assert any(line.startswith("another run in this folder (") for line in second.stdout)
    marker.touch()
    for run in (first, second):
        out, err = run.communicate(timeout=120)
        assert run.returncode == 0, out + err
    assert sorted(log.read_text().splitlines()) == ["attack"] * 4 + ["fit"] * 2
    assert not list((bench.out / ".cache" / "reservations").iterdir())
    shared, bench.out = bench.tables(), bench.folder / "alone"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert command_line(*bench.arguments("run"))[0] == 0
    assert bench.tables() == shared
