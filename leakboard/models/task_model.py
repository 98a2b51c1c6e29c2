"""Describe how an encoder with a head is trained on the task: encoder, recipe and defence.

The victims that train such models derive from `trainable`. Training itself is in `task_training`.

A defence acts in up to three places: on the texts before the encoder (word dropout), on the vectors between encoder and
head (normalisation, noise), and on the objective (a penalty, and adversaries that are trained at the same time).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from leakboard.interfaces import Coverage, Floats, Texts

if TYPE_CHECKING:
    import torch

    from leakboard.models.training import Adversary, Keep, Vectors


class Encoder(Protocol):
    """A torch module that turns texts into vectors, in two steps so that each text is prepared once."""

    @property
    def dimension(self) -> int:
        """Width of the vectors."""

    @property
    def device(self) -> torch.device:
        """Device that computes the vectors."""

    @property
    def mask(self) -> str:
        """The word that is written in the place of a hidden word."""

    def prepare(self, texts: Sequence[str]) -> list[Any]:
        """Prepare texts (tokenise them, for example), one entry each."""

    def batches(self, prepared: Sequence[Any], generator: torch.Generator | None = None) -> Iterator[list[int]]:
        """Yield the indices of batches, in random order if there is a generator."""

    def __call__(self, prepared: Sequence[Any]) -> Vectors:
        """Return the vectors of a batch of prepared texts, float32 (batch, d)."""

    def documents(self, texts: Sequence[str]) -> Floats:
        """Return one vector a text, float32 (n, d), without gradient."""

    def coverage(self, texts: Sequence[str]) -> Coverage:
        """Return the shares of texts that are cut, or have no known word."""

    def save(self, folder: Path) -> None:
        """Write weights (safetensors), and everything else that loading needs (JSON, text)."""


@dataclass(frozen=True)
class Recipe:
    """How encoder and head are trained on the task."""

    optimiser: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]
    schedule: Callable[[int, int], float]
    """Returns the factor of the learning rate, given the steps taken and the steps of an epoch."""
    epochs: int
    dropout: float = 0.0
    """Rate of dropout of the encoder's vectors."""
    hidden: int | None = None
    """ReLU units between the vector and the softmax layer; None has no such layer."""
    clipping_norm: float | None = None
    keep: Keep = "best"
    select: Literal["loss", "accuracy"] = "loss"
    """The best epoch on dev has the lowest loss, or the highest accuracy (the last epoch of a tie)."""


@dataclass(frozen=True)
class Defence:
    """What a defence does to texts, vectors and objective while training."""

    vectors: Callable[[Vectors, int], Vectors] = lambda vectors, epoch: vectors
    """Maps a batch of vectors in an epoch (1, 2, ...) to the head's input; called anew at every step."""
    texts: Callable[[Texts, str], Texts] | None = None
    """Rewrites the texts before every epoch, given the encoder's mask; None leaves them."""
    adversaries: Sequence[Adversary] = ()
    """Each takes a step on a batch before encoder and head do."""
    task_weight: float = 1.0
    """Factor of the task's cross entropy."""
    penalty: Callable[[Vectors, list[int]], torch.Tensor] | None = None
    """Returns a scalar that is added to the objective, given vectors of some train texts and their rows."""
    steps_apart: bool = False
    """Whether the encoder takes a step on the penalty, by its own optimiser, before each step on the task.

    The penalty is then not added to the objective."""
    criterion: Callable[[float], float] | None = None
    """Maps an epoch's error rate on dev to a number that is lowest in the best epoch; None: as the recipe selects."""


Encode = Callable[[Sequence[int], str], "Vectors"]
"""Encodes rows of a split."""
Batches = Callable[["torch.Generator"], Iterator[list[int]]]
"""Divides the rows of train into random batches that suit the encoder."""
Defend = Callable[[Encoder, Encode, Batches], Defence]
"""Returns the defence of an encoder that is about to be trained."""
