"""What runs in a worker process: preparing a victim, and one cell, with their parts taken from the store."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from leakboard.errors import StopRun, failure_line
from leakboard.pipeline.records import write_costs, write_failure, write_record
from leakboard.pipeline.stages import RunFolders, Stages, record_of
from leakboard.suite.plan import Job


def load_dataset(job: Job, folders: RunFolders, of_attacker: bool, force: bool, warn: Callable[[str], None]) -> None:
    """Load a job's dataset, or the attacker's own, into the store: an error in one is reported early.

    With ``force`` it is loaded anew, whatever the store has.

    Raises:
        StopRun: it is not as the suite asks, or the store cannot be written.
    """
    stages = Stages(job, folders, warn)
    if force:
        stages.discard_corpus(of_attacker)
    stages.other() if of_attacker else stages.whole()


def fit_victim(job: Job, folders: RunFolders, force: bool, warn: Callable[[str], None]) -> None:
    """Fit a job's victim, unless the store has it and ``force`` is not set.

    What is cached is checked by its checksums.
    """
    stages = Stages(job, folders, warn)
    if stages.why_not_applicable():
        return
    if force:
        stages.store.discard(stages.store.path("victims", job.victim_slug, job.fit_key))
        stages.store.discard(stages.unfinished)
    stages.fitted_folder()


def publish_victim(job: Job, folders: RunFolders, force: bool, warn: Callable[[str], None]) -> None:
    """Publish with a job's fitted victim, unless the store has it and ``force`` is not set."""
    stages = Stages(job, folders, warn)
    if stages.why_not_applicable():
        return
    if force:
        stages.store.discard(stages.store.path("publications", job.victim_slug, job.victim_key))
    stages.publications()


def run_cell(job: Job, folders: RunFolders, warn: Callable[[str], None]) -> str:
    """Run a job's attack and write its record; return an empty string, or the reason for a failure in one line."""
    folder = folders.cells / job.folder
    try:
        stages = Stages(job, folders, warn)
        record, costs = stages.attacked()
    except StopRun:
        raise
    except (Exception, SystemExit) as error:  # a plugin that ends its process fails its own cell
        return record_failure(job, folders, failure_line(error), traceback.format_exc())
    write_costs(folder, costs)
    write_record(folder, record)
    return ""


def record_failure(job: Job, folders: RunFolders, reason: str, lines: str) -> str:
    """Record that a cell failed, with its reason and traceback; return the reason."""
    write_failure(folders.cells / job.folder, record_of(job, "failed", reason), lines)
    return reason
