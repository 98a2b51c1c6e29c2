"""Engines take tasks, some of which wait for others, and report how each ended.

Here is what all engines share, and the one that uses this process; `leakboard.pipeline.local` has local processes.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from leakboard.errors import StopRun, failure_line, plain
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
    threads: int = 1
    """Threads that it uses."""
    plugins: tuple[str, ...] = ()
    """Plugins on its way that are not LeakBoard's own: tasks of other plugins are not run in the same process."""


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

    def take(self, threads: int) -> Task | None:
        """Take out the first task that needs no more than so many threads; None where there is none."""
        for i, task in enumerate(self.ready):
            if task.threads <= threads:
                return self.ready.pop(i)
        return None

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


Listen = Callable[[str, str, str], None]
"""Called with a task's name, ``start``, ``progress`` or ``warning``, and a text."""


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
            PROGRESS.handlers[:] = [Hearer(partial(listen, task.name))]
            start = time.monotonic()
            try:
                value = attempt(task, partial(listen, task.name, "warning"))
                outcome = Outcome(task, value, seconds=time.monotonic() - start)
            except TaskFailed as failure:
                outcome = Outcome(task, failure=failure)
            yield outcome
            yield from waiting.take_in(outcome)


class Hearer(logging.Handler):
    """Passes on the progress and the warnings that a task logs."""

    def __init__(self, tell: Callable[[str, str], None]):
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on one line."""
        self.tell("progress" if record.levelno < logging.WARNING else "warning", plain(record.getMessage()))


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
