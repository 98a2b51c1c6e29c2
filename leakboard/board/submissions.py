"""Write and read submissions: results that other people computed and sent to a leaderboard.

A submission is a folder with these files:

- ``suite.yaml``;
- ``records.jsonl.gz`` in the published format;
- ``submission.json``: where the numbers come from, and which plugins computed them;
- the plugins: files under ``plugins/``, or packages with their versions in ``requirements.txt``.

``verify`` writes the cells that were computed again and agree into ``NAME.verified.json``, next to the folder ``NAME``:
no file inside a submission can mark it as verified.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from leakboard.board.run_meta import describe
from leakboard.board.tables import published_names
from leakboard.errors import RequestError
from leakboard.execution.environment import environment
from leakboard.pipeline.records import PUBLISHED, SUBMISSIONS, Record, pack, published_records
from leakboard.pipeline.runner import Run
from leakboard.store import file_checksum, write_file
from leakboard.suite.files import FileName
from leakboard.suite.names import KINDS, Names
from leakboard.suite.plan import Job
from leakboard.suite.registry import FOLDERS, Registry
from leakboard.suite.suites import Suite
from leakboard.threats.threat import threat_named

OF_DATASETS = ("privacy_best_constant", "privacy_text_classifier", "privacy_bayes", "task_majority")
"""Baselines that depend on dataset and seed alone, if the secret is of documents; machines differ by `ROUNDING`."""
ROUNDING = 1e-3
"""Largest accepted difference between two machines. We saw 5e-5, from another version of a library."""
SUITE, SUBMITTED, REQUIREMENTS = "suite.yaml", "submission.json", "requirements.txt"

Provenance = Literal["verified", "self-reported"]
_Subject = tuple[str, str, int, frozenset[str]]
"""What a baseline is of: metric, dataset, seed and secrets."""
_Threats = dict[tuple[str, frozenset[str]], set[tuple[str, tuple[str, ...]]]]
"""Threats to the secrets of a dataset, each with the order of the secrets."""
RowKey = tuple[str, str, str]
"""Labels of dataset, victim and attack."""


def submit(run: Run, registry: Registry, folder: Path) -> list[Path]:
    """Write the chosen cells of a finished run into a folder, to be sent to a leaderboard; return its files.

    Raises:
        RequestError: cells have no result, a plugin declares no revision, or the folder holds other files.
        StorageError: the folder cannot be written.
    """
    if left := len(run.unfinished):
        raise RequestError(f"{run.suite.name}: {left} of {len(run.jobs)} cells have no result; `run` computes them")
    require_revisions(run.suite, run.jobs)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / SUBMITTED).is_file():
        raise RequestError(f"--submit {folder}: it holds files that are no submission; name a new folder")
    files, packages = _plugins(run.jobs, registry)
    results = [result for job in run.jobs if (result := run.results.find(job))]
    costs = [cost for result in results for cost in result.costs]
    content = describe(run.suite, run.jobs, [result.record for result in results], costs)
    content |= {"plugins": {**{name: f"plugins/{path.name}" for name, path in files.items()}, **packages}}
    written: dict[str, str | bytes] = {
        SUITE: run.suite.path.read_text("utf-8"),
        PUBLISHED: pack((result.record, result.costs) for result in results),
        SUBMITTED: json.dumps(content, indent=1, sort_keys=True) + "\n",
        **{f"plugins/{path.name}": path.read_text("utf-8") for path in files.values()},
    }
    if packages:
        written[REQUIREMENTS] = "".join(f"{package}\n" for package in sorted(set(packages.values())))
    replaced = {REQUIREMENTS, *_plugin_files(folder)} - written.keys()
    for name, text in written.items():
        write_file(folder / name, text)
    for name in replaced:
        (folder / name).unlink(missing_ok=True)
    forget_verified(folder)
    return [folder / name for name in written]


def own_data(jobs: Iterable[Job]) -> list[str]:
    """Return the labels of datasets and victims that read a user's own files: no submission has these."""
    jobs = list(jobs)
    choices = [choice for job in jobs for choice in (job.cell.source.corpus, job.cell.source.other, job.cell.victim)]
    return sorted({c.label for c in choices if c and any(isinstance(v, FileName) for v in vars(c.plugin).values())})


def _plugins_of(folder: Path) -> dict[str, str]:
    """Return the plugins of a submission by name, as ``victims/mine``: files relative to it, and packages.

    Raises:
        RequestError: the submission lacks its suite, or its description is missing or damaged.
    """
    if not (folder / SUITE).is_file():
        raise RequestError(f"{folder / SUITE}: no such file; a submission has one")
    try:
        plugins = dict(json.loads((folder / SUBMITTED).read_text("utf-8"))["plugins"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        plugins = {"": None}
    if not all(isinstance(plugin, str) for plugin in plugins.values()):
        raise RequestError(f"{folder / SUBMITTED}: missing or damaged; `publish --submit` writes it")
    return plugins


def _plugin_files(folder: Path) -> set[str]:
    """Return the plugin files of the submission in a folder, relative to it; none if there is no intact submission."""
    with suppress(RequestError):
        return {f"plugins/{Path(name).name}" for name in _plugins_of(folder).values() if name.startswith("plugins/")}
    return set()


def require_revisions(suite: Suite, jobs: Iterable[Job]) -> None:
    """Refuse results of a plugin without a revision: they could not be told from results of its later code.

    Raises:
        RequestError: a plugin declares no revision.
    """
    if undeclared := sorted({name for job in jobs for name in job.undeclared}):
        kind = undeclared[0].partition("/")[0][:-1]
        raise RequestError(
            f"{suite.name}: {undeclared[0]} declares no revision, so its results cannot be published; "
            f"write @{kind}(revision=1) above its class and run it"
        )


def _plugins(jobs: Iterable[Job], registry: Registry) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the plugins from outside LeakBoard: files by kind and name, and packages as ``name==version``."""
    files: dict[str, Path] = {}
    packages: dict[str, str] = {}
    for name in sorted({name for job in jobs for name in job.code}):
        kind, _, stem = name.partition("/")
        listing = registry.find(kind, stem, name)
        if not listing.module:
            files[name] = Path(listing.origin)
        elif listing.attribute:
            (point,) = importlib.metadata.entry_points(group=f"leakboard.{kind}", name=stem)
            assert point.dist, "an entry point that was found is some package's"
            packages[name] = f"{point.dist.name}=={point.dist.version}"
    return files, packages


def is_submission(home: Path) -> bool:
    """Return whether a folder of published records is a submission, even one that lacks a file."""
    return home.parent.name == SUBMISSIONS or (home / SUBMITTED).is_file()


def record_verified(home: Path, differences: Mapping[str, float]) -> Path:
    """Write the cells of a submission that were computed again and agree, together with earlier ones.

    Args:
        home: the submission.
        differences: the largest difference of a metric, by the identity of a cell.
    """
    earlier = _verified(home)
    done = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "commit": environment()["commit"]}
    cells = {key: {**done, "largest_difference": value} for key, value in differences.items()}
    content = {"files": _contents(home), "cells": {**earlier, **cells}}
    path = verified_file(home)
    write_file(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
    return path


def verified_file(home: Path) -> Path:
    """Return the file with the verified cells of a submission, next to its folder."""
    home = home.resolve()
    return home.with_name(f"{home.name}.verified.json")


def forget_verified(home: Path) -> None:
    """Remove the verifications of a submission: a cell differs, or its records are new."""
    verified_file(home).unlink(missing_ok=True)


def _verified(home: Path) -> dict[str, Any]:
    """Return the verified cells of a submission; none if they belong to other records, plugins or another suite."""
    try:
        content = json.loads(verified_file(home).read_text("utf-8"))
        is_current = content["files"] == _contents(home)
        return dict(content["cells"]) if is_current else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def board_of(home: Path) -> Path:
    """Return the folder of the leaderboard that a submission lies in; the submission's own, if it lies in none."""
    return home.parents[1] if home.parent.name == SUBMISSIONS else home


def _contents(home: Path) -> dict[str, str]:
    """Return the checksum of each file of a submission."""
    files = sorted(path for path in home.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(home).as_posix(): file_checksum(path) for path in files}


def submissions(home: Path) -> list[Path]:
    """Return the submissions to the leaderboard in a folder, by name."""
    return sorted(path for path in (home / SUBMISSIONS).glob("*") if path.is_dir())


def all_records(home: Path, two_may_report: bool = False) -> list[Record]:
    """Return the records of a leaderboard and of its submissions.

    The leaderboard's own records come first, then verified ones. If a source has a row, later sources add no cell to
    it. So its mean is of one source's cells alone.

    Args:
        home: folder of the leaderboard, or of a submission.
        two_may_report: whether two submissions may report one victim, as long as neither is verified.

    Raises:
        RequestError: a submission is refused (`_by_provenance`).
    """
    return [record for _, records in _by_provenance(home, two_may_report) for record in records]


def provenance(home: Path) -> dict[RowKey, Provenance]:
    """Return the provenance of every row of a leaderboard with its submissions, or of one submission.

    A row of the leaderboard's own records is verified: the project computed it. Any other row is self-reported until
    all of its cells were computed again and agree.
    """
    return {row_of(record): mark for mark, records in _by_provenance(home) for record in records}


def submitted_victims(home: Path) -> frozenset[str]:
    """Return the labels of the victims of a leaderboard that only submissions have."""
    sources = [{record.victim for record in records} for _, records in _by_provenance(home)]
    return frozenset(set().union(*sources[1:]) - sources[0]) if not is_submission(home) else frozenset()


def _by_provenance(home: Path, two_may_report: bool = False) -> list[tuple[Provenance, list[Record]]]:
    """Return the records of a leaderboard, then verified rows of submissions, then those that are only reported.

    A row has one source: the first. A reported row of a victim of the leaderboard, or of another submission's verified
    rows, is left out: an attack that is only reported would change what the pages say of the victim.

    Raises:
        RequestError: a submission lacks a file, or its records have a wrong form, failed, contradict the leaderboard's
            on a dataset, or are named as something else is. Or two submissions report a victim.
    """
    own = [] if is_submission(home) else published_records(home)
    sources: list[tuple[Provenance, list[Record]]] = [("verified", own)]
    taken, cells = {row_of(record) for record in own}, {record.key for record in own}
    owners, known = {record.victim: home for record in own}, _baselines(own)
    identities = {record.key: (*row_of(record), record.seed) for record in own}
    threats: _Threats = {}
    for record in own:
        threats.setdefault((record.dataset, frozenset(record.secrets)), set()).add(
            (record.threat, tuple(record.secrets))
        )
    names, plugins = published_names(home / "leaderboard.csv"), dict[str, tuple[Path, str]]()
    sent = []
    for folder in [home] if is_submission(home) else submissions(home):
        records, verified = published_records(folder, is_foreign=True), _verified(folder)
        _refuse_taken_names(folder, records, names)
        _refuse_plugins(folder, records, plugins)
        _refuse_other_seeds(folder, records, own)
        _refuse_contradictions(folder, records, known, threats)
        for record in records:
            cell = (*row_of(record), record.seed)
            if record.key not in cells and identities.setdefault(record.key, cell) != cell:
                raise RequestError(f"{folder / PUBLISHED}: {record.key[:8]} is a cell of another submission")
        sent.append((folder, records, {row_of(record) for record in records if record.key not in verified}))
    marks: tuple[Provenance, ...] = ("verified", "self-reported")
    reporters: dict[str, Path] = {}
    for mark, (folder, records, reported) in itertools.product(marks, sent):
        marked = [
            record
            for record in records
            if (row_of(record) in reported) == (mark == "self-reported")
            and (mark == "verified" or owners.get(record.victim, folder) == folder)
        ]
        for victim in {record.victim for record in marked}:
            if mark == "verified":
                owners.setdefault(victim, folder)
            elif (other := reporters.setdefault(victim, folder)) != folder and not two_may_report:
                raise RequestError(f"{folder / PUBLISHED}: {other.name} reports {victim}, too; `verify` one of them")
        added = [record for record in marked if row_of(record) not in taken and record.key not in cells]
        sources.append((mark, added))
        taken |= {row_of(record) for record in added}
        cells |= {record.key for record in added}
    return sources


def _refuse_plugins(folder: Path, records: Iterable[Record], known: dict[str, tuple[Path, str]]) -> None:
    """Refuse plugins that a submission does not list, or that another submission has with other code.

    Labels name a plugin, not its code: results of two plugins of one name would be taken for those of one.

    Args:
        folder: of the submission.
        records: of the submission.
        known: the submission and code of each plugin of the submissions before; those of this one are added.
    """
    plugins, registry = _plugins_of(folder), Registry()
    own = {f"{listing.kind}/{listing.name}" for kind in FOLDERS for listing in registry.listings(kind)}
    similar = {name.casefold(): name for name in own}
    for name, place in plugins.items():
        file = folder / "plugins" / Path(place).name
        code = file_checksum(file) if place.startswith("plugins/") and file.is_file() else place
        if (taken := similar.get(name.casefold(), name)) != name:
            raise RequestError(f"{folder / SUBMITTED}: {name!r} is hardly another name than {taken!r}; rename it")
        other, its_code = known.setdefault(name.casefold(), (folder, code))
        if code != its_code:
            raise RequestError(f"{folder / SUBMITTED}: {name!r} is another plugin of {other.name}; rename it")
    listed = plugins.keys() | own
    for record in records:
        for kind in KINDS:
            if (name := f"{kind}s/{getattr(record, kind).partition('(')[0]}") not in listed:
                raise RequestError(f"{folder / SUBMITTED}: {name!r} is neither of LeakBoard nor among its plugins")


def _refuse_taken_names(folder: Path, records: Iterable[Record], names: Names) -> None:
    """Refuse labels that are displayed names of other plugins of the leaderboard.

    A label that is the displayed name of the same plugin with other options is allowed: then pages show the options.
    """
    taken = {(kind, name.casefold()): label for (kind, label), name in names.names.items() if name != label}
    for record in records:
        for kind in KINDS:
            label = getattr(record, kind)
            owner = taken.get((kind, label.casefold()), label)
            if owner.partition("(")[0] != label.partition("(")[0]:
                raise RequestError(f"{folder / PUBLISHED}: {kind}: {label!r} is the leaderboard's name for {owner}")


def _refuse_other_seeds(folder: Path, records: Iterable[Record], own: Iterable[Record]) -> None:
    """Refuse rows with other seeds than the leaderboard's on a dataset: they may be those with the best numbers."""
    allowed: dict[str, list[set[int]]] = {}
    for row, seeds in _seeds(own).items():
        allowed.setdefault(row[0], []).append(seeds)
    for row, seeds in _seeds(records).items():
        if row[0] in allowed and seeds not in allowed[row[0]]:
            raise RequestError(
                f"{folder / PUBLISHED}: {' / '.join(row)}: seeds {sorted(seeds)}; allowed: those of the leaderboard's "
                f"rows on {row[0]}, as {sorted(allowed[row[0]][0])}"
            )


def _seeds(records: Iterable[Record]) -> dict[RowKey, set[int]]:
    seeds: dict[RowKey, set[int]] = {}
    for record in records:
        seeds.setdefault(row_of(record), set()).add(record.seed)
    return seeds


def _baselines(records: Iterable[Record]) -> dict[_Subject, float]:
    """Return what records say of their datasets, whatever the victim: scores of guesses without the vectors.

    The best constant guess of a word depends on the victim's vocabulary, so threats of words have no part in it.
    """
    return {
        (
            metric.name,
            record.dataset,
            record.seed,
            frozenset([metric.variable] if metric.variable else record.secrets),
        ): (metric.value)
        for record in records
        if threat_named(record.threat).beside_text_classifiers
        for metric in record.metrics
        if metric.name in OF_DATASETS and not metric.group and metric.value is not None
    }


def _refuse_contradictions(
    folder: Path,
    records: Sequence[Record],
    known: Mapping[_Subject, float],
    threats: _Threats,
) -> None:
    """Refuse other baselines of a dataset than the leaderboard's, another threat to its secrets, and failed cells."""
    for subject, value in _baselines(records).items():
        if abs(known.get(subject, value) - value) > ROUNDING:
            raise RequestError(
                f"{folder / PUBLISHED}: {subject[0]} of {subject[1]} is {value:g}, but {known[subject]:g} on the board"
            )
    for record in records:
        given = record.threat, tuple(record.secrets)
        allowed = threats.get((record.dataset, frozenset(record.secrets)), {given})
        if record.secrets and given not in allowed:
            shown, *others = [f"{threat} of {', '.join(secrets)}" for threat, secrets in (given, *sorted(allowed))]
            raise RequestError(f"{folder / PUBLISHED}: {shown}; allowed: {' or '.join(others)}, as on the board")
    if failed := [record for record in records if record.status == "failed"]:
        raise RequestError(f"{folder / PUBLISHED}: {len(failed)} cells failed, as {' / '.join(row_of(failed[0]))}")


def row_of(record: Record) -> RowKey:
    """Return the labels of a record's dataset, victim and attack."""
    return record.dataset, record.victim, record.attack
