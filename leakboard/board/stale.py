"""Find published cells that have another identity in the working tree: a run would compute them anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

from leakboard.board.joined import shared_revisions
from leakboard.board.submissions import submissions, verified_records
from leakboard.errors import RequestError
from leakboard.pipeline.records import Record, published_records
from leakboard.suite import options, revisions
from leakboard.suite.cells import Cell
from leakboard.suite.plan import Identities, Job, make_job
from leakboard.suite.registry import Registry
from leakboard.suite.suites import Suite, home_of, load_suite, suite_folder

STAGES = ("CORPUS", "FIT", "PUBLISH", "TEXT_CLASSIFIERS", "UTILITY")
"""Revisions of the engine (`leakboard.suite.revisions`)."""
UNKNOWN = "data, suite, or an option's default"
"""Cause where no revisions explain the change, and no plugin's file differs."""
MAX_RAISED = 4
"""Most revisions that are tried together as the cause."""
NOT_ASKED = "no cell of the suite has this label"


@dataclass(frozen=True)
class Freshness:
    """How many published cells of a suite the working tree would compute anew, and why."""

    suite: str
    """Its file, or the folder of a submission, relative to ``leaderboards/``."""
    published: int = 0
    stale: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    """Stale cells by what differs."""
    problem: str = ""
    """Why some cells, or all, cannot be judged: files of their data are not here, or the suite is wrong."""


def freshness(folder: Path | None = None) -> Iterator[Freshness]:
    """Yield the state of every suite that has published cells, then of outdated submissions; nothing is computed.

    A suite's cells are among the records of its home. For a suite beside ``suite.yaml``, the records of the folder are
    read too.

    Args:
        folder: of the leaderboards; the one that comes with LeakBoard, if left out.
    """
    root = folder or suite_folder()
    for path in sorted(root.glob("*/*.yaml")):
        records = {_labels(record): record for record in published_records(home_of(path))}
        shared = {} if path.name == "suite.yaml" else {_labels(r): r for r in published_records(path.parent)}
        if records or shared:
            state = _examined(path, path.relative_to(root).as_posix(), records, shared)
            if state.published:
                yield state
    for home in sorted({home_of(path) for path in root.glob("*/*.yaml")}):
        yield from _of_submissions(home, root)


def _of_submissions(home: Path, root: Path) -> Iterator[Freshness]:
    """Yield the submissions to a board whose verified cells have other revisions than the board's own of the attack."""
    own: dict[tuple[str, ...], frozenset[tuple[str, int]]] = {}
    for record in published_records(home):
        own[record.dataset, record.threat, record.attack] = shared_revisions(record)
    for folder in submissions(home):
        verified, causes = verified_records(folder).values(), Counter[str]()
        for record in verified:
            given = shared_revisions(record)
            if differing := own.get((record.dataset, record.threat, record.attack), given) ^ given:
                causes[_named(sorted({name for name, _ in differing}))] += 1
        if causes:
            path = folder.relative_to(root).as_posix()
            yield Freshness(path, len(verified), causes.total(), dict(causes))


def _examined(
    path: Path, name: str, records: Mapping[tuple[Any, ...], Record], shared: Mapping[tuple[Any, ...], Record]
) -> Freshness:
    try:
        suite = load_suite(path, Registry())
    except RequestError as error:
        return Freshness(name, len(records), problem=str(error))
    identities, causes, problems = Identities(), Counter[str](), list[str]()
    known: dict[tuple[str, ...], str] = {}
    cells = {_labels(cell): cell for cell in suite.cells()}
    published = {**records, **{labels: record for labels, record in shared.items() if labels in cells}}
    for labels, record in published.items():
        if (cell := cells.get(labels)) is None:
            causes[NOT_ASKED] += 1
            continue
        try:
            job = make_job(cell, suite.conditions, identities)
        except RequestError as error:
            problems.append(str(error))
            continue
        if job.key != record.key:
            plugins = cell.source.name, cell.victim.name, cell.attack.name
            if plugins not in known:  # cells of the same plugins are taken to have the same cause
                known[plugins] = job.problem or _cause(suite, job, record)
            causes[known[plugins]] += 1
    return Freshness(name, len(published), causes.total(), dict(causes), "; ".join(dict.fromkeys(problems)))


def _labels(of: Record | Cell) -> tuple[str, str, str, int]:
    if isinstance(of, Record):
        return of.dataset, of.victim, of.attack, of.seed
    return of.source.label, of.victim.label, of.attack.label, of.seed


def _cause(suite: Suite, job: Job, record: Record) -> str:
    """Return the fewest revisions that explain a cell's new identity: with lower ones it is the published one.

    If no revisions do, return the plugins with other code than the record's.
    """
    lower = {
        (name, owner, attribute): range(revision - 1, 0, -1)
        for name, owner, attribute in _revisions(job.cell)
        if (revision := getattr(owner, attribute) or 1) > 1
    }
    for raised in chain.from_iterable(combinations(lower, count) for count in range(1, MAX_RAISED + 1)):
        for earlier in product(*(lower[revision] for revision in raised)):
            with ExitStack() as stack:
                for (_, owner, attribute), value in zip(raised, earlier, strict=True):
                    stack.enter_context(_replaced(owner, attribute, value))
                key = make_job(job.cell, suite.conditions, Identities()).key
            if key == record.key:
                return _named([name for name, _, _ in raised])
    changed = [name for name, made in job.code.items() if made != record.code.get(name, made)]
    return f"code of {', '.join(sorted(changed))}" if changed else UNKNOWN


def _named(revisions_of: Sequence[str]) -> str:
    return f"revision{'s' if len(revisions_of) > 1 else ''} of {' and '.join(revisions_of)}"


def _revisions(cell: Cell) -> Iterator[tuple[str, Any, str]]:
    """Yield name, owner and attribute of every revision that a cell's identity has."""
    for stage in STAGES:
        yield f"stage {stage}", revisions, stage
    threat = cell.attack.plugin.threat
    yield f"threat {threat.identity or threat.name}", type(threat), "revision"
    choices = (cell.source.corpus, cell.source.other, cell.victim, cell.attack)
    waiting = [(choice.name, choice.plugin) for choice in choices if choice]
    while waiting:
        name, plugin = waiting.pop()
        yield f"{plugin.__leakboard_kind__}/{name}", type(plugin), "__leakboard_revision__"
        waiting += options.parts(plugin).values()


@contextmanager
def _replaced(owner: Any, attribute: str, value: int) -> Iterator[None]:
    """Give an attribute another value for a while; an inherited one is inherited again afterwards."""
    local = vars(owner).get(attribute)
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        delattr(owner, attribute) if local is None else setattr(owner, attribute, local)
