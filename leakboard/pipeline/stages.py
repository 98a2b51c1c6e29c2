"""Load, fit and publish for one cell; a stage is left out if the store has its artefact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from leakboard.data.corpora import load_corpus, save_corpus
from leakboard.errors import DataError, RequestError, StopRun
from leakboard.execution import devices
from leakboard.execution.resources import Needs, measured, provide, silence_libraries
from leakboard.interfaces import Corpus, FittedVictim, Victim
from leakboard.logs import log_progress
from leakboard.pipeline.records import write_costs
from leakboard.pipeline.shared import Shared
from leakboard.randomness import Streams
from leakboard.store import Store, digest
from leakboard.suite.cells import Choice
from leakboard.suite.code import package_digest
from leakboard.suite.plan import Job
from leakboard.suite.registry import Registry
from leakboard.threats.threat import why_no_attack, why_no_fit
from leakboard.workspace import resumable


@dataclass(frozen=True)
class RunFolders:
    """Folders and settings of a run."""

    store: Path
    cells: Path
    plugin_files: tuple[Path, ...]
    device: devices.DeviceKind = "cpu"
    """Device of the stages that may use a GPU."""
    since: float = 0.0
    """Artefacts and results from before this time are made again (seconds, by `file_clock`)."""
    salt: str = ""
    """Salt of random streams that plugins must not foresee."""
    keeps_guesses: bool = False
    """Whether the folder of a cell keeps the guesses of each test row, for the owner of the rows."""


class Stages:
    """The stages of one job before the attack."""

    def __init__(self, job: Job, folders: RunFolders, warn: Callable[[str], None], needs: Needs):
        provide(needs, folders.device)
        silence_libraries()
        self.job, self.folders, self.warn = job, folders, warn
        self.store = Store(folders.store)
        self.registry = registry_of(folders.plugin_files)
        self.stored_code: dict[str, str] = {}
        """Digests of plugin files that made stored artefacts and were changed since."""
        self._obtained: dict[tuple[str, str], Path] = {}
        """Folders of artefacts with checked checksums, by kind and key."""

    def dataset(self, choice: Choice, key: str) -> Corpus:
        """Load a dataset."""

        def make(folder: Path) -> None:
            log_progress(f"loading {choice.label}")
            try:
                save_corpus(choice.build(self.registry).load(), folder)
            except StopRun:
                raise
            except RequestError as error:
                raise DataError(f"datasets: {choice.name}: {error}") from None

        return load_corpus(self._obtain("corpora", choice.name, key, make, choice))

    def whole(self) -> Corpus:
        """Return the cell's dataset."""
        return self.dataset(self.job.cell.source.corpus, self.job.corpus_key)

    def sides(self) -> tuple[Corpus, Corpus | None]:
        """Return the victim's and the attacker's part of the dataset; None for an attacker with another dataset."""
        from leakboard.pipeline.publications import victim_and_attacker_corpus

        regime: Any = self.job.cell.source.regime
        return victim_and_attacker_corpus(self.whole(), regime, self.job.cell.seed)

    @cached_property
    def victim(self) -> Victim:
        """The victim with its options."""
        built: Victim = self.job.cell.victim.build(self.registry)
        return built

    def why_not_applicable(self) -> str:
        """Return why the victim cannot be trained on the dataset, or an empty string."""
        return why_no_fit(self.victim, self.whole())

    def attackers_corpus(self) -> Corpus:
        """Return the attacker's own corpus: a part of the dataset, or another dataset."""
        if (auxiliary := self.sides()[1]) is not None:
            return auxiliary
        other = self.job.cell.source.other
        assert other, "without a regime, the source names the attacker's dataset"
        return self.dataset(other, self.job.other_key)

    def why_skipped(self) -> str:
        """Return why the cell is skipped, as far as is known before the victim is fitted; empty: it is not."""
        if reason := self.job.skip or self.why_not_applicable():
            return reason
        attack = self.job.cell.attack.build(self.registry)
        return why_no_attack(attack, self.sides()[0], self.attackers_corpus(), None)

    @property
    def unfinished(self) -> Path:
        """Folder for the state of an unfinished fit.

        If the code of a dataset or victim changes, the folder changes, too. So no fit goes on from the state of old
        code.
        """
        code = {name: value for name, value in self.job.code.items() if not name.startswith("attacks/")}
        return self.store.unfinished(self.job.victim_slug, digest({"fit": self.job.fit_key, "code": code}))

    @property
    def unfinished_attack(self) -> Path:
        """Folder for the state of an unfinished attack.

        Other publications, or other code in the attack's package, have another folder.
        """
        package = package_digest(type(self.job.cell.attack.build(self.registry)))
        key = {"attack": self.job.key, "salt": self.folders.salt, "code": {**self.job.code, "package": package}}
        return self.store.unfinished(self.job.folder, digest(key))

    def fitted_folder(self) -> Path:
        """Return the folder of the fitted victim; fit the victim if the folder is missing."""
        from leakboard.pipeline.publications import fit

        job, unfinished = self.job, self.unfinished

        def make(folder: Path) -> None:
            log_progress("fitting the victim")
            with self.in_stage("fit", job.needs) as cost, resumable(unfinished), self._stop_on_data_errors():
                fit(self.victim.training_config(), self.sides()[0], self.streams()).save(folder)
            write_costs(folder, [cost])

        fitted = self._obtain("victims", job.victim_slug, job.fit_key, make, job.cell.victim)
        self.store.discard(unfinished)
        return fitted

    def fitted(self) -> FittedVictim:
        """Return the fitted victim."""
        return self.victim.load(self.fitted_folder())

    def publications_folder(self) -> Path:
        """Return the folder of the publications; publish if the folder is missing."""
        from leakboard.pipeline.publications import publish, save_publications

        job = self.job

        def make(folder: Path) -> None:
            saved = self.fitted_folder()
            log_progress("publishing")
            with self.in_stage("publish", job.needs) as cost, self._stop_on_data_errors():
                published = publish(self.victim, lambda: self.victim.load(saved), self.sides()[0], self.streams())
                save_publications(published, folder)
            write_costs(folder, [cost])

        return self._obtain("publications", job.victim_slug, self.publications_key, make, job.cell.victim)

    @property
    def publications_key(self) -> str:
        """Identity of the publications, with the salt."""
        key, salt = self.job.victim_key, self.folders.salt
        return digest({"publications": key, "salt": salt}) if salt else key

    def streams(self, attack: str = "") -> Streams:
        """Return the random streams of an attack; without an attack, those of the victim."""
        cell = self.job.cell
        victim = self.victim.streams_of or cell.victim.name
        return Streams(cell.seed, cell.source.corpus.name, victim, attack, cell.label, self.folders.salt)

    @cached_property
    def shared(self) -> Shared:
        """Artefacts that cells on the same dataset share."""
        return Shared(self.job, self.store, self.warn, self.whole, self.sides, self.folders.since)

    @contextmanager
    def in_stage(self, name: str, needs: Needs) -> Iterator[dict[str, Any]]:
        """Set threads and device for a stage, and measure its cost, without waiting times."""
        before = self.shared.waited
        with measured(name, needs, self.folders.device) as cost, self.shared.arrays():
            yield cost
        cost["seconds"] = round(cost["seconds"] - (self.shared.waited - before), 3)

    def discard_old(self, *paths: Path) -> None:
        """Remove artefacts that are older than `RunFolders.since`."""
        for path in paths:
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < self.folders.since:
                    self.store.discard(path)

    def _obtain(self, kind: str, readable: str, key: str, make: Callable[[Path], None], plugin: Choice) -> Path:
        if (folder := self._obtained.get((kind, key))) is not None:
            return folder
        name = f"{plugin.kind}/{plugin.name}"
        folder = self.store.obtain(kind, readable, key, make, self.warn, {name: self.job.code[name]})
        made_by = self.store.made_by(kind, readable, key)
        self.stored_code |= {name: code for name, code in made_by.items() if code != self.job.code.get(name)}
        return self._obtained.setdefault((kind, key), folder)

    @contextmanager
    def _stop_on_data_errors(self) -> Iterator[None]:
        try:
            yield
        except StopRun:
            raise
        except RequestError as error:
            if self.victim.encodes_texts:
                raise
            # the victim's vectors are data of the user, like a dataset
            raise DataError(f"victims: {self.job.cell.victim.name}: {error}") from None


@lru_cache
def registry_of(files: tuple[Path, ...]) -> Registry:
    """Return the registry of the user's plugin files."""
    return Registry(files)
