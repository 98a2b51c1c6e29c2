"""Training an encoder and its head on the task, with the defence that a victim brings (`task_model`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus
from leakboard.logs import log_progress
from leakboard.models.task_model import Defence, EncoderRecipe, TaskModel
from leakboard.models.training import Adversary, Vectors, train
from leakboard.randomness import seeded

Defend = Callable[
    [Any, Callable[[Sequence[int], str], Vectors], Callable[[torch.Generator], Iterator[list[int]]]], Defence
]
"""Returns a defence, given the encoder, what encodes rows of a split, and what divides train into random batches."""


def load_task_model(victim: EncoderRecipe, folder: Path) -> TaskModel:
    """Return what `TaskModel.save` wrote."""
    encoder = victim.load_encoder(folder / "encoder")
    state = load_file(folder / "head.safetensors")
    hidden = victim.recipe.hidden
    labels = len(state["bias" if hidden is None else "2.bias"])
    head = _head(encoder.dimension, hidden, labels).to(encoder.device)
    head.load_state_dict(state)
    return TaskModel(encoder, head)


def _head(dimension: int, hidden: int | None, labels: int) -> torch.nn.Module:
    if hidden is None:
        return torch.nn.Linear(dimension, labels)
    return torch.nn.Sequential(torch.nn.Linear(dimension, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, labels))


def fit_task_model(
    victim: EncoderRecipe,
    name: str,
    corpus: Corpus,
    seed: int,
    defend: Defend | None = None,
) -> TaskModel:
    """Train encoder and head on the task labels.

    Args:
        victim: builds the encoder and says how it is trained.
        name: of the plugin, for messages.
        corpus: with train and dev.
        seed: of weights, batches and dropout.
        defend: returns the defence; None: no defence.

    Raises:
        RequestError: no weights, or the corpus has no task label.
    """
    if not corpus.has_labels:
        raise RequestError(f"{name}: {corpus.name} has no task label to train on; sentence_encoder needs none")
    candidates = victim.candidates
    fitted: list[tuple[TaskModel, float]] = []
    for candidate in candidates:
        try:
            with seeded(seed):
                fitted.append(_fit(candidate, corpus, seed, defend or (lambda *_: Defence())))
        except FloatingPointError as error:
            if len(candidates) == 1:
                raise
            log_progress(str(error))
    if not fitted:
        raise FloatingPointError(f"the dev loss is not finite with any of {len(candidates)} recipes")
    model, least = min(fitted, key=lambda entry: entry[1])
    if len(candidates) > 1:
        log_progress(f"kept of {len(candidates)}: {model.encoder.dimension} dimensions, {least:.4f} on dev")
    return model


def _fit(
    victim: EncoderRecipe,
    corpus: Corpus,
    seed: int,
    defend: Defend,
) -> tuple[TaskModel, float]:
    """Return a trained model, and the least of what was found on dev after each epoch."""
    recipe, encoder = victim.recipe, victim.build(corpus)
    assert isinstance(encoder, torch.nn.Module)
    head = _head(encoder.dimension, recipe.hidden, len(corpus.values("label"))).to(encoder.device)
    prepared = {split: encoder.prepare(corpus.texts(split)) for split in ("train", "dev")}
    labels = {split: torch.from_numpy(corpus.column(split, "label")).to(encoder.device) for split in prepared}
    generator = torch.Generator().manual_seed(seed)
    trained = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    optimiser = recipe.optimiser(trained + list(head.parameters()))
    latest: tuple[list[int], Vectors] | None = None
    epoch = 0

    def encode(rows: Sequence[int], split: str) -> Vectors:
        vectors: Vectors = encoder([prepared[split][i] for i in rows])
        return vectors

    defence = defend(encoder, encode, lambda generator: encoder.batches(prepared["train"], generator))
    if defence.penalty and not trained:
        raise RequestError("nothing of the encoder is trained, so a defence that is trained into it has no effect")

    def batches() -> Iterator[list[int]]:
        nonlocal epoch
        epoch += 1
        if defence.texts:
            for split in prepared:
                prepared[split] = encoder.prepare(defence.texts(corpus.texts(split), encoder.mask))
        return encoder.batches(prepared["train"], generator)

    def encoded(batch: list[int]) -> Vectors:
        """Encode a batch once for adversaries and objective: the adversaries' steps leave the encoder as it is."""
        nonlocal latest
        if latest is None or latest[0] is not batch:
            latest = (batch, encode(batch, "train"))
        return latest[1]

    def logits(vectors: Vectors) -> torch.Tensor:
        dropped = torch.nn.functional.dropout(vectors, recipe.dropout, training=head.training)
        scores: torch.Tensor = head(defence.vectors(dropped, epoch))
        return scores

    def loss(batch: list[int]) -> torch.Tensor:
        vectors = encoded(batch)
        value = defence.task_weight * torch.nn.functional.cross_entropy(logits(vectors), labels["train"][batch])
        return value if defence.penalty is None or defence.steps_apart else value + defence.penalty(vectors, batch)

    def against_batches(adversary: Adversary) -> Adversary:
        return replace(adversary, loss=lambda batch: adversary.loss(encoded(batch).detach(), batch))

    def penalty_alone(batch: list[int]) -> torch.Tensor:
        """Return the penalty for a step that changes the encoder: what was encoded before is of no more use."""
        nonlocal latest
        assert defence.penalty
        value, latest = defence.penalty(encoded(batch), batch), None
        return value

    def dev_loss() -> float:
        total = 0.0
        for batch in encoder.batches(prepared["dev"]):
            scores, truth = logits(encode(batch, "dev")), labels["dev"][batch]
            if not scores.isfinite().all():  # one score may still be the largest
                return math.nan
            if recipe.select == "accuracy" or defence.criterion:
                total += (scores.argmax(1) != truth).sum().item()
            else:
                total += torch.nn.functional.cross_entropy(scores, truth, reduction="sum").item()
        mean = total / len(labels["dev"])
        return defence.criterion(mean) if defence.criterion else mean

    adversaries = [against_batches(adversary) for adversary in defence.adversaries]
    if defence.penalty and defence.steps_apart:
        adversaries.append(Adversary(encoder, penalty_alone, recipe.optimiser(trained)))
    steps = sum(1 for _ in encoder.batches(prepared["train"]))
    history = train(
        torch.nn.ModuleDict({"encoder": encoder, "head": head}),
        batches,
        loss,
        dev_loss,
        optimiser=optimiser,
        epochs=recipe.epochs,
        adversaries=adversaries,
        scheduler=torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: recipe.schedule(step, steps)),
        clipping_norm=recipe.clipping_norm,
        keep="best" if defence.criterion else recipe.keep,
        log_epochs=True,
    )
    return TaskModel(encoder, head), min(value for value in history if math.isfinite(value))
