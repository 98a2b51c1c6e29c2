"""From cells to identities: what determines a result, and where its record and its cached parts are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import leakboard
from leakboard.errors import RequestError, one_line
from leakboard.store import digest, folder_name
from leakboard.suite import options
from leakboard.suite.plugins import Registry, source_revision
from leakboard.suite.suites import Cell, Choice, Conditions, Suite


@dataclass(frozen=True)
class Job:
    """A cell with the identities of everything on its way; plain data that can be sent to another process."""

    cell: Cell
    conditions: Conditions
    key: str
    """Identity of the result."""
    corpus_key: str = ""
    other_key: str = ""
    """Identity of the attacker's own dataset; empty where its texts come from the corpus."""
    fit_key: str = ""
    """Identity of the fitted victim: victims that differ in nothing that training sees share one."""
    fit_label: str = ""
    """The victim as it is trained."""
    victim_key: str = ""
    """Identity of what it publishes."""
    fingerprint: str = ""
    """The dataset's, for the provenance."""
    other_fingerprint: str = ""
    """The attacker's own dataset's."""
    problem: str = ""
    """Why the cell fails without being tried: a plugin that cannot be loaded."""
    skip: str = ""
    """Why victim and attack cannot meet."""

    @property
    def folder(self) -> str:
        """Name of the cell's folder under ``cells/``."""
        cell = self.cell
        return folder_name(f"{cell.source.corpus.name}-{cell.victim.name}-{cell.attack.name}-s{cell.seed}", self.key)

    @property
    def threads(self) -> int:
        """Of every stage."""
        return self.conditions.threads

    @property
    def victim_slug(self) -> str:
        """Readable part of the name of the victim's artefacts."""
        return f"{self.cell.source.corpus.name}-{self.cell.victim.name}-s{self.cell.seed}"


def plan(suite: Suite, cells: Sequence[Cell], identities: Identities) -> list[Job]:
    """Return the jobs of cells, in order.

    Raises:
        RequestError: a dataset's or victim's file is missing.
    """
    try:
        return [make_job(cell, suite.conditions, identities) for cell in cells]
    except RequestError as error:
        raise RequestError(f"{suite.path}: {error}") from None


class Identities:
    """The identity of each plugin with its options, worked out once."""

    def __init__(self, registry: Registry):
        self.registry = registry
        self.known: dict[tuple[str, str], dict[str, Any]] = {}

    def __call__(self, choice: Choice) -> dict[str, Any]:
        """Return name, options, code and input files of a plugin.

        Raises:
            RequestError: a file that it reads is missing.
        """
        if (choice.kind, choice.label) not in self.known:
            plugin = choice.build(self.registry)
            try:
                fingerprint = plugin.fingerprint() if hasattr(plugin, "fingerprint") else ""
            except RequestError as error:
                raise RequestError(f"{choice.kind}: {choice.name}: {error}") from None
            self.known[choice.kind, choice.label] = {
                "name": choice.name,
                "options": options.as_dict(plugin),
                "revision": self.registry.revision(choice.kind, choice.name),
                "fingerprint": fingerprint,
            }
        return self.known[choice.kind, choice.label]

    def as_trained(self, choice: Choice) -> tuple[str, dict[str, Any]]:
        """Return label and identity of a victim without the options that act only when it publishes."""
        trained = as_trained(choice.build(self.registry))
        return options.label(choice.name, trained), {**self(choice), "options": options.as_dict(trained)}


def as_trained(victim: Any) -> Any:
    """Return the recipe that is fitted: without the options that say only what is published of it."""
    return victim.trained_as() if hasattr(victim, "trained_as") else victim


def make_job(cell: Cell, conditions: Conditions, identities: Identities) -> Job:
    """Return a cell's job; a plugin that cannot even be identified gives a job that fails with the reason.

    Raises:
        RequestError: a dataset's or victim's file is missing.
    """
    asked = [cell.source.corpus, *([cell.source.other] if cell.source.other else []), cell.victim, cell.attack]
    problem = next((choice.problem for choice in asked if choice.problem), "")
    if not problem:
        try:
            return _identified_job(cell, conditions, identities)
        except RequestError:
            raise
        except Exception as error:
            problem = one_line(error)
    return Job(cell, conditions, digest({"cell": cell.label, "problem": problem}), problem=problem)


def _identified_job(cell: Cell, conditions: Conditions, identities: Identities) -> Job:
    source, registry, threads = cell.source, identities.registry, conditions.threads
    corpus_key = identify_dataset(source.corpus, identities)
    other_key = identify_dataset(source.other, identities) if source.other else ""
    fit_label, fit_key = identify_fit(cell, threads, identities)
    victim_key = identify_victim(cell, threads, identities)
    attacked = {"victim": victim_key, "other": other_key, "floor": conditions.floor, "stage": _revision("cell")}
    if conditions.gold:
        gold = identify_victim(replace(cell, victim=conditions.gold), threads, identities)
        attacked |= {"gold": gold, "queries": list(conditions.queries)}
    key = digest({**attacked, "attack": identities(cell.attack)})
    needs = registry.load("attacks", cell.attack.name).needs
    publishes = registry.load("victims", cell.victim.name).publishes
    skip = "" if needs in publishes else f"{cell.attack.name} attacks {needs}, {cell.victim.name} publishes none"
    own, other = (str(identities(c)["fingerprint"]) if c else "" for c in (source.corpus, source.other))
    keys = (key, corpus_key, other_key, fit_key, fit_label, victim_key)
    return Job(cell, conditions, *keys, own, other, skip=skip)


def identify_dataset(choice: Choice, identities: Identities) -> str:
    """Return the identity of a loaded corpus."""
    return digest(identities(choice))


def identify_fit(cell: Cell, threads: int, identities: Identities) -> tuple[str, str]:
    """Return label and identity of a cell's fitted victim."""
    label, victim = identities.as_trained(cell.victim)
    corpus = {"corpus": identify_dataset(cell.source.corpus, identities), "situation": cell.source.situation}
    stage = {"stage": _revision("fitting"), "threads": threads}
    return label, digest({**corpus, **stage, "victim": victim, "seed": cell.seed})


def publishing_job(job: Job, victim: Choice, identities: Identities) -> Job:
    """Return what publishes another victim in the place of a job's own."""
    cell = replace(job.cell, victim=victim)
    fit_label, fit_key = identify_fit(cell, job.threads, identities)
    victim_key = identify_victim(cell, job.threads, identities)
    return replace(job, cell=cell, fit_label=fit_label, fit_key=fit_key, victim_key=victim_key)


def identify_victim(cell: Cell, threads: int, identities: Identities) -> str:
    """Return the identity of what a cell's victim publishes."""
    _, fit_key = identify_fit(cell, threads, identities)
    return digest({"fit": fit_key, "victim": identities(cell.victim), "stage": _revision("publications")})


def _revision(stage: str) -> str:
    """Identify the engine's code that a stage runs."""
    return source_revision(Path(leakboard.__file__).parent / "pipeline" / f"{stage}.py")
