"""Share between cells: guesses of text classifiers, arrays computed from whole splits, and attackers' models."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakboard.execution import devices
from leakboard.execution.reservations import Reservation, ReservedError
from leakboard.execution.resources import provided
from leakboard.interfaces import Corpus, FittedVictim, Integers, SecretKind, Victim
from leakboard.logs import log_progress
from leakboard.store import ARRAYS, Store, digest, folder_name
from leakboard.suite import revisions
from leakboard.suite.plan import Job, identity_of
from leakboard.workspace import Sharing, digest_of_texts, sharing

POLL_SECONDS = 0.5
"""Polling interval while another process makes an artefact."""


@dataclass
class Shared:
    """The artefacts that a job shares with other jobs."""

    job: Job
    store: Store
    warn: Callable[[str], None]
    whole: Callable[[], Corpus]
    """Returns the dataset of the cell."""
    sides: Callable[[], Sequence[Corpus | None]]
    """Returns the victim's and the attacker's part of the dataset."""
    since: float = 0.0
    """Artefacts from before this time are made again (seconds)."""
    waited: float = field(default=0.0, init=False)
    """Time that this job has waited for other processes (seconds)."""

    def text_guesses(self, kind: SecretKind) -> Integers:
        """Return guesses of text classifiers for the n test texts, int64 (n, number of secrets of this kind)."""
        import numpy as np

        from leakboard.metrics import baselines

        job, whole = self.job, self.whole()
        secrets = [secret for secret in whole.secrets if secret.kind == kind]

        def make(folder: Path) -> None:
            log_progress("training classifiers on the text")
            with provided(job.engine_needs):
                np.save(folder / "guesses.npy", baselines.from_text(whole, secrets, seed=0))

        revision, threads = revisions.TEXT_CLASSIFIERS, job.engine_needs.threads
        key = digest({"corpus": job.corpus_key, "kind": kind, "revision": revision, "threads": threads})
        folder = self._obtain("text classifiers", f"{job.cell.source.corpus.name}-{kind}", key, make)
        guesses: Integers = np.load(folder / "guesses.npy", allow_pickle=False)
        return guesses

    def arrays(self) -> AbstractContextManager[None]:
        """Let a stage share with other stages the arrays that it computes from all texts of a split."""
        return sharing(Sharing(self._array, lru_cache(self._texts)))

    def _array(self, kind: str, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        import numpy as np

        def save(folder: Path) -> None:
            np.save(folder / "array.npy", make())

        readable = f"{self.job.cell.source.corpus.name}-{kind}"
        folder = self._obtain(ARRAYS, readable, digest({"kind": kind, **identity}), save)
        with suppress(OSError):
            os.utime(folder)  # `Store.sweep` removes arrays that were not touched for a week
        return np.load(folder / "array.npy", mmap_mode="c", allow_pickle=False)

    def _texts(self) -> dict[str, Sequence[str]]:
        splits = [side.texts(split) for side in self.sides() if side for split in side.splits]
        return {digest_of_texts(texts): texts.distinct() for texts in splits}

    def shadow(self, recipe: Victim, corpus: Corpus, seed: int) -> FittedVictim:
        """Return a model that a victim's recipe trains on the attacker's own texts.

        Attacks with the same recipe, texts and seed share the model.
        """
        job, trained, name = self.job, recipe.training_config(), self.job.cell.victim.name
        identity = {
            "recipe": identity_of(name, trained, trained.fingerprint()),
            "texts": digest({split: part.to_dict() for split, part in corpus.splits.items()}),
            "seed": seed,
            "threads": job.attack_needs.threads,
            "device": devices.kind(),
            "fit": revisions.FIT,
        }

        def make(folder: Path) -> None:
            log_progress("training the attacker's own model")
            trained.fit(corpus, seed).save(folder)

        return recipe.load(self._obtain("shadows", job.victim_slug, digest(identity), make))

    def _obtain(self, kind: str, readable: str, key: str, make: Callable[[Path], None]) -> Path:
        """Return the folder of an artefact; wait if another process is making the artefact."""
        work = Reservation(self.store.root / "reservations" / folder_name(f"{kind} {readable}", key), uuid.uuid4().hex)
        code = {name: made for name, made in self.job.code.items() if not name.startswith("attacks/")}
        while not self.store.has(kind, readable, key, self.since):
            with suppress(ReservedError), work.held():
                if not self.store.has(kind, readable, key, self.since):
                    self.store.discard(self.store.path(kind, readable, key))
                return self.store.obtain(kind, readable, key, make, self.warn, code)
            time.sleep(POLL_SECONDS)
            self.waited += POLL_SECONDS
        return self.store.obtain(kind, readable, key, make, self.warn, code)
