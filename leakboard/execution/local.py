"""Run tasks in worker processes of this machine."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import signal
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
from leakboard.execution.engines import IsDone, Listen, drive, run_task
from leakboard.execution.printed import bounded_output
from leakboard.execution.resources import NO_PROGRESS_BARS, usable_cores
from leakboard.execution.tasks import Outcome, Task, TaskFailed

START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""Outside Linux, some libraries do not survive a fork."""
STOP_SECONDS = 10.0
"""Longest wait for the workers at the end of a run."""
REPORT_SECONDS = 1.0
"""A pool reports a dead worker within this time."""
POLL_SECONDS = 0.5
MAX_DEAD_WORKERS = 3
"""A task fails if its pool breaks this many times before the task begins."""
SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable that keeps the current folder off the path of Python."""


def prepare_workers() -> None:
    """Start the process from which workers are forked, without waiting; do nothing outside Linux."""
    from multiprocessing import forkserver, resource_tracker

    if START_METHOD == "forkserver":
        kept = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"  # a file `random.py` must not shadow the library
        imported = sorted(name for name in sys.modules if name.startswith("leakboard."))
        multiprocessing.get_context(START_METHOD).set_forkserver_preload(["leakboard.pipeline.preload", *imported])
        resource_tracker.ensure_running()  # unblocks SIGINT, so it must start before SIGINT is blocked
        # the new process keeps SIGINT blocked, so Ctrl-C does not reach workers
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.environ.pop(SAFE_PATH) if kept is None else os.environ.update({SAFE_PATH: kept})


class Local:
    """Runs up to ``jobs`` tasks at once, in processes of this machine.

    A task fails if it takes longer than its timeout. It also fails if its process dies before it writes its record. If
    the pool breaks before the task begins, the task is tried again (`MAX_DEAD_WORKERS`).
    """

    def __init__(self, jobs: int):
        self.jobs = jobs

    @cached_property
    def gpus(self) -> int:
        """Number of GPUs of this machine."""
        return devices.cards()

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        with Workers(self.jobs, listen) as workers:
            cores = max(self.jobs, usable_cores())
            yield from drive(workers, tasks, self.jobs, cores, 0.0, is_done, listen, self.gpus, lends_cores=True)


class Workers:
    """Two pools of worker processes: one for tasks with foreign plugins, one for all others."""

    def __init__(self, jobs: int, listen: Listen):
        self.jobs, self.listen = jobs, listen
        self._key = os.urandom(32)
        with _stop_if_no_process_starts():
            prepare_workers()
            # each worker has a socket: a death in mid-report disturbs no other worker
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
        end = time.monotonic() + STOP_SECONDS
        for thread in ending:  # workers that do not end in time end with this process
            thread.join(max(0.0, end - time.monotonic()))
        self._ended = True
        with contextlib.suppress(OSError, EOFError):
            # wakes the thread of `_accept`; without a key, since the thread may have ended and would not answer
            Client(self._listener.address).close()
        self._listener.close()

    def start(self, batch: Sequence[Task]) -> Any:
        """Give a task to a process and return its future."""
        (task,) = batch
        self._begun.pop(task.name, None)
        with self._starting:
            try:
                future: Any = self._pool(bool(task.plugins)).schedule(_call, args=[task], timeout=task.timeout)
            except RuntimeError as error:  # the pool's workers died while they had no task
                future = concurrent.futures.Future()
                future.set_exception(BrokenProcessPool(str(error)))
            self._given[task.name] = task, future
        return future

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        """Return the futures that are done; wait up to `POLL_SECONDS` for the first."""
        if not (
            done := concurrent.futures.wait(running, POLL_SECONDS, return_when=concurrent.futures.FIRST_COMPLETED).done
        ):
            for task, future in list(self._given.values()):
                pool = self._pools.get(bool(task.plugins))
                if pool is None or not pool.active:  # the pool broke before it received the task
                    with contextlib.suppress(concurrent.futures.InvalidStateError):
                        future.set_exception(BrokenProcessPool("its pool broke"))
        return done

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        """Return the outcome of a task; None if the pool broke before the task began, and the task is tried again."""
        (task,), future = batch, started
        self._given.pop(task.name)
        if not future.cancelled() and isinstance(future.exception(), BrokenProcessPool):
            self._discard(bool(task.plugins))
            self._tries[task.name] += 1
            if task.name not in self._begun and self._tries[task.name] < MAX_DEAD_WORKERS:
                return [None]
        return [_outcome(task, future, task.name in self._begun)]

    def _pool(self, foreign: bool) -> ProcessPool:
        if foreign not in self._pools:
            settings = (self._listener.address, self._key, dict(os.environ), os.getcwd())
            context = multiprocessing.get_context(START_METHOD)
            with _stop_if_no_process_starts():
                # foreign plugins may change libraries: their workers end after one task
                self._pools[foreign] = ProcessPool(self.jobs, int(foreign), _enter, settings, context)
        return self._pools[foreign]

    def _discard(self, foreign: bool) -> None:
        if pool := self._pools.pop(foreign, None):
            pool.stop()
            threading.Thread(target=pool.join, daemon=True).start()

    def _accept(self) -> None:
        while not self._ended:
            with contextlib.suppress(OSError, EOFError, multiprocessing.AuthenticationError):
                connection = self._listener.accept()
                threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: Connection) -> None:
        """Pass on the events of a worker, and end its task if the worker ends."""
        name = ""
        while True:
            try:
                name, event, text = json.loads(connection.recv_bytes())
            except (EOFError, OSError):
                break
            if event == "start":
                self._begun[name] = connection
            elif event == "end":  # the pool reports the outcome later
                name = ""
                continue
            with self._lock, contextlib.suppress(OSError):  # `listen` may write to a full disk
                self.listen(name, event, text)
        with self._starting:
            _, future = self._given.get(name, (None, None))
        if future and self._begun.get(name) is connection:
            # a pool does not notice a process that ends with status 0
            concurrent.futures.wait([future], timeout=REPORT_SECONDS)
            future.cancel()


@contextlib.contextmanager
def _stop_if_no_process_starts() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # a full disk, for example, has no room for sockets and locks
        raise StopRun(f"processes cannot be started ({one_line(error)}); finished work is kept") from error


def _outcome(task: Task, future: Any, has_begun: bool) -> Outcome:
    try:
        return Outcome(task, **future.result())
    except concurrent.futures.TimeoutError:
        return Outcome(task, failure=TaskFailed(f"TimeoutError: took longer than timeout={task.timeout:g} s"))
    except ProcessExpired as error:
        return Outcome(task, failure=TaskFailed(f"its process died (exit code {error.exitcode})"), is_lost=True)
    except concurrent.futures.CancelledError:
        reason = "its process ended before the task did (exit code 0)"
        return Outcome(task, failure=TaskFailed(reason), is_lost=True)
    except BrokenProcessPool:
        reason = "its process died" if has_begun else f"{MAX_DEAD_WORKERS} processes died before they began with it"
        return Outcome(task, failure=TaskFailed(reason), is_lost=True)
    except TaskFailed as failure:
        return Outcome(task, failure=failure)
    except StopRun:
        raise
    except Exception as error:  # for example, the task's value cannot be pickled
        return Outcome(task, failure=TaskFailed(one_line(error), traceback.format_exc()))


_events: Connection
_folder: str


def _enter(address: str, key: bytes, environment: Mapping[str, str], folder: str) -> None:
    global _events, _folder
    os.environ.clear()
    os.environ.update(environment)
    os.environ |= NO_PROGRESS_BARS | {"JOBLIB_MULTIPROCESSING": "0"}  # scikit-learn's joblib would leak a semaphore
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _events, _folder = Client(address, authkey=key), folder


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent, "a worker has a parent"
    parent.join()
    os._exit(1)


def _call(task: Task) -> dict[str, Any]:
    def report(event: str, text: str = "") -> None:
        _events.send_bytes(json.dumps([task.name, event, text]).encode())

    with contextlib.suppress(OSError):  # the previous task may have changed the folder
        os.chdir(_folder)
    devices.choose_card(task.card)
    report("start")
    try:
        with bounded_output():
            outcome = run_task(task, report)
    except KeyboardInterrupt as error:  # from a plugin: Ctrl-C does not reach workers
        raise TaskFailed(one_line(error), traceback.format_exc()) from None
    finally:
        report("end")
    if outcome.failure:
        raise outcome.failure
    return {name: getattr(outcome, name) for name in ("value", "seconds", "is_reserved")}
