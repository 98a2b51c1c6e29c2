"""What runs in a worker process: preparing a victim, and one cell, with their parts taken from the store."""

from __future__ import annotations

import resource
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakboard import notes
from leakboard.corpora import load_corpus, save_corpus
from leakboard.errors import DataError, RequestError, StopRun, one_line
from leakboard.interfaces import Corpus, FittedVictim
from leakboard.plan import Identities, Job, make_job
from leakboard.plugins import Registry, source_revision
from leakboard.provenance import environment
from leakboard.records import Record, read_costs, write_costs, write_failure, write_record
from leakboard.store import Store, digest
from leakboard.suites import Choice


@dataclass(frozen=True)
class Workplace:
    """Where a run reads and writes."""

    store: Path
    cells: Path
    plugin_files: tuple[Path, ...]


def load_datasets(jobs: Sequence[Job], place: Workplace, warn: Callable[[str], None]) -> None:
    """Load every dataset of a run into the store, so that what is wrong with one is told before anything is computed.

    A dataset whose plugin raises is left to its cells, which fail with the reason.

    Raises:
        StopRun: a dataset is not as the suite asks, or the store cannot be written.
    """
    seen: set[str] = set()
    for job in jobs:
        source = job.cell.source
        for choice, key in ((source.corpus, job.corpus_key), (source.other, job.other_key)):
            if choice is None or key in seen:
                continue
            seen.add(key)
            try:
                _Stages(job, place, warn).corpus(choice, key)
            except StopRun:
                raise
            except Exception as error:
                warn(f"{choice.label}: {one_line(error)}")


def prepare(job: Job, place: Workplace, force: bool, warn: Callable[[str], None]) -> None:
    """Fit a job's victim and publish, unless the store has both and ``force`` is not set.

    What is cached is checked by its checksums.
    """
    stages = _Stages(job, place, warn)
    if force:
        for kind in ("victims", "publications"):
            stages.store.discard(stages.store.path(kind, job.victim_slug, job.victim_key))
    stages.publications()


def run_cell(job: Job, place: Workplace, warn: Callable[[str], None]) -> str:
    """Mount a job's attack and write its record; return an empty string, or the reason for a failure in one line."""
    folder = place.cells / job.folder
    try:
        stages = _Stages(job, place, warn)
        record, costs = stages.attacked()
        _check_unchanged(job, stages.registry)
    except StopRun:
        raise
    except (Exception, SystemExit) as error:  # a plugin that ends its process fails its own cell
        return record_failure(job, place, one_line(error), traceback.format_exc())
    write_costs(folder, costs)
    write_record(folder, record)
    return ""


def _check_unchanged(job: Job, registry: Registry) -> None:
    """Refuse a result that was not computed from what its key says.

    Raises:
        RequestError: code or data changed after the run was planned.
    """
    now = make_job(job.cell, job.threads, job.floor, Identities(registry))
    if now.key != job.key:
        raise RequestError("its code or its data changed while it ran; run it again")


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

    def corpus(self, choice: Choice, key: str) -> Corpus:
        def make(folder: Path) -> None:
            notes.note(f"loading {choice.label}")
            try:
                save_corpus(choice.build(self.registry).load(), folder)
            except StopRun:
                raise
            except RequestError as error:
                raise DataError(f"datasets: {choice.name}: {error}") from None

        return load_corpus(self.obtain("corpora", choice.name, key, make))

    def obtain(self, kind: str, readable: str, key: str, make: Callable[[Path], None]) -> Path:
        """Return an artefact from the store, made if need be, and not kept if its code or data changed meanwhile."""

        def make_and_check(folder: Path) -> None:
            make(folder)
            _check_unchanged(self.job, self.registry)

        return self.store.obtain(kind, readable, key, make_and_check, self.warn)

    def sides(self) -> tuple[Corpus, Corpus]:
        """Return the victim's corpus and the attacker's."""
        from leakboard.stages.victim import victim_and_attacker_corpus

        source = self.job.cell.source
        whole = self.corpus(source.corpus, self.job.corpus_key)
        situation: Any = source.situation
        own, auxiliary = victim_and_attacker_corpus(whole, situation, self.job.cell.seed)
        if auxiliary is None:
            assert source.other, "a source without situation names another dataset"
            auxiliary = self.corpus(source.other, self.job.other_key)
        return own, auxiliary

    def names(self, attack: str = "") -> Any:
        from leakboard.stages.victim import Names

        cell = self.job.cell
        return Names(cell.seed, cell.source.corpus.name, cell.victim.name, attack)

    def fitted_folder(self) -> Path:
        from leakboard.stages.victim import fit

        def make(folder: Path) -> None:
            notes.note("fitting the victim")
            with _measured("fit", self.job.threads) as cost:
                fit(self.victim, self.sides()[0], self.names()).save(folder)
            write_costs(folder, [cost])

        return self.obtain("victims", self.job.victim_slug, self.job.victim_key, make)

    def fitted(self) -> FittedVictim:
        return self.victim.load(self.fitted_folder())

    def publications(self) -> Path:
        from leakboard.stages.victim import publish, save_publications

        def make(folder: Path) -> None:
            fitted = self.fitted()
            notes.note("publishing")
            with _measured("publish", self.job.threads) as cost:
                save_publications(publish(self.victim, fitted, self.sides()[0], self.names()), folder)
            write_costs(folder, [cost])

        return self.obtain("publications", self.job.victim_slug, self.job.victim_key, make)

    def floor(self, kind: str) -> Any:
        """Return the guesses of classifiers trained on the text, cached for the corpus and kind of secret."""
        import numpy as np

        from leakboard.referee import baselines

        whole = self.corpus(self.job.cell.source.corpus, self.job.corpus_key)
        secrets = [secret for secret in whole.secrets if secret.kind == kind]

        def make(folder: Path) -> None:
            notes.note("training the floor: classifiers on the text")
            np.save(folder / "guesses.npy", baselines.from_text(whole, secrets, seed=0))

        revision = source_revision(Path(baselines.__file__))
        key = digest({"corpus": self.job.corpus_key, "kind": kind, "revision": revision, "threads": self.job.threads})
        folder = self.obtain("floors", f"{self.job.cell.source.corpus.name}-{kind}", key, make)
        return np.load(folder / "guesses.npy", allow_pickle=False)

    def attacked(self) -> tuple[Record, list[dict[str, Any]]]:
        """Return the cell's record, and what each stage took."""
        from leakboard.stages.cell import Scene, mismatch, mount
        from leakboard.stages.victim import load_publications

        job = self.job
        attack = job.cell.attack.build(self.registry)
        own, auxiliary = self.sides()
        if reason := job.skip or mismatch(attack, own):
            return _record(job, "skipped", reason, checks=own.checks), []
        folder = self.publications()
        published = load_publications(folder)
        floor = self.floor(attack.target) if job.floor and attack.target != "words" else None
        scene = Scene(own, auxiliary, self.victim, lru_cache(self.fitted), published)
        notes.note("attacking")
        with _measured("attack", job.threads) as cost:
            judged = mount(attack, scene, self.names(job.cell.attack.name), floor)
        record = _record(
            job,
            "ok",
            secrets=judged.secrets,
            attack_metric=judged.attack_metric,
            test_size=judged.test_size,
            claim=asdict(published.claim) if published.claim else None,
            note=judged.note,
            checks=own.checks,
            metrics=judged.metrics,
            sentences=[asdict(sentence) for sentence in judged.sentences],
        )
        return record, [*read_costs(self.fitted_folder()), *read_costs(folder), cost]


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
    import transformers

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
