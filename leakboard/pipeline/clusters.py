"""Engines for several machines: Ray, and Slurm through submitit. All they need is a folder that every node sees.

A node runs the same stages as a local process does, on the same store: it reads and writes artefacts that are whole or
not there, and writes a cell's record at once. It keeps no books; the runner alone waits, counts and writes tables. What
was lost with a node is given to another, unless its result was written before.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakboard.errors import RequestError, StopRun
from leakboard.pipeline.engines import IsDone, Listen, Outcome, Task, TaskFailed, called, drive

TRIES = 3
"""How often a task is given to another node, where those before were lost."""


@dataclass(frozen=True)
class Ended:
    """What a node sends back: how each task of a batch ended, and what it told meanwhile."""

    outcomes: Sequence[Outcome]
    told: Sequence[tuple[str, str, str]]
    stop: StopRun | None = None
    node: str = ""


def call_batch(batch: Sequence[Task], node: str = "") -> Ended:
    """Make the calls of tasks one after another; an error that stops the run is sent back as a value."""
    from leakboard.pipeline.resources import silence_libraries

    silence_libraries()
    outcomes: list[Outcome] = []
    told: list[tuple[str, str, str]] = []
    for task in batch:

        def tell(event: str, text: str, name: str = task.name) -> None:
            if event == "warning":
                told.append((name, event, text))

        try:
            outcomes.append(called(task, tell))
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
        """Return what becomes of tasks whose node was lost: they are tried again, but not for ever."""
        self._lost.update(task.name for task in batch)
        failure = TaskFailed(f"{TRIES} nodes lost: {reason}")
        return [None if self._lost[task.name] < TRIES else Outcome(task, failure=failure) for task in batch]


class Ray:
    """The nodes of a Ray cluster, or of one that is started on this machine where no address is given."""

    LASTING = 0.5
    """Small tasks are sent together until they may last so long (seconds): sending one takes some milliseconds."""

    def __init__(self, address: str = ""):
        self.address = address
        self.jobs = 1_000
        """Batches in flight: the cluster keeps in line what it has no room for."""

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        ray = _imported("ray", "ray")
        was_open = ray.is_initialized()
        try:
            ray.init(self.address or None, ignore_reinit_error=True, log_to_driver=False, include_dashboard=False)
        except ConnectionError as error:
            raise RequestError(f"--address {self.address}: no Ray cluster answers there ({error})") from None
        except ValueError:  # options for a new cluster, where one is joined
            ray.init(self.address, ignore_reinit_error=True, log_to_driver=False)
        try:
            cores = int(ray.cluster_resources().get("CPU", 1))
            self.jobs = 2 * cores
            yield from drive(_RayNodes(ray, listen), tasks, self.jobs, 2 * cores, self.LASTING, is_done)
        finally:
            if not was_open:
                ray.shutdown()


class _RayNodes(_Nodes):
    def __init__(self, ray: Any, listen: Listen):
        super().__init__(listen)
        self.ray = ray
        self.call = ray.remote(max_retries=0)(_call_on_ray)

    def start(self, batch: Sequence[Task]) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.begun(batch)
        options: dict[str, Any] = {"num_cpus": batch[0].threads}
        if node := self.node_of.get(batch[0].after):
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True)
        if batch[0].plugins:  # Ray has other processes for another environment: what plugins change stays theirs
            options["runtime_env"] = {"env_vars": {"LEAKBOARD_PLUGINS": " ".join(batch[0].plugins)}}
        return self.call.options(**options).remote(list(batch))

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        return list(self.ray.wait(list(running), num_returns=1)[0])

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
    LOOK = 0.5
    """How often is looked whether a job has ended (seconds)."""

    def __init__(self, folder: Path, jobs: int = 100, cluster: str | None = None, **parameters: Any):
        self.folder, self.jobs, self.cluster, self.parameters = folder, jobs, cluster, parameters

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        submitit = _imported("submitit", "slurm")
        executor = submitit.AutoExecutor(self.folder, cluster=self.cluster)
        executor.update_parameters(**self.parameters)
        nodes = _SlurmNodes(executor, listen, self.LOOK)
        try:
            yield from drive(nodes, tasks, self.jobs, self.jobs, self.LASTING, is_done)
        finally:
            nodes.cancel()


class _SlurmNodes(_Nodes):
    def __init__(self, executor: Any, listen: Listen, look: float):
        super().__init__(listen)
        self.executor, self.look = executor, look
        self.running: list[Any] = []

    def start(self, batch: Sequence[Task]) -> Any:
        self.begun(batch)
        timeout = batch[0].timeout
        limit = {} if timeout is None else {"timeout_min": max(1, round(timeout / 60))}
        self.executor.update_parameters(cpus_per_task=batch[0].threads, **limit)
        self.running.append(self.executor.submit(call_batch, list(batch)))
        return self.running[-1]

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        while not (ended := [job for job in running if job.done()]):
            time.sleep(self.look)
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
