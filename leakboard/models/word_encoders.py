"""Encode texts by learned vectors of the words of train: by the mean of n-gram vectors, or by an LSTM."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn.utils.rnn import pad_sequence

from leakboard.data.tokens import words
from leakboard.execution import devices
from leakboard.interfaces import Coverage
from leakboard.models.encoder import Encoder
from leakboard.models.training import shuffled

UNKNOWN = "unknownword"
"""The word that is written in the place of a hidden word. Encoders read it, and its n-grams, as unknown."""
RARITY = 0.8375
"""Training an LSTM takes a word of frequency f for unknown with probability RARITY / (RARITY + f)."""


class _WordEncoder(Encoder):
    """Reads texts as rows of a table of vectors. Row 0 is for unknown words, and for a text without a word."""

    mask = UNKNOWN
    files: tuple[str, str]
    """Names of the files of vocabulary (JSON) and weights (safetensors)."""

    def __init__(self, vocabulary: list[str] | dict[str, int], batch_size: int):
        super().__init__()
        self.device = devices.device()
        self.vocabulary = vocabulary
        self.rows = {unit: row for row, unit in enumerate(vocabulary, 1)}
        self.batch_size = batch_size

    def units(self, text: str) -> list[str]:
        """Return the words or n-grams of a text, in its order."""
        return words(text)

    def prepare(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Return the rows of each text, int64."""
        return [torch.tensor([self.rows.get(unit, 0) for unit in self.units(text)] or [0]) for text in texts]

    def save(self, folder: Path) -> None:
        """Write vocabulary (JSON) and weights (safetensors)."""
        vocabulary, weights = (folder / name for name in self.files)
        folder.mkdir(parents=True, exist_ok=True)
        vocabulary.write_text(json.dumps(self.vocabulary), encoding="utf-8")
        # On the CPU, since on a GPU the matrices of an LSTM share one block of memory
        save_file({name: value.cpu() for name, value in self.state_dict().items()}, weights)

    @classmethod
    def _read(cls, folder: Path) -> tuple[Any, dict[str, torch.Tensor]]:
        """Return a saved vocabulary and its weights."""
        vocabulary, weights = (folder / name for name in cls.files)
        return json.loads(vocabulary.read_text("utf-8")), load_file(weights)

    def coverage(self, texts: Sequence[str]) -> Coverage:
        """Return the share of texts without a known word."""
        return Coverage(unknown=float(np.mean([not rows.any() for rows in self.prepare(texts)])))


class BagEncoder(_WordEncoder):
    """The mean of the vectors of a text's n-grams; before training they are uniform in (-0.5, 0.5).

    Args:
        vocabulary: n-grams with their own vector.
        dimension: of the vectors.
        longest: most words of an n-gram.
        batch_size: texts in each batch.
    """

    files = "ngrams.json", "vectors.safetensors"

    def __init__(self, vocabulary: list[str], dimension: int, longest: int, batch_size: int):
        super().__init__(vocabulary, batch_size)
        self.longest = longest
        self.bag = torch.nn.EmbeddingBag(len(self.rows) + 1, dimension, mode="mean", sparse=True)
        torch.nn.init.uniform_(self.bag.weight, -0.5, 0.5)
        self.to(self.device)

    @classmethod
    def of(cls, texts: Sequence[str], dimension: int, longest: int, min_count: int, batch_size: int) -> BagEncoder:
        """Return random vectors for the n-grams of texts, drawn from torch's global generator."""
        counts = Counter(gram for text in texts for gram in _ngrams(text, longest))
        kept = sorted(gram for gram, count in counts.items() if count >= min_count and UNKNOWN not in gram.split())
        return cls(kept, dimension, longest, batch_size)

    @classmethod
    def load(cls, folder: Path, longest: int, batch_size: int) -> BagEncoder:
        """Return a saved encoder."""
        vocabulary, weights = cls._read(folder)
        encoder = cls(vocabulary, weights["bag.weight"].shape[1], longest, batch_size)
        encoder.load_state_dict(weights)
        return encoder

    @property
    def dimension(self) -> int:
        """Width of the vectors."""
        return self.bag.embedding_dim

    def units(self, text: str) -> list[str]:
        """Return the text's n-grams."""
        return _ngrams(text, self.longest)

    def batches(
        self, prepared: Sequence[torch.Tensor], generator: torch.Generator | None = None
    ) -> Iterator[list[int]]:
        """Yield batches of indices, in random order if there is a generator."""
        count = len(prepared)
        if generator:
            yield from (batch.tolist() for batch in shuffled(count, self.batch_size, generator))
        else:
            starts = range(0, count, self.batch_size)
            yield from (list(range(start, min(start + self.batch_size, count))) for start in starts)

    def forward(self, prepared: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return mean vectors, float32 (batch, d)."""
        sizes = torch.tensor([0, *(len(rows) for rows in prepared[:-1])])
        return self.bag(torch.cat(list(prepared)).to(self.device), sizes.cumsum(0).to(self.device))


def _ngrams(text: str, longest: int) -> list[str]:
    tokens = words(text)
    return [" ".join(tokens[i : i + n]) for n in range(1, longest + 1) for i in range(len(tokens) - n + 1)]


class LstmEncoder(_WordEncoder):
    """The last state of an LSTM on word vectors.

    Args:
        counts: occurrences of each word in train.
        word_dimension: of the word vectors.
        dimension: of the state.
        dropout: rate of dropout of the word vectors while training.
        batch_size: texts in each batch.
    """

    files = "words.json", "weights.safetensors"

    def __init__(self, counts: dict[str, int], word_dimension: int, dimension: int, dropout: float, batch_size: int):
        super().__init__(counts, batch_size)
        self.dropout = dropout
        self.words = torch.nn.Embedding(len(counts) + 1, word_dimension)
        self.lstm = torch.nn.LSTM(word_dimension, dimension, batch_first=True)
        frequency = torch.tensor([1.0, *counts.values()])
        self.register_buffer("unknown", RARITY / (RARITY + frequency), persistent=False)
        self.to(self.device)

    unknown: torch.Tensor
    """Probability that training takes a row's word for unknown, float32 (rows,)."""

    @classmethod
    def of(
        cls, texts: Sequence[str], min_count: int, word_dimension: int, dimension: int, dropout: float, batch_size: int
    ) -> LstmEncoder:
        """Return a random LSTM over the words of texts, drawn from torch's global generator."""
        counts = Counter(word for text in texts for word in words(text) if word != UNKNOWN)
        frequent = {word: counts[word] for word in sorted(counts) if counts[word] >= min_count}
        return cls(frequent, word_dimension, dimension, dropout, batch_size)

    @classmethod
    def load(cls, folder: Path, dropout: float, batch_size: int) -> LstmEncoder:
        """Return a saved encoder."""
        counts, weights = cls._read(folder)
        sizes = weights["words.weight"].shape[1], weights["lstm.weight_hh_l0"].shape[1]
        encoder = cls(counts, *sizes, dropout, batch_size)
        encoder.load_state_dict(weights)
        return encoder

    @property
    def dimension(self) -> int:
        """Width of the state."""
        return self.lstm.hidden_size

    def forward(self, prepared: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the last states, float32 (batch, d)."""
        rows = pad_sequence(list(prepared), batch_first=True).to(self.device)
        if self.training:
            rows = rows.masked_fill(torch.rand(rows.shape, device=self.device) < self.unknown[rows], 0)
        vectors = self.words(rows)
        one_mask_a_text = torch.ones_like(vectors[:, :1])
        vectors = vectors * torch.nn.functional.dropout(one_mask_a_text, self.dropout, training=self.training)
        states = self.lstm(vectors)[0]  # padded sequences are several times faster than packed ones
        last = torch.tensor([len(entry) - 1 for entry in prepared], device=self.device)
        return states[torch.arange(len(prepared), device=self.device), last]
