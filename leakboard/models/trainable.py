"""Derive victims that train an encoder and its head on the task."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Integers, Texts, Victim
from leakboard.logs import log_progress
from leakboard.models.recipe import Defence, Defend, Recipe
from leakboard.randomness import seeded

if TYPE_CHECKING:
    import torch

    from leakboard.models.encoder import Encoder


@dataclass(frozen=True)
class FittedOnTask(FittedVictim):
    """A trained encoder and its head. A victim that changes the vectors overrides ``publish_documents``."""

    encoder: Any
    """An `Encoder`."""
    head: torch.nn.Module

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the encoder's vectors; nothing is random."""
        return self.encoder.documents(texts)

    def coverage(self, texts: Texts) -> Coverage:
        """Return the encoder's shares of texts that are cut, or have no known word."""
        return self.encoder.coverage(texts)

    def predict(self, vectors: Floats) -> Integers:
        """Return the head's labels, int64 (n,)."""
        import torch

        inputs = torch.from_numpy(np.ascontiguousarray(vectors)).to(self.encoder.device)
        with torch.no_grad():
            return self.head(inputs).argmax(1).cpu().numpy()

    def save(self, folder: Path) -> None:
        """Write encoder and head (safetensors, JSON)."""
        from safetensors.torch import save_file

        self.encoder.save(folder / "encoder")
        save_file(self.head.state_dict(), folder / "head.safetensors")


class TrainableVictim(Victim):
    """A victim that trains an encoder on the task. Victims that defend the encoder call its ``fit_on_task``.

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
        """Train encoder and head on the task labels, without a defence."""
        return self.fit_on_task(type(self).__module__.rpartition(".")[2], corpus, seed, lambda *_: Defence())

    def load(self, folder: Path) -> FittedOnTask:
        """Return a saved encoder and its head."""
        from safetensors.torch import load_file

        from leakboard.models.task_training import new_head

        encoder, hidden = self.load_encoder(folder / "encoder"), self.recipe.hidden
        state = load_file(folder / "head.safetensors")
        head = new_head(encoder, hidden, labels=len(state["bias" if hidden is None else "2.bias"]))
        head.load_state_dict(state)
        return self.fitted(encoder, head)

    def fit_on_task(self, name: str, corpus: Corpus, seed: int, defend: Defend) -> FittedOnTask:
        """Train encoder and head on the task labels, under a defence.

        Args:
            name: of the plugin, for messages.
            corpus: with train and dev.
            seed: of weights, batches and dropout.
            defend: returns the defence.

        Raises:
            RequestError: there are no weights, or the corpus has no task label.
            FloatingPointError: the dev loss is not finite in any epoch of any candidate.
        """
        from leakboard.models.task_training import train_on_task

        if not corpus.has_labels:
            raise RequestError(f"{name}: {corpus.name} has no task label to train on; sentence_encoder needs none")
        best, least, candidates = None, math.inf, self.candidates
        for candidate in candidates:
            try:
                with seeded(seed):
                    encoder = candidate.build(corpus)
                    head, value = train_on_task(encoder, candidate.recipe, corpus, seed, defend)
            except FloatingPointError as error:
                if len(candidates) == 1:
                    raise
                log_progress(str(error))
                continue
            if value < least:
                best, least = self.fitted(encoder, head), value
        if best is None:
            raise FloatingPointError(f"the dev loss is not finite with any of {len(candidates)} recipes")
        if len(candidates) > 1:
            log_progress(f"best of {len(candidates)} recipes: {best.encoder.dimension} dimensions, {least:.4f} on dev")
        return best
