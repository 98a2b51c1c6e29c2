"""Reconstruction: write the text of a published vector, word by word or character by character.

The generator of Coavoux et al. (2018, section 3.2) turned attacker: a language model conditioned on the vector, trained
on the attacker's own texts. Theirs is a character LSTM whose cell starts as the vector, and serves as a defence only;
here the vector is standardised, mapped to the first state of the LSTM, and given to it again with every unit. The text
is written greedily: the likeliest unit after those before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch.nn.utils.rnn import pad_sequence

from leakboard.attacks._denoising import Scaling
from leakboard.attacks._texts import Vocabulary, own_vectors
from leakboard.data.words import words
from leakboard.interfaces import AttackerView, Floats, Publication, TextGuesses
from leakboard.models.training import of_like_length, train
from leakboard.randomness import seeded
from leakboard.suite.options import attack

Count = Annotated[int, Field(ge=1)]

PADDING, START, END, UNKNOWN = range(4)
FIRST = 4
"""Code of the most frequent unit."""
FREQUENT = 1_000
"""Units of the first softmax: all characters, and the words that make up most of a text."""


@attack(revision=1)
class Reconstruction:
    unit: Literal["words", "characters"] = "words"
    """What is written one after the other; characters are those of the words, lower-cased, and blanks."""
    vocabulary: Count = 5_000
    """Units that it can write: the most frequent of its own texts."""
    longest: Count = 64
    """Longest text that it learns from and writes (units)."""
    hidden: Annotated[int, Field(ge=4)] = 128
    """Width of the LSTM's state."""
    embedding: Count = 64
    """Width of the units' vectors."""
    epochs: Count = 10
    """Most passes over the attacker's texts."""
    patience: Count = 2
    """Stop after this many epochs without a better dev loss."""
    batch_size: Count = 64
    """Texts a step."""
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    """Adam's."""

    needs: ClassVar[Publication] = "documents"
    target: ClassVar[str] = "text"

    def fit(self, view: AttackerView, seed: int) -> "FittedReconstruction":
        """Train on the attacker's own texts and their vectors; the epoch of least dev loss is kept.

        Raises:
            RequestError: the victim publishes no vectors.
        """
        scaling, vectors, dev_vectors = own_vectors(view)
        vocabulary = Vocabulary.of([self._units(text) for text in view.train.texts], self.vocabulary)
        known, dev_known = (self._coded(texts, vocabulary) for texts in (view.train.texts, view.dev.texts))
        inputs, dev_inputs = torch.from_numpy(vectors), torch.from_numpy(dev_vectors)
        generator = torch.Generator().manual_seed(seed)
        with seeded(seed):
            model = LanguageModel(inputs.shape[1], FIRST + len(vocabulary.units), self.embedding, self.hidden)

            def dev_loss() -> float:
                batches = of_like_length([len(codes) for codes in dev_known], self.batch_size)
                losses = [model.loss(dev_inputs[b], [dev_known[i] for i in b], "sum").item() for b in batches]
                return sum(losses) / sum(len(codes) - 1 for codes in dev_known)

            train(
                model,
                lambda: of_like_length([len(codes) for codes in known], self.batch_size, generator),
                lambda batch: model.loss(inputs[batch], [known[i] for i in batch]),
                dev_loss,
                optimiser=torch.optim.Adam(model.parameters(), lr=self.learning_rate, fused=True),
                epochs=self.epochs,
                patience=self.patience,
                clipping_norm=5.0,
                log_epochs=True,
            )
        return FittedReconstruction(self, vocabulary, scaling, model)

    def _units(self, text: str) -> Sequence[str]:
        return words(text) if self.unit == "words" else " ".join(words(text))

    def _coded(self, texts: Sequence[str], vocabulary: Vocabulary) -> list[torch.Tensor]:
        codes = {unit: FIRST + code for unit, code in vocabulary.codes.items()}
        cut = (self._units(text)[: self.longest] for text in texts)
        return [torch.tensor([START, *(codes.get(unit, UNKNOWN) for unit in units), END]) for units in cut]


class LanguageModel(torch.nn.Module):
    """P(unit | those before it, vector): an LSTM that starts from the vector and sees it with every unit.

    Its softmax is adaptive (Grave et al. 2017): beyond the most frequent, units share one output of the first softmax
    and have a second of their own, on half of the dimensions, which is computed only where such a unit comes next.
    """

    def __init__(self, dimension: int, units: int, embedding: int, hidden: int):
        super().__init__()
        self.context = torch.nn.Linear(dimension, hidden)
        self.units = torch.nn.Embedding(units, embedding)
        self.lstm = torch.nn.LSTM(embedding + hidden, hidden, batch_first=True)
        frequent = min(FREQUENT, units - 1)
        self.output = torch.nn.AdaptiveLogSoftmaxWithLoss(hidden, units, [frequent], div_value=2.0, head_bias=True)

    def loss(
        self, vectors: torch.Tensor, texts: Sequence[torch.Tensor], reduction: Literal["mean", "sum"] = "mean"
    ) -> torch.Tensor:
        """Return -ln P of the units of coded texts, with their ends, given float32 (n, d)."""
        padded = pad_sequence(list(texts), batch_first=True, padding_value=PADDING)
        context, state = self._start(vectors)
        states, _ = self._step(padded[:, :-1], context, state)
        there = padded[:, 1:] != PADDING
        total: torch.Tensor = -self.output(states[there], padded[:, 1:][there]).output.sum()
        return total / there.sum() if reduction == "mean" else total

    @torch.no_grad()
    def write(self, vectors: torch.Tensor, longest: int) -> list[list[int]]:
        """Return the codes of the likeliest units, one after the other, up to the end or the longest text."""
        context, state = self._start(vectors)
        last = torch.full((len(vectors), 1), START)
        written, ended = [], torch.zeros(len(vectors), dtype=torch.bool)
        for _ in range(longest):
            states, state = self._step(last, context, state)
            scores = self.output.log_prob(states[:, 0])
            scores[:, [PADDING, START, UNKNOWN]] = -torch.inf
            last = scores.argmax(1, keepdim=True)
            ended = ended | (last[:, 0] == END)
            if ended.all():
                break
            written.append(torch.where(ended, PADDING, last[:, 0]))
        codes = torch.stack(written, dim=1) if written else torch.zeros(len(vectors), 0, dtype=torch.int64)
        return [[code for code in row if code != PADDING] for row in codes.tolist()]

    def _start(self, vectors: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        context = torch.tanh(self.context(vectors))
        return context, (context.unsqueeze(0), context.unsqueeze(0))

    def _step(
        self, codes: torch.Tensor, context: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        again = context.unsqueeze(1).expand(-1, codes.shape[1], -1)
        found: tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]
        found = self.lstm(torch.cat([self.units(codes), again], dim=2), state)
        return found


@dataclass(frozen=True)
class FittedReconstruction:
    options: Reconstruction
    vocabulary: Vocabulary
    scaling: Scaling
    model: LanguageModel

    def guess(self, vectors: Floats) -> TextGuesses:
        """Write the text of each vector."""
        blank, texts = " " if self.options.unit == "words" else "", []
        for part in torch.from_numpy(self.scaling(vectors)).split(1_000):
            for codes in self.model.write(part, self.options.longest):
                texts.append(blank.join(self.vocabulary.units[code - FIRST] for code in codes))
        return TextGuesses(texts, note=f"{self.options.unit} of a vocabulary of {len(self.vocabulary.units)}")
