"""What runs in a worker process: preparing a victim, and one cell, with their parts taken from the store."""

from __future__ import annotations

import resource
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakboard.data.corpora import load_corpus, save_corpus
from leakboard.errors import DataError, NotApplicable, RequestError, StopRun, one_line
from leakboard.interfaces import Corpus, FittedVictim
from leakboard.logs import log_progress
from leakboard.pipeline.environment import environment
from leakboard.pipeline.records import Record, read_costs, write_costs, write_failure, write_record
from leakboard.resuming import resumable
from leakboard.store import Store, digest
from leakboard.suite import stages as revisions
from leakboard.suite.plan import Job, as_trained
from leakboard.suite.plugins import Registry
from leakboard.suite.suites import Choice


@dataclass(frozen=True)
class Workplace:
    """Where a run reads and writes."""

    store: Path
    cells: Path
    plugin_files: tuple[Path, ...]


def load_dataset(job: Job, place: Workplace, of_attacker: bool, warn: Callable[[str], None]) -> None:
    """Load a job's dataset, or the attacker's own, into the store: what is wrong with one is told early.

    Raises:
        StopRun: it is not as the suite asks, or the store cannot be written.
    """
    stages = _Stages(job, place, warn)
    stages.other() if of_attacker else stages.whole()


def fit_victim(job: Job, place: Workplace, force: bool, warn: Callable[[str], None]) -> None:
    """Fit a job's victim, unless the store has it and ``force`` is not set.

    What is cached is checked by its checksums.
    """
    stages = _Stages(job, place, warn)
    if stages.mismatch():
        return
    if force:
        stages.store.discard(stages.store.path("victims", job.victim_slug, job.fit_key))
        stages.store.discard(stages.store.unfinished(job.victim_slug, job.fit_key))
    stages.fitted_folder()


def publish_victim(job: Job, place: Workplace, force: bool, warn: Callable[[str], None]) -> None:
    """Publish with a job's fitted victim, unless the store has it and ``force`` is not set."""
    stages = _Stages(job, place, warn)
    if stages.mismatch():
        return
    if force:
        stages.store.discard(stages.store.path("publications", job.victim_slug, job.victim_key))
    stages.publications()


def run_cell(job: Job, place: Workplace, warn: Callable[[str], None]) -> str:
    """Mount a job's attack and write its record; return an empty string, or the reason for a failure in one line."""
    folder = place.cells / job.folder
    try:
        stages = _Stages(job, place, warn)
        record, costs = stages.attacked()
    except StopRun:
        raise
    except (Exception, SystemExit) as error:  # a plugin that ends its process fails its own cell
        return record_failure(job, place, one_line(error), traceback.format_exc())
    write_costs(folder, costs)
    write_record(folder, record)
    return ""


def record_failure(job: Job, place: Workplace, reason: str, lines: str) -> str:
    """Record that a cell failed, with its reason and traceback; return the reason."""
    write_failure(place.cells / job.folder, _record(job, "failed", reason), lines)
    return reason


def _record(job: Job, status: str, reason: str = "", **found: Any) -> Record:
    cell = job.cell
    labels = (cell.source.label, cell.victim.label, cell.attack.label)
    return Record(*labels, cell.seed, status, reason, job.key, **found)


class _Stages:
    """The stages of one job; each takes what it needs from the stage before, or from the store."""

    def __init__(self, job: Job, place: Workplace, warn: Callable[[str], None]):
        _limit_threads(job.threads)
        _silence_libraries()
        self.job, self.place, self.warn = job, place, warn
        self.store = Store(place.store)
        self.registry = _registry(place.plugin_files)
        self.victim = job.cell.victim.build(self.registry)
        self.code = dict(job.code)
        """Of what computed the job's parts, which may have come from the store."""

    def corpus(self, choice: Choice, key: str) -> Corpus:
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
        names = [f"{choice.kind}/{choice.name}" for choice in by]
        made_by = {name: self.job.code[name] for name in names}
        path = self.store.obtain(kind, readable, key, make, self.warn, made_by)
        made_by = self.store.made_by(kind, readable, key)
        self.code |= {name: code for name, code in made_by.items() if code != self.job.code.get(name)}
        return path

    def whole(self) -> Corpus:
        """Return the cell's dataset."""
        return self.corpus(self.job.cell.source.corpus, self.job.corpus_key)

    def other(self) -> Corpus:
        """Return the attacker's own dataset."""
        source = self.job.cell.source
        assert source.other, "a source without situation names another dataset"
        return self.corpus(source.other, self.job.other_key)

    def sides(self) -> tuple[Corpus, Corpus | None]:
        """Return the victim's corpus and the attacker's part of it, None where that is another dataset."""
        from leakboard.pipeline.fitting import victim_and_attacker_corpus

        situation: Any = self.job.cell.source.situation
        return victim_and_attacker_corpus(self.whole(), situation, self.job.cell.seed)

    def names(self, attack: str = "") -> Any:
        from leakboard.pipeline.fitting import Names

        cell = self.job.cell
        victim = getattr(self.victim, "streams_of", cell.victim.name)
        return Names(cell.seed, cell.source.corpus.name, victim, attack, cell.label)

    def mismatch(self) -> str:
        """Return why the victim cannot be trained on the corpus, or an empty string."""
        return str(self.victim.mismatch(self.whole())) if hasattr(self.victim, "mismatch") else ""

    def fitted_folder(self) -> Path:
        from leakboard.pipeline.fitting import fit

        job = self.job

        unfinished = self.store.unfinished(job.victim_slug, job.fit_key)

        def make(folder: Path) -> None:
            log_progress("fitting the victim")
            with _measured("fit", self.job.threads) as cost, resumable(unfinished):
                fit(as_trained(self.victim), self.sides()[0], self.names()).save(folder)
            write_costs(folder, [cost])

        fitted = self.obtain("victims", job.victim_slug, job.fit_key, make, job.cell.victim)
        self.store.discard(unfinished)
        return fitted

    def fitted(self) -> FittedVictim:
        return self.victim.load(self.fitted_folder())

    def publications(self) -> Path:
        from leakboard.pipeline.publications import publish, save_publications

        job = self.job

        def make(folder: Path) -> None:
            fitted = self.fitted()
            log_progress("publishing")
            with _measured("publish", self.job.threads) as cost:
                save_publications(publish(self.victim, fitted, self.sides()[0], self.names()), folder)
            write_costs(folder, [cost])

        return self.obtain("publications", job.victim_slug, job.victim_key, make, job.cell.victim)

    def floor(self, kind: str) -> Any:
        """Return the guesses of classifiers trained on the text, cached for the corpus and kind of secret."""
        import numpy as np

        from leakboard.metrics import baselines

        whole = self.whole()
        secrets = [secret for secret in whole.secrets if secret.kind == kind]

        def make(folder: Path) -> None:
            log_progress("training the floor: classifiers on the text")
            np.save(folder / "guesses.npy", baselines.from_text(whole, secrets, seed=0))

        revision = revisions.TEXT_CLASSIFIERS
        key = digest({"corpus": self.job.corpus_key, "kind": kind, "revision": revision, "threads": self.job.threads})
        folder = self.store.obtain("floors", f"{self.job.cell.source.corpus.name}-{kind}", key, make, self.warn)
        return np.load(folder / "guesses.npy", allow_pickle=False)

    def gold(self) -> Any:
        """Return what neighbours of words are compared with; None where they are not."""
        from leakboard.pipeline.publications import load_publications
        from leakboard.pipeline.scene import Gold

        job = self.job.gold
        if job is None:
            return None
        words = load_publications(_Stages(job, self.place, self.warn).publications()).words
        if words is None:
            raise RequestError(f"gold: {job.cell.victim.label} publishes no words")
        return Gold(words, job.conditions.queries)

    def attacked(self) -> tuple[Record, list[dict[str, Any]]]:
        """Return the cell's record, and what each stage took."""
        from leakboard.data.auxiliary import VICTIMS_SHARE
        from leakboard.pipeline.cell import mismatch, mount, unclaimed
        from leakboard.pipeline.publications import load_publications
        from leakboard.pipeline.scene import Scene

        job = self.job
        attack = job.cell.attack.build(self.registry)
        own, auxiliary = self.sides()
        auxiliary = auxiliary or self.other()
        if reason := job.skip or self.mismatch() or mismatch(attack, own):
            return _record(job, "skipped", reason, checks=own.checks), []
        folder = self.publications()
        published = load_publications(folder)
        if reason := unclaimed(attack, published):
            return _record(job, "skipped", reason, checks=own.checks), []
        floor = self.floor(attack.target) if job.conditions.floor and attack.target in ("attribute", "entity") else None
        share = VICTIMS_SHARE.get(job.cell.source.situation or "", 1.0)
        strangers = job.cell.source.other is not None
        scene = Scene(own, auxiliary, self.victim, lru_cache(self.fitted), published, self.gold(), share, strangers)
        log_progress("attacking")
        try:
            with _measured("attack", job.threads) as cost:
                judged = mount(attack, scene, self.names(job.cell.attack.name), floor)
        except NotApplicable as error:
            return _record(job, "skipped", one_line(error), checks=own.checks), []
        costs = [*read_costs(self.fitted_folder()), *read_costs(folder), cost]
        record = _record(
            job,
            "ok",
            code=self.code,
            secrets=judged.secrets,
            attack_metric=judged.attack_metric,
            test_size=judged.test_size,
            claim=asdict(judged.claim) if judged.claim else None,
            note=judged.note,
            checks=own.checks,
            metrics=judged.metrics,
            sentences=[asdict(sentence) for sentence in judged.sentences],
        )
        return record, costs


@lru_cache
def _registry(files: tuple[Path, ...]) -> Registry:
    return Registry(files)


def _limit_threads(threads: int) -> None:
    """Hold every library to this many threads; those that compute are loaded first: a limit reaches no later one."""
    import faiss  # noqa: F401
    import scipy.linalg  # noqa: F401
    import sklearn.linear_model  # noqa: F401
    import threadpoolctl
    import torch

    torch.set_num_threads(threads)
    threadpoolctl.threadpool_limits(threads)


def _silence_libraries() -> None:
    """Turn off the libraries' own progress bars: the runner shows progress by cell and stage."""
    import datasets
    import huggingface_hub.utils
    import tqdm
    import transformers

    tqdm.tqdm.set_lock(threading.RLock())  # its own would leave a semaphore behind

    datasets.disable_progress_bars()
    huggingface_hub.utils.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()


@contextmanager
def _measured(stage: str, threads: int) -> Iterator[dict[str, Any]]:
    """Measure a stage: seconds, and the peak of the process's memory (MiB) where the system lets it be reset."""
    import torch

    cost: dict[str, Any] = {}
    with suppress(OSError):  # resets the peak on Linux
        Path("/proc/self/clear_refs").write_text("5")
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    yield cost
    used = torch.cuda.is_initialized() and torch.cuda.max_memory_allocated() > 0
    cost |= {
        "stage": stage,
        "seconds": round(time.perf_counter() - start, 3),
        "peak_memory_mib": _peak_memory(),
        "device": torch.cuda.get_device_name(0) if used else "cpu",
        "threads": threads,
        "environment": environment(),
    }


def _peak_memory() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
