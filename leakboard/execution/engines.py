"""Define the interface of engines, and the engine of the current process."""

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
from leakboard.execution.resources import usable_cores
from leakboard.execution.side_by_side import lent
from leakboard.execution.tasks import Interruption, Outcome, Task, TaskFailed, TaskQueue
from leakboard.logs import PROGRESS

IsDone = Callable[[Task], bool]
"""Returns whether a task's cell has a result.

False after a failure, for a result that ``--force`` makes again, and for a task that writes no record.
"""
Listen = Callable[[str, str, str], None]
"""Called with a task's name, an event (``start``, ``progress``, ``warning`` or ``reserved``), and a text."""


class Engine(Protocol):
    """Runs tasks and reports how each one ended."""

    @property
    def jobs(self) -> int:
        """Number of single-threaded tasks that may run at once."""

    @property
    def gpus(self) -> int | None:
        """Number of tasks that may use a GPU at once; None: unknown."""

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes as they end.

        Raises:
            StopRun: a file cannot be written, a dataset cannot be read, a GPU is missing, or no process can start.
        """


class Processes(Protocol):
    """Runs batches of tasks."""

    def start(self, batch: Sequence[Task]) -> Any:
        """Let one process run the tasks of a batch in order, and return a handle of the batch."""

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        """Return the handles of ended batches; wait up to about a second for the first."""

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        """Return the outcome of each task; None: the task was lost and may run again."""


def drive(
    processes: Processes,
    tasks: Iterable[Task],
    jobs: int,
    cores: int,
    batch_seconds: float,
    is_done: IsDone,
    listen: Listen,
    gpus: int = 0,
    lends_cores: bool = False,
) -> Generator[Outcome, None, None]:
    """Run tasks in processes, in the order of `TaskQueue`, and yield their outcomes as they end.

    If a task fails, the tasks after it fail with the same reason, without running. If another run has reserved a task,
    the task waits.

    Args:
        processes: runs the batches.
        tasks: to run.
        jobs: largest number of batches at once.
        cores: largest number of threads at once. A task that needs more threads runs alone.
        batch_seconds: longest expected duration of a batch of several tasks (seconds).
        is_done: returns whether a task's cell has a result.
        listen: called if another run has reserved a task.
        gpus: largest number of batches with a GPU at once.
        lends_cores: whether tasks also get free cores (`Task.cores`).

    Raises:
        StopRun: as for `Engine.run`.
    """
    queue = TaskQueue(tasks)
    running: dict[Any, list[Task]] = {}
    while queue or running:
        while len(running) < jobs:
            used_threads = sum(batch[0].threads for batch in running.values())
            used_cards = {batch[0].card for batch in running.values() if batch[0].gpus}
            # a task runs alone if it needs more than the machine has
            free = (cores - used_threads, gpus - len(used_cards)) if running else (sys.maxsize, sys.maxsize)
            if not (batch := queue.take(free[0], batch_seconds, free[1])):
                break
            for task in list(batch):
                if is_done(task):
                    batch.remove(task)
                    yield from queue.end(Outcome(task))
                elif task.reservation and (holder := task.reservation.holder()):
                    batch.remove(task)
                    queue.postpone(task)
                    listen(task.name, "reserved", holder)
            if batch and batch[0].gpus:
                card = min(set(range(len(used_cards) + 1)) - used_cards)
                batch = [replace(task, card=card) for task in batch]
            if batch and lends_cores:
                others = min(jobs - len(running) - 1, queue.ready)
                unused = cores - sum(max(tasks[0].threads, tasks[0].cores) for tasks in running.values())
                lent_cores = max(batch[0].threads, unused // (1 + others))
                batch = [replace(task, cores=lent_cores) for task in batch]
            if batch:
                running[processes.start(batch)] = batch
        if not running:
            time.sleep(queue.pause)
            continue
        for ended in processes.wait(list(running)):
            batch = running.pop(ended)
            for task, outcome in zip(batch, processes.collect(batch, ended), strict=True):
                if task.reservation and (outcome is None or outcome.failure):
                    task.reservation.clear_own()
                if (outcome is None or outcome.is_lost) and is_done(task):
                    outcome = Outcome(task)
                if outcome is None:
                    queue.retry(task)
                elif outcome.is_reserved:
                    queue.postpone(task)
                else:
                    yield from queue.end(outcome)


class InProcess:
    """Runs tasks one after another in the current process, as the Python API does by default.

    Notebooks need this engine: other processes cannot import the classes of a notebook. Timeouts are not enforced.
    """

    jobs = 1

    @property
    def gpus(self) -> int:
        """1 if this machine has a GPU, else 0."""
        return min(1, cards())

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        from leakboard.execution.resources import settings_restored

        with settings_restored():
            yield from drive(DirectCalls(listen), tasks, 1, usable_cores(), 0.0, is_done, listen, lends_cores=True)


class DirectCalls:
    """Runs each task in the current process."""

    def __init__(self, listen: Listen):
        self.listen = listen

    def start(self, batch: Sequence[Task]) -> Outcome:
        """Run a task and return its outcome."""
        (task,) = batch
        self.listen(task.name, "start", "")
        return run_task(task, partial(self.listen, task.name))

    def wait(self, running: Sequence[Outcome]) -> Sequence[Outcome]:
        """Return all outcomes."""
        return running

    def collect(self, batch: Sequence[Task], started: Outcome) -> Sequence[Outcome]:
        """Return the outcome."""
        return [started]


def run_task(task: Task, report: Callable[[str, str], None]) -> Outcome:
    """Run a task, report its log lines as events, and return its outcome.

    Raises:
        StopRun: as for `Engine.run`.
    """
    PROGRESS.handlers[:] = [LogForwarder(report)]
    start = time.monotonic()
    try:
        with task.reservation.held() if task.reservation else nullcontext(), lent(task.cores):
            value = task.call(*task.arguments, partial(report, "warning"))
        return Outcome(task, value, seconds=time.monotonic() - start)
    except ReservedError:
        return Outcome(task, is_reserved=True)
    except StopRun:
        raise
    except (KeyboardInterrupt, Interruption):
        raise
    except BaseException as error:  # a plugin may raise SystemExit
        # kept as text: not every exception can be pickled
        return Outcome(task, failure=TaskFailed(failure_line(error), traceback.format_exc()))


class LogForwarder(logging.Handler):
    """Reports the progress and the warnings that a task logs."""

    def __init__(self, report: Callable[[str, str], None]):
        super().__init__()
        self.report = report

    def emit(self, record: logging.LogRecord) -> None:
        """Report one line."""
        self.report("progress" if record.levelno < logging.WARNING else "warning", plain(record.getMessage()))
