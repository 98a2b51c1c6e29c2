"""Publish a finished run next to its suite, and verify published cells by computing some of them again."""

from __future__ import annotations

import dataclasses
import math
import re
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from packaging.version import Version

from leakboard.board.joined import join, row_of
from leakboard.board.run_files import write_files
from leakboard.board.submissions import board_of, forget_verified, is_submission, record_verified, require_revisions
from leakboard.errors import RequestError
from leakboard.execution.local import Local
from leakboard.execution.resources import usable_cores
from leakboard.metrics.entries import METRICS
from leakboard.metrics.measures import Metric, overlap
from leakboard.pipeline import runner
from leakboard.pipeline.records import GUESSES, Record, pack, published_records
from leakboard.pipeline.records import PUBLISHED as RECORDS
from leakboard.pipeline.results import Result
from leakboard.pipeline.runner import Run
from leakboard.store import write_file
from leakboard.suite.plan import Job

WITHHELD = ("sentences.csv", "cells.csv")
"""Files that are not published: sentences are other people's texts, and `report` makes the large cells.csv."""

ATTACK_HEADLINES = ("attack_score", "empirical_privacy", "attack_advantage")
VICTIM_HEADLINES = ("task_accuracy", "retrained_accuracy", "retrieval_recall@10")
HEADLINES = [(name, "", "", "value") for name in (*ATTACK_HEADLINES, *VICTIM_HEADLINES)]
"""Keys of `_values` that are compared across devices."""
REMARKS = ("details", "remarks of metrics")
"""Fields of `_comparable` that say, for example, which classifiers converged; they are not compared across devices."""
ACROSS_DEVICES = 0.05
"""Largest difference of a headline that passes if a GPU or another kind of processor computed.

A GPU rounds differently and adds in varying order. Processors with other instructions round differently, too. So
training ends at other weights, as with another seed. In 90 % of the published cells of trained encoders, the attack
scores of two seeds differ by less.
"""


def publish(run: Run) -> list[Path]:
    """Write a finished run's tables, and copy them with its records to the folder of its suite.

    A later run of an extended suite starts from these records: cells of the same identity are not computed again.

    Raises:
        RequestError: cells are missing or failed, or are of plugins that declare no revision; or the folder has guesses
            of rows, which are for their owner alone.
        StorageError: the folder cannot be written, or the disk is full.
    """
    if left := len(run.unfinished):
        raise RequestError(
            f"{run.suite.name}: {left} of {len(run.jobs)} cells have no result; only a finished run is published"
        )
    if private := next(run.suite.home.rglob(GUESSES), None):
        raise RequestError(f"{private}: guesses of rows are not published; allowed: a suite in another folder")
    records = run.records()
    keys = {record.key for record in records}
    published = [job for job in (*run.jobs, *run.others) if job.key in keys]
    require_revisions(run.suite, published)
    if lost := _published_rows(run) - {row_of(record) for record in records if record.status != "failed"}:
        raise RequestError(
            f"{run.suite.name}: {len(lost)} published rows that the suite asks for have no result of the present code "
            f"and data, as {' / '.join(min(lost))}; run them too"
        )
    jobs = {job.key: job for job in (*run.jobs, *run.others)}
    packed = pack(((record, run.costs(jobs[record.key])) for record in records if record.status != "failed"), "record")
    paths = write_files(run, records)
    targets = [run.suite.home / path.name for path in paths if path.name not in WITHHELD]
    for target in targets:
        write_file(target, (run.folder / target.name).read_text("utf-8"))
    write_file(run.suite.home / RECORDS, packed)
    return [*targets, run.suite.home / RECORDS]


def _published_rows(run: Run) -> set[tuple[str, str, str]]:
    """Return the rows of the published leaderboard that the suite still asks for."""
    wanted = {_labels(job) for job in (*run.jobs, *run.others)}
    return {row_of(record) for record in published_records(run.suite.home)} & wanted


def verify(run: Run, display: runner.Display, count: int, tolerance: float, seed: int | None = None) -> bool:
    """Compute ``count`` random published cells from nothing and compare whole records; return whether all agree.

    If a GPU computed a stage of either run, or the runs had different processors, records that differ are compared by
    the headlines of their metrics alone; these may differ by `ACROSS_DEVICES`. Costs are not compared: they belong to a
    machine.
    Without a seed, one is drawn that the publisher cannot know.

    Cells of a submission are computed once more, with draws that its plugins cannot foresee. For those that agree, the
    records that were computed here are written next to it as verified. If a cell differs, earlier verifications are
    removed.

    Raises:
        RequestError: the suite has no published cells, or a submission holds others than its suite asks for, or
            a plugin's file is not the submission's.
    """
    if is_submission(run.suite.home):
        join(board_of(run.suite.home), only=run.suite.home)  # refuses what pages would refuse
        _require_own_plugins(run)
        _require_asked_for(run)
    published = [(job, result) for job in run.jobs if (result := run.results.published_at_home(job))]
    if not published:
        raise RequestError(f"{run.suite.home}: no cell that {run.suite.path} asks for is published")
    seed = secrets.randbits(32) if seed is None else seed
    display.print(f"cells drawn by --seed {seed}")
    order = np.random.default_rng(seed).permutation(len(published))[:count]
    chosen = [published[i] for i in sorted(order)]
    with tempfile.TemporaryDirectory() as folder:
        jobs = [job for job, _ in chosen]
        again = dataclasses.replace(run, jobs=jobs, others=(), out=Path(folder), reuse=False)
        runner.execute(again, display, Local(usable_cores()), force=False)
        compared = {job.key: _compare(display, again, job, result, tolerance) for job, result in chosen}
        good = all(entry.agrees for entry in compared.values())
        computed = [(record, again.costs(job)) for job in jobs if (record := again.record(job))]
        if good and is_submission(run.suite.home):
            good = _agree_with_other_draws(again, display)
    if is_submission(run.suite.home):
        whole = {key: entry.largest for key, entry in compared.items() if not entry.by_headlines}
        if good and whole:
            entries = [(record, costs) for record, costs in computed if record.key in whole]
            for path in record_verified(run.suite.home, entries, whole):
                display.print(f"wrote {path}")
        elif not good:
            forget_verified(run.suite.home)
        if good and len(whole) < len(compared):
            display.print(
                f"{len(compared) - len(whole)} cells were compared by their headlines alone: they stay self-reported"
            )
    return good


def _require_own_plugins(run: Run) -> None:
    """Refuse plugins that are not the submission's, and vectors that only its sender could make.

    Raises:
        RequestError: there are some; the message names the first.
    """
    own = run.suite.home.resolve() / "plugins"
    if others := [path for path in run.plugin_files if path.resolve().parent != own]:
        raise RequestError(f"--plugin {others[0]}: not a file of the submission; allowed: those in {own}")
    if read := [job.cell.victim.label for job in run.jobs if not job.cell.victim.plugin.encodes_texts]:
        raise RequestError(
            f"{run.suite.path}: {read[0]} reads vectors that only the sender made, so no computation can verify "
            "them; its rows stay self-reported"
        )


def _require_asked_for(run: Run) -> None:
    """Refuse a submission with other records than its suite asks for, or with incomplete rows.

    Other records could claim anything. The seeds of an incomplete row could be those with the best numbers.

    Raises:
        RequestError: there are some; the message has the labels of the first.
    """
    records = published_records(run.suite.home, is_foreign=True)
    asked, sent = {job.key for job in run.jobs}, {record.key for record in records}
    rows = {row_of(record) for record in records}
    if missing := [job.cell.label for job in run.jobs if _labels(job) in rows and job.key not in sent]:
        raise RequestError(
            f"{run.suite.home / RECORDS}: {len(missing)} cells of rows that it has are missing, as {missing[0]}; "
            "allowed: whole rows, with all seeds"
        )
    if others := [record for record in records if record.key not in asked]:
        labels = " / ".join((*row_of(others[0]), f"seed {others[0].seed}"))
        raise RequestError(
            f"{run.suite.home / RECORDS}: {len(others)} records are of no cell that {run.suite.path} asks for with the "
            f"present code and data, as {labels}"
        )


def _agree_with_other_draws(run: Run, display: runner.Display) -> bool:
    """Attack again with draws that no plugin can foresee, and return whether the headlines agree within intervals.

    A plugin knows all names of its streams (`leakboard.randomness.Streams`). So it could make a publication's noise
    anew and remove it, or put the test rows back in order. With a salt it cannot.
    """
    records = {job.key: run.record(job) for job in run.jobs}
    shutil.rmtree(run.cells)
    salted = dataclasses.replace(run, salt=secrets.token_hex(16))
    runner.execute(salted, display, Local(usable_cores()), force=False)
    agree = True
    for job in run.jobs:
        before, after = records[job.key], salted.record(job)
        for name in ("attack_score", "attack_advantage", *VICTIM_HEADLINES):
            one, two = (record.value(name) if record else None for record in (before, after))
            if one and (not two or overlap(one, two) is False):
                display.print(f"DIFFERS with other draws: {job.cell.label}: {name} {_shown(two)}, not {_shown(one)}")
                agree = False
    if agree:
        display.print("with other draws of noise and order, headlines agree within intervals")
    return agree


def _shown(metric: Metric | None) -> str:
    return f"{metric.value:.4f}" if metric else "nothing"


@dataclasses.dataclass(frozen=True)
class _Compared:
    """The comparison of a cell that was computed again with the published one."""

    agrees: bool
    largest: float
    """Largest difference of a metric."""
    by_headlines: bool
    """Whether only the headlines were compared."""


def _labels(job: Job) -> tuple[str, str, str]:
    return job.cell.source.label, job.cell.victim.label, job.cell.attack.label


def _compare(display: runner.Display, run: Run, job: Job, result: Result, tolerance: float) -> _Compared:
    """Compare a published record with that of the same cell, computed again: its metrics and all other fields."""
    record, published = run.record(job), result.record
    computed, expected = (_values(entry) if entry else {} for entry in (record, published))
    newer = set() if is_submission(run.suite.home) else _newer_metrics(result)
    missing = len({name[:3] for name in computed.keys() ^ expected.keys() if name in expected or name[0] not in newer})
    differences = {name: abs(computed[name] - expected[name]) for name in computed.keys() & expected.keys()}
    differences = {name: 0.0 if computed[name] == expected[name] else value for name, value in differences.items()}
    then, now = _devices(result.costs), _devices(run.costs(job))
    has_gpu = any(cost["device"] != "cpu" for cost in (*result.costs, *run.costs(job)))
    across = (has_gpu or then != now) and max(differences.values(), default=0.0) > tolerance
    if across:
        differences = {name: differences[name] for name in HEADLINES if name in differences}
        tolerance = max(tolerance, ACROSS_DEVICES)
    other = _other_fields(record, published, newer, across) if record else []
    worst = max(differences, key=lambda name: differences[name], default=None)
    largest = differences[worst] if worst else 0.0
    good = largest <= tolerance and not missing and not other and record is not None
    where = f" in {' '.join(filter(None, worst))}" if worst and largest else ""
    gone = f", {missing} metrics are missing on one side" if missing else ""
    gone += f", other {', '.join(other)}" if other else ""
    outcome = "agrees" if good else "DIFFERS"
    how = f" (published from {then}, computed on {now}: headlines alone, within {tolerance})" if across else ""
    display.print(f"{outcome}: {job.cell.label}: largest difference {largest:.6f}{where}{gone}{how}")
    return _Compared(good, largest, across)


def _devices(costs: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of the GPUs and processors that computed the stages of a cell."""
    processors = {str(cost.get("environment", {}).get("machine", {}).get("processor") or "cpu") for cost in costs}
    return ", ".join(sorted(processors | {cost["device"] for cost in costs} - {"cpu"}))


def _other_fields(record: Record, published: Record, newer: set[str], across: bool) -> list[str]:
    """Return the names of the fields, besides the values of metrics, in which two records of a cell differ.

    Numbers count with six digits, and the details by their words alone: on another processor the last bits differ, and
    with them the order in which details name things. Digests of code are no result. The identity has the revisions.
    """
    one, two = (_comparable(entry, newer) for entry in (record, published))
    return [name for name in one if one[name] != two[name] and not (across and name in REMARKS)]


def _comparable(record: Record, newer: set[str]) -> dict[str, Any]:
    apart = ("metrics", "code", "revisions", "sentences")
    names = [field.name for field in dataclasses.fields(Record) if field.name not in apart]
    fields = {name: _rounded(getattr(record, name)) for name in names}
    fields["details"] = sorted({*re.findall(r"[^\W\d_]+", record.details)})
    of_metrics = {(m.name, m.variable, m.group): m for m in record.metrics if m.name not in newer}
    sizes, remarks = ({key: getattr(m, part) for key, m in of_metrics.items()} for part in ("n", "status"))
    return {**fields, "sizes of metrics": sizes, "remarks of metrics": remarks}


def _rounded(value: Any) -> Any:
    """Return a value with floats as text of six digits, and lists for tuples."""
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in value]
    return f"{value:.6g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


def _newer_metrics(result: Result) -> set[str]:
    """Return the metrics that are younger than the version that computed a result."""
    versions = [Version(version) for cost in result.costs if (version := cost.get("environment", {}).get("leakboard"))]
    made_by = min(versions, default=Version("0"))
    return {name for name, metric in METRICS.items() if Version(metric.since) > made_by}


def _values(record: Record) -> dict[tuple[str, str, str, str], float]:
    """Return the values of a record, and the ends of their intervals, by metric, variable and group."""
    return {
        (metric.name, metric.variable, metric.group, part): value
        for metric in record.metrics
        for part in ("value", "low", "high")
        if (value := getattr(metric, part)) is not None and not math.isnan(value)
    }
