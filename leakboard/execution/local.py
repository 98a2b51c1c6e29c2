"""Run tasks in processes of this machine, forked from a process that has imported what they need.

Importing torch and similar libraries takes seconds, a fork some hundredths. Each worker has a connection of its own, so
a crash affects only its own task. A task of foreign plugins, which may change libraries, gets a process of its own.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from multiprocessing import connection
from pathlib import Path
from typing import Any

from leakboard.errors import StopRun, one_line
from leakboard.execution import devices
from leakboard.execution.engines import IsDone, Listen, drive, run_task
from leakboard.execution.resources import NO_PROGRESS_BARS
from leakboard.execution.tasks import Outcome, Task, TaskFailed

START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""How workers start. Outside Linux, libraries do not survive a fork."""
STOP_SECONDS = 10.0
"""Longest time that ending the workers may take."""
POLL_SECONDS = 0.5
"""Polling interval for tasks that have ended."""
MAX_TRIES = 3
"""Number of workers that may die before they begin a task until the task fails."""
CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return how many cores this process may use: at least 1, at most those of its affinity and its cgroup's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):  # no quota, or "max"
        if (version_2 := CGROUP / "cpu.max").exists():
            quota, period = map(int, version_2.read_text().split())
        else:
            quota, period = (int((CGROUP / f"cpu/cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
        if quota > 0:
            cores = min(cores, math.ceil(quota / period))
    return max(1, cores)


def prepare_workers() -> None:
    """Start to import what workers need, in another process, while this process continues."""
    from multiprocessing import forkserver, resource_tracker

    if START_METHOD == "forkserver":
        imported = sorted(name for name in sys.modules if name.startswith("leakboard."))
        multiprocessing.get_context(START_METHOD).set_forkserver_preload(["leakboard.pipeline.preload", *imported])
        resource_tracker.ensure_running()  # it would unblock the signal
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # workers inherit it: Ctrl-C is for the parent
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Local:
    """Processes of this machine: ``jobs`` at once, whose threads together do not exceed the larger of cores and jobs.

    A task that exceeds its timeout is killed and fails alone, as does a task whose process ends. A task whose process
    ends before the task began is given to another process.
    """

    def __init__(self, jobs: int):
        self.jobs = jobs

    @cached_property
    def gpus(self) -> int:
        """GPUs of this machine. A task does not share its GPU."""
        return devices.cards()

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        with Workers(listen) as workers:
            cores = max(self.jobs, usable_cores())
            yield from drive(workers, tasks, self.jobs, cores, 0.0, is_done, listen, self.gpus)


class Workers:
    """Processes that run tasks: one process for each task of foreign plugins, and others that are used again."""

    def __init__(self, listen: Listen):
        self.listen = listen
        self._workers: list[Worker] = []
        self._losses: Counter[str] = Counter()
        with _stop_if_no_room():
            prepare_workers()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        end = time.monotonic() + (0 if kind else STOP_SECONDS)
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.process.join(max(0.0, end - time.monotonic()))
            worker.process.kill()

    def start(self, batch: Sequence[Task]) -> Worker:
        """Give a task to a worker."""
        (task,) = batch
        idle = [] if task.plugins else [worker for worker in self._workers if worker.is_idle]
        if not idle:
            with _stop_if_no_room():
                idle = [Worker()]
            self._workers = [worker for worker in self._workers if worker.process.is_alive()] + idle
        idle[-1].start(task)
        return idle[-1]

    def wait(self, running: Sequence[Worker]) -> Iterable[Worker]:
        """Return the workers whose tasks have ended. Wait for the first one, but at most one polling interval."""
        end = time.monotonic() + POLL_SECONDS
        while True:
            for worker in running:
                worker.receive(self.listen)
            ended = [worker for worker in running if worker.outcome]
            if ended or time.monotonic() >= end:
                return ended
            handles = [handle for worker in running for handle in (worker.connection, worker.process.sentinel)]
            connection.wait(handles, end - time.monotonic())

    def collect(self, batch: Sequence[Task], started: Worker) -> Sequence[Outcome | None]:
        """Return how a task ended; None if its process died before the task began, and another may begin it."""
        (task,), outcome, has_begun = batch, started.outcome, started.begun is not None
        assert outcome, "the task has ended"
        started.release()
        if outcome.is_lost and not has_begun:
            self._losses[task.name] += 1
            if self._losses[task.name] < MAX_TRIES:
                return [None]
            reason = f"{MAX_TRIES} processes died before they began with it"
            return [Outcome(task, failure=TaskFailed(reason), is_lost=True)]
        return [outcome]


class Worker:
    """A process that runs tasks one after another, and the connection to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context(START_METHOD)
        self.connection, inner = context.Pipe()
        settings = (inner, dict(os.environ), os.getcwd())
        self.process = context.Process(target=_serve, args=settings, daemon=True)  # type: ignore[attr-defined]
        self.process.start()
        inner.close()
        self.task: Task | None = None
        self.outcome: Outcome | None = None
        self.begun: float | None = None
        """Time when the process began the task (seconds)."""

    @property
    def is_idle(self) -> bool:
        """Whether the worker can take a task."""
        return self.task is None and not self.connection.closed and self.process.is_alive()

    def start(self, task: Task) -> None:
        """Send a task to the process."""
        self.task, self.outcome, self.begun = task, None, None
        with contextlib.suppress(OSError):  # `receive` notices that the process has died
            self.connection.send(task)

    def release(self) -> None:
        """Make the worker idle, or end it after a foreign plugin, whose changes must not reach other tasks."""
        assert self.task, "the worker has a task"
        if self.task.plugins:
            self.connection.close()
        self.task = None

    def receive(self, listen: Listen) -> None:
        """Pass on the task's events, and set its outcome when it has ended.

        Raises:
            StopRun: the task could not write, or a dataset cannot be read as the suite asks.
        """
        task = self.task
        assert task, "the worker has a task"
        try:
            has_died = not self.process.is_alive()  # before the last events are read
            while self.outcome is None and self.connection.poll():
                name, event, content = self.connection.recv()
                if isinstance(content, StopRun):
                    raise content
                if event == "end":
                    self.outcome = Outcome(task, **content)
                    return
                if event == "start":
                    self.begun = time.monotonic()
                with contextlib.suppress(OSError):  # the listener's disk may be full
                    listen(name, event, content)
        except (EOFError, ConnectionError):
            has_died = True
        except StopRun:
            raise
        except Exception as error:  # for instance, the task's value cannot be rebuilt
            self.outcome = Outcome(task, failure=TaskFailed(one_line(error), traceback.format_exc()))
            return
        if has_died:
            self.process.join(1.0)
            self.process.kill()  # if it only closed its connection
            self.process.join()
            code = self.process.exitcode
            reason = "its process died" if code else "its process ended before the task did"
            self.outcome = Outcome(task, failure=TaskFailed(f"{reason} (exit code {code})"), is_lost=True)
        elif self.begun and task.timeout is not None and time.monotonic() - self.begun > task.timeout:
            self.process.kill()
            self.process.join()
            reason = f"TimeoutError: took longer than timeout={task.timeout:g} s"
            self.outcome = Outcome(task, failure=TaskFailed(reason))


@contextlib.contextmanager
def _stop_if_no_room() -> Iterator[None]:
    """Stop the run if processes cannot start, for instance because the disk is full: sockets and locks are files."""
    try:
        yield
    except OSError as error:
        raise StopRun(f"processes cannot be started ({one_line(error)}); what was finished before is kept") from error


def _serve(parent: connection.Connection, environment: Mapping[str, str], folder: str) -> None:
    """Run the tasks that come over a connection, in the environment and folder of the parent, until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    os.environ.clear()
    os.environ.update(environment)
    os.environ |= NO_PROGRESS_BARS | {"JOBLIB_MULTIPROCESSING": "0"}  # scikit-learn's joblib would leak a semaphore
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sending = threading.Lock()

    def send(name: str, event: str, content: Any) -> None:
        with sending:
            parent.send((name, event, content))

    with contextlib.suppress(EOFError):
        while True:
            task: Task = parent.recv()
            with contextlib.suppress(OSError):  # the previous task may have changed the folder
                os.chdir(folder)
            devices.choose_card(task.card)
            report = partial(send, task.name)
            report("start", "")
            result = _result(task, report)
            try:
                report("end", result)
            except Exception as error:  # for instance, the task's value cannot be pickled
                report("end", {"failure": TaskFailed(one_line(error), traceback.format_exc())})


def _result(task: Task, report: Callable[[str, Any], None]) -> dict[str, Any] | StopRun:
    """Run a task and return the fields of its outcome, or an error that stops the run."""
    try:
        outcome = run_task(task, report)
    except StopRun as stop:
        return stop
    except BaseException as error:  # for instance, a KeyboardInterrupt that a plugin raises
        return {"failure": TaskFailed(one_line(error), traceback.format_exc())}
    return {name: getattr(outcome, name) for name in ("value", "failure", "seconds", "is_reserved")}


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent, "a worker has a parent"
    parent.join()
    os._exit(1)
