"""Train an encoder and its head on the task, under the defence of a victim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy, dropout

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus
from leakboard.models.encoder import Encoder
from leakboard.models.recipe import Defend, Recipe
from leakboard.models.training import Adversary, Vectors, train


def train_on_task(
    encoder: Encoder, recipe: Recipe, corpus: Corpus, seed: int, defend: Defend
) -> tuple[torch.nn.Module, float]:
    """Train encoder and head; return the head, and the least finite number that selection saw on dev.

    The encoder is trained in place. The seed is that of the batches; torch's global generator draws weights and
    dropout.

    Raises:
        RequestError: the defence has a penalty, but no parameter of the encoder is trained.
        FloatingPointError: the dev loss is not finite in any epoch.
    """
    objective = _Objective(encoder, recipe, corpus, seed, defend)
    defence, head = objective.defence, objective.head
    trained = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    if defence.penalty and not trained:
        raise RequestError("nothing of the encoder is trained, so a defence that is trained into it has no effect")
    optimiser = recipe.optimiser([*trained, *head.parameters()])
    adversaries = [objective.on_batches(adversary) for adversary in defence.adversaries]
    if defence.penalty and defence.steps_apart:
        adversaries.append(Adversary(encoder, objective.penalty_alone, recipe.optimiser(trained)))
    steps = sum(1 for _ in encoder.batches(objective.prepared["train"]))
    history = train(
        torch.nn.ModuleDict({"encoder": encoder, "head": head}),
        objective.batches,
        objective.loss,
        objective.dev_loss,
        optimiser=optimiser,
        epochs=recipe.epochs,
        adversaries=adversaries,
        scheduler=torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: recipe.schedule(step, steps)),
        clipping_norm=recipe.clipping_norm,
        keep="best" if defence.criterion else recipe.keep,
        log_epochs=True,
    )
    return head, min(value for value in history if math.isfinite(value))


def new_head(encoder: Encoder, hidden: int | None, labels: int) -> torch.nn.Module:
    """Return an untrained head: a softmax layer, above a ReLU layer if there are ``hidden`` units."""
    if hidden is None:
        return torch.nn.Linear(encoder.dimension, labels).to(encoder.device)
    layers = torch.nn.Linear(encoder.dimension, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, labels)
    return torch.nn.Sequential(*layers).to(encoder.device)


class _Objective:
    """The losses of one training, and the state that they share: prepared texts, epoch, latest encoded batch."""

    def __init__(self, encoder: Encoder, recipe: Recipe, corpus: Corpus, seed: int, defend: Defend):
        self.encoder, self.recipe, self.corpus = encoder, recipe, corpus
        self.head = new_head(encoder, recipe.hidden, len(corpus.values("label")))
        self.prepared = {split: encoder.prepare(corpus.texts(split)) for split in ("train", "dev")}
        self.labels = {
            split: torch.from_numpy(corpus.column(split, "label")).to(encoder.device) for split in self.prepared
        }
        self.generator = torch.Generator().manual_seed(seed)
        self.epoch = 0
        self.latest: tuple[list[int], Vectors] | None = None
        self.defence = defend(
            encoder, self.encode, lambda generator: encoder.batches(self.prepared["train"], generator)
        )

    def encode(self, rows: Sequence[int], split: str) -> Vectors:
        """Encode rows of a split."""
        vectors: Vectors = self.encoder([self.prepared[split][row] for row in rows])
        return vectors

    def batches(self) -> Iterator[list[int]]:
        """Begin an epoch: rewrite the texts if the defence does so, and yield the batches of train."""
        self.epoch += 1
        if self.defence.texts:
            for split in self.prepared:
                texts = self.defence.texts(self.corpus.texts(split), self.encoder.mask)
                self.prepared[split] = self.encoder.prepare(texts)
        return self.encoder.batches(self.prepared["train"], self.generator)

    def loss(self, batch: list[int]) -> torch.Tensor:
        """Return the objective of a batch: the weighted task loss, plus the penalty unless it has its own steps."""
        vectors, defence = self._encoded(batch), self.defence
        task = defence.task_weight * cross_entropy(self._logits(vectors), self.labels["train"][batch])
        return task if defence.penalty is None or defence.steps_apart else task + defence.penalty(vectors, batch)

    def _encoded(self, batch: list[int]) -> Vectors:
        """Encode a batch once for adversaries and objective: the adversaries' steps do not change the encoder."""
        if self.latest is None or self.latest[0] is not batch:
            self.latest = batch, self.encode(batch, "train")
        return self.latest[1]

    def _logits(self, vectors: Vectors) -> torch.Tensor:
        dropped = dropout(vectors, self.recipe.dropout, training=self.head.training)
        scores: torch.Tensor = self.head(self.defence.vectors(dropped, self.epoch))
        return scores

    def on_batches(self, adversary: Adversary) -> Adversary:
        """Return the adversary with a loss of a batch, through which no gradient reaches the encoder."""
        return replace(adversary, loss=lambda batch: adversary.loss(self._encoded(batch).detach(), batch))

    def penalty_alone(self, batch: list[int]) -> torch.Tensor:
        """Return the penalty of a batch for a step of its own, which changes the encoder's vectors."""
        assert self.defence.penalty
        value, self.latest = self.defence.penalty(self._encoded(batch), batch), None
        return value

    def dev_loss(self) -> float:
        """Return the number that selection compares: mean loss or error rate on dev, or the defence's criterion."""
        counts_errors = self.recipe.select == "accuracy" or self.defence.criterion is not None
        total = 0.0
        for batch in self.encoder.batches(self.prepared["dev"]):
            scores, truth = self._logits(self.encode(batch, "dev")), self.labels["dev"][batch]
            if not scores.isfinite().all():  # the largest score may be finite, so that errors would not show it
                return math.nan
            wrong = (scores.argmax(1) != truth).sum()
            total += (wrong if counts_errors else cross_entropy(scores, truth, reduction="sum")).item()
        mean = total / len(self.labels["dev"])
        return self.defence.criterion(mean) if self.defence.criterion else mean
