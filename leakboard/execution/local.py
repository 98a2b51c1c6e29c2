"""The local engine: tasks in processes of this machine, forked from one that has imported what they need.

Importing torch and its company takes seconds, a fork some hundredths. What workers tell comes over a socket each, so
that one that dies harms nobody else's, and is noticed whatever its exit status. A task with plugins that are not
LeakBoard's own has a process of its own: what they change in libraries reaches nobody.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import cached_property
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from pebble import ProcessExpired, ProcessPool

from leakboard.errors import StopRun, one_line
from leakboard.execution import devices
from leakboard.execution.engines import IsDone, Listen, called, drive
from leakboard.execution.resources import QUIET
from leakboard.execution.tasks import Outcome, Task, TaskFailed

METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""How workers start; elsewhere than on Linux libraries do not survive a fork."""
PATIENCE = 10.0
"""Longest time that ending the workers may take (seconds)."""
GRACE = 1.0
"""Time after which a worker that is gone will not be reported by its pool any more (seconds)."""
LOOK = 0.5
"""How often is looked what has ended, and whether a pool has lost its tasks (seconds)."""
TRIES = 3
"""How often a task is given to new workers, where those before died without beginning it."""


def usable_cores() -> int:
    """Return the number of cores that this process may use: of the machine, its affinity and its cgroup."""
    import joblib

    return int(joblib.cpu_count())


def prepare_workers() -> None:
    """Begin to import what workers need, in another process, while this one does something else."""
    from multiprocessing import forkserver

    if METHOD == "forkserver":
        ours = sorted(name for name in sys.modules if name.startswith("leakboard."))
        multiprocessing.get_context(METHOD).set_forkserver_preload(["leakboard.pipeline.preload", *ours])
        forkserver.ensure_running()


class Local:
    """Processes of this machine, ``jobs`` at once, with no more threads than it has cores, or jobs if these are more.

    A task that exceeds its timeout is killed and fails alone, as does one whose process ends. One whose process ends
    before the task began is given to another.
    """

    def __init__(self, jobs: int):
        self.jobs = jobs

    @cached_property
    def gpus(self) -> int:
        """Those of this machine: a task that uses one has it alone."""
        return devices.cards()

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        with Workers(self.jobs, listen) as workers:
            cores = max(self.jobs, usable_cores())
            yield from drive(workers, tasks, self.jobs, cores, 0.0, is_done, listen, self.gpus)


class Workers:
    """Pools of processes, one for LeakBoard's own plugins and one for those of others, and what their tasks tell."""

    def __init__(self, jobs: int, listen: Listen):
        self.jobs, self.listen = jobs, listen
        self._key = os.urandom(32)
        with _room():
            prepare_workers()
            self._listener = Listener(authkey=self._key)
        self._pools: dict[bool, ProcessPool] = {}
        self._given: dict[str, tuple[Task, Any]] = {}
        self._begun: dict[str, Connection] = {}
        self._tries: Counter[str] = Counter()
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for pool in self._pools.values():
            pool.stop() if kind else pool.close()
        ending = [threading.Thread(target=pool.join, daemon=True) for pool in self._pools.values()]
        for thread in ending:
            thread.start()
        end = time.monotonic() + PATIENCE
        for thread in ending:
            thread.join(max(0.0, end - time.monotonic()))  # workers end with this process whatever keeps their pool
        self._ended = True
        with contextlib.suppress(OSError, EOFError):
            Client(self._listener.address, authkey=self._key).close()  # wakes the thread that accepts
        self._listener.close()

    def start(self, batch: Sequence[Task]) -> Any:
        """Give a task to a process and return its future."""
        (task,) = batch
        self._begun.pop(task.name, None)
        with self._starting:
            try:
                future: Any = self._pool(bool(task.plugins)).schedule(_call, args=[task], timeout=task.timeout)
            except RuntimeError as error:  # its workers died while none of them had a task
                future = concurrent.futures.Future()
                future.set_exception(BrokenProcessPool(str(error)))
            self._given[task.name] = task, future
        return future

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        """Return the futures that are done; wait for one, but not for long."""
        if not (done := concurrent.futures.wait(running, LOOK, return_when=concurrent.futures.FIRST_COMPLETED).done):
            for task, future in list(self._given.values()):
                pool = self._pools.get(bool(task.plugins))
                if pool is None or not pool.active:  # it broke while the task was on its way to it
                    with contextlib.suppress(concurrent.futures.InvalidStateError):
                        future.set_exception(BrokenProcessPool("its pool broke"))
        return done

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        """Return how a task ended; None where its process died before it began, and another may begin it."""
        (task,), future = batch, started
        self._given.pop(task.name)
        if not future.cancelled() and isinstance(future.exception(), BrokenProcessPool):
            self._discard(bool(task.plugins))
            self._tries[task.name] += 1
            if task.name not in self._begun and self._tries[task.name] < TRIES:
                return [None]
        return [_outcome(task, future, task.name in self._begun)]

    def _pool(self, of_others: bool) -> ProcessPool:
        """Return the pool for LeakBoard's own plugins, or that for those of others, whose processes end with a task."""
        if of_others not in self._pools:
            told = (self._listener.address, self._key, dict(os.environ), os.getcwd())
            context = multiprocessing.get_context(METHOD)
            with _room():
                self._pools[of_others] = ProcessPool(self.jobs, int(of_others), _enter, told, context)
        return self._pools[of_others]

    def _discard(self, of_others: bool) -> None:
        if pool := self._pools.pop(of_others, None):
            pool.stop()
            threading.Thread(target=pool.join, daemon=True).start()

    def _accept(self) -> None:
        while not self._ended:
            with contextlib.suppress(OSError, EOFError, multiprocessing.AuthenticationError):
                connection = self._listener.accept()
                threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: Connection) -> None:
        """Pass on what a worker tells; when it is gone, see to it that its task ends."""
        name = ""
        while True:
            try:
                name, event, text = json.loads(connection.recv_bytes())
            except (EOFError, OSError):
                break
            if event == "start":
                self._begun[name] = connection
            elif event == "end":  # the pool hears of it in its own time
                name = ""
                continue
            with self._lock, contextlib.suppress(OSError):  # who listens may have a full disk
                self.listen(name, event, text)
        with self._starting:
            _, future = self._given.get(name, (None, None))
        if future and self._begun.get(name) is connection:
            concurrent.futures.wait([future], timeout=GRACE)  # a pool does not see a process that ends with status 0
            future.cancel()


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Stop the run where processes have no room for what they begin with: sockets and locks, which are files too."""
    try:
        yield
    except OSError as error:
        raise StopRun(f"processes cannot be started ({one_line(error)}); what was finished before is kept") from error


def _outcome(task: Task, future: Any, has_begun: bool) -> Outcome:
    try:
        value, seconds = future.result()
        return Outcome(task, value, seconds=seconds)
    except concurrent.futures.TimeoutError:
        return Outcome(task, failure=TaskFailed(f"TimeoutError: took longer than timeout={task.timeout:g} s"))
    except ProcessExpired as error:
        return Outcome(task, failure=TaskFailed(f"its process died (exit code {error.exitcode})"), is_lost=True)
    except concurrent.futures.CancelledError:
        reason = "its process ended before the task did (exit code 0)"
        return Outcome(task, failure=TaskFailed(reason), is_lost=True)
    except BrokenProcessPool:
        reason = "its process died" if has_begun else f"{TRIES} processes died before they began with it"
        return Outcome(task, failure=TaskFailed(reason), is_lost=True)
    except TaskFailed as failure:
        return Outcome(task, failure=failure)
    except StopRun:
        raise
    except Exception as error:  # what the way back itself raised, as a value that cannot be sent
        return Outcome(task, failure=TaskFailed(one_line(error), traceback.format_exc()))


_events: Connection
_folder: str


def _enter(address: str, key: bytes, environment: Mapping[str, str], folder: str) -> None:
    """Prepare a worker: it has the environment and the folder of its parent, and ends with it."""
    global _events, _folder
    os.environ.clear()
    os.environ.update(environment)
    os.environ |= QUIET | {"JOBLIB_MULTIPROCESSING": "0"}  # scikit-learn's helper would leave a semaphore behind
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _events, _folder = Client(address, authkey=key), folder


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent, "a worker is another's child"
    parent.join()
    os._exit(1)


def _call(task: Task) -> tuple[Any, float]:
    def tell(event: str, text: str = "") -> None:
        _events.send_bytes(json.dumps([task.name, event, text]).encode())

    with contextlib.suppress(OSError):  # where the task before left this process in another
        os.chdir(_folder)
    devices.choose_card(task.card)
    tell("start")
    try:
        outcome = called(task, tell)
    except KeyboardInterrupt as error:  # a plugin's own: a worker hears no Ctrl-C
        raise TaskFailed(one_line(error), traceback.format_exc()) from None
    finally:
        tell("end")
    if outcome.failure:
        raise outcome.failure
    return outcome.value, outcome.seconds
