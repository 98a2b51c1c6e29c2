"""The mean of word and bigram vectors, trained on the task: the encoder of the noise study (Zouhri and Abecidan 2021).

Their classifier B1: n-grams up to two words, weights uniform in (-0.5, 0.5), one linear layer, SGD whose rate falls
by a tenth every epoch, nothing selected on dev. Theirs normalises every vector to [0, 1], which here is the defence's
part: ``dpnr`` on this encoder with ``epsilon: null`` is their non-private model. It makes no privacy claim.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from safetensors.torch import load_file, save_file

from leakboard.data.words import words
from leakboard.interfaces import Corpus, Floats, Publication
from leakboard.models.task_model import FittedOnTask, Recipe, fit_task_model, load_task_model
from leakboard.models.training import encode_all, shuffled
from leakboard.suite.options import victim

Count = Annotated[int, Field(ge=1)]

UNKNOWN = "unknownword"
"""How a hidden word is written; it and its bigrams stand for every n-gram that train has not."""


@victim(revision=1)
class EmbeddingBag:
    dimension: Annotated[int, Field(ge=2)] = 32
    """Dimensions (the study: 32 and 64)."""
    ngrams: Count = 2
    """Longest run of words that has a vector of its own (words)."""
    min_count: Count = 1
    """Rarer n-grams have no vector of their own (occurrences)."""
    epochs: Count = 5
    """Passes over train; the last one's weights are kept."""
    batch_size: Count = 64
    """Texts a step."""
    learning_rate: Annotated[float, Field(gt=0)] = 2.0
    """First rate of SGD."""
    decay: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Factor of the rate after every epoch."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents",)

    def fingerprint(self) -> str:
        """Nothing is pretrained."""
        return ""

    def fit(self, corpus: Corpus, seed: int) -> "FittedEmbeddingBag":
        """Train on the task labels.

        Raises:
            RequestError: the corpus has no task label.
        """
        return FittedEmbeddingBag(fit_task_model(self, "embedding_bag", corpus, seed))

    def load(self, folder: Path) -> "FittedEmbeddingBag":
        """Return saved vectors and their softmax layer."""
        return FittedEmbeddingBag(load_task_model(self, folder))

    def build(self, corpus: Corpus) -> "BagEncoder":
        """Return random vectors for the n-grams of train, drawn from torch's global generator."""
        counts = Counter(gram for text in corpus.texts("train") for gram in _ngrams(text, self.ngrams))
        kept = sorted(gram for gram, count in counts.items() if count >= self.min_count and UNKNOWN not in gram.split())
        return BagEncoder(kept, self.dimension, self.ngrams, self.batch_size)

    def load_encoder(self, folder: Path) -> "BagEncoder":
        """Return a saved encoder."""
        vocabulary = json.loads((folder / "ngrams.json").read_text("utf-8"))
        encoder = BagEncoder(vocabulary, self.dimension, self.ngrams, self.batch_size)
        encoder.load_state_dict(load_file(folder / "vectors.safetensors"))
        return encoder

    @property
    def recipe(self) -> Recipe:
        """Plain SGD whose rate falls after every epoch."""
        return Recipe(
            lambda trained: torch.optim.SGD(trained, lr=self.learning_rate),
            schedule=lambda step, steps: self.decay ** (step // steps),
            epochs=self.epochs,
            keep="last",
        )


def _ngrams(text: str, longest: int) -> list[str]:
    found = words(text)
    return [" ".join(found[i : i + n]) for n in range(1, longest + 1) for i in range(len(found) - n + 1)]


class BagEncoder(torch.nn.Module):
    """Vectors of n-grams, float32 (V + 1, d); row 0 stands for all that have none, and for a text without a word."""

    device = torch.device("cpu")
    """Looking up a few rows gains nothing from a GPU."""
    mask = UNKNOWN

    def __init__(self, vocabulary: Sequence[str], dimension: int, longest: int, batch_size: int):
        super().__init__()
        self.rows = {gram: row for row, gram in enumerate(vocabulary, 1)}
        self.longest = longest
        self.batch_size = batch_size
        self.bag = torch.nn.EmbeddingBag(len(vocabulary) + 1, dimension, mode="mean", sparse=True)
        torch.nn.init.uniform_(self.bag.weight, -0.5, 0.5)

    @property
    def dimension(self) -> int:
        """Width of the vectors."""
        return self.bag.embedding_dim

    def prepare(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Return the rows of each text's n-grams, int64."""
        return [torch.tensor([self.rows.get(gram, 0) for gram in _ngrams(text, self.longest)] or [0]) for text in texts]

    def batches(
        self, prepared: Sequence[torch.Tensor], generator: torch.Generator | None = None
    ) -> Iterator[list[int]]:
        """Yield batches of indices, in random order with a generator."""
        parts = torch.arange(len(prepared)).split(self.batch_size) if prepared else ()
        yield from (
            part.tolist() for part in (shuffled(len(prepared), self.batch_size, generator) if generator else parts)
        )

    def forward(self, prepared: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return mean vectors, float32 (batch, d)."""
        sizes = torch.tensor([0, *(len(rows) for rows in prepared[:-1])])
        return self.bag(torch.cat(list(prepared)), sizes.cumsum(0))

    def documents(self, texts: Sequence[str]) -> Floats:
        """Return one vector a text, float32 (n, d)."""
        return encode_all(self, texts)

    def coverage(self, texts: Sequence[str]) -> dict[str, float]:
        """Return the share of texts without a known word."""
        return {"unknown_texts": float(np.mean([not rows.any() for rows in self.prepare(texts)]))}

    def save(self, folder: Path) -> None:
        """Write n-grams (JSON) and their vectors (safetensors)."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ngrams.json").write_text(json.dumps(list(self.rows)), encoding="utf-8")
        save_file(self.state_dict(), folder / "vectors.safetensors")


@dataclass(frozen=True)
class FittedEmbeddingBag(FittedOnTask):
    claim: None = None
