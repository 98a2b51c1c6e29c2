"""Run tasks on the nodes of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from functools import cached_property
from typing import Any

from leakboard.errors import RequestError
from leakboard.execution.engines import IsDone, Listen, drive
from leakboard.execution.nodes import POLL_SECONDS, BatchResult, RemoteBatches, import_engine, run_batch
from leakboard.execution.tasks import Outcome, Task


class Ray:
    """Runs tasks on the nodes of a Ray cluster.

    Without an address, Ray uses the cluster at ``RAY_ADDRESS``. If this variable is not set, Ray uses the cluster last
    started on this machine. If none runs, Ray starts one.
    """

    BATCH_SECONDS = 0.5
    """Longest expected duration of a batch of several tasks (seconds)."""

    def __init__(self, address: str = ""):
        self.address = address
        self._was_open = False

    @cached_property
    def _ray(self) -> Any:
        ray = import_engine("ray", "ray")
        self._was_open = ray.is_initialized()
        options = {} if self.address else {"include_dashboard": False}
        try:
            ray.init(self.address or None, ignore_reinit_error=True, log_to_driver=False, **options)
        except (ConnectionError, ValueError) as error:
            variable = os.environ.get("RAY_ADDRESS")
            default = f"RAY_ADDRESS={variable}" if variable else "--engine ray without --address"
            place = f"--address {self.address}" if self.address else default
            raise RequestError(f"{place}: no Ray cluster answers ({error})") from None
        return ray

    @cached_property
    def cores(self) -> int:
        """Number of cores of all nodes when the run began."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    @cached_property
    def gpus(self) -> int:
        """Number of GPUs of all nodes when the run began."""
        return int(self._ray.cluster_resources().get("GPU", 0))

    @property
    def jobs(self) -> int:
        """Number of single-threaded tasks that run at once."""
        return self.cores

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes.

        Raises:
            RequestError: a task needs more cores than any node has.
            StopRun: as for `Engine.run`.
        """
        ray, tasks = self._ray, list(tasks)
        try:
            most = max(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"])
            if too_wide := [task.threads for task in tasks if task.threads > most]:
                raise RequestError(f"threads: {too_wide[0]} is not allowed: no node has more than {most} cores")
            batches = _RayBatches(ray, listen)
            # twice the cores: behind each running batch another one is queued, so no core is idle
            sent = 2 * self.cores
            yield from drive(batches, tasks, sent, sent, self.BATCH_SECONDS, is_done, listen, 2 * self.gpus)
        finally:
            if not self._was_open:
                ray.shutdown()
                del self._ray


class _RayBatches(RemoteBatches):
    def __init__(self, ray: Any, listen: Listen):
        super().__init__(listen)
        self.ray = ray
        self.run_batch = ray.remote(max_retries=0)(_run_on_ray)
        # the end of the process undoes changes to libraries and frees the GPU
        self.run_batch_and_exit = ray.remote(max_retries=0, max_calls=1)(_run_on_ray)

    def start(self, batch: Sequence[Task]) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.report_start(batch)
        options: dict[str, Any] = {"num_cpus": batch[0].threads, "num_gpus": batch[0].gpus}
        if node := self.node_of.get(batch[0].after):
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True, _spill_on_unavailable=True)
        call = self.run_batch_and_exit if batch[0].plugins or batch[0].gpus else self.run_batch
        return call.options(**options).remote(list(batch))

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        self.ray.wait(list(running), num_returns=1, timeout=POLL_SECONDS)
        return list(self.ray.wait(list(running), num_returns=len(running), timeout=0)[0])

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        try:
            result: BatchResult = self.ray.get(started)
        except self.ray.exceptions.RayError as error:
            return self.lose(batch, type(error).__name__)
        return self.accept(batch, result)


def _run_on_ray(batch: Sequence[Task]) -> BatchResult:
    import ray

    return run_batch(batch, ray.get_runtime_context().get_node_id())
