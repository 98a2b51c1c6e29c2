"""One of several runs in a folder does a piece of work, and another takes over the work of a dead one."""

import contextlib
import errno
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from running import fail, stop, wait_for

from leakboard.errors import DataError, StorageError
from leakboard.execution import reservations, tasks
from leakboard.execution.engines import DirectCalls, drive, run_task
from leakboard.execution.reservations import ABANDONED_SECONDS, Reservation, ReservedError, file_clock
from leakboard.execution.tasks import Task

CHECKOUT = Path(__file__).resolve().parent.parent.parent
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not identify the kernel")
FAR = {"host": "far", "process": 1, "run": "theirs", "seen_by": "another", "is_locked": True}


def left_behind(path, age=0.0, **changes):
    """Write a reservation of another machine that was touched some seconds ago, but for the changes."""
    path.write_text(json.dumps(FAR | changes))
    touched = file_clock(path.parent) - age
    os.utime(path, (touched, touched))
    return Reservation(path, "mine")


def is_free(reservation):
    try:
        with reservation.held():
            return True
    except ReservedError:
        return False


def compete(folder, name, rounds, barrier):
    """Try to hold one reservation a round, and keep it until all have tried."""
    for number in range(rounds):
        barrier.wait(60)
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(ReservedError):
                stack.enter_context(Reservation(folder / str(number), name).held())
                (folder / f"{number} is won by {name}").touch()
            barrier.wait(60)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["new", "not touched", pytest.param("not locked", marks=needs_linux)])
def test_one_of_several_processes_gets_it(kind, tmp_path):
    rounds = 100
    for number in range(rounds):
        path = tmp_path / str(number)
        if kind == "not touched":
            left_behind(path, age=2 * ABANDONED_SECONDS)
        elif kind == "not locked":
            path.touch()
            with path.open() as file:
                left_behind(path, seen_by=reservations._observers(file.fileno()))
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


def test_a_successors_is_not_removed_as_abandoned(tmp_path, monkeypatch):
    """Between a process's look and its removal, there is time for another to take it over."""
    slow = left_behind(tmp_path / "work", age=2 * ABANDONED_SECONDS)
    read, successor = Reservation._read, contextlib.ExitStack()

    def overtaken(self):
        seen = read(self)
        monkeypatch.setattr(Reservation, "_read", read)
        successor.enter_context(Reservation(slow.path, "faster").held())
        return seen

    monkeypatch.setattr(Reservation, "_read", overtaken)
    assert not is_free(slow)
    assert json.loads(slow.path.read_text())["run"] == "faster"
    successor.close()
    assert is_free(slow)


def test_a_successors_is_not_removed_at_the_end(tmp_path):
    path = tmp_path / "work"
    with Reservation(path, "slow").held():
        path.unlink()
        left_behind(path)
    assert json.loads(path.read_text()) == FAR


def test_it_is_abandoned_if_it_was_not_touched_for_long(tmp_path):
    assert not is_free(left_behind(tmp_path / "live", age=ABANDONED_SECONDS / 2))
    assert is_free(left_behind(tmp_path / "dead", age=ABANDONED_SECONDS + 1))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_damaged_one_is_held_until_it_was_not_touched_for_long(content, tmp_path):
    path = tmp_path / "work"
    path.write_text(content)
    damaged = Reservation(path, "mine")
    damaged.clear_own()
    assert damaged.holder() == "another run"
    os.utime(path, (0, 0))
    assert is_free(damaged)


def test_only_the_runs_own_is_cleared(tmp_path):
    left_behind(tmp_path / "theirs").clear_own()
    left_behind(tmp_path / "own", run="mine").clear_own()
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_one_that_a_lost_worker_of_the_run_left_is_abandoned(tmp_path):
    own = left_behind(tmp_path / "own", run="mine")
    assert own.holder() == ""
    assert is_free(own)
    assert not is_free(left_behind(tmp_path / "other"))


def test_the_clock_is_the_file_systems(tmp_path, monkeypatch):
    live = left_behind(tmp_path / "live")
    monkeypatch.setattr(time, "time", lambda: 2**33)
    folders, create = [], tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: folders.append(dir) or create(dir=dir))
    assert live.holder() == "far, process 1"
    assert folders == [tmp_path]


HOLD = """
import os, pathlib, sys, time
from leakboard.execution.reservations import Reservation
with Reservation(pathlib.Path(sys.argv[1]), "theirs").held():
    if sys.argv[2] == "forks" and not os.fork():
        time.sleep(60)
        os._exit(0)
    print("holds", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def holder_process(path, action="waits"):
    """Start a process that holds a reservation, in a process group of its own."""
    command = [sys.executable, "-c", HOLD, path, action]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=CHECKOUT, start_new_session=True, **pipes) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            os.killpg(process.pid, 9)


@needs_linux
def test_the_lock_of_a_dead_process_is_free_at_once(tmp_path):
    mine = Reservation(tmp_path / "work", "mine")
    with holder_process(mine.path) as process:
        assert str(process.pid) in mine.holder()
        assert not is_free(mine)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
        assert mine.holder() == ""
        assert is_free(mine)


def test_a_dead_process_is_found_by_its_touches_while_a_child_keeps_the_lock(tmp_path):
    mine = Reservation(tmp_path / "work", "mine")
    with holder_process(mine.path, "forks") as process:
        process.kill()
        process.wait()
        assert mine.holder()
        os.utime(mine.path, (0, 0))
        assert is_free(mine)


def test_a_process_that_hangs_loses_it_though_it_has_the_lock(tmp_path):
    mine = Reservation(tmp_path / "work", "mine")
    with holder_process(mine.path):
        os.utime(mine.path, (0, 0))
        assert is_free(mine)


def test_without_locks_only_touches_count(tmp_path, monkeypatch):
    def no_locks(file, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    mine = Reservation(tmp_path / "work", "mine")
    with monkeypatch.context() as patch:
        patch.setattr(reservations.fcntl, "flock", no_locks)
        with Reservation(mine.path, "theirs").held():
            assert mine.holder()
            monkeypatch.undo()
            assert mine.holder()  # a lock that this process could get proves nothing
            os.utime(mine.path, (0, 0))
            assert is_free(mine)


def test_a_holder_touches_it(tmp_path, monkeypatch):
    monkeypatch.setattr(reservations, "TOUCH_SECONDS", 0.01)
    monkeypatch.setattr(reservations, "_toucher", None)
    path = tmp_path / "work"
    with Reservation(path, "mine").held():
        os.utime(path, (0, 0))
        wait_for(lambda: path.stat().st_mtime)


def test_a_folder_that_cannot_be_written_is_the_usual_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot be written \(Not a directory\)"):
        is_free(Reservation(tmp_path / "file" / "folder" / "work", "mine"))


def test_a_reservation_that_cannot_be_read_is_reported_as_such(tmp_path):
    (tmp_path / "work").mkdir()
    with pytest.raises(StorageError, match=r"work: cannot be read \(Is a directory\)"):
        Reservation(tmp_path / "work", "mine").holder()


def leave(warn):
    raise SystemExit(3)


@pytest.mark.parametrize(("call", "error"), [(fail, None), (leave, None), (stop, DataError)])
def test_it_is_removed_however_a_task_ends(call, error, tmp_path):
    task = Task("ends", call, (), reservation=Reservation(tmp_path / "work", "mine"))
    with pytest.raises(error) if error else contextlib.nullcontext():
        assert run_task(task, print).failure
    assert not list(tmp_path.iterdir())


def append(log, text, warn):
    with log.open("a") as file:
        file.write(f"{text}\n")


def release(stack, warn):
    stack.close()


def run_tasks(given, is_done, listen):
    """Run tasks in this process and return the names of the ended ones."""
    outcomes = list(drive(DirectCalls(print), given, 1, 1, 0.0, is_done, listen))
    assert [outcome.failure for outcome in outcomes] == [None] * len(outcomes)
    return [outcome.task.name for outcome in outcomes]


@pytest.mark.parametrize("has_result", [False, True])
def test_a_task_of_another_run_is_tried_again_later_unless_its_result_is_there(has_result, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "FIRST_PAUSE", 0.001)
    stack, log, events, path = contextlib.ExitStack(), tmp_path / "log", [], tmp_path / "work"
    stack.enter_context(Reservation(path, "theirs").held())
    given = [Task("theirs", append, (log, "ran"), reservation=Reservation(path, "mine"))]
    given += [Task("after", append, (log, "after"), after="theirs"), Task("ours", release, (stack,))]

    def is_done(task):
        return has_result and task.name == "theirs" and not path.exists()

    assert run_tasks(given, is_done, lambda *event: events.append(event)) == ["ours", "theirs", "after"]
    assert log.read_text().split() == ([] if has_result else ["ran"]) + ["after"]
    assert events[0][:2] == ("theirs", "reserved")
    assert str(os.getpid()) in events[0][2]


class Losing:
    """Processes of another machine that are lost and leave the task's reservation; the last one ends the task."""

    def __init__(self, path, ends):
        self.path, self.ends, self.was_free = path, list(ends), []

    def start(self, batch):
        self.was_free.append(not self.path.exists())
        left_behind(self.path, run="mine")
        return object()

    def wait(self, running):
        return running

    def collect(self, batch, started):
        end = self.ends.pop(0)
        return [None if end is None else tasks.Outcome(batch[0], failure=end)]


def test_a_lost_process_leaves_no_reservation(tmp_path):
    path = tmp_path / "work"
    processes = Losing(path, [None, tasks.TaskFailed("died")])
    given = [Task("ours", append, (), reservation=Reservation(path, "mine"))]
    (outcome,) = drive(processes, given, 1, 1, 0.0, lambda task: False, print)
    assert outcome.failure.reason == "died"
    assert processes.was_free == [True, True]
    assert not path.exists()  # another run on another machine need not wait until it counts as abandoned


def test_two_runs_do_each_task_once(tmp_path, monkeypatch):
    """The first task ends when both runs have begun. Each task leaves a result, which the other run finds."""
    monkeypatch.setattr(tasks, "FIRST_PAUSE", 0.001)
    log, ended, names = tmp_path / "log", {}, [str(number) for number in range(12)]
    met = threading.Event()

    def work(name, warn):
        if is_done(name):  # as a cell does once it has the reservation
            return
        append(log, name, warn)
        if name == "0":
            met.wait(60)
        (tmp_path / f"{name}.done").touch()

    def is_done(name):
        return (tmp_path / f"{name}.done").exists()

    def go(run):
        held = {name: Reservation(tmp_path / f"{name}.reserved", run) for name in names}
        given = [Task(name, work, (name,), after="0" if int(name) else "", reservation=held[name]) for name in names]
        ended[run] = run_tasks(given, lambda task: is_done(task.name), lambda *event: met.set())

    runs = [threading.Thread(target=go, args=(run,)) for run in ("a", "b")]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert sorted(ended) == ["a", "b"]
    assert sorted(ended["a"], key=int) == sorted(ended["b"], key=int) == names
    assert sorted(log.read_text().split(), key=int) == names


LOGS = """        with open(os.environ["TINY_LOG"], "a") as file:
            file.write("{}\\n")
"""
WAITS = """        while not os.path.exists(os.environ["TINY_MARKER"]):
            time.sleep(0.02)
"""


@pytest.mark.slow  # the protocol is tested above
def test_two_runs_in_one_folder_share_the_work(bench, command_line, monkeypatch):
    """The second run meets the first while it fits. Then both go on."""
    imports = ("from dataclasses", "import os\nimport time\nfrom dataclasses")
    fit, attack = "        bare = FittedHashed", "        square ="
    bench.plugin("hashed", "logged", imports, (fit, LOGS.format("fit") + WAITS + fit))
    imports = ("import numpy", "import os\n\nimport numpy")
    bench.plugin("ridge", "logging", imports, (attack, LOGS.format("attack") + attack))
    bench.suite(victims=["logged"], attacks=["logging", {"logging": {"penalty": 0.5}}], seeds=[0, 1])
    log, marker = bench.folder / "log", bench.folder / "met"
    environment = {"TINY_LOG": str(log), "TINY_MARKER": str(marker)}
    first = bench.process("run", "--jobs", 1, **environment)
    wait_for(log.exists)
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
