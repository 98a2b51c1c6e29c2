"""Use any sentence encoder as it is, with logistic regression for the task.

A pretrained transformer encodes the texts; it is not trained further. Vectors are pooled and scaled to length 1, as
sentence-transformers models publish them. The victim makes no privacy claim.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Publication, PublishedWords, Texts
from leakboard.models import checkpoints
from leakboard.models.pretrained import PretrainedVictim
from leakboard.suite.options import Count, victim

if TYPE_CHECKING:
    from leakboard.models.transformer import TransformerEncoder


@victim(revision=1)
class SentenceEncoder(PretrainedVictim):
    max_tokens: Annotated[int, Field(ge=3)] = 256
    """Length at which longer texts are cut (tokens)."""
    pooling: checkpoints.Pooling = "mean"
    """Vector of a text: the mean over tokens (mean), or the vector of the first token (cls)."""
    normalise: bool = True
    """Scale document vectors to length 1."""
    batch_size: Count = 64
    """Texts encoded at once."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words")

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a random BERT as it is."""
        return replace(super().example(folder), batch_size=16, max_tokens=32)

    def fit(self, corpus: Corpus, seed: int) -> "FittedSentenceEncoder":
        """Return the public encoder; nothing is trained.

        Raises:
            RequestError: there are no weights.
        """
        return self._public()

    def load(self, folder: Path) -> "FittedSentenceEncoder":
        """Return the public encoder."""
        return self._public()

    def _public(self) -> "FittedSentenceEncoder":
        from leakboard.models.transformer import TransformerEncoder

        folder = checkpoints.find(self.checkpoint, self.revision)
        encoder = TransformerEncoder(folder, self.max_tokens, self.pooling, self.precision, self.batch_size)
        return FittedSentenceEncoder(encoder, self.normalise)


@dataclass(frozen=True)
class FittedSentenceEncoder(FittedVictim):
    encoder: "TransformerEncoder"
    normalise: bool

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return pooled vectors; nothing is random, so the texts of a corpus are encoded once for all victims."""
        vectors = self.encoder.shared_documents(Texts(texts))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12) if self.normalise else vectors

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the contextual vectors of the texts' words."""
        return self.encoder.words(texts)

    def coverage(self, texts: Texts) -> Coverage:
        """Return the share of texts that are cut."""
        return self.encoder.coverage(texts)

    def save(self, folder: Path) -> None:
        """Write nothing: the encoder is public."""
