"""Local workers die, hang and are killed; outcomes and results stay the same."""

import contextlib
import errno
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from functools import partial

import pytest
from running import answer, die, failures, processes, run_all, wait_for, write_and_die

from leakboard.errors import StopRun
from leakboard.execution import devices, local, resources
from leakboard.execution.local import Local
from leakboard.execution.reservations import Reservation
from leakboard.execution.resources import usable_cores
from leakboard.execution.tasks import Task


class TwoPartsError(Exception):
    """An exception that pickle cannot rebuild."""

    def __init__(self, left, right):
        super().__init__(f"{left} and {right}")


class RemovedSemaphore:
    """Stands for a semaphore that is removed before a worker opens it."""

    def __reduce__(self):
        return os.stat, ("/no such semaphore",)


def raise_odd(warn):
    raise TwoPartsError("one", "two")


def interrupt(warn):
    raise KeyboardInterrupt("a plugin's own")


def sleep(seconds, warn):
    time.sleep(seconds)


def warn_of(text, warn):
    warn(text)


def start(warn):
    return multiprocessing.get_start_method(), signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def meet(folder, number, warn):
    """Wait until a number of workers are here, and return this worker's card."""
    (folder / str(os.getpid())).touch()
    wait_for(lambda: len(list(folder.iterdir())) == number)
    return devices._card


def kill_siblings(warn):
    """Kill all other workers, which have no task; then stay for a while."""
    for pid, (_, parent, _) in processes().items():
        if parent == os.getppid() and pid != os.getpid():
            os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)


def change(folder, warn):
    os.chdir(folder)
    os.environ["CHANGED"] = json.decoder.CHANGED = "yes"


def changes(warn):
    return os.environ.get("CHANGED", "no"), getattr(json.decoder, "CHANGED", "no"), os.getcwd()


def overlap(folder, name, warn):
    """Return whether another task runs at the same time."""
    others = {path.name for path in folder.iterdir()}
    (folder / name).touch()
    time.sleep(0.3)
    others |= {path.name for path in folder.iterdir()} - {name}
    (folder / name).unlink()
    return bool(others)


def leave_a_child(warn):
    """Die, and leave a child that has the same open files."""
    if not os.fork():
        time.sleep(30)
    os._exit(3)


def test_tasks_fail_alone():
    tasks = {
        "slow": partial(sleep, 60),
        "dies": partial(die, 3),
        "leaves": partial(die, 0),
        "odd": raise_odd,
        "interrupts": interrupt,
        "good": partial(answer, 5),
        "warns": partial(warn_of, "careful"),
    }
    tasks = [Task(name, call, (), timeout=2) for name, call in tasks.items()]
    tasks += [Task("after slow", answer, (1,), after="slow"), Task("after that", answer, (1,), after="after slow")]
    outcomes, events = run_all(Local(1), [*tasks, Task("after good", answer, (6,), after="good")])
    reasons = failures(outcomes)
    assert reasons == {
        "slow": "TimeoutError: took longer than timeout=2 s",
        "after slow": "TimeoutError: took longer than timeout=2 s",
        "after that": "TimeoutError: took longer than timeout=2 s",
        "dies": "its process died (exit code 3)",
        "leaves": "its process ended before the task did (exit code 0)",
        "odd": "TwoPartsError: one and two",
        "interrupts": "KeyboardInterrupt: a plugin's own",
    }
    assert (outcomes["good"].value, outcomes["after good"].value) == (5, 6)
    assert outcomes["good"].seconds > 0
    assert outcomes["after slow"].seconds == 0
    assert {("warns", "warning", "careful"), ("good", "start", "")} <= set(events)
    assert not any(name == "after slow" for name, _, _ in events)


def test_a_death_is_noticed_though_a_child_keeps_the_connection():
    outcomes, _ = run_all(Local(1), [Task("dies", leave_a_child, ())])
    assert failures(outcomes) == {"dies": "its process died (exit code 3)"}


def test_workers_that_die_without_a_task_are_replaced():
    tasks = [Task("kills", kill_siblings, ()), *(Task(str(i), answer, (i,), after="kills") for i in range(8))]
    outcomes, _ = run_all(Local(3), tasks)
    assert failures(outcomes) == {}


def die_at_start(*_):
    os._exit(7)


def test_a_task_fails_if_its_workers_die_before_it_begins(monkeypatch):
    monkeypatch.setattr(local, "_enter", die_at_start)
    outcomes, _ = run_all(Local(1), [Task("never", answer, (1,))])
    assert failures(outcomes) == {"never": "3 processes died before they began with it"}


@pytest.mark.slow
def test_foreign_plugins_share_no_process(tmp_path):
    """Their changes to libraries reach neither other plugins nor their own later tasks."""
    tasks = [Task("changes", change, (tmp_path,), plugins=("victims/odd",))]
    tasks += [Task(f"{name} after", changes, (), after="changes", plugins=(name,)) for name in ("victims/odd", "x")]
    outcomes, _ = run_all(Local(1), [*tasks, Task("own after", changes, (), after="changes")])
    assert {outcome.value for outcome in outcomes.values()} == {None, ("no", "no", os.getcwd())}


def test_a_result_that_was_written_before_a_process_died_counts(tmp_path):
    tasks = [Task("writes", write_and_die, (tmp_path / "writes",)), Task("dies", die, (3,))]
    outcomes, _ = run_all(Local(1), tasks, lambda task: (tmp_path / task.name).exists())
    assert failures(outcomes) == {"dies": "its process died (exit code 3)"}


@pytest.mark.slow
def test_a_task_that_another_run_began_in_the_meantime_waits_for_it(tmp_path, monkeypatch):
    """The other run reserves it after this run looked, and before the worker begins."""
    theirs, events = contextlib.ExitStack(), []

    def overtaken(reservation):
        monkeypatch.undo()
        theirs.enter_context(Reservation(reservation.path, "theirs").held())
        return ""

    def listen(name, event, text):
        events.append(event)
        if event == "reserved":
            theirs.close()

    monkeypatch.setattr(Reservation, "holder", overtaken)
    task = Task("work", answer, (5,), reservation=Reservation(tmp_path / "work", "mine"))
    (outcome,) = Local(1).run([task], lambda task: False, listen)
    assert outcome.value == 5
    assert events == ["start", "reserved", "start"]


@pytest.mark.slow
def test_threads_in_use_do_not_exceed_the_cores(tmp_path):
    """Two tasks run one after the other if each has as many threads as there are cores."""
    cores = max(2, usable_cores())
    tasks = [Task(name, overlap, (tmp_path, name), threads=cores) for name in ("a", "b")]
    outcomes, _ = run_all(Local(2), tasks)
    assert [outcome.value for outcome in outcomes.values()] == [False, False]


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 4),
        ({"cpu.max": "max 100000\n"}, 4),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "900000 100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ],
)
def test_usable_cores_respect_affinity_and_cgroup(files, cores, tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 4, 6}, raising=False)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert usable_cores() == cores


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked only on Linux")
def test_workers_are_forked_from_another_process_and_never_see_ctrl_c():
    """A process that is forked while a library's threads run may hang."""
    outcomes, _ = run_all(Local(1), [Task("asks", start, ())])
    assert outcomes["asks"].value == ("forkserver", True)


def test_as_many_jobs_as_asked_run_at_once(tmp_path):
    jobs = (os.cpu_count() or 1) + 1
    outcomes, _ = run_all(Local(jobs), [Task(str(i), meet, (tmp_path, jobs)) for i in range(jobs)])
    assert failures(outcomes) == {}


def test_workers_have_different_cards(monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "cards", lambda: 2)
    outcomes, _ = run_all(Local(2), [Task(name, meet, (tmp_path, 2), gpus=1) for name in ("a", "b")])
    assert sorted(outcome.value for outcome in outcomes.values()) == [0, 1]


@pytest.mark.slow
def test_reservations_of_killed_tasks_are_removed(tmp_path):
    mine = [Reservation(tmp_path / name, "mine") for name in ("dies", "slow")]
    tasks = [Task("dies", die, (1,), reservation=mine[0]), Task("slow", sleep, (60,), reservation=mine[1], timeout=1.0)]
    outcomes, _ = run_all(Local(2), tasks)
    assert set(failures(outcomes)) == {"dies", "slow"}
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(local.START_METHOD != "forkserver", reason="only the server of forks has the hook")
def test_a_worker_whose_run_ended_while_it_started_is_silent(capfd):
    local.prepare_workers()
    worker = multiprocessing.get_context(local.START_METHOD).Process(target=print, args=(RemovedSemaphore(),))
    worker.start()
    worker.join(30)
    assert (worker.exitcode, capfd.readouterr().err) == (1, "")


@pytest.mark.parametrize("part", ["prepare_workers", "ProcessPool"])
def test_processes_without_room_to_start_stop_the_run_with_one_line(part, monkeypatch):
    """Sockets, temporary folders and locks are files, and the disk may be full before a run begins."""

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local, part, no_room)
    line = r"^processes cannot be started \(OSError: \[Errno 28\] No space left on device\); finished work is kept"
    with pytest.raises(StopRun, match=line):
        run_all(Local(1), [Task("task", answer, (1,))])


def test_the_end_waits_for_no_thread_that_has_ended():
    """The last worker connects when the run ends: then the thread that accepts workers ends with it."""
    workers = local.Workers(1, lambda *event: None)
    workers._ended = True
    multiprocessing.connection.Client(workers._listener.address, authkey=workers._key).close()
    ending = threading.Thread(target=workers.__exit__, args=(None,), daemon=True)
    ending.start()
    ending.join(timeout=10)
    assert not ending.is_alive()
