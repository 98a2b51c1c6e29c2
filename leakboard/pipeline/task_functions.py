"""Define the functions that tasks call: load a dataset, fit a victim, publish, and attack."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

from leakboard.errors import StopRun, failure_line
from leakboard.execution.tasks import Interruption
from leakboard.pipeline.guess_files import write_guesses
from leakboard.pipeline.records import is_finished, write_costs, write_failure, write_record
from leakboard.pipeline.results import make_record
from leakboard.pipeline.stages import RunFolders, Stages
from leakboard.suite.cells import Choice
from leakboard.suite.plan import Job


def load_dataset(job: Job, folders: RunFolders, choice: Choice, key: str, warn: Callable[[str], None]) -> None:
    """Load a dataset of a job into the store.

    Raises:
        StopRun: the dataset cannot be read as the suite asks, or the store cannot be written.
    """
    stages = Stages(job, folders, warn, job.engine_needs)
    stages.discard_old(stages.store.path("corpora", choice.name, key))
    stages.dataset(choice, key)


def fit_victim(job: Job, users: Sequence[Job], folders: RunFolders, warn: Callable[[str], None]) -> None:
    """Fit a job's victim, if the victim is not in the store.

    Args:
        job: of the victim.
        users: jobs that need the victim; if all of their cells are skipped, nothing is fitted.
        folders: of the run.
        warn: reports a warning.
    """
    stages = Stages(job, folders, warn, job.needs)
    if _is_needed(stages, users):
        stages.discard_old(stages.store.path("victims", job.victim_slug, job.fit_key), stages.unfinished)
        stages.fitted_folder()


def publish_victim(job: Job, users: Sequence[Job], folders: RunFolders, warn: Callable[[str], None]) -> None:
    """Publish with a job's victim, if the store lacks its publications.

    Args:
        job: of the victim.
        users: jobs that need the publications; if all of their cells are skipped, nothing is published.
        folders: of the run.
        warn: reports a warning.
    """
    stages = Stages(job, folders, warn, job.needs)
    if _is_needed(stages, users):
        stages.discard_old(stages.store.path("publications", job.victim_slug, stages.publications_key))
        stages.publications_folder()


def _is_needed(stages: Stages, users: Sequence[Job]) -> bool:
    if stages.why_not_applicable():
        return False
    return not all(_is_skipped(Stages(user, stages.folders, stages.warn, stages.job.needs)) for user in users)


def _is_skipped(stages: Stages) -> bool:
    with suppress(Exception):  # the cell's own task fails for the same reason
        return bool(stages.why_skipped())
    return False


def run_cell(job: Job, folders: RunFolders, warn: Callable[[str], None]) -> str:
    """Run a job's attack, write the record, and return the failure in one line; empty for a success."""
    from leakboard.pipeline.cell import attack_cell

    folder = folders.cells / job.folder
    if is_finished(folder, job.key, folders.since, folders.keeps_guesses):
        return ""
    try:
        record, costs, guesses = attack_cell(Stages(job, folders, warn, job.attack_needs))
    except (StopRun, KeyboardInterrupt, Interruption):
        raise
    except BaseException as error:  # a plugin that raises SystemExit fails only its own cell
        return record_failure(job, folders, failure_line(error), traceback.format_exc())
    write_costs(folder, costs)
    if folders.keeps_guesses and record.status == "ok":
        write_guesses(folder, job.key, guesses)
    write_record(folder, record)
    return ""


def record_failure(job: Job, folders: RunFolders, reason: str, lines: str) -> str:
    """Record the failure of a cell and return the reason; empty if another run has written a result.

    The caller must hold the cell's reservation.
    """
    if is_finished(folders.cells / job.folder, job.key, folders.since, folders.keeps_guesses):
        return ""
    write_failure(folders.cells / job.folder, make_record(job, "failed", reason), lines)
    return reason
