"""Describe tasks and their outcomes, and decide their order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from leakboard.execution.reservations import Reservation

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Shortest and longest pause before a reserved task is tried again (seconds)."""


@dataclass(frozen=True)
class Task:
    """A function call that an engine makes."""

    name: str
    call: Callable[..., Any]
    """Called with ``arguments`` and a function that reports a warning."""
    arguments: tuple[Any, ...]
    after: str = ""
    """Name of the task that must succeed first; empty for none."""
    timeout: float | None = None
    """Longest time that the task may take (seconds)."""
    threads: int = 1
    """Number of threads that the task uses."""
    cores: int = 1
    """Number of cores that `side_by_side` may use in this task, set by `drive`. It changes no result."""
    gpus: int = 0
    """Number of GPUs that the task uses: 0 or 1."""
    card: int = 0
    """Number of the task's GPU on this machine, from 0; only the engine `Local` uses the number."""
    plugins: tuple[str, ...] = ()
    """Plugins from outside LeakBoard. Tasks with different ones share no process, except with `InProcess`."""
    kind: str = ""
    """Tasks of the same kind are expected to take equally long."""
    reservation: Reservation | None = None
    """Reservation to hold while the task runs."""


class Interruption(BaseException):
    """Ends a task from outside, past any ``except Exception`` of a plugin."""


class TaskFailed(Exception):
    """The failure of a task: its reason in one line, and its traceback if there is one."""

    def __init__(self, reason: str, lines: str = ""):
        super().__init__(reason, lines)
        self.reason, self.lines = reason, lines


@dataclass(frozen=True, eq=False)
class Outcome:
    """The end of a task: its value, or the reason why it has none."""

    task: Task
    value: Any = None
    failure: TaskFailed | None = None
    seconds: float = 0.0
    is_lost: bool = False
    """Whether the process was lost; the task may still have written its result."""
    is_reserved: bool = False
    """Whether another run is doing the task."""


class TaskQueue:
    """The tasks that have not begun, in the order of `take`.

    Tasks without a predecessor come first. Then the followers of the task that ended last, then the other followers.
    A task that is put back goes to the front of its sort (with or without a predecessor).
    """

    def __init__(self, tasks: Iterable[Task]):
        self._independent: deque[Task] = deque()
        self._dependent: deque[Task] = deque()
        self._followers: dict[str, list[Task]] = {}
        self._retried: set[str] = set()
        self._postponed: dict[str, tuple[float, Task]] = {}
        self._pauses: dict[str, float] = {}
        self._durations: dict[str, tuple[float, int]] = {}
        for task in tasks:
            self._followers.setdefault(task.after, []).append(task) if task.after else self._independent.append(task)

    def __bool__(self) -> bool:
        return bool(self._independent or self._dependent or self._postponed)

    @property
    def ready(self) -> int:
        """Number of tasks that could begin now."""
        return len(self._independent) + len(self._dependent)

    def take(self, threads: int, batch_seconds: float = 0.0, gpus: int = 0) -> list[Task]:
        """Remove and return the first task that fits, with tasks that may share its process; empty if none fits.

        Args:
            threads: number of free threads.
            batch_seconds: longest expected duration of several tasks together (seconds).
            gpus: number of free GPUs.
        """
        for name, (due, task) in list(self._postponed.items()):
            if due <= time.monotonic():
                del self._postponed[name]
                self._put_first(task)
        for ready in (self._independent, self._dependent):
            for i, task in enumerate(ready):
                if task.threads <= threads and task.gpus <= gpus:
                    del ready[i]
                    return [task, *self._take_similar(task, ready, i, batch_seconds - self.expected(task))]
        return []

    def _take_similar(self, task: Task, ready: deque[Task], position: int, seconds_left: float) -> Iterator[Task]:
        while position < len(ready) and _may_share_process(task, ready[position]):
            seconds_left -= self.expected(ready[position])
            if seconds_left < -1e-9 or self._retried & {task.name, ready[position].name}:
                return
            yield ready[position]
            del ready[position]

    def _put_first(self, task: Task) -> None:
        (self._dependent if task.after else self._independent).appendleft(task)

    def retry(self, task: Task) -> None:
        """Put back a task after its process was lost; `take` returns the task alone."""
        self._retried.add(task.name)
        self._put_first(task)

    def postpone(self, task: Task) -> None:
        """Put back a task that another run does; `take` returns the task after a pause."""
        pause = self._pauses[task.name] = min(LONGEST_PAUSE, 1.5 * self._pauses.get(task.name, FIRST_PAUSE / 1.5))
        self._postponed[task.name] = time.monotonic() + pause, task

    @property
    def pause(self) -> float:
        """Time until the next postponed task comes again (seconds)."""
        return max(0.0, min((due for due, _ in self._postponed.values()), default=0.0) - time.monotonic())

    def expected(self, task: Task) -> float:
        """Return the mean duration of tasks of the same kind that ran and succeeded (seconds); infinity if none did."""
        seconds, count = self._durations.get(task.kind, (float("inf"), 1))
        return seconds / count

    def end(self, outcome: Outcome) -> Iterator[Outcome]:
        """Yield the outcome of a task; if the task failed, also the failures of its followers."""
        yield outcome
        followers = self._followers.pop(outcome.task.name, [])
        if outcome.failure:
            for task in followers:
                yield from self.end(Outcome(task, failure=outcome.failure))
            return
        if outcome.seconds:
            seconds, count = self._durations.get(outcome.task.kind, (0.0, 0))
            self._durations[outcome.task.kind] = seconds + outcome.seconds, count + 1
        self._dependent.extendleft(reversed(followers))


def _may_share_process(first: Task, second: Task) -> bool:
    same = all(getattr(first, name) == getattr(second, name) for name in ("after", "plugins", "threads", "gpus"))
    # a task with a timeout runs alone, because its timeout may kill the whole process
    return same and first.timeout is None and second.timeout is None
