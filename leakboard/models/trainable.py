"""Derive victims that train an encoder and its head on the task (`task_model`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Integers, Texts, Victim
from leakboard.logs import log_progress
from leakboard.models.task_model import Defence, Defend, Encoder, Recipe, TaskModel
from leakboard.randomness import seeded


@dataclass(frozen=True)
class FittedOnTask(FittedVictim):
    """A fitted victim that publishes the vectors of a task model; a defence of the vectors overrides that."""

    model: TaskModel

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the encoder's vectors; nothing is random."""
        return self.model.encoder.documents(texts)

    def coverage(self, texts: Texts) -> Coverage:
        """Return the encoder's shares of texts that are cut, or have no known word."""
        return self.model.encoder.coverage(texts)

    def predict(self, vectors: Floats) -> Integers:
        """Return the head's labels."""
        return self.model.predict(vectors)

    def save(self, folder: Path) -> None:
        """Write encoder and head (safetensors, JSON)."""
        self.model.save(folder)


class TrainableVictim(Victim):
    """A victim that trains an encoder on the task. Defences build on it by `fit_task_model`.

    A plugin adds its options, ``build``, ``load_encoder`` and ``recipe``.
    """

    fitted: ClassVar[type[FittedOnTask]] = FittedOnTask
    """The type that ``fit`` returns."""

    @abstractmethod
    def build(self, corpus: Corpus) -> Encoder:
        """Return the encoder before training; it may read the texts of train.

        Parameters that require no gradient are not trained.
        """

    @abstractmethod
    def load_encoder(self, folder: Path) -> Encoder:
        """Return the encoder that `Encoder.save` wrote."""

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """How encoder and head are trained."""

    @property
    def candidates(self) -> Sequence[TrainableVictim]:
        """Victims to train; the best one on dev is kept."""
        return (self,)

    def fit(self, corpus: Corpus, seed: int) -> FittedOnTask:
        """Train encoder and head on the task labels.

        Raises:
            RequestError: there are no weights, or the corpus has no task label.
        """
        name = type(self).__module__.rpartition(".")[2]
        return self.fitted(self.fit_task_model(name, corpus, seed))

    def load(self, folder: Path) -> FittedOnTask:
        """Return a saved encoder and its head."""
        return self.fitted(TaskModel.load(self.load_encoder(folder / "encoder"), self.recipe.hidden, folder))

    def fit_task_model(self, name: str, corpus: Corpus, seed: int, defend: Defend = lambda *_: Defence()) -> TaskModel:
        """Train encoder and head on the task labels, under a defence.

        Args:
            name: of the plugin, for messages.
            corpus: with train and dev.
            seed: of weights, batches and dropout.
            defend: returns the defence; by default there is none.

        Raises:
            RequestError: there are no weights, or the corpus has no task label.
            FloatingPointError: the dev loss is not finite in any epoch of any candidate.
        """
        from leakboard.models.task_training import train_on_task  # imports torch

        if not corpus.has_labels:
            raise RequestError(f"{name}: {corpus.name} has no task label to train on; sentence_encoder needs none")
        best, least, candidates = None, math.inf, self.candidates
        for candidate in candidates:
            try:
                with seeded(seed):
                    model, value = train_on_task(candidate.build(corpus), candidate.recipe, corpus, seed, defend)
            except FloatingPointError as error:
                if len(candidates) == 1:
                    raise
                log_progress(str(error))
                continue
            if value < least:
                best, least = model, value
        if best is None:
            raise FloatingPointError(f"the dev loss is not finite with any of {len(candidates)} recipes")
        if len(candidates) > 1:
            log_progress(f"best of {len(candidates)} recipes: {best.encoder.dimension} dimensions, {least:.4f} on dev")
        return best
