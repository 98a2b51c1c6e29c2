"""What cells on one corpus share beside their victims: computed once, whichever process, attack or suite asks first.

These are the guesses of classifiers on the text, arrays that are made of whole splits (the states that leave frozen
layers, the vectors that a mechanism is given), and the models that attackers train on their own texts.
"""

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

PAUSE = 0.5
"""How often is looked whether another process has made what this one waits for (seconds)."""


@dataclass
class Shared:
    """What a job shares with others."""

    job: Job
    store: Store
    warn: Callable[[str], None]
    whole: Callable[[], Corpus]
    """Returns the cell's dataset."""
    sides: Callable[[], Sequence[Corpus | None]]
    """Returns the victim's part of it, and the attacker's; None where that is another dataset."""
    since: float = 0.0
    """What was made before is made anew (seconds)."""
    waited: float = field(default=0.0, init=False)
    """How long this job has waited for other processes (seconds)."""

    def text_guesses(self, kind: SecretKind) -> Integers:
        """Return the guesses of classifiers trained on the text, int64 (n, secrets of the kind)."""
        import numpy as np

        from leakboard.metrics import baselines

        whole = self.whole()
        secrets = [secret for secret in whole.secrets if secret.kind == kind]

        def make(folder: Path) -> None:
            log_progress("training classifiers on the text")
            with provided(self.job.own_needs):
                np.save(folder / "guesses.npy", baselines.from_text(whole, secrets, seed=0))

        folder = self._obtain("text classifiers", *self._text_classifiers(kind), make)
        guesses: Integers = np.load(folder / "guesses.npy", allow_pickle=False)
        return guesses

    def _text_classifiers(self, kind: SecretKind) -> tuple[str, str]:
        """Return name and identity of the guesses of classifiers trained on the text."""
        revision, threads = revisions.TEXT_CLASSIFIERS, self.job.own_needs.threads
        key = digest({"corpus": self.job.corpus_key, "kind": kind, "revision": revision, "threads": threads})
        return f"{self.job.cell.source.corpus.name}-{kind}", key

    def arrays(self) -> AbstractContextManager[None]:
        """Let a stage share the arrays that it makes of the texts of whole splits, victim's or attacker's."""
        return sharing(Sharing(self._array, lru_cache(self._texts)))

    def _array(self, kind: str, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        import numpy as np

        def save(folder: Path) -> None:
            np.save(folder / "array.npy", make())

        readable = f"{self.job.cell.source.corpus.name}-{kind}"
        folder = self._obtain(ARRAYS, readable, digest({"kind": kind, **identity}), save)
        with suppress(OSError):
            os.utime(folder)  # arrays that nobody uses any more are swept up
        return np.load(folder / "array.npy", mmap_mode="c", allow_pickle=False)

    def _texts(self) -> frozenset[str]:
        return frozenset(digest_of_texts(side.texts(split)) for side in self.sides() if side for split in side.splits)

    def shadow(self, recipe: Victim, corpus: Corpus, seed: int) -> FittedVictim:
        """Return a model that is trained by a victim's recipe on the attacker's own texts.

        Attacks whose recipe, texts and seed are the same share one; it is saved and loaded as fitted victims are. What
        texts an attacker has may depend on its options, so that they are told by their content.
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
        """Return the folder of an artefact; where another process is making it, wait for that.

        One that was made before the run, where it takes over none of these, is made anew.
        """
        work = Reservation(self.store.root / "reservations" / folder_name(f"{kind} {readable}", key), uuid.uuid4().hex)
        code = {name: made for name, made in self.job.code.items() if not name.startswith("attacks/")}
        while not self.store.has(kind, readable, key, self.since):
            with suppress(ReservedError), work.held():
                if not self.store.has(kind, readable, key, self.since):
                    self.store.discard(self.store.path(kind, readable, key))
                return self.store.obtain(kind, readable, key, make, self.warn, code)
            time.sleep(PAUSE)
            self.waited += PAUSE
        return self.store.obtain(kind, readable, key, make, self.warn, code)
