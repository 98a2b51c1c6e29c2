"""Engines take tasks, some of which wait for others, and report how each ended. This one runs on the local machine."""

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
from multiprocessing.managers import SyncManager
from typing import Any

from pebble import ProcessExpired, ProcessPool

from leakboard.errors import StopRun, one_line
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


PATIENCE = 10.0
"""Longest time that ending the pool may take (seconds)."""

Listen = Callable[[str, str, str], None]
"""Called with a task's name, ``start``, ``progress`` or ``warning``, and a text."""


def run_local(tasks: Iterable[Task], jobs: int, listen: Listen) -> Generator[Outcome, None, None]:
    """Run tasks in ``jobs`` processes and yield their outcomes as they end.

    Those that wait for none come first; of the others, those whose predecessor ended last.

    A task whose predecessor failed is not run; its outcome carries the same failure. A task that exceeds its timeout is
    killed and fails alone, as does one whose process dies.

    Raises:
        StopRun: a task could not write, or a dataset is not as asked; the others are stopped.
    """
    followers: dict[str, list[Task]] = {}
    ready: list[Task] = []
    for task in tasks:
        (followers.setdefault(task.after, []) if task.after else ready).append(task)
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
            while ready or running:
                while ready and len(running) < jobs:
                    task = ready.pop(0)
                    running[pool.schedule(_call, args=[task], timeout=task.timeout)] = task
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    outcome = _outcome(running.pop(future), future)
                    yield outcome
                    waiting = followers.pop(outcome.task.name, [])
                    if outcome.failure is None:
                        ready = [t for t in ready if not t.after] + waiting + [t for t in ready if t.after]
                    else:
                        yield from _not_run(waiting, followers, outcome.failure)
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


def _not_run(tasks: list[Task], followers: dict[str, list[Task]], failure: TaskFailed) -> Iterator[Outcome]:
    for task in tasks:
        yield Outcome(task, failure=failure)
        yield from _not_run(followers.pop(task.name, []), followers, failure)


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


class _ToParent(logging.Handler):
    """Sends the progress and the warnings of a task to the parent."""

    def __init__(self, task: str):
        super().__init__()
        self.task = task

    def emit(self, record: logging.LogRecord) -> None:
        """Send one line."""
        event = "progress" if record.levelno < logging.WARNING else "warning"
        _events.put((self.task, event, record.getMessage()))


def _watch(parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _call(task: Task) -> tuple[Any, float]:
    _events.put((task.name, "start", ""))
    PROGRESS.handlers[:] = [_ToParent(task.name)]
    start = time.monotonic()
    value = attempt(task, lambda text: _events.put((task.name, "warning", text)))
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
        raise TaskFailed(one_line(error), traceback.format_exc()) from None


def _pass_on(events: Any, listen: Listen) -> None:
    while True:
        try:
            event = events.get()
        except (EOFError, OSError):
            return
        if event is None:
            return
        listen(*event)
