"""The one training loop: minibatch gradient descent that keeps the best epoch on dev, or the last one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch

from leakboard.interfaces import Floats
from leakboard.logs import log_progress

Vectors = torch.Tensor
"""float32 (n, d)."""
Batch = TypeVar("Batch")
Keep = Literal["best", "last"]
"""Which epoch's weights are kept: that of best dev loss, or the last."""


@dataclass(frozen=True)
class Adversary:
    """Learns against what is trained, with parameters of its own; whoever measures privacy trains attackers anew."""

    module: torch.nn.Module
    loss: Callable[..., torch.Tensor]
    """A scalar with gradient: of the vectors of some texts of train, which pass no gradient on, and their rows; in the
    training loop, of a batch."""
    optimiser: torch.optim.Optimizer
    """Of the adversary's parameters; gradients that others sent there are thrown away before."""


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
) -> list[float]:
    """Train ``module`` in place and leave it with the weights of its best epoch, or of its last.

    Args:
        module: what is trained.
        batches: yields the batches of one epoch, in the order of training.
        loss: mean loss of a batch, a scalar with gradient.
        dev_loss: loss on dev, lower is better; called after every epoch in evaluation mode without gradient.
        optimiser: of the module's parameters.
        epochs: passes over the batches, at most.
        adversaries: each takes a step on every batch before the module does.
        patience: stop after this many epochs without a better dev loss; None trains all ``epochs``.
        scheduler: stepped after every batch.
        clipping_norm: largest 2-norm of the whole gradient; None leaves it.
        keep: ``last`` selects nothing on dev, but an epoch whose dev loss is not finite is never kept.
        log_epochs: tell the user about every epoch.

    Returns:
        The dev loss after each epoch.

    Raises:
        FloatingPointError: the dev loss is not finite in any epoch.
    """
    history: list[float] = []
    best: dict[str, Any] | None = None
    with _flushed_subnormals():
        for epoch in range(1, epochs + 1):
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
            finite = [value if math.isfinite(value) else math.inf for value in history]
            if math.isfinite(history[-1]) and (keep == "last" or history[-1] <= min(finite)):
                best = copy.deepcopy(module.state_dict())
            if patience is not None and epoch - 1 - finite.index(min(finite)) >= patience:
                break
    if best is None:
        raise FloatingPointError(f"the dev loss is not finite in any of {len(history)} epochs")
    module.load_state_dict(best)
    return history


def shuffled(count: int, batch_size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Yield the indices of an epoch's batches, int64 (at most ``batch_size``,), in random order."""
    yield from torch.randperm(count, generator=generator).split(batch_size)


def of_like_length(
    lengths: Sequence[int], batch_size: int, generator: torch.Generator | None = None
) -> Iterator[list[int]]:
    """Yield batches of indices of texts of like length: little is computed on padding.

    With a generator the texts are shuffled, sorted within pools of 32 batches, and the batches shuffled again.
    """
    sizes = np.array(lengths)
    if not len(sizes):
        return
    if generator is None:
        order = np.argsort(-sizes, kind="stable")
        yield from (part.tolist() for part in np.split(order, range(batch_size, len(order), batch_size)))
        return
    order = torch.randperm(len(sizes), generator=generator).numpy()
    pools = np.split(order, range(32 * batch_size, len(order), 32 * batch_size))
    parts = [
        part
        for pool in pools
        for part in np.split(pool[np.argsort(-sizes[pool], kind="stable")], range(batch_size, len(pool), batch_size))
    ]
    for index in torch.randperm(len(parts), generator=generator).tolist():
        yield parts[index].tolist()


@torch.no_grad()
def encode_all(encoder: Any, texts: Sequence[str]) -> Floats:
    """Return one vector a text, float32 (n, d), from an `Encoder` (see `task_model`) in evaluation mode."""
    encoder.eval()
    prepared = encoder.prepare(texts)
    vectors = np.empty((len(prepared), encoder.dimension), np.float32)
    for batch in encoder.batches(prepared):
        vectors[batch] = encoder([prepared[i] for i in batch]).cpu().numpy()
    return vectors


class _flushed_subnormals:
    """Treat subnormal numbers as zero while training.

    With inputs of large scale many units die, Adam's moments of their weights decay into subnormal numbers, and
    arithmetic on those is many times slower. The switch reaches the calling thread only, not the others of torch's
    pool; `_zero_subnormals` does the rest.
    """

    def __enter__(self) -> None:
        torch.set_flush_denormal(True)

    def __exit__(self, *_: object) -> None:
        torch.set_flush_denormal(False)


def _zero_subnormals(optimiser: torch.optim.Optimizer) -> None:
    """Set subnormal numbers of the optimiser's state to zero, whichever thread left them."""
    for state in optimiser.state.values():
        for value in state.values():
            if torch.is_tensor(value) and value.is_floating_point():
                value.masked_fill_(value.abs() < torch.finfo(value.dtype).tiny, 0.0)
