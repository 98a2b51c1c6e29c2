"""Any sentence encoder used as it is, with logistic regression for the task.

Texts go through a pretrained transformer whose weights stay as they are; vectors are pooled and scaled to length 1, as
sentence-transformers models publish them. It makes no privacy claim.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from leakboard.interfaces import Corpus, Floats, Integers, Publication, PublishedWords, Texts
from leakboard.models import checkpoints
from leakboard.models.classifier import LinearClassifier
from leakboard.suite.options import victim
from leakboard.victims._pretrained import Pretrained

if TYPE_CHECKING:
    from leakboard.models.transformer import TransformerEncoder


@victim(revision=1)
class SentenceEncoder(Pretrained):
    max_tokens: Annotated[int, Field(ge=3)] = 256
    """Longer texts are cut (tokens)."""
    pooling: checkpoints.Pooling = "mean"
    """The mean over tokens, or the first token's vector."""
    normalise: bool = True
    """Scale document vectors to length 1."""
    batch_size: Annotated[int, Field(ge=1)] = 64
    """Texts encoded at once."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words")

    def fit(self, corpus: Corpus, seed: int) -> "FittedSentenceEncoder":
        """Fit the task classifier; the encoder stays as it is.

        Raises:
            RequestError: no weights.
        """
        encoder = self._encoder()
        classifier = None
        if corpus.has_labels:
            vectors = _documents(encoder, corpus.texts("train"), self.normalise)
            classifier = LinearClassifier.fit(vectors, corpus.column("train", "label"))
        return FittedSentenceEncoder(encoder, self.normalise, classifier)

    def load(self, folder: Path) -> "FittedSentenceEncoder":
        """Return a saved classifier on the public encoder."""
        path = folder / "classifier.npz"
        classifier = LinearClassifier.load(path) if path.is_file() else None
        return FittedSentenceEncoder(self._encoder(), self.normalise, classifier)

    def _encoder(self) -> "TransformerEncoder":
        from leakboard.models.transformer import TransformerEncoder

        folder = checkpoints.find(self.checkpoint, self.revision)
        return TransformerEncoder(folder, self.max_tokens, self.pooling, self.precision, self.batch_size)


def _documents(encoder: "TransformerEncoder", texts: Texts, normalise: bool) -> Floats:
    vectors = encoder.documents(texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12) if normalise else vectors


@dataclass(frozen=True)
class FittedSentenceEncoder:
    encoder: "TransformerEncoder"
    normalise: bool
    classifier: LinearClassifier | None
    claim: None = None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return pooled vectors; nothing is random."""
        return _documents(self.encoder, texts, self.normalise)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the contextual vectors of the texts' words."""
        return self.encoder.words(texts)

    def coverage(self, texts: Texts) -> dict[str, float]:
        """Return the share of texts that are cut."""
        return self.encoder.coverage(texts)

    def predict(self, vectors: Floats) -> Integers:
        """Return the classifier's labels."""
        assert self.classifier is not None, "a corpus without labels has no task"
        return self.classifier.predict(vectors)

    def save(self, folder: Path) -> None:
        """Write the classifier; the encoder is public."""
        if self.classifier:
            self.classifier.save(folder / "classifier.npz")
