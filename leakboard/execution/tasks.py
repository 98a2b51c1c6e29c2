"""Tasks, how they end, and the order in which they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from leakboard.execution.reservations import Reservation

PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""After how long a task that another run does is tried again, at first and at last (seconds)."""


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
    gpus: int = 0
    """GPUs that it uses: 1 or none."""
    card: int = 0
    """Number of the GPU that it has, among the machine's."""
    plugins: tuple[str, ...] = ()
    """Plugins on its way that are not LeakBoard's own: tasks of other plugins are not run in the same process."""
    kind: str = ""
    """What it is like: tasks of a kind are taken to last equally long."""
    reservation: Reservation | None = None
    """Held while it runs, where several runs may have the same task."""


class TaskFailed(Exception):
    """A task did not end well: the reason in one line, and the traceback where there is one."""

    def __init__(self, reason: str, lines: str = ""):
        super().__init__(reason, lines)
        self.reason, self.lines = reason, lines


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a task ended."""

    task: Task
    value: Any = None
    failure: TaskFailed | None = None
    seconds: float = 0.0
    is_lost: bool = False
    """Whether its process ended before it could tell; its result may be written all the same."""
    is_reserved: bool = False
    """Whether it was not run, since another run does the same."""


class Waiting:
    """Tasks that have not begun.

    Those that wait for none come first; of the others, those whose predecessor ended last.
    """

    def __init__(self, tasks: Iterable[Task]):
        self._first: deque[Task] = deque()
        self._then: deque[Task] = deque()
        self._followers: dict[str, list[Task]] = {}
        self._again: set[str] = set()
        self._postponed: dict[str, tuple[float, Task]] = {}
        self._pauses: dict[str, float] = {}
        self._ended: dict[str, tuple[float, int]] = {}
        for task in tasks:
            self._followers.setdefault(task.after, []).append(task) if task.after else self._first.append(task)

    def __bool__(self) -> bool:
        return bool(self._first or self._then or self._postponed)

    def take(self, threads: int, lasting: float = 0.0, gpus: int = 0) -> list[Task]:
        """Take out the first task that needs no more than so many threads and GPUs, and small ones like it behind it.

        Args:
            threads: that are free.
            lasting: tasks are taken together until they are expected to last so long (seconds); one that may be killed
                for its timeout stays alone, and one that is tried again.
            gpus: that are free.
        """
        for name, (due, task) in list(self._postponed.items()):
            if due <= time.monotonic():
                del self._postponed[name]
                (self._then if task.after else self._first).appendleft(task)
        for ready in (self._first, self._then):
            for i, task in enumerate(ready):
                if task.threads <= threads and task.gpus <= gpus:
                    del ready[i]
                    return [task, *self._like(task, ready, i, lasting - self.expected(task))]
        return []

    def _like(self, task: Task, ready: deque[Task], place: int, left: float) -> Iterator[Task]:
        """Take out the tasks at a place that may be run after a task, until they fill the time that is left."""
        while left > 1e-9 and place < len(ready) and _alike(task, ready[place]):
            if self._again & {task.name, ready[place].name}:
                return
            left -= self.expected(ready[place])
            yield ready[place]
            del ready[place]

    def put_back(self, task: Task) -> None:
        """Take in a task whose process was lost: it comes next, and alone."""
        self._again.add(task.name)
        (self._then if task.after else self._first).appendleft(task)

    def postpone(self, task: Task) -> None:
        """Take in a task that another run does: it comes again after a pause, each longer than the last."""
        pause = self._pauses[task.name] = min(LONGEST_PAUSE, 1.5 * self._pauses.get(task.name, PAUSE / 1.5))
        self._postponed[task.name] = time.monotonic() + pause, task

    @property
    def pause(self) -> float:
        """How long nothing postponed comes again (seconds)."""
        return max(0.0, min((due for due, _ in self._postponed.values()), default=0.0) - time.monotonic())

    def expected(self, task: Task) -> float:
        """Return how long a task may last, from the ended ones of its kind (seconds); infinity where none has."""
        seconds, count = self._ended.get(task.kind, (float("inf"), 1))
        return seconds / count

    def take_in(self, outcome: Outcome) -> Iterator[Outcome]:
        """Yield a task's outcome, and its failure also for what waited for it; what waited for success is ready."""
        yield outcome
        if outcome.failure is None and outcome.seconds:
            seconds, count = self._ended.get(outcome.task.kind, (0.0, 0))
            self._ended[outcome.task.kind] = seconds + outcome.seconds, count + 1
        followers = self._followers.pop(outcome.task.name, [])
        if outcome.failure is None:
            self._then.extendleft(reversed(followers))
            return
        for task in followers:
            yield from self.take_in(Outcome(task, failure=outcome.failure))


def _alike(first: Task, second: Task) -> bool:
    """Return whether one process may run two tasks one after another."""
    same = all(getattr(first, name) == getattr(second, name) for name in ("after", "plugins", "threads", "gpus"))
    return same and first.timeout is None and second.timeout is None
