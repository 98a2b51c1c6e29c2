"""Word vectors as a fitted victim: a static table, its means as documents, and a linear classifier of these."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from leakboard.data.words import words
from leakboard.interfaces import Corpus, Floats, Integers, PrivacyClaim, PublishedWords, Texts
from leakboard.models.classifier import LinearClassifier

CLASSIFIER = "classifier.npz"


@dataclass(frozen=True)
class WordVectors:
    vocabulary: list[str]
    vectors: Floats
    """float32 (V, d)."""
    classifier: LinearClassifier | None

    @property
    def claim(self) -> PrivacyClaim | None:
        """None is made."""
        return None

    def mean_vectors(self, texts: Sequence[str]) -> Floats:
        """Return the mean of each text's word vectors, float32 (n, d); zeros for a text without a known word."""
        rows = {word: row for row, word in enumerate(self.vocabulary)}
        means = np.zeros((len(texts), self.vectors.shape[1]), np.float32)
        for i, text in enumerate(texts):
            known = [rows[word] for word in words(text) if word in rows]
            if known:
                means[i] = self.vectors[known].mean(0)
        return means

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return mean word vectors."""
        return self.mean_vectors(texts)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the whole table."""
        return PublishedWords(self.vocabulary, self.vectors)

    def coverage(self, texts: Texts) -> dict[str, float]:
        """Return the share of texts without a known word: zeros are published, under noise the centre of the cube."""
        known = set(self.vocabulary)
        return {"unknown_texts": float(np.mean([known.isdisjoint(words(text)) for text in texts]))}

    def predict(self, vectors: Floats) -> Integers:
        """Return the logistic regression's labels."""
        assert self.classifier is not None, "a corpus without labels has no task"
        return self.classifier.predict(vectors)

    def with_classifier(self, corpus: Corpus, rng: np.random.Generator) -> Self:
        """Return the table with a classifier of the published train documents, where the corpus has a task."""
        if not corpus.has_labels:
            return self
        documents = self.publish_documents(corpus.texts("train"), rng)
        return dataclasses.replace(self, classifier=LinearClassifier.fit(documents, corpus.column("train", "label")))

    def save(self, folder: Path) -> None:
        """Write words (text), vectors and classifier (NumPy)."""
        (folder / "words.txt").write_text("\n".join(self.vocabulary), encoding="utf-8")
        np.save(folder / "vectors.npy", self.vectors)
        if self.classifier:
            self.classifier.save(folder / CLASSIFIER)

    @staticmethod
    def saved(folder: Path) -> dict[str, Any]:
        """Return the fields that `save` wrote."""
        return {
            "vocabulary": (folder / "words.txt").read_text("utf-8").split("\n"),
            "vectors": np.load(folder / "vectors.npy", allow_pickle=False),
            "classifier": LinearClassifier.load(folder / CLASSIFIER) if (folder / CLASSIFIER).is_file() else None,
        }
