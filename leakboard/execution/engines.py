"""Engines take tasks, some of which wait for others, and report how each ended.

Here is what all engines share, and the one that uses this process; `leakboard.execution.local` has processes of this
machine, `leakboard.execution.clusters` those of others.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from leakboard.errors import StopRun, failure_line, plain
from leakboard.execution.devices import cards
from leakboard.execution.reservations import ReservedError
from leakboard.execution.tasks import Outcome, Task, TaskFailed, Waiting
from leakboard.logs import PROGRESS


class Engine(Protocol):
    """Where tasks run."""

    @property
    def jobs(self) -> int:
        """How many tasks run at once, as far as is known."""

    @property
    def gpus(self) -> int | None:
        """How many tasks may use a GPU at once; None where that is not known before one is asked for."""

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes as they end.

        Raises:
            StopRun: a task could not write, or a dataset is not as asked; the others are stopped.
        """


class Processes(Protocol):
    """What `drive` gives batches of tasks to."""

    def start(self, batch: Sequence[Task]) -> Any:
        """Give tasks to a process, which runs them one after another, and return what stands for them."""

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        """Return those of these that have ended; wait for one, but no longer than about a second."""

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        """Return how each task of a batch ended; None for one whose process was lost, and that may be tried again."""


def drive(
    processes: Processes,
    tasks: Iterable[Task],
    jobs: int,
    cores: int,
    lasting: float,
    is_done: IsDone,
    listen: Listen,
    gpus: int = 0,
) -> Generator[Outcome, None, None]:
    """Run tasks in processes, in the order of `Waiting`, and yield their outcomes as they end.

    A task whose predecessor failed is not run; its outcome carries the same failure. One whose process was lost is
    given to another, unless it had ended before that. One that another run does is tried again later.

    Args:
        processes: run them.
        tasks: with the names of those that they wait for.
        jobs: batches at once.
        cores: threads at once; a task that needs more runs alone.
        lasting: small tasks are taken together until they may last so long (seconds).
        is_done: whether a task has its result, of a process that was lost or of another run.
        listen: is told of tasks that another run does.
        gpus: tasks that use one at once; each is told which it has.

    Raises:
        StopRun: a task could not write, or a dataset is not as asked.
    """
    waiting = Waiting(tasks)
    running: dict[Any, list[Task]] = {}
    while waiting or running:
        while len(running) < jobs:
            used = sum(batch[0].threads for batch in running.values())
            taken = {batch[0].card for batch in running.values() if batch[0].gpus}
            free = (cores - used, gpus - len(taken)) if running else (sys.maxsize, sys.maxsize)
            if not (batch := waiting.take(free[0], lasting, free[1])):
                break
            for task in list(batch):
                if is_done(task):
                    batch.remove(task)
                    yield from waiting.take_in(Outcome(task))
                elif task.reservation and (holder := task.reservation.holder()):
                    batch.remove(task)
                    waiting.postpone(task)
                    listen(task.name, "reserved", holder)
            if batch and batch[0].gpus:
                card = min(set(range(len(taken) + 1)) - taken)
                batch = [replace(task, card=card) for task in batch]
            if batch:
                running[processes.start(batch)] = batch
        if not running:
            time.sleep(waiting.pause)
            continue
        for ended in processes.wait(list(running)):
            batch = running.pop(ended)
            for task, outcome in zip(batch, processes.collect(batch, ended), strict=True):
                if task.reservation and (outcome is None or outcome.failure):
                    task.reservation.clear_own()
                if (outcome is None or outcome.is_lost) and is_done(task):
                    outcome = Outcome(task)
                if outcome is None:
                    waiting.put_back(task)
                elif outcome.is_reserved:
                    waiting.postpone(task)
                else:
                    yield from waiting.take_in(outcome)


IsDone = Callable[[Task], bool]
Listen = Callable[[str, str, str], None]
"""Called with a task's name, ``start``, ``progress``, ``warning`` or ``reserved``, and a text."""


class Here:
    """This process, for notebooks, which cannot spawn: one task after another.

    Order and failures are those of local processes with one job, and so are the results. Timeouts are not enforced,
    and a task that ends the process ends this one. Global settings that tasks change are given back at the end.
    """

    jobs = 1

    @property
    def gpus(self) -> int:
        """Tasks run one after another."""
        return min(1, cards())

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        from leakboard.execution.resources import settings_given_back

        with settings_given_back():
            yield from drive(_Calls(listen), tasks, 1, 1, 0.0, is_done, listen)


class _Calls:
    """Makes the call of a task at once."""

    def __init__(self, listen: Listen):
        self.listen = listen

    def start(self, batch: Sequence[Task]) -> Outcome:
        (task,) = batch
        self.listen(task.name, "start", "")
        return called(task, partial(self.listen, task.name))

    def wait(self, running: Sequence[Outcome]) -> Sequence[Outcome]:
        return running

    def collect(self, batch: Sequence[Task], started: Outcome) -> Sequence[Outcome]:
        return [started]


def called(task: Task, tell: Callable[[str, str], None]) -> Outcome:
    """Make a task's call, pass on what it logs, and return how it ended.

    Raises:
        StopRun: it could not write, or a dataset is not as asked.
    """
    PROGRESS.handlers[:] = [Hearer(tell)]
    start = time.monotonic()
    try:
        with task.reservation.held() if task.reservation else nullcontext():
            return Outcome(task, attempt(task, partial(tell, "warning")), seconds=time.monotonic() - start)
    except ReservedError:
        return Outcome(task, is_reserved=True)
    except TaskFailed as failure:
        return Outcome(task, failure=failure)


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
