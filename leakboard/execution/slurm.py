"""Run tasks as jobs of Slurm, through submitit."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

from leakboard.execution.engines import IsDone, Listen, drive
from leakboard.execution.nodes import POLL_SECONDS, BatchResult, RemoteBatches, import_engine, run_batch
from leakboard.execution.tasks import Outcome, Task

DEFAULT_MINUTES = 24 * 60
"""Time limit of a Slurm job if the suite has no timeout (minutes)."""
STARTUP_MINUTES = 15
"""Extra time of a Slurm job beyond its task's timeout (minutes)."""


class Slurm:
    """Runs tasks as jobs of Slurm. Without Slurm, submitit runs the jobs on this machine."""

    BATCH_SECONDS = 60.0
    """Longest expected duration of a batch of several tasks (seconds)."""
    gpus = None
    """Unknown: Slurm alone decides when a job with a GPU starts."""

    def __init__(self, folder: Path, jobs: int = 100, cluster: str | None = None, **parameters: Any):
        self.folder, self.jobs, self.cluster, self.parameters = folder, jobs, cluster, parameters

    def run(self, tasks: Iterable[Task], is_done: IsDone, listen: Listen) -> Generator[Outcome, None, None]:
        """Run tasks and yield their outcomes."""
        submitit = import_engine("submitit", "slurm")
        executors = [submitit.AutoExecutor(self.folder, cluster=self.cluster) for _ in range(2)]
        for executor, gpus in zip(executors, ({}, {"gpus_per_node": 1}), strict=True):
            executor.update_parameters(**self.parameters, **gpus)
        batches = SlurmBatches(executors, listen)
        try:
            yield from drive(batches, tasks, self.jobs, sys.maxsize, self.BATCH_SECONDS, is_done, listen, sys.maxsize)
        finally:
            batches.cancel()


class SlurmBatches(RemoteBatches):
    """Submits each batch as one job of Slurm.

    Args:
        executors: two of submitit, for tasks without and with a GPU.
        listen: called with events of tasks.
    """

    def __init__(self, executors: Sequence[Any], listen: Listen):
        super().__init__(listen)
        self.executors = executors
        self.running: list[Any] = []

    def start(self, batch: Sequence[Task]) -> Any:
        """Submit a job for a batch."""
        self.report_start(batch)
        timeout = batch[0].timeout
        minutes = DEFAULT_MINUTES if timeout is None else math.ceil(timeout / 60) + STARTUP_MINUTES
        executor = self.executors[batch[0].gpus]
        executor.update_parameters(cpus_per_task=batch[0].threads, timeout_min=minutes)
        self.running.append(executor.submit(run_batch, list(batch)))
        return self.running[-1]

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        """Return the jobs that have ended; if there are none, sleep for one polling interval."""
        if not (ended := [job for job in running if job.done()]):
            time.sleep(POLL_SECONDS)
        return ended

    def collect(self, batch: Sequence[Task], started: Any) -> Sequence[Outcome | None]:
        """Return the outcomes of an ended job."""
        self.running.remove(started)
        try:
            result: BatchResult = started.result()
        except Exception as error:  # an exception of submitit: the job was killed or never began
            return self.lose(batch, f"{type(error).__name__}, see {started.paths.stderr}")
        return self.accept(batch, result)

    def cancel(self) -> None:
        """Cancel the running jobs."""
        for job in self.running:
            job.cancel(check=False)
