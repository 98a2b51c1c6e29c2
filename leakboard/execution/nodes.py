"""Run batches of tasks on other machines: the common part of Ray and Slurm (`docs/scale.md`)."""

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
MAX_LOST_NODES = 3
"""A task fails once this many nodes were lost while they ran only this task."""


@dataclass(frozen=True)
class BatchResult:
    """The outcomes of a batch of tasks, and their warnings."""

    outcomes: Sequence[Outcome]
    events: Sequence[tuple[str, str, str]]
    """Warnings, with the arguments of `Listen`."""
    stop: StopRun | None = None
    """Error of a task that stops the whole run; later tasks were not run."""
    node: str = ""
    """Ray's ID of the node; empty with Slurm."""


class _TimeIsUp(Interruption):
    """A task exceeded its timeout."""


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Limit the time of a block (seconds); no limit outside the main thread.

    A call of a C library is interrupted only when the call returns.

    Raises:
        TaskFailed: the block took longer.
    """

    def stop(*_: object) -> None:
        raise _TimeIsUp

    # only the main thread receives signals
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
    """Run tasks one after another on a node. A `StopRun` becomes a field of the result."""
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


class RemoteBatches:
    """Handles ended and lost batches."""

    def __init__(self, listen: Listen):
        self.listen = listen
        self._losses: Counter[str] = Counter()
        self.node_of: dict[str, str] = {}
        """Node of each ended task, by name. The node likely caches the files that the task's followers read."""

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
        """Return the failure of each task of a lost batch; None: the task may run again."""
        if len(batch) == 1:
            self._losses.update(task.name for task in batch)
        failure = TaskFailed(f"{MAX_LOST_NODES} nodes were lost while they ran only this task: {reason}")
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
