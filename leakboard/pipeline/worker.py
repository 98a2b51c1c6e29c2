"""What runs in a worker process: preparing a victim, and one cell, with their parts taken from the store."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from leakboard.errors import StopRun, failure_line
from leakboard.pipeline.records import is_finished, write_costs, write_failure, write_record
from leakboard.pipeline.stages import RunFolders, Stages, record_of
from leakboard.suite.plan import Job


def load_dataset(job: Job, folders: RunFolders, of_attacker: bool, warn: Callable[[str], None]) -> None:
    """Load a job's dataset, or the attacker's own, into the store: an error in one is reported early.

    Raises:
        StopRun: it is not as the suite asks, or the store cannot be written.
    """
    stages = Stages(job, folders, warn, job.own_needs)
    stages.discard_old_corpus(of_attacker)
    stages.other() if of_attacker else stages.whole()


def fit_victim(job: Job, folders: RunFolders, warn: Callable[[str], None]) -> None:
    """Fit a job's victim, unless the store has it.

    What is cached is checked by its checksums.
    """
    stages = Stages(job, folders, warn, job.needs)
    if stages.why_not_applicable():
        return
    stages.discard_old(stages.store.path("victims", job.victim_slug, job.fit_key), stages.unfinished)
    stages.fitted_folder()


def publish_victim(job: Job, folders: RunFolders, warn: Callable[[str], None]) -> None:
    """Publish with a job's fitted victim, unless the store has what it publishes."""
    stages = Stages(job, folders, warn, job.needs)
    if stages.why_not_applicable():
        return
    stages.discard_old(stages.store.path("publications", job.victim_slug, job.victim_key))
    stages.publications()


def run_cell(job: Job, folders: RunFolders, warn: Callable[[str], None]) -> str:
    """Run a job's attack and write its record, unless another run has; return why it failed in one line, or nothing."""
    folder = folders.cells / job.folder
    if is_finished(folder, job.key, folders.since):
        return ""
    try:
        stages = Stages(job, folders, warn, job.attack_needs)
        record, costs = stages.attacked()
    except StopRun:
        raise
    except (Exception, SystemExit) as error:  # a plugin that ends its process fails its own cell
        return record_failure(job, folders, failure_line(error), traceback.format_exc())
    write_costs(folder, costs)
    write_record(folder, record)
    return ""


def record_failure(job: Job, folders: RunFolders, reason: str, lines: str) -> str:
    """Record that a cell failed, unless another run has its result; return the reason, or nothing.

    Whoever calls this holds the cell's reservation, lest another run's result be written meanwhile, and removed.
    """
    if is_finished(folders.cells / job.folder, job.key, folders.since):
        return ""
    write_failure(folders.cells / job.folder, record_of(job, "failed", reason), lines)
    return reason
