"""A recurrent encoder trained on the task: the text's vector is the last state of an LSTM (Coavoux et al. 2018).

Word vectors, one layer in one direction, a ReLU layer and softmax on top, Adam, the epoch of best dev accuracy. As in
their code, a word of train that stands there f times is unknown with probability 0.8375 / (0.8375 + f) at each visit
while training, so that there is a vector for unknown words. Theirs steps after every text, reads punctuation too, and
drops states inside of the recurrence; here dropout is of the word vectors, one mask a text, and of the last state. It
makes no privacy claim.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from safetensors.torch import load_file, save_file
from torch.nn.utils.rnn import pad_sequence

from leakboard.data.words import words
from leakboard.interfaces import Corpus, Floats, Publication
from leakboard.models.task_model import FittedOnTask, Recipe, fit_task_model, load_task_model
from leakboard.models.training import encode_all, of_like_length
from leakboard.suite.options import victim

Count = Annotated[int, Field(ge=1)]
Dimension = Annotated[int, Field(ge=2)]

UNKNOWN = "unknownword"
"""How a hidden word is written; it stands for every word that train has not."""
RARITY = 0.8375
"""A word of frequency f is unknown with probability RARITY / (RARITY + f) while training (their code)."""


@victim(revision=1)
class Lstm:
    dimension: Dimension | Annotated[tuple[Dimension, ...], Field(strict=False, min_length=1)] = 32
    """Dimensions of the state; of several the one of best dev accuracy is kept (the paper: 8, 16, 32, 64 and 128)."""
    word_dimension: Count = 32
    """Dimensions of the word vectors."""
    hidden: Count = 64
    """ReLU units between the state and the softmax layer."""
    min_count: Count = 1
    """Rarer words have no vector of their own (occurrences)."""
    epochs: Count = 16
    """Passes over train (the paper: 8 for sentiment, 16 for topics); the one of best dev accuracy is kept."""
    batch_size: Count = 32
    """Texts a step (the paper: 1)."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Adam's."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Of the word vectors, and of the state before the ReLU layer."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents",)

    def fingerprint(self) -> str:
        """Nothing is pretrained."""
        return ""

    def fit(self, corpus: Corpus, seed: int) -> "FittedLstm":
        """Train on the task labels.

        Raises:
            RequestError: the corpus has no task label.
        """
        return FittedLstm(fit_task_model(self, "lstm", corpus, seed))

    def load(self, folder: Path) -> "FittedLstm":
        """Return a saved encoder and what stands on it."""
        return FittedLstm(load_task_model(self, folder))

    def build(self, corpus: Corpus) -> "LstmEncoder":
        """Return a random LSTM over the words of train, drawn from torch's global generator."""
        assert isinstance(self.dimension, int), "several dimensions are built one by one"
        counts = Counter(word for text in corpus.texts("train") for word in words(text) if word != UNKNOWN)
        known = {word: counts[word] for word in sorted(counts) if counts[word] >= self.min_count}
        return self._encoder(known, self.dimension)

    def load_encoder(self, folder: Path) -> "LstmEncoder":
        """Return a saved encoder."""
        weights = load_file(folder / "weights.safetensors")
        counts = json.loads((folder / "words.json").read_text("utf-8"))
        encoder = self._encoder(counts, weights["lstm.weight_hh_l0"].shape[1])
        encoder.load_state_dict(weights)
        return encoder

    @property
    def candidates(self) -> "tuple[Lstm, ...]":
        """One LSTM a dimension."""
        dimensions = self.dimension if isinstance(self.dimension, tuple) else (self.dimension,)
        return tuple(replace(self, dimension=dimension) for dimension in dimensions)

    def _encoder(self, counts: dict[str, int], dimension: int) -> "LstmEncoder":
        return LstmEncoder(counts, self.word_dimension, dimension, self.dropout, self.batch_size)

    @property
    def recipe(self) -> Recipe:
        """Adam at a constant rate, gradients clipped to norm 5."""
        return Recipe(
            lambda trained: torch.optim.Adam(trained, lr=self.learning_rate, fused=True),
            schedule=lambda step, steps: 1.0,
            epochs=self.epochs,
            dropout=self.dropout,
            hidden=self.hidden,
            clipping_norm=5.0,
            select="accuracy",
        )


class LstmEncoder(torch.nn.Module):
    """Word vectors, float32 (V + 1, e), row 0 for unknown words and for a text without words, and an LSTM on them.

    Args:
        counts: how often each word stands in train.
        word_dimension: e.
        dimension: d, of the state.
        dropout: of the word vectors while training.
        batch_size: texts a batch.
    """

    mask = UNKNOWN

    def __init__(self, counts: dict[str, int], word_dimension: int, dimension: int, dropout: float, batch_size: int):
        super().__init__()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.counts, self.dropout, self.batch_size = counts, dropout, batch_size
        self.rows = {word: row for row, word in enumerate(counts, 1)}
        self.words = torch.nn.Embedding(len(counts) + 1, word_dimension)
        self.lstm = torch.nn.LSTM(word_dimension, dimension, batch_first=True)
        frequency = torch.tensor([1.0, *counts.values()])
        self.register_buffer("unknown", RARITY / (RARITY + frequency), persistent=False)
        self.to(self.device)

    unknown: torch.Tensor
    """Probability that a word is unknown while training, float32 (V + 1,)."""

    @property
    def dimension(self) -> int:
        """Width of the state."""
        return self.lstm.hidden_size

    def prepare(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Return the rows of each text's words, int64."""
        return [torch.tensor([self.rows.get(word, 0) for word in words(text)] or [0]) for text in texts]

    def batches(
        self, prepared: Sequence[torch.Tensor], generator: torch.Generator | None = None
    ) -> Iterator[list[int]]:
        """Yield batches of indices of texts of like length, in random order with a generator."""
        return of_like_length([len(rows) for rows in prepared], self.batch_size, generator)

    def forward(self, prepared: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the last states, float32 (batch, d)."""
        rows = pad_sequence(list(prepared), batch_first=True).to(self.device)
        if self.training:
            rows = rows.masked_fill(torch.rand(rows.shape, device=self.device) < self.unknown[rows], 0)
        vectors = self.words(rows)
        vectors = vectors * torch.nn.functional.dropout(
            torch.ones_like(vectors[:, :1]), self.dropout, training=self.training
        )
        # Padded sequences, which torch computes several times faster than packed ones
        states = self.lstm(vectors)[0]
        last = torch.tensor([len(entry) - 1 for entry in prepared], device=self.device)
        return states[torch.arange(len(prepared), device=self.device), last]

    def documents(self, texts: Sequence[str]) -> Floats:
        """Return one vector a text, float32 (n, d)."""
        return encode_all(self, texts)

    def coverage(self, texts: Sequence[str]) -> dict[str, float]:
        """Return the share of texts without a known word."""
        return {"unknown_texts": float(np.mean([not rows.any() for rows in self.prepare(texts)]))}

    def save(self, folder: Path) -> None:
        """Write words with their frequencies (JSON), and weights (safetensors)."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "words.json").write_text(json.dumps(self.counts), encoding="utf-8")
        save_file(self.state_dict(), folder / "weights.safetensors")


@dataclass(frozen=True)
class FittedLstm(FittedOnTask):
    claim: None = None
