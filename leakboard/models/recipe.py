"""Describe how an encoder with a head is trained on the task: by a recipe, and under a defence.

The victims that train such models derive from `trainable`. Training itself is in `task_training`.

A defence acts in up to three places: on the texts before the encoder (word dropout), on the vectors between encoder and
head (normalisation, noise), and on the objective (a penalty, and adversaries that are trained at the same time).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leakboard.interfaces import Texts

if TYPE_CHECKING:
    import torch

    from leakboard.models.encoder import Encoder
    from leakboard.models.training import Adversary, Keep, Vectors


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
Defend = Callable[["Encoder", Encode, Batches], Defence]
"""Returns the defence of an encoder that is about to be trained."""
