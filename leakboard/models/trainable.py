"""The base class of victims that train an encoder on the task; `task_training` trains it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Integers, Texts, Victim
from leakboard.models.task_model import Encoder, Recipe, TaskModel


@dataclass(frozen=True)
class FittedOnTask(FittedVictim):
    """A fitted victim that is a task model; one that adds to its vectors publishes documents of its own."""

    model: TaskModel

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the encoder's vectors; nothing is random."""
        return self.model.encoder.documents(texts)

    def coverage(self, texts: Texts) -> Coverage:
        """Return the shares of texts that the encoder treats otherwise than a reader would expect."""
        return self.model.encoder.coverage(texts)

    def predict(self, vectors: Floats) -> Integers:
        """Return the head's labels."""
        return self.model.predict(vectors)

    def save(self, folder: Path) -> None:
        """Write encoder and head (safetensors, JSON)."""
        self.model.save(folder)


class TrainableVictim(Victim):
    """A victim that trains an encoder on the task; victims that defend the encoder build on it.

    A plugin adds its options, ``build``, ``load_encoder`` and ``recipe``.
    """

    fitted: ClassVar[type[FittedOnTask]] = FittedOnTask
    """What ``fit`` returns."""

    @abstractmethod
    def build(self, corpus: Corpus) -> Encoder:
        """Return the encoder as it is before training; it may read the texts of train.

        What is to stay as it is requires no gradient.
        """

    @abstractmethod
    def load_encoder(self, folder: Path) -> Encoder:
        """Return what `Encoder.save` wrote."""

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """How it is trained."""

    @property
    def candidates(self) -> Sequence[TrainableVictim]:
        """Victims of its kind, of which the one that does best on dev is kept."""
        return (self,)

    def fit(self, corpus: Corpus, seed: int) -> FittedOnTask:
        """Train encoder and head on the task labels.

        Raises:
            RequestError: no weights, or the corpus has no task label.
        """
        from leakboard.models.task_training import fit_task_model

        return self.fitted(fit_task_model(self, type(self).__module__.rpartition(".")[2], corpus, seed))

    def load(self, folder: Path) -> FittedOnTask:
        """Return a saved encoder and its head."""
        from leakboard.models.task_training import load_task_model

        return self.fitted(load_task_model(self, folder))
