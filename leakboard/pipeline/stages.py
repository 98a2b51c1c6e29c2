"""The stages of one cell; each takes what it needs from the stage before, or from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakboard.claims import claim_as_json
from leakboard.data.corpora import load_corpus, save_corpus
from leakboard.errors import DataError, NotApplicable, RequestError, StopRun, one_line, plain
from leakboard.execution import devices
from leakboard.execution.resources import Needs, measured, provide, provided, silence_libraries
from leakboard.interfaces import Corpus, FittedVictim, Victim
from leakboard.logs import log_progress
from leakboard.pipeline.records import Record, read_costs, write_costs
from leakboard.pipeline.shared import Shared
from leakboard.randomness import Streams
from leakboard.store import CHECKSUMS, Store, digest, file_checksum
from leakboard.suite.cells import Choice
from leakboard.suite.plan import Job
from leakboard.suite.registry import Registry
from leakboard.threats.threat import why_no_attack, why_no_fit
from leakboard.workspace import resumable

if TYPE_CHECKING:
    from leakboard.metrics.measures import Metric
    from leakboard.pipeline.attacking import Gold
    from leakboard.threats.threat import VictimSide


@dataclass(frozen=True)
class RunFolders:
    """The folders that a run reads and writes, the files of its own plugins, and what else holds for all of it."""

    store: Path
    cells: Path
    plugin_files: tuple[Path, ...]
    device: devices.Kind = "cpu"
    """Of the stages that may use a GPU."""
    since: float = 0.0
    """What was written before is made anew (seconds, as `file_clock` has it)."""


class Stages:
    """The stages of one job; each takes what it needs from the stage before, or from the store."""

    def __init__(self, job: Job, folders: RunFolders, warn: Callable[[str], None], needs: Needs):
        provide(needs, folders.device)
        silence_libraries()
        self.job, self.folders, self.warn = job, folders, warn
        self.store = Store(folders.store)
        self.registry = registry_of(folders.plugin_files)
        self.other_code: dict[str, str] = {}
        """Digests of plugins' files where a part of the job came from the store and was made by other ones."""
        self._obtained: dict[tuple[str, str], Path] = {}
        """Folders of artefacts by kind and key: each is checked once, however many stages ask for it."""

    @cached_property
    def victim(self) -> Victim:
        """The victim with its options; its module is imported when it is first asked for."""
        built: Victim = self.job.cell.victim.build(self.registry)
        return built

    def corpus(self, choice: Choice, key: str) -> Corpus:
        """Return a loaded dataset."""

        def make(folder: Path) -> None:
            log_progress(f"loading {choice.label}")
            try:
                save_corpus(choice.build(self.registry).load(), folder)
            except StopRun:
                raise
            except RequestError as error:
                raise DataError(f"datasets: {choice.name}: {error}") from None

        return load_corpus(self.obtain("corpora", choice.name, key, make, choice))

    def obtain(self, kind: str, readable: str, key: str, make: Callable[[Path], None], *by: Choice) -> Path:
        """Return the folder of an artefact that these plugins make, from the store if it is there."""
        if (known := self._obtained.get((kind, key))) is not None:
            return known
        names = [f"{choice.kind}/{choice.name}" for choice in by]
        made_by = {name: self.job.code[name] for name in names}
        path = self.store.obtain(kind, readable, key, make, self.warn, made_by)
        made_by = self.store.made_by(kind, readable, key)
        self.other_code |= {name: code for name, code in made_by.items() if code != self.job.code.get(name)}
        return self._obtained.setdefault((kind, key), path)

    def whole(self) -> Corpus:
        """Return the cell's dataset."""
        return self.corpus(self.job.cell.source.corpus, self.job.corpus_key)

    def other(self) -> Corpus:
        """Return the attacker's own dataset."""
        source = self.job.cell.source
        assert source.other, "a source without regime names another dataset"
        return self.corpus(source.other, self.job.other_key)

    def sides(self) -> tuple[Corpus, Corpus | None]:
        """Return the victim's corpus and the attacker's part of it, None where that is another dataset."""
        from leakboard.pipeline.publications import victim_and_attacker_corpus

        regime: Any = self.job.cell.source.regime
        return victim_and_attacker_corpus(self.whole(), regime, self.job.cell.seed)

    def streams(self, attack: str = "") -> Streams:
        """Return the random streams of the cell, or without an attack of its victim."""
        cell = self.job.cell
        victim = self.victim.streams_of or cell.victim.name
        return Streams(cell.seed, cell.source.corpus.name, victim, attack, cell.label)

    def why_not_applicable(self) -> str:
        """Return why the victim cannot be trained on the corpus, or an empty string."""
        return why_no_fit(self.victim, self.whole())

    @property
    def unfinished(self) -> Path:
        """Where the state of an interrupted fit is kept: by code too, since another code must not go on with it."""
        code = {name: value for name, value in self.job.code.items() if not name.startswith("attacks/")}
        return self.store.unfinished(self.job.victim_slug, digest({"fit": self.job.fit_key, "code": code}))

    def fitted_folder(self) -> Path:
        """Return where the fitted victim is saved."""
        from leakboard.pipeline.publications import fit

        job, unfinished = self.job, self.unfinished

        def make(folder: Path) -> None:
            log_progress("fitting the victim")
            with self._stage("fit", job.needs) as cost, resumable(unfinished), self._own_files():
                fit(self.victim.training_config(), self.sides()[0], self.streams()).save(folder)
            write_costs(folder, [cost])

        fitted = self.obtain("victims", job.victim_slug, job.fit_key, make, job.cell.victim)
        self.store.discard(unfinished)
        return fitted

    @cached_property
    def shared(self) -> Shared:
        """What cells on the corpus share beside artefacts of their victims."""
        return Shared(self.job, self.store, self.warn, self.whole, self.sides, self.folders.since)

    @contextmanager
    def _stage(self, name: str, needs: Needs) -> Iterator[dict[str, Any]]:
        """Give a stage what it needs, measure it, and share the arrays that it makes; waiting for others is no cost."""
        before = self.shared.waited
        with measured(name, needs, self.folders.device) as cost, self.shared.arrays():
            yield cost
        cost["seconds"] = round(cost["seconds"] - (self.shared.waited - before), 3)

    @contextmanager
    def _own_files(self) -> Iterator[None]:
        """Stop the run where vectors that come from outside cannot be read, as where a dataset cannot."""
        try:
            yield
        except StopRun:
            raise
        except RequestError as error:
            if self.victim.encodes_texts:
                raise
            raise DataError(f"victims: {self.job.cell.victim.name}: {error}") from None

    def fitted(self) -> FittedVictim:
        """Return the fitted victim."""
        return self.victim.load(self.fitted_folder())

    def publications(self) -> Path:
        """Return where the publications of the fitted victim are saved."""
        from leakboard.pipeline.publications import publish, save_publications

        job = self.job

        def make(folder: Path) -> None:
            saved = self.fitted_folder()
            log_progress("publishing")
            with self._stage("publish", job.needs) as cost, self._own_files():
                fitted = self.victim.load(saved)
                save_publications(publish(self.victim, fitted, self.sides()[0], self.streams()), folder)
            write_costs(folder, [cost])

        return self.obtain("publications", job.victim_slug, job.victim_key, make, job.cell.victim)

    def discard_old(self, *paths: Path) -> None:
        """Remove those of these artefacts that were made before the run, where it takes over none of them."""
        for path in paths:
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < self.folders.since:
                    self.store.discard(path)

    def discard_old_corpus(self, of_attacker: bool) -> None:
        """Remove an old dataset: the attacker's own, or the cell's."""
        source, job = self.job.cell.source, self.job
        choice, key = (source.other, job.other_key) if of_attacker else (source.corpus, job.corpus_key)
        assert choice, "a source without regime names another dataset"
        self.discard_old(self.store.path("corpora", choice.name, key))

    def gold(self) -> Any:
        """Return what neighbours of words are compared with; None where they are not."""
        from leakboard.pipeline.attacking import Gold
        from leakboard.pipeline.publications import load_publications

        job = self.job.gold
        if job is None:
            return None
        with provided(job.needs, self.folders.device):
            words = load_publications(Stages(job, self.folders, self.warn, job.needs).publications()).words
        if words is None:
            raise RequestError(f"gold: {job.cell.victim.label} publishes no words")
        return Gold(words, job.conditions.queries)

    def _of_victim(self, publications: Path, side: VictimSide, gold: Gold | None) -> Sequence[Metric]:
        """Return what the published vectors are good for: worked out once, whatever attacks them."""
        from leakboard.pipeline.attacking import victim_metrics

        written = (publications / "about.json").stat()
        gold_key = self.job.gold.victim_key if self.job.gold else ""
        kept = _kept(publications, written.st_ino, written.st_mtime_ns, gold_key, self.job.conditions.queries)
        if "metrics" not in kept:
            with provided(self.job.own_needs):
                kept["metrics"] = tuple(victim_metrics(side, gold))
        return kept["metrics"]

    def attacked(self) -> tuple[Record, list[dict[str, Any]]]:
        """Return the cell's record, and what each stage took."""
        from leakboard.data.auxiliary import VICTIMS_SHARE
        from leakboard.pipeline.attacking import evaluate_attack
        from leakboard.pipeline.publications import load_publications
        from leakboard.threats.threat import VictimSide

        job = self.job
        attack = job.cell.attack.build(self.registry)
        corpus, auxiliary = self.sides()
        auxiliary = auxiliary or self.other()
        reason = job.skip or self.why_not_applicable() or why_no_attack(attack, corpus, auxiliary, None)
        if reason:
            return record_of(job, "skipped", reason, checks=corpus.checks), []
        folder = self.publications()
        published = load_publications(folder)
        if reason := why_no_attack(attack, corpus, auxiliary, published):
            return record_of(job, "skipped", reason, checks=corpus.checks), []
        side = VictimSide(
            corpus=corpus,
            auxiliary=auxiliary,
            victim=self.victim,
            fitted=lru_cache(self.fitted),
            published=published,
            streams=self.streams(job.cell.attack.name),
            identity=lambda: file_checksum(self.fitted_folder() / CHECKSUMS),
            train=self.shared.shadow,
            victim_share=VICTIMS_SHARE.get(job.cell.source.regime or "", 1.0),
            external_auxiliary=job.cell.source.other is not None,
            text_guesses=self.shared.text_guesses if job.conditions.text_classifier and corpus.has_texts else None,
        )
        gold = self.gold()
        log_progress("attacking")
        try:
            with self._stage("attack", job.attack_needs) as cost:
                result = evaluate_attack(attack, side, self._of_victim(folder, side, gold))
        except NotApplicable as error:
            return record_of(job, "skipped", one_line(error), checks=corpus.checks), []
        costs = [*read_costs(self.fitted_folder()), *read_costs(folder), cost]
        record = record_of(
            job,
            "ok",
            code={**job.code, **self.other_code},
            secrets=result.secrets,
            threat=attack.threat.name,
            attack_metric=attack.threat.headline,
            test_size=result.test_size,
            claim=claim_as_json(result.claim),
            audited=asdict(result.audited) if result.audited else None,
            details=plain(result.details),
            checks=corpus.checks,
            metrics=result.metrics,
            sentences=[asdict(sentence) for sentence in result.sentences],
        )
        return record, costs


def record_of(job: Job, status: str, reason: str = "", **fields: Any) -> Record:
    """Return the record of a cell; ``fields`` are the results of an attack that ran."""
    cell = job.cell
    labels = (cell.source.label, cell.victim.label, cell.attack.label)
    return Record(*labels, cell.seed, status, reason, job.key, **fields)


@lru_cache(maxsize=4)
def _kept(*of: object) -> dict[str, Any]:
    """Return where a process keeps what it worked out of a publication; it forgets all but the last few."""
    return {}


@lru_cache
def registry_of(files: tuple[Path, ...]) -> Registry:
    """Return the registry of this process."""
    return Registry(files)
