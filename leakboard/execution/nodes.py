"""Run batches of tasks on other machines: the base of the Ray and Slurm engines.

The machines (nodes) share a folder, and have the same code, plugins and data at the same paths. A node runs the same
stages on the same store as a local process. It writes all its results into the shared folder. Artefacts are written
whole or not at all. The record of a cell is written as soon as the cell's attack ends. So a lost node loses only tasks
that have not ended. Such a task is tried again (`MAX_LOST_NODES`). Only the process that started the run starts tasks
and writes tables.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from leakboard.errors import RequestError, StopRun
from leakboard.execution.engines import Listen, run_task
from leakboard.execution.tasks import Interruption, Outcome, Task, TaskFailed

POLL_SECONDS = 0.5
"""Polling interval for ended batches."""
MAX_LOST_NODES = 3
"""A task fails after this many nodes were lost while they ran it alone, outside a batch of several tasks."""


@dataclass(frozen=True)
class BatchResult:
    """The answer of a node: the outcomes of a batch's tasks, and their warnings."""

    outcomes: Sequence[Outcome]
    events: Sequence[tuple[str, str, str]]
    """Warnings, with the arguments of `Listen`."""
    stop: StopRun | None = None
    """Why the whole run must stop, if a task raised `StopRun`; the tasks after it were not run."""
    node: str = ""
    """Ray's ID of the node; empty with Slurm."""


class _TimeIsUp(Interruption):
    """A task exceeded its timeout."""


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Stop the code of a block after a time; without effect outside the main thread.

    A running call of a C library is stopped only when the call returns.

    Raises:
        TaskFailed: the block took longer.
    """

    def stop(*_: object) -> None:
        raise _TimeIsUp

    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeIsUp:
        raise TaskFailed(f"TimeoutError: took longer than timeout={seconds:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_batch(batch: Sequence[Task], node: str = "") -> BatchResult:
    """Run tasks one after another on a node. A `StopRun` is returned in the result, not raised."""
    from leakboard.execution.resources import silence_libraries

    silence_libraries()
    outcomes: list[Outcome] = []
    events: list[tuple[str, str, str]] = []
    for task in batch:

        def report(event: str, text: str, name: str = task.name) -> None:
            if event == "warning":
                events.append((name, event, text))

        try:
            with _time_limit(task.timeout):
                outcomes.append(run_task(task, report))
        except TaskFailed as failure:
            outcomes.append(Outcome(task, failure=failure))
        except StopRun as stop:
            return BatchResult(outcomes, events, stop, node)
    return BatchResult(outcomes, events, node=node)


class Nodes:
    """Handles ended and lost batches, for Ray and Slurm."""

    def __init__(self, listen: Listen):
        self.listen = listen
        self._losses: Counter[str] = Counter()
        self.node_of: dict[str, str] = {}
        """Maps the name of an ended task to its node.

        Ray sends the task's followers to this node if it can: the files that they read are likely still cached there.
        """

    def report_start(self, batch: Sequence[Task]) -> None:
        """Report that tasks were sent."""
        for task in batch:
            self.listen(task.name, "start", "")

    def accept(self, batch: Sequence[Task], result: BatchResult) -> Sequence[Outcome]:
        """Pass on the warnings of a batch and return its outcomes.

        Raises:
            StopRun: as for `Engine.run`.
        """
        for name, event, text in result.events:
            self.listen(name, event, text)
        if result.stop:
            raise result.stop
        self.node_of |= {task.name: result.node for task in batch}
        return result.outcomes

    def lose(self, batch: Sequence[Task], reason: str) -> Sequence[Outcome | None]:
        """Return for each task of a lost batch its failure, or None if the task may be tried again, alone."""
        if len(batch) == 1:
            self._losses.update(task.name for task in batch)
        failure = TaskFailed(f"{MAX_LOST_NODES} nodes lost that ran it alone: {reason}")
        return [
            None if self._losses[task.name] < MAX_LOST_NODES else Outcome(task, failure=failure, is_lost=True)
            for task in batch
        ]


def import_engine(module: str, extra: str) -> Any:
    """Import an engine's library.

    Raises:
        RequestError: the library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise RequestError(f"--engine {extra}: needs `pip install 'leakboard[{extra}]'`") from None
