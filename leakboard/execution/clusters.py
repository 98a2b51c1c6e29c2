"""Engines for several machines: Ray, and Slurm through submitit. All they need is a folder that every node sees.

A node runs the same stages as a local process does, on the same store: it reads and writes artefacts that are whole or
not there, and writes a cell's record at once. It keeps no books; the runner alone waits, counts and writes tables. What
was lost with a node is given to another, unless its result was written before.
"""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from leakboard.errors import RequestError, StopRun
from leakboard.execution.engines import IsDone, Listen, called, drive
from leakboard.execution.tasks import Outcome, Task, TaskFailed

LOOK = 0.5
"""How often is looked what has ended (seconds)."""
TRIES = 3
"""How often a task is given to another node, where those before were lost."""


DAY = 24 * 60
"""Longest time of a Slurm job where the suite names no timeout (minutes)."""
STARTING = 15
"""What a Slurm job may take besides its task's timeout, which the task keeps itself (minutes)."""


@dataclass(frozen=True)
class Ended:
    """What a node sends back: how each task of a batch ended, and what it told meanwhile."""

    outcomes: Sequence[Outcome]
    told: Sequence[tuple[str, str, str]]
    stop: StopRun | None = None
    node: str = ""


class _TimeIsUp(BaseException):
    """A task has taken longer than it may: no `Exception`, which a plugin might catch."""


@contextlib.contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Stop what is inside after so long: at once where Python runs, else when a library comes back.

    Raises:
        TaskFailed: it took longer.
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


def call_batch(batch: Sequence[Task], node: str = "") -> Ended:
    """Make the calls of tasks one after another; an error that stops the run is sent back as a value."""
    from leakboard.execution.resources import silence_libraries

    silence_libraries()
    outcomes: list[Outcome] = []
    told: list[tuple[str, str, str]] = []
    for task in batch:

        def tell(event: str, text: str, name: str = task.name) -> None:
            if event == "warning":
                told.append((name, event, text))

        try:
            with _limited(task.timeout):
                outcomes.append(called(task, tell))
        except TaskFailed as failure:
            outcomes.append(Outcome(task, failure=failure))
        except StopRun as stop:
            return Ended(outcomes, told, stop, node)
    return Ended(outcomes, told, node=node)


class _Nodes:
    """What Ray and Slurm have in common: sending batches, and taking in what comes back."""

    def __init__(self, listen: Listen):
        self.listen = listen
        self._lost: Counter[str] = Counter()
        self.node_of: dict[str, str] = {}
        """By a task's name, the node that ran it: what follows finds there what it left in memory."""

    def begun(self, batch: Sequence[Task]) -> None:
        """Tell that tasks were sent."""
        for task in batch:
            self.listen(task.name, "start", "")

    def taken_in(self, batch: Sequence[Task], ended: Ended) -> Sequence[Outcome]:
        """Return how tasks ended, and pass on what they told.

        Raises:
            StopRun: one could not write, or a dataset is not as asked.
        """
        for name, event, text in ended.told:
            self.listen(name, event, text)
        if ended.stop:
            raise ended.stop
        self.node_of |= {task.name: ended.node for task in batch}
        return ended.outcomes

    def lost(self, batch: Sequence[Task], reason: str) -> Sequence[Outcome | None]:
        """Return what becomes of tasks whose node was lost: they are tried again, each alone, but not for ever."""
        if len(batch) == 1:
            self._lost.update(task.name for task in batch)
        failure = TaskFailed(f"{TRIES} nodes lost: {reason}")
        return [
            None if self._lost[task.name] < TRIES else Outcome(task, failure=failure, is_lost=True) for task in batch
        ]


class Ray:
    """The nodes of a Ray cluster, or of one that is started on this machine where no address is given."""

    LASTING = 0.5
    """Small tasks are sent together until they may last so long (seconds): sending one takes some milliseconds."""

    def __init__(self, address: str = ""):
        self.address = address
        self._was_open = False

    @cached_property
    def _ray(self) -> Any:
        """The library, connected to the cluster.

        Raises:
            RequestError: it is not installed, or no cluster answers.
        """
        ray = _imported("ray", "ray")
        self._was_open = ray.is_initialized()
        new = {} if self.address else {"include_dashboard": False}
        try:
            ray.init(self.address or None, ignore_reinit_error=True, log_to_driver=False, **new)
        except (ConnectionError, ValueError) as error:
            raise RequestError(f"--address {self.address}: no Ray cluster answers there ({error})") from None
        return ray

    @cached_property
    def cores(self) -> int:
        """Of all nodes together, when the run began."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    @cached_property
    def gpus(self) -> int:
        """Of all nodes together, when the run began; Ray itself gives each to one task at a time."""
        return int(self._ray.cluster_resources().get("GPU", 0))

    @property
    def jobs(self) -> int:
        """Batches in flight: twice as many as cores, so that a core that is free finds its next one there."""
        return 2 * self.cores

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes.

        Raises:
            RequestError: a task needs more cores than any node has.
            StopRun: one could not write, or a dataset is not as asked.
        """
        ray, tasks = self._ray, list(tasks)
        try:
            most = max(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"])
            if wide := [task.threads for task in tasks if task.threads > most]:
                raise RequestError(f"threads: {wide[0]} is not allowed: no node has more than {most} cores")
            nodes, jobs = _RayNodes(ray, listen), self.jobs
            yield from drive(nodes, tasks, jobs, jobs, self.LASTING, is_done, listen, 2 * self.gpus)
        finally:
            if not self._was_open:
                ray.shutdown()
                del self._ray


class _RayNodes(_Nodes):
    def __init__(self, ray: Any, listen: Listen):
        super().__init__(listen)
        self.ray = ray
        self.call = ray.remote(max_retries=0)(_call_on_ray)
        self.call_and_end = ray.remote(max_retries=0, max_calls=1)(_call_on_ray)
        """Its process ends with it: what plugins of others change reaches nobody, and its GPU is free."""

    def start(self, batch: Sequence[Task]) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.begun(batch)
        options: dict[str, Any] = {"num_cpus": batch[0].threads, "num_gpus": batch[0].gpus}
        if node := self.node_of.get(batch[0].after):
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True)
        call = self.call_and_end if batch[0].plugins or batch[0].gpus else self.call
        return call.options(**options).remote(list(batch))

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        self.ray.wait(list(running), num_returns=1, timeout=LOOK)
        return list(self.ray.wait(list(running), num_returns=len(running), timeout=0)[0])

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        try:
            ended: Ended = self.ray.get(started)
        except self.ray.exceptions.RayError as error:
            return self.lost(batch, type(error).__name__)
        return self.taken_in(batch, ended)


def _call_on_ray(batch: Sequence[Task]) -> Ended:
    import ray

    return call_batch(batch, ray.get_runtime_context().get_node_id())


class Slurm:
    """Jobs of Slurm, or where there is none of this machine, through submitit."""

    LASTING = 60.0
    """Small tasks are sent together until they may last so long (seconds): a job starts in seconds."""
    gpus = None
    """Slurm tells nobody before a job asks: one is asked for where the suite says ``device: cuda``."""

    def __init__(self, folder: Path, jobs: int = 100, cluster: str | None = None, **parameters: Any):
        self.folder, self.jobs, self.cluster, self.parameters = folder, jobs, cluster, parameters

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        submitit = _imported("submitit", "slurm")
        executors = [submitit.AutoExecutor(self.folder, cluster=self.cluster) for _ in range(2)]
        for executor, gpus in zip(executors, ({}, {"gpus_per_node": 1}), strict=True):
            executor.update_parameters(**self.parameters, **gpus)
        nodes = _SlurmNodes(executors, listen)
        try:
            yield from drive(nodes, tasks, self.jobs, sys.maxsize, self.LASTING, is_done, listen, sys.maxsize)
        finally:
            nodes.cancel()


class _SlurmNodes(_Nodes):
    def __init__(self, executors: Sequence[Any], listen: Listen):
        super().__init__(listen)
        self.executors = executors
        """One for tasks without a GPU, and one for those with."""
        self.running: list[Any] = []

    def start(self, batch: Sequence[Task]) -> Any:
        self.begun(batch)
        timeout = batch[0].timeout
        minutes = DAY if timeout is None else math.ceil(timeout / 60) + STARTING
        executor = self.executors[batch[0].gpus]
        executor.update_parameters(cpus_per_task=batch[0].threads, timeout_min=minutes)
        self.running.append(executor.submit(call_batch, list(batch)))
        return self.running[-1]

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        if not (ended := [job for job in running if job.done()]):
            time.sleep(LOOK)
        return ended

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        self.running.remove(started)
        try:
            ended: Ended = started.result()
        except Exception as error:  # submitit's own, of a job that was killed or never began
            return self.lost(batch, f"{type(error).__name__}, see {started.paths.stderr}")
        return self.taken_in(batch, ended)

    def cancel(self) -> None:
        """Cancel what still runs."""
        for job in self.running:
            job.cancel(check=False)


def _imported(module: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise RequestError(f"--engine {extra}: needs `pip install 'leakboard[{extra}]'`") from None
