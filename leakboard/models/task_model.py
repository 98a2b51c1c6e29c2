"""An encoder with a head on the task: what every trained document victim is, whatever its encoder and defence.

A defence that acts on the vectors (normalisation, noise) stands between encoder and head; one that acts on the texts
(word dropout) stands before the encoder; one that is trained in adds a penalty, and adversaries that learn beside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Floats, Integers, PublishedWords, Texts
from leakboard.logs import log_progress
from leakboard.models.training import Keep, Opponent, train
from leakboard.randomness import seeded

Vectors = torch.Tensor
"""float32 (n, d)."""


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

    def coverage(self, texts: Sequence[str]) -> dict[str, float]:
        """Return the shares of texts that it treats otherwise than a reader would expect."""

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


class TrainableVictim(Protocol):
    """A victim whose encoder other victims may build on: its options are those of the encoder and of its training.

    It may have ``candidates``: victims of its kind, of which the one that does best on dev is kept.
    """

    def fingerprint(self) -> str:
        """Identify pretrained weights; empty where there are none."""

    def build(self, corpus: Corpus) -> Encoder:
        """Return the encoder as it is before training; it may read the texts of train.

        What is to stay as it is requires no gradient.
        """

    def load_encoder(self, folder: Path) -> Encoder:
        """Return what `Encoder.save` wrote."""

    @property
    def recipe(self) -> Recipe:
        """How it is trained."""


@dataclass(frozen=True)
class Adversary:
    """Learns against the encoder while it is trained; whoever measures privacy trains attackers of their own."""

    module: torch.nn.Module
    loss: Callable[[Vectors, list[int]], torch.Tensor]
    """Of the vectors of some texts of train, which pass no gradient on, and their rows: a scalar."""
    optimiser: torch.optim.Optimizer


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
    criterion: Callable[[float], float] | None = None
    """Maps an epoch's error rate on dev to what is lowest in the epoch to keep; None leaves it to the recipe."""


Defend = Callable[
    [Any, Callable[[Sequence[int], str], Vectors], Callable[[torch.Generator], Iterator[list[int]]]], Defence
]
"""Returns a defence, given the encoder, what encodes rows of a split, and what divides train into random batches."""


@dataclass(frozen=True)
class TaskModel:
    """A trained encoder and its head: a softmax layer, with a ReLU layer below it where the recipe has one."""

    encoder: Any
    """An `Encoder`."""
    head: torch.nn.Module

    @torch.no_grad()
    def predict(self, vectors: Floats) -> Integers:
        """Return the head's labels, int64 (n,)."""
        inputs = torch.from_numpy(np.ascontiguousarray(vectors)).to(self.encoder.device)
        return self.head(inputs).argmax(1).cpu().numpy()

    def save(self, folder: Path) -> None:
        """Write encoder and head (safetensors, JSON)."""
        self.encoder.save(folder / "encoder")
        save_file(self.head.state_dict(), folder / "head.safetensors")


@dataclass(frozen=True)
class FittedOnTask:
    """A fitted victim that is a task model; one that adds to its vectors publishes documents of its own."""

    model: TaskModel

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the encoder's vectors; nothing is random."""
        return self.model.encoder.documents(texts)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Raise: not every encoder has vectors of words, and those of a private victim would not be private."""
        raise RequestError("this victim publishes documents only")

    def coverage(self, texts: Texts) -> dict[str, float]:
        """Return the shares of texts that the encoder treats otherwise than a reader would expect."""
        return self.model.encoder.coverage(texts)

    def predict(self, vectors: Floats) -> Integers:
        """Return the head's labels."""
        return self.model.predict(vectors)

    def save(self, folder: Path) -> None:
        """Write encoder and head (safetensors, JSON)."""
        self.model.save(folder)


def load_task_model(victim: TrainableVictim, folder: Path) -> TaskModel:
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
    victim: TrainableVictim,
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
    candidates = getattr(victim, "candidates", (victim,))
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
    victim: TrainableVictim,
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
        return value if defence.penalty is None else value + defence.penalty(vectors, batch)

    def opponent(adversary: Adversary) -> Opponent[list[int]]:
        return Opponent(lambda batch: adversary.loss(encoded(batch).detach(), batch), adversary.optimiser)

    def dev_loss() -> float:
        total = 0.0
        for batch in encoder.batches(prepared["dev"]):
            scores, truth = logits(encode(batch, "dev")), labels["dev"][batch]
            if not scores.isfinite().all():  # which is the largest could still be told
                return math.nan
            if recipe.select == "accuracy" or defence.criterion:
                total += (scores.argmax(1) != truth).sum().item()
            else:
                total += torch.nn.functional.cross_entropy(scores, truth, reduction="sum").item()
        found = total / len(labels["dev"])
        return defence.criterion(found) if defence.criterion else found

    steps = sum(1 for _ in encoder.batches(prepared["train"]))
    history = train(
        torch.nn.ModuleDict({"encoder": encoder, "head": head}),
        batches,
        loss,
        dev_loss,
        optimiser=optimiser,
        epochs=recipe.epochs,
        opponents=[opponent(adversary) for adversary in defence.adversaries],
        scheduler=torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: recipe.schedule(step, steps)),
        clipping_norm=recipe.clipping_norm,
        keep="best" if defence.criterion else recipe.keep,
        log_epochs=True,
    )
    return TaskModel(encoder, head), min(value for value in history if math.isfinite(value))
