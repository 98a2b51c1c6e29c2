"""An encoder with a head on the task: what every trained document victim is, whatever its encoder and defence.

A defence that acts on the vectors (normalisation, noise) stands between encoder and head; one that acts on the texts
(word dropout) stands before the encoder; one that is trained in adds a penalty, and adversaries that learn beside.
Training itself is in `task_training`: this module describes, and imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from leakboard.interfaces import Corpus, Coverage, Floats, Integers, Texts

if TYPE_CHECKING:
    import torch

    from leakboard.models.training import Adversary, Keep, Vectors


class Encoder(Protocol):
    """A torch module that turns texts into vectors, in two steps so that texts are prepared once."""

    @property
    def dimension(self) -> int:
        """Width of the vectors."""

    @property
    def device(self) -> torch.device:
        """Where the vectors are computed."""

    @property
    def mask(self) -> str:
        """How a hidden word is written."""

    def prepare(self, texts: Sequence[str]) -> list[Any]:
        """Prepare texts, one entry each."""

    def batches(self, prepared: Sequence[Any], generator: torch.Generator | None = None) -> Iterator[list[int]]:
        """Yield the indices of batches: in random order with a generator."""

    def __call__(self, prepared: Sequence[Any]) -> Vectors:
        """Return one vector a prepared text."""

    def documents(self, texts: Sequence[str]) -> Floats:
        """Return one vector a text, float32 (n, d), without gradient."""

    def coverage(self, texts: Sequence[str]) -> Coverage:
        """Return which shares of the texts are treated otherwise than a reader would expect."""

    def save(self, folder: Path) -> None:
        """Write weights (safetensors) and whatever else the encoder needs (JSON, text)."""


@dataclass(frozen=True)
class Recipe:
    """How encoder and head are trained on the task."""

    optimiser: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]
    schedule: Callable[[int, int], float]
    """Factor of the learning rate after this many steps, given the number of steps an epoch."""
    epochs: int
    dropout: float = 0.0
    """Before whatever stands between encoder and head."""
    hidden: int | None = None
    """ReLU units between the vector and the softmax layer; None has no such layer."""
    clipping_norm: float | None = None
    keep: Keep = "best"
    select: Literal["loss", "accuracy"] = "loss"
    """What is best on dev: the lowest loss, or the highest accuracy (the last epoch of those that tie)."""


@dataclass(frozen=True)
class Defence:
    """What is done to texts, vectors and objective while training."""

    vectors: Callable[[Vectors, int], Vectors] = lambda vectors, epoch: vectors
    """Maps a batch of vectors in an epoch (1, 2, ...) to what the head sees; called anew at every step."""
    texts: Callable[[Texts, str], Texts] | None = None
    """Rewrites the texts before every epoch, given how a hidden word is written; None leaves them."""
    adversaries: Sequence[Adversary] = ()
    """Each takes a step on a batch before encoder and head do."""
    task_weight: float = 1.0
    """Factor of the task's cross entropy."""
    penalty: Callable[[Vectors, list[int]], torch.Tensor] | None = None
    """Of the encoder's vectors of some texts of train and their rows: a scalar that is added to the objective."""
    steps_apart: bool = False
    """The penalty is not added: before each step on the objective the encoder takes one on the penalty, by an optimiser
    of its own."""
    criterion: Callable[[float], float] | None = None
    """Maps an epoch's error rate on dev to what is lowest in the epoch to keep; None leaves it to the recipe."""


@dataclass(frozen=True)
class TaskModel:
    """A trained encoder and its head: a softmax layer, with a ReLU layer below it where the recipe has one."""

    encoder: Any
    """An `Encoder`."""
    head: torch.nn.Module

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


class EncoderRecipe(Protocol):
    """How an encoder is built, loaded and trained on the task."""

    @property
    def recipe(self) -> Recipe:
        """How encoder and head are trained."""

    @property
    def candidates(self) -> Sequence[EncoderRecipe]:
        """Recipes to try; the one that does best on dev is kept."""

    def build(self, corpus: Corpus) -> Encoder:
        """Return the encoder as it is before training."""

    def load_encoder(self, folder: Path) -> Encoder:
        """Return what `Encoder.save` wrote."""
