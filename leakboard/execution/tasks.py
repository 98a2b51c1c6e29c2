"""Describe tasks and their outcomes, and decide their order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from leakboard.execution.reservations import Reservation

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Shortest and longest pause before a task is tried again, if another run holds its reservation (seconds)."""


@dataclass(frozen=True)
class Task:
    """A function call, to be made in a worker process; with the engine `InProcess`, in the current process."""

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
    """Number of cores that the task may use for calls side by side, its own threads included. No result depends on it.

    `leakboard.execution.engines.drive` sets it when the task starts."""
    gpus: int = 0
    """Number of GPUs that the task uses: 0 or 1."""
    card: int = 0
    """Number of the task's GPU on the machine, from 0. Only the engine `Local` uses it; Ray and Slurm assign GPUs."""
    plugins: tuple[str, ...] = ()
    """Foreign plugins: those that are not part of LeakBoard.

    Tasks with different foreign plugins share no process, except with the engine `InProcess`.
    """
    kind: str = ""
    """Tasks of the same kind are expected to take equally long."""
    reservation: Reservation | None = None
    """Reservation to hold while the task runs, if several runs may have the same task."""


class Interruption(BaseException):
    """Ends a task from outside. It is no `Exception`, because a plugin might catch an `Exception`."""


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
    """Whether the process ended before it reported the task's end. The task may have written its result."""
    is_reserved: bool = False
    """Whether the task was not run because another run does it."""


class TaskQueue:
    """The tasks that have not begun, in the order in which they are taken.

    Tasks without a predecessor come first. Then come the followers of ended tasks; those of the task that ended last
    are at the front.
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
        """Remove and return the first task that fits, and the tasks after it that may share its process.

        A task with a timeout is taken alone, since it may be killed. A task whose process was lost is taken alone, too.
        The list is empty if no task fits.

        Args:
            threads: number of free threads.
            batch_seconds: longest expected duration of several tasks together. A longer task is taken alone.
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
                    return [task, *self._similar(task, ready, i, batch_seconds - self.expected(task))]
        return []

    def _similar(self, task: Task, ready: deque[Task], position: int, seconds_left: float) -> Iterator[Task]:
        """Remove and yield tasks that may share the process of ``task``, from a position on, while time is left."""
        while position < len(ready) and _may_share_process(task, ready[position]):
            seconds_left -= self.expected(ready[position])
            if seconds_left < -1e-9 or self._retried & {task.name, ready[position].name}:
                return
            yield ready[position]
            del ready[position]

    def _put_first(self, task: Task) -> None:
        (self._dependent if task.after else self._independent).appendleft(task)

    def retry(self, task: Task) -> None:
        """Take back a task whose process was lost.

        It goes to the front of its queue (that of tasks with a predecessor, or of those without), and is taken alone.
        """
        self._retried.add(task.name)
        self._put_first(task)

    def postpone(self, task: Task) -> None:
        """Take back a task that another run does, and offer it again after a pause.

        The pause of a task grows by half each time, up to `LONGEST_PAUSE`.
        """
        pause = self._pauses[task.name] = min(LONGEST_PAUSE, 1.5 * self._pauses.get(task.name, FIRST_PAUSE / 1.5))
        self._postponed[task.name] = time.monotonic() + pause, task

    @property
    def pause(self) -> float:
        """Time until the next postponed task comes again (seconds)."""
        return max(0.0, min((due for due, _ in self._postponed.values()), default=0.0) - time.monotonic())

    def expected(self, task: Task) -> float:
        """Return the mean duration of ended tasks of the same kind (seconds); infinity if none has ended."""
        seconds, count = self._durations.get(task.kind, (float("inf"), 1))
        return seconds / count

    def end(self, outcome: Outcome) -> Iterator[Outcome]:
        """Yield a task's outcome. After a success its followers become ready; after a failure they fail, too."""
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
    """Return whether one process may run two tasks one after another."""
    same = all(getattr(first, name) == getattr(second, name) for name in ("after", "plugins", "threads", "gpus"))
    return same and first.timeout is None and second.timeout is None
