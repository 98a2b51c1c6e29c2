"""Define engines: they run tasks in order and report how each task ended.

This file has the code that all engines share, and the engine of the current process. `leakboard.execution.local` runs
processes of this machine; `leakboard.execution.ray` and `leakboard.execution.slurm` use other machines.
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
from leakboard.execution.resources import usable_cores
from leakboard.execution.side_by_side import lent
from leakboard.execution.tasks import Interruption, Outcome, Task, TaskFailed, TaskQueue
from leakboard.logs import PROGRESS

IsDone = Callable[[Task], bool]
"""Returns whether the result of a task exists."""
Listen = Callable[[str, str, str], None]
"""Called with a task's name, an event (``start``, ``progress``, ``warning`` or ``reserved``), and a text."""


class Engine(Protocol):
    """Runs tasks: in this process, on this machine, or on others."""

    @property
    def jobs(self) -> int:
        """Number of single-threaded tasks that may run at once."""

    @property
    def gpus(self) -> int | None:
        """Number of tasks that may use a GPU at once; None if the engine does not know (Slurm)."""

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes as they end.

        Raises:
            StopRun: a task could not write, a dataset cannot be read as the suite asks, a stage needs a GPU and sees
                none, or processes cannot be started. No further task starts.
        """


class Processes(Protocol):
    """Runs the batches of tasks that `drive` gives it."""

    def start(self, batch: Sequence[Task]) -> Any:
        """Let one process run the tasks of a batch one after another, and return a handle of the batch."""

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        """Return the handles of ended batches. Wait for the first end, but at most about a second."""

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        """Return the outcome of each task; None for a task that was lost with its process and may be tried again."""


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

    A task whose predecessor failed is not run; its outcome carries the same failure. If a process was lost,
    ``processes`` decides which of its tasks run again; a task counts as done if ``is_done`` says so. If another
    run holds the reservation of a task, the task is tried again later.

    Args:
        processes: runs the batches.
        tasks: to run, each with the name of its predecessor.
        jobs: largest number of batches at once.
        cores: largest number of threads at once. A task that needs more threads runs alone.
        batch_seconds: longest expected duration of several tasks that are sent together.
        is_done: returns whether the result of a task exists. A lost process or another run may have written it.
        listen: called if another run holds the reservation of a task.
        gpus: largest number of batches with a GPU at once. All tasks of such a batch get the same `Task.card`: the
            least number of a free card. If nothing else runs, a batch with a GPU starts even if ``gpus`` is 0.
        lends_cores: whether all processes share the cores: then a task gets a share of the free ones (`Task.cores`).

    Raises:
        StopRun: as for `Engine.run`.
    """
    queue = TaskQueue(tasks)
    running: dict[Any, list[Task]] = {}
    while queue or running:
        while len(running) < jobs:
            used_threads = sum(batch[0].threads for batch in running.values())
            used_cards = {batch[0].card for batch in running.values() if batch[0].gpus}
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

    Notebooks need this for plugins that they define: other processes cannot import such classes. Timeouts are not
    enforced. A task that ends its process (``os._exit``) ends the notebook, too. If a plugin changes a library,
    later tasks have the change. At the end, global settings are restored (`resources.settings_restored`).
    """

    jobs = 1

    @property
    def gpus(self) -> int:
        """At most 1, since tasks run one after another."""
        return min(1, cards())

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        from leakboard.execution.resources import settings_restored

        with settings_restored():
            yield from drive(DirectCalls(listen), tasks, 1, usable_cores(), 0.0, is_done, listen, lends_cores=True)


class DirectCalls:
    """Runs each task in the current process as soon as `drive` starts it."""

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

    An error is kept as text, since not every exception can be pickled.

    Raises:
        StopRun: the task could not write, a dataset cannot be read as the suite asks, or the task sees no GPU.
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
    except BaseException as error:  # a plugin may raise SystemExit, or an exception of its own
        return Outcome(task, failure=TaskFailed(failure_line(error), traceback.format_exc()))


class LogForwarder(logging.Handler):
    """Reports the progress and the warnings that a task logs."""

    def __init__(self, report: Callable[[str, str], None]):
        super().__init__()
        self.report = report

    def emit(self, record: logging.LogRecord) -> None:
        """Report one line."""
        self.report("progress" if record.levelno < logging.WARNING else "warning", plain(record.getMessage()))
