"""Train any torch module by minibatch gradient descent, and keep the best epoch on dev, or the last one.

This is the only training loop of encoders, attackers and decoders; skip-gram has its own (`skip_gram`).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import torch

from leakboard.interfaces import Integers
from leakboard.logs import log_progress
from leakboard.models import training_state
from leakboard.models.training_state import TrainingState

Vectors = torch.Tensor
"""float32 (n, d)."""
Batch = TypeVar("Batch")
Keep = Literal["best", "last"]
"""Epoch to keep the weights of: the one of best dev loss, or the last."""


@dataclass(frozen=True)
class Adversary:
    """A module that is trained against another one. Privacy is measured by newly trained attackers, not by it."""

    module: torch.nn.Module
    loss: Callable[..., torch.Tensor]
    """Returns a scalar with gradient.

    In a `Defence` its arguments are detached vectors of some train texts, and their rows; in `train` it is a batch."""
    optimiser: torch.optim.Optimizer
    """Optimiser of the adversary's parameters. Gradients from the other module's loss are dropped before a step."""


def train(
    module: torch.nn.Module,
    batches: Callable[[], Iterable[Batch]],
    loss: Callable[[Batch], torch.Tensor],
    dev_loss: Callable[[], float],
    *,
    optimiser: torch.optim.Optimizer,
    epochs: int,
    adversaries: Sequence[Adversary] = (),
    patience: int | None = None,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
    clipping_norm: float | None = None,
    keep: Keep = "best",
    log_epochs: bool = False,
    state: TrainingState | None = None,
) -> list[float]:
    """Train ``module`` in place, and leave it for evaluation with the weights of its best epoch, or of its last.

    Args:
        module: trained in place.
        batches: yields the batches of one epoch, in the order of training.
        loss: mean loss of a batch, a scalar with gradient.
        dev_loss: loss on dev, lower is better; called after every epoch in evaluation mode without gradient.
        optimiser: of the module's parameters.
        epochs: most passes over the batches.
        adversaries: each takes a step on every batch before the module does.
        patience: stop after this many epochs without a better dev loss; None trains all ``epochs``.
        scheduler: stepped after every batch.
        clipping_norm: largest 2-norm of the whole gradient; None does not clip.
        keep: ``last`` selects nothing on dev, but never keeps an epoch with a dev loss that is not finite.
        log_epochs: log the dev loss of every epoch.
        state: where the state is saved after epochs, and resumed from; None saves nothing. Adversaries are no part of
            it.

    Returns:
        The dev loss after each epoch.

    Raises:
        FloatingPointError: the dev loss is not finite in any epoch.
    """
    history, kept = state.load() if state else ([], None)
    saved = time.monotonic()
    with _flushed_subnormals():
        for epoch in range(len(history) + 1, epochs + 1):
            if patience is not None and len(history) - _best_epoch(history) >= patience:
                break
            module.train()
            for batch in batches():
                for adversary in adversaries:
                    adversary.optimiser.zero_grad(set_to_none=True)
                    adversary.loss(batch).backward()
                    adversary.optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                value = loss(batch)
                value.backward()
                if clipping_norm is not None:
                    torch.nn.utils.clip_grad_norm_(module.parameters(), clipping_norm)
                optimiser.step()
                if scheduler:
                    scheduler.step()
            module.eval()
            with torch.no_grad():
                history.append(dev_loss())
            for stepped in (optimiser, *(adversary.optimiser for adversary in adversaries)):
                _zero_subnormals(stepped)
            if log_epochs:
                log_progress(f"epoch {epoch}/{epochs}: {history[-1]:.4f} on dev (lower is better)")
            is_least = history[-1] == history[_best_epoch(history) - 1]
            if math.isfinite(history[-1]) and (keep == "last" or is_least):
                kept = copy.deepcopy(module.state_dict())
            if state and time.monotonic() - saved > training_state.SAVE_SECONDS:
                state.save(history, kept)
                saved = time.monotonic()
    if kept is None:
        raise FloatingPointError(f"the dev loss is not finite in any of {len(history)} epochs")
    module.load_state_dict(kept)
    module.eval()  # also after a saved state with all epochs
    return history


def _best_epoch(history: Sequence[float]) -> int:
    """Return the first epoch with the least finite dev loss; without one, 1."""
    finite = [(loss, epoch) for epoch, loss in enumerate(history, 1) if math.isfinite(loss)]
    return min(finite)[1] if finite else 1


def passes_for(least_steps: int, count: int, batch_size: int) -> int:
    """Return how many passes over ``count`` texts make ``least_steps`` steps: 1 unless the texts are few."""
    return math.ceil(least_steps / math.ceil(count / batch_size))


def limit_remark(history: Sequence[float], epochs: int) -> str:
    """Return a remark if training ended at its limit of epochs while the dev loss still fell; else an empty string."""
    at_limit = len(history) == epochs and history[-1] <= min(history)
    return f"; the dev loss still fell in the last of {epochs} passes" if at_limit else ""


def shuffled(count: int, batch_size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield the indices of an epoch's batches, int64 (at most ``batch_size``,), in random order."""
    yield from torch.randperm(count, generator=generator).split(batch_size)


def of_like_length(
    lengths: Sequence[int], batch_size: int, generator: torch.Generator | None = None
) -> Iterator[list[int]]:
    """Yield batches of indices of texts of similar length, so that little is computed on padding.

    With a generator, the texts are shuffled, sorted within pools of 32 batches, and the batches are shuffled.
    """
    sizes = np.array(lengths)
    if not len(sizes):
        return

    def sorted_batches(indices: Integers) -> list[Integers]:
        longest_first = indices[np.argsort(-sizes[indices], kind="stable")]
        return np.split(longest_first, range(batch_size, len(indices), batch_size))

    if generator is None:
        batches = sorted_batches(np.arange(len(sizes)))
    else:
        shuffled_indices = torch.randperm(len(sizes), generator=generator).numpy()
        pools = np.split(shuffled_indices, range(32 * batch_size, len(sizes), 32 * batch_size))
        in_order = [batch for pool in pools for batch in sorted_batches(pool)]
        batches = [in_order[i] for i in torch.randperm(len(in_order), generator=generator).tolist()]
    yield from (batch.tolist() for batch in batches)


@contextmanager
def _flushed_subnormals() -> Iterator[None]:
    """Treat subnormal numbers as zero while training.

    Inputs of large scale kill many units. Adam's moments of their weights decay into subnormal numbers, on which
    arithmetic is many times slower. The switch reaches the calling thread only, not the other threads of torch's pool;
    `_zero_subnormals` does the rest.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _zero_subnormals(optimiser: torch.optim.Optimizer) -> None:
    """Set subnormal numbers of the optimiser's state to zero, in whichever thread they arose."""
    for state in optimiser.state.values():
        for value in state.values():
            if torch.is_tensor(value) and value.is_floating_point():
                value.masked_fill_(value.abs() < torch.finfo(value.dtype).tiny, 0.0)
