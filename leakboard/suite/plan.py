"""Give every cell its identity: the digest of everything that determines its result.

An identity is made of declared things: names, options that differ from their defaults or are always named, revisions
of plugins and of the engine's stages, data, seed and threads. Code, file names and library versions are provenance.
Only a plugin without a revision is identified by its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leakboard.errors import RequestError, failure_line
from leakboard.execution.resources import Needs
from leakboard.interfaces import Plugin
from leakboard.store import digest, folder_name
from leakboard.suite import code, options, revisions
from leakboard.suite.cells import Cell, Choice, Conditions
from leakboard.suite.suites import Suite

GOLD = "gold "


@dataclass(frozen=True)
class Job:
    """A cell with the identities of its result and its parts; plain data for other processes."""

    cell: Cell
    conditions: Conditions
    key: str
    """Identity of the result."""
    corpus_key: str = ""
    other_key: str = ""
    """Identity of the attacker's dataset; empty where its texts come from the corpus."""
    fit_key: str = ""
    """Identity of the fitted victim: victims that differ only in options that training ignores share one."""
    fit_label: str = ""
    """The victim as it is trained."""
    victim_key: str = ""
    """Identity of its publications."""
    needs: Needs = field(default_factory=Needs)
    """Needs of fitting the victim, and of publishing."""
    attack_needs: Needs = field(default_factory=Needs)
    fingerprint: str = ""
    """Fingerprint of the dataset, for the provenance."""
    other_fingerprint: str = ""
    """Fingerprint of the attacker's dataset."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Digest of each plugin's file, as in ``{"victims/lsa": "0f3a..."}``: provenance, no identity."""
    revisions: Mapping[str, int | None] = field(default_factory=dict)
    """Revision of each stage, threat and plugin that determines the result; None for a plugin without one.

    Those of the gold victim begin with ``gold``.
    """
    gold: Job | None = None
    """Job of the reference victim, whose nearest neighbours of words count as right; None: they are not compared."""
    problem: str = ""
    """Why the cell fails without being tried: a plugin that cannot be loaded."""
    skip: str = ""
    """Why victim and attack do not go together."""

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Plugins of the cell that declare no revision."""
        return tuple(name.removeprefix(GOLD) for name, revision in self.revisions.items() if revision is None)

    @property
    def folder(self) -> str:
        """Name of the cell's folder under ``cells/``."""
        cell = self.cell
        return folder_name(f"{cell.source.corpus.name}-{cell.victim.name}-{cell.attack.name}-s{cell.seed}", self.key)

    @property
    def engine_needs(self) -> Needs:
        """Needs of the engine's stages: loading, scoring the victim, classifiers of the text."""
        return Needs(self.conditions.threads)

    @property
    def victim_slug(self) -> str:
        """Readable part of the name of the victim's artefacts."""
        return f"{self.cell.source.corpus.name}-{self.cell.victim.name}-s{self.cell.seed}"


def plan(suite: Suite, cells: Sequence[Cell], identities: Identities) -> list[Job]:
    """Return the jobs of cells, in order.

    Raises:
        RequestError: a file that a plugin reads is missing.
    """
    try:
        return [make_job(cell, suite.conditions, identities) for cell in cells]
    except RequestError as error:
        raise RequestError(f"{suite.path}: {error}") from None


def make_job(cell: Cell, conditions: Conditions, identities: Identities) -> Job:
    """Return a cell's job; with a plugin that cannot be identified, it is a job that fails with the reason.

    Raises:
        RequestError: a file that a plugin reads is missing.
    """
    source = cell.source
    problem = cell.victim.problem or cell.attack.problem or source.corpus.problem
    if not (problem := problem or (source.other.problem if source.other else "")):
        try:
            return identities.of_cell(cell, conditions)
        except RequestError:
            raise
        except Exception as error:
            problem = failure_line(error)
    return Job(cell, conditions, digest({"cell": cell.label, "problem": problem}), problem=problem)


@dataclass(frozen=True)
class Identified:
    """A plugin with its options and its part of an identity."""

    plugin: Any
    content: Mapping[str, Any]
    """Name, options, revision and input files."""
    key: str
    """Digest of ``content``."""
    code: Mapping[str, str]
    """Digest of its file, by kind and name."""
    revisions: Mapping[str, int | None]
    """Revisions of the plugin and of its parts, by kind and name; None where none is declared."""


class Identities:
    """Identities of plugins and of their artefacts, each computed once."""

    def __init__(self) -> None:
        self._plugins: dict[tuple[str, str], Identified] = {}
        self._published: dict[tuple[Any, ...], Job] = {}

    def of_plugin(self, choice: Choice) -> Identified:
        """Return the identity of a plugin with its options.

        Raises:
            RequestError: a file that it reads is missing.
        """
        if (choice.kind, choice.label) not in self._plugins:
            self._plugins[choice.kind, choice.label] = _identified(choice)
        return self._plugins[choice.kind, choice.label]

    def of_cell(self, cell: Cell, conditions: Conditions) -> Job:
        """Return a cell's job.

        Raises:
            RequestError: a file that a plugin reads is missing.
        """
        job, attack = self.of_publication(cell, conditions), self.of_plugin(cell.attack)
        publishes, threat = self.of_plugin(cell.victim).plugin.publishes, attack.plugin.threat
        needs = threat.needs
        identity: dict[str, Any] = {"publications": job.victim_key, "attack": attack.key, "other": job.other_key}
        of_threat = threat.identity or threat.name
        identity |= {"threat": of_threat, "scoring": threat.revision, "utility": revisions.UTILITY}
        given = {f"threat {of_threat}": threat.revision, "stage UTILITY": revisions.UTILITY}
        if conditions.text_classifier and threat.beside_text_classifiers:
            identity["text_classifiers"] = given["stage TEXT_CLASSIFIERS"] = revisions.TEXT_CLASSIFIERS
        declares_gpu = _declared(attack.plugin, lambda plugin: plugin.uses_gpu)
        uses_gpu = job.needs.uses_gpu if declares_gpu is None else bool(declares_gpu)
        needs_of_attack = Needs(_declared(attack.plugin, lambda plugin: plugin.threads) or conditions.threads, uses_gpu)
        if {job.needs.threads, needs_of_attack.threads} != {conditions.threads}:
            identity["threads"] = [conditions.threads, needs_of_attack.threads]
        gold = None
        if conditions.gold and "words" in publishes:
            gold = self.of_publication(replace(cell, victim=conditions.gold), conditions)
            identity |= {"gold": gold.victim_key, "queries": conditions.queries}
        return replace(
            job,
            cell=cell,
            key=digest(identity),
            attack_needs=needs_of_attack,
            code={**(gold.code if gold else {}), **job.code, **attack.code},
            revisions={**job.revisions, **attack.revisions, **given, **_of_gold(gold)},
            gold=gold,
            skip="" if needs in publishes else f"{cell.attack.name} attacks {needs}, {cell.victim.name} publishes none",
        )

    def of_publication(self, cell: Cell, conditions: Conditions) -> Job:
        """Return the part of a cell's job that does not depend on the attack: loading, fitting, publishing."""
        labels = (cell.source.label, cell.victim.label, cell.seed, conditions.threads)
        if labels not in self._published:
            self._published[labels] = self._of_publication(cell, conditions)
        return self._published[labels]

    def _of_publication(self, cell: Cell, conditions: Conditions) -> Job:
        source, victim = cell.source, self.of_plugin(cell.victim)
        corpus, other = (self.of_plugin(choice) if choice else None for choice in (source.corpus, source.other))
        assert corpus is not None
        trained = victim.plugin.training_config()
        threads = _declared(trained, lambda plugin: plugin.threads) or conditions.threads
        loaded = corpus_key(corpus)
        fit = {
            "corpus": loaded,
            "auxiliary": source.regime,
            "victim": identity_of(cell.victim.name, trained, victim.content["fingerprint"]),
            "seed": cell.seed,
            "threads": threads,
            "fit": revisions.FIT,
        }
        fit_key = digest(fit)
        published = {"fit": fit_key, "victim": victim.key, "publish": revisions.PUBLISH}
        plugins = [corpus, victim, *([other] if other else [])]
        return Job(
            cell,
            conditions,
            key="",
            corpus_key=loaded,
            other_key=corpus_key(other) if other else "",
            fit_key=fit_key,
            fit_label=options.label(cell.victim.name, trained),
            victim_key=digest(published),
            needs=Needs(threads, bool(_declared(victim.plugin, lambda plugin: plugin.uses_gpu))),
            fingerprint=corpus.content["fingerprint"],
            other_fingerprint=other.content["fingerprint"] if other else "",
            code={name: value for plugin in plugins for name, value in plugin.code.items()},
            revisions={
                "stage CORPUS": revisions.CORPUS,
                "stage FIT": revisions.FIT,
                "stage PUBLISH": revisions.PUBLISH,
                **{name: revision for plugin in plugins for name, revision in plugin.revisions.items()},
            },
        )


def _of_gold(gold: Job | None) -> dict[str, int | None]:
    return {f"{GOLD}{name}": revision for name, revision in gold.revisions.items()} if gold else {}


def corpus_key(dataset: Identified) -> str:
    """Return the identity of a loaded corpus."""
    return digest({"dataset": dataset.key, "corpus": revisions.CORPUS})


def _identified(choice: Choice) -> Identified:
    plugin = choice.plugin
    try:
        fingerprint = plugin.fingerprint()
    except RequestError as error:
        raise RequestError(f"{choice.kind}: {choice.name}: {error}") from None
    content = identity_of(choice.name, plugin, fingerprint)
    named = {f"{choice.kind}/{choice.name}": code.file_digest(type(plugin))}
    return Identified(plugin, content, digest(content), named, dict(_revisions(choice.name, plugin)))


def identity_of(name: str, plugin: Any, fingerprint: str = "") -> dict[str, Any]:
    """Return the content of a plugin's identity; parts that are plugins are always in it."""
    named = options.named(plugin)
    named |= {key: identity_of(inner, part) for key, (inner, part) in options.parts(plugin).items()}
    revision = code.revision(type(plugin))
    declared = {"code": code.package_digest(type(plugin))} if revision is None else {"revision": revision}
    return {"name": name, "options": named, "fingerprint": fingerprint, **declared}


def _declared(plugin: Plugin, need: Callable[[Plugin], int | None]) -> int | None:
    """Return a need that a plugin declares, else the largest that its parts declare, else None."""
    if (declared := need(plugin)) is not None:
        return declared
    of_parts = [_declared(part, need) for _, part in options.parts(plugin).values()]
    return max((value for value in of_parts if value is not None), default=None)


def _revisions(name: str, plugin: Any) -> Iterator[tuple[str, int | None]]:
    yield f"{plugin.__leakboard_kind__}/{name}", code.revision(type(plugin))
    for inner, part in options.parts(plugin).values():
        yield from _revisions(inner, part)
