"""Engines take tasks, some of which wait for others, and report how each ended: in local processes, or in this one."""

from __future__ import annotations

import concurrent.futures
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.managers import SyncManager
from typing import Any

from pebble import ProcessExpired, ProcessPool

from leakboard.errors import StopRun, failure_line, one_line
from leakboard.logs import PROGRESS


@dataclass(frozen=True)
class Task:
    """A call to make in a worker process."""

    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    after: str = ""
    """Name of the task that must have ended well before; empty for none."""
    timeout: float | None = None
    """Longest time that it may take (seconds)."""


class TaskFailed(Exception):
    """A task did not end well: the reason in one line, and the traceback where there is one."""

    def __init__(self, reason: str, lines: str = ""):
        super().__init__(reason, lines)
        self.reason, self.lines = reason, lines


@dataclass(frozen=True)
class Outcome:
    """How a task ended."""

    task: Task
    value: Any = None
    failure: TaskFailed | None = None
    seconds: float = 0.0


class Waiting:
    """Tasks that have not begun.

    Those that wait for none come first; of the others, those whose predecessor ended last.
    """

    def __init__(self, tasks: Iterable[Task]):
        self.ready: list[Task] = []
        self._followers: dict[str, list[Task]] = {}
        for task in tasks:
            (self._followers.setdefault(task.after, []) if task.after else self.ready).append(task)

    def take_in(self, outcome: Outcome) -> Iterator[Outcome]:
        """Make ready what waited for a task that ended well; yield the same failure for what waited for another."""
        followers = self._followers.pop(outcome.task.name, [])
        if outcome.failure is None:
            self.ready = [t for t in self.ready if not t.after] + followers + [t for t in self.ready if t.after]
            return
        for task in followers:
            not_run = Outcome(task, failure=outcome.failure)
            yield not_run
            yield from self.take_in(not_run)


PATIENCE = 10.0
"""Longest time that ending the pool may take (seconds)."""

Listen = Callable[[str, str, str], None]
"""Called with a task's name, ``start``, ``progress`` or ``warning``, and a text."""


def run_local(tasks: Iterable[Task], jobs: int, listen: Listen) -> Generator[Outcome, None, None]:
    """Run tasks in ``jobs`` processes and yield their outcomes as they end.

    They run in the order of `Waiting`. A task whose predecessor failed is not run; its outcome carries the same
    failure. A task that exceeds its timeout is killed and fails alone, as does one whose process dies.

    Raises:
        StopRun: a task could not write, or a dataset is not as asked; the others are stopped.
    """
    waiting = Waiting(tasks)
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    manager.start(_watch, (os.getpid(),))
    with manager:
        events = manager.Queue()
        listener = threading.Thread(target=_pass_on, args=(events, listen), daemon=True)
        listener.start()
        pool = ProcessPool(jobs, context=context, initializer=_enter, initargs=(events, os.getpid()))
        running: dict[Any, Task] = {}
        try:
            while waiting.ready or running:
                while waiting.ready and len(running) < jobs:
                    task = waiting.ready.pop(0)
                    running[pool.schedule(_call, args=[task], timeout=task.timeout)] = task
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    outcome = _outcome(running.pop(future), future)
                    yield outcome
                    yield from waiting.take_in(outcome)
            pool.close()
        except BaseException:
            pool.stop()
            raise
        finally:
            ending = threading.Thread(target=pool.join, daemon=True)
            ending.start()
            ending.join(PATIENCE)  # the workers end with this process whatever keeps the pool
            events.put(None)
            listener.join(timeout=5)


def run_here(tasks: Iterable[Task], listen: Listen) -> Generator[Outcome, None, None]:
    """Run tasks in this process, one after another, and yield their outcomes: for notebooks, which cannot spawn.

    Order and failures are those of `run_local` with one job, and so are the results. Timeouts are not enforced, and a
    task that ends the process ends this one. Global settings that tasks change are given back at the end.

    Raises:
        StopRun: a task could not write, or a dataset is not as asked; the others are not run.
    """
    from leakboard.pipeline.resources import settings_given_back

    waiting = Waiting(tasks)
    with settings_given_back():
        while waiting.ready:
            task = waiting.ready.pop(0)
            listen(task.name, "start", "")
            PROGRESS.handlers[:] = [_Progress(partial(listen, task.name))]
            start = time.monotonic()
            try:
                value = attempt(task, partial(listen, task.name, "warning"))
                outcome = Outcome(task, value, seconds=time.monotonic() - start)
            except TaskFailed as failure:
                outcome = Outcome(task, failure=failure)
            yield outcome
            yield from waiting.take_in(outcome)


def _outcome(task: Task, future: Any) -> Outcome:
    try:
        value, seconds = future.result()
        return Outcome(task, value, seconds=seconds)
    except concurrent.futures.TimeoutError:
        return Outcome(task, failure=TaskFailed(f"TimeoutError: took longer than timeout={task.timeout:g} s"))
    except ProcessExpired as error:
        return Outcome(task, failure=TaskFailed(f"its process died (exit code {error.exitcode})"))
    except TaskFailed as failure:
        return Outcome(task, failure=failure)
    except StopRun:
        raise
    except Exception as error:  # what the way back itself raised, as a value that cannot be sent
        return Outcome(task, failure=TaskFailed(one_line(error), traceback.format_exc()))


_events: Any = None


def _enter(events: Any, parent: int) -> None:
    """Prepare a worker: leave Ctrl-C to the parent, and end when the parent is gone."""
    global _events
    _events = events
    os.environ["JOBLIB_MULTIPROCESSING"] = "0"  # scikit-learn's helper would leave a semaphore behind
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _watch(parent)


class _Progress(logging.Handler):
    """Passes on the progress and the warnings that a task logs."""

    def __init__(self, tell: Callable[[str, str], None]):
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on one line."""
        self.tell("progress" if record.levelno < logging.WARNING else "warning", record.getMessage())


def _watch(parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _call(task: Task) -> tuple[Any, float]:
    def tell(event: str, text: str = "") -> None:
        _events.put((task.name, event, text))

    tell("start")
    PROGRESS.handlers[:] = [_Progress(tell)]
    start = time.monotonic()
    value = attempt(task, partial(tell, "warning"))
    return value, time.monotonic() - start


def attempt(task: Task, warn: Callable[[str], None]) -> Any:
    """Make a task's call.

    Raises:
        StopRun: it could not write, or a dataset is not as asked.
        TaskFailed: it raised anything else; the error comes as text, since not every exception can be pickled.
    """
    try:
        return task.call(*task.arguments, warn)
    except StopRun:
        raise
    except (Exception, SystemExit) as error:
        raise TaskFailed(failure_line(error), traceback.format_exc()) from None


def _pass_on(events: Any, listen: Listen) -> None:
    while True:
        try:
            event = events.get()
        except (EOFError, OSError):
            return
        if event is None:
            return
        listen(*event)
