"""Turn texts into vectors: the base class of encoders that are trained on the task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from leakboard.interfaces import Coverage, Floats
from leakboard.models.training import of_like_length


class Encoder(torch.nn.Module):
    """A torch module that turns texts into vectors, in two steps so that each text is prepared once.

    ``forward`` returns the vectors of a batch of prepared texts, float32 (batch, d).
    """

    device: torch.device
    """Device that computes the vectors."""
    batch_size: int
    """Texts a batch."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Width of the vectors, d."""

    @property
    @abstractmethod
    def mask(self) -> str:
        """The word that is written in the place of a hidden word."""

    @abstractmethod
    def prepare(self, texts: Sequence[str]) -> list[Any]:
        """Prepare texts (tokenise them, for example), one entry each."""

    @abstractmethod
    def coverage(self, texts: Sequence[str]) -> Coverage:
        """Return the shares of texts that are cut, or have no known word."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write weights (safetensors), and everything else that loading needs (JSON, text)."""

    def batches(self, prepared: Sequence[Any], generator: torch.Generator | None = None) -> Iterator[list[int]]:
        """Yield batches of indices of texts of similar length, in random order if there is a generator."""
        return of_like_length([len(entry) for entry in prepared], self.batch_size, generator)

    @torch.no_grad()
    def documents(self, texts: Sequence[str]) -> Floats:
        """Return one vector for each text, float32 (n, d), in evaluation mode."""
        self.eval()
        prepared = self.prepare(texts)
        vectors = np.empty((len(prepared), self.dimension), np.float32)
        for batch in self.batches(prepared):
            vectors[batch] = self([prepared[i] for i in batch]).cpu().numpy()
        return vectors
