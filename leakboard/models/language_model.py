"""Write the text of a vector with a language model that is conditioned on the vector, and train models that write."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import torch
from torch.nn.utils.rnn import pad_sequence

from leakboard.execution import devices
from leakboard.interfaces import Floats
from leakboard.models.training import of_like_length, train
from leakboard.models.training_state import TrainingState

PADDING, START, END, UNKNOWN = range(4)
FIRST_UNIT = 4
"""Code of the most frequent unit."""
FREQUENT = 1_000
"""Number of units in the first softmax: enough for all characters, and for most words of a text."""
TEXTS_AT_ONCE = 1_000
"""Number of texts that are written at once."""
LEAST_STEPS = 100
"""Fewest steps of an epoch: a pass over 1,000 texts has 8 to 16."""
Reduction = Literal["mean", "sum"]
"""Of the units of a batch."""
TextLoss = Callable[[list[int], Reduction], torch.Tensor]
"""Returns -ln P of the units of some texts of a split, given their rows, a scalar with gradient."""


def coded(texts: Iterable[Sequence[str]], units: Sequence[str]) -> list[torch.Tensor]:
    """Return the codes of each text's units, int64, between its start and its end."""
    codes = {unit: code for code, unit in enumerate(units, FIRST_UNIT)}
    return [torch.tensor([START, *(codes.get(unit, UNKNOWN) for unit in text), END]) for text in texts]


class LanguageModel(torch.nn.Module):
    """P(unit | units before it, vector): an LSTM that starts from the vector, and has it as an input with every unit.

    Its softmax is adaptive (Grave et al. 2017). Rare units share one output of the first softmax. A second softmax, on
    half of the dimensions, distinguishes them; it is computed only where a rare unit comes next.
    """

    def __init__(self, dimension: int, units: int, embedding: int, hidden: int):
        super().__init__()
        self.context = torch.nn.Linear(dimension, hidden)
        self.units = torch.nn.Embedding(units, embedding)
        self.lstm = torch.nn.LSTM(embedding + hidden, hidden, batch_first=True)
        frequent = min(FREQUENT, units - 1)
        self.output = torch.nn.AdaptiveLogSoftmaxWithLoss(hidden, units, [frequent], div_value=2.0, head_bias=True)

    def loss(self, vectors: torch.Tensor, texts: Sequence[torch.Tensor], reduction: Reduction = "mean") -> torch.Tensor:
        """Return -ln P of the units of coded texts and of their ends, given vectors, float32 (n, d)."""
        padded = pad_sequence(list(texts), batch_first=True, padding_value=PADDING).to(vectors.device)
        context, state = self._start(vectors)
        states, _ = self._step(padded[:, :-1], context, state)
        is_unit = padded[:, 1:] != PADDING
        total: torch.Tensor = -self.output(states[is_unit], padded[:, 1:][is_unit]).output.sum()
        return total / is_unit.sum() if reduction == "mean" else total

    @torch.no_grad()
    def write(self, vectors: torch.Tensor, longest: int) -> list[list[int]]:
        """Choose the likeliest unit again and again, until the text ends or has ``longest`` units; return the codes."""
        context, state = self._start(vectors)
        last = torch.full((len(vectors), 1), START, device=vectors.device)
        columns, ended = [], torch.zeros(len(vectors), dtype=torch.bool, device=vectors.device)
        for _ in range(longest):
            states, state = self._step(last, context, state)
            scores = self.output.log_prob(states[:, 0])
            scores[:, [PADDING, START, UNKNOWN]] = -torch.inf
            last = scores.argmax(1, keepdim=True)
            ended = ended | (last[:, 0] == END)
            if ended.all():
                break
            columns.append(torch.where(ended, PADDING, last[:, 0]))
        codes = torch.stack(columns, dim=1) if columns else torch.zeros(len(vectors), 0, dtype=torch.int64)
        return [[code for code in row if code != PADDING] for row in codes.tolist()]

    def _start(self, vectors: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        context = torch.tanh(self.context(vectors))
        return context, (context.unsqueeze(0), context.unsqueeze(0))

    def _step(
        self, codes: torch.Tensor, context: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        repeated = context.unsqueeze(1).expand(-1, codes.shape[1], -1)
        result: tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]
        result = self.lstm(torch.cat([self.units(codes), repeated], dim=2), state)
        return result


def write_texts(model: LanguageModel, vectors: Floats, units: Sequence[str], longest: int) -> Iterator[list[str]]:
    """Yield the units that the model writes for each vector; ``units`` are the vocabulary in the order of the codes."""
    for part in torch.from_numpy(vectors).split(TEXTS_AT_ONCE):
        for codes in model.write(part.to(devices.device()), longest):
            yield [units[code - FIRST_UNIT] for code in codes]


def train_on_texts(
    module: torch.nn.Module,
    losses: tuple[TextLoss, TextLoss],
    texts: tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]],
    *,
    batch_size: int,
    generator: torch.Generator,
    optimiser: torch.optim.Optimizer,
    epochs: int,
    clipping_norm: float,
    patience: int | None = None,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None = None,
    state: TrainingState | None = None,
) -> list[float]:
    """Train a module that writes texts, in batches of texts of like length; keep the epoch with the least dev loss.

    Args:
        module: trained in place.
        losses: of train and dev.
        texts: coded texts of train and dev (`coded`).
        batch_size: texts in each step.
        generator: of the batches.
        optimiser: of the module's parameters.
        epochs: most passes over the texts.
        clipping_norm: largest 2-norm of the gradient.
        patience: stop after this many epochs without a better dev loss; None: never.
        scheduler: stepped after every batch.
        state: where the state is saved after epochs, and resumed from; None saves nothing.

    Returns:
        The dev loss after each epoch: -ln P of a unit (nats).
    """
    (loss, dev_loss), (lengths, dev_lengths) = losses, ([len(codes) for codes in part] for part in texts)

    def mean_dev_loss() -> float:
        total = sum(dev_loss(batch, "sum").item() for batch in of_like_length(dev_lengths, batch_size))
        return total / sum(length - 1 for length in dev_lengths)

    return train(
        module,
        lambda: of_like_length(lengths, batch_size, generator),
        lambda batch: loss(batch, "mean"),
        mean_dev_loss,
        optimiser=optimiser,
        epochs=epochs,
        patience=patience,
        scheduler=scheduler,
        clipping_norm=clipping_norm,
        log_epochs=True,
        state=state,
    )
