"""Publishing what a fitted victim gives away: the stage that all attacks on a publication share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.data.corpora import SPLITS
from leakboard.interfaces import Corpus, FittedVictim, Floats, Integers, PrivacyClaim, PublishedWords, Texts, Victim
from leakboard.pipeline.fitting import Names
from leakboard.store import finite, numbers

KEPT = 8
"""Sets of texts whose vectors a `publisher` keeps."""


@dataclass(frozen=True)
class Publications:
    """Everything a fitted victim publishes of a corpus, and its task labels for test."""

    documents: dict[str, Floats]
    """float32 (n, d) a split; empty where the victim publishes no documents."""
    predicted: Integers | None
    """Task labels of test."""
    words: PublishedWords | None
    claim: PrivacyClaim | None
    coverage: Mapping[str, float] = field(default_factory=dict)
    """Shares of the test texts that are treated otherwise than a reader would expect."""


def publish(victim: Victim, fitted: FittedVictim, corpus: Corpus, names: Names) -> Publications:
    """Publish every split's documents, and the words.

    Raises:
        ValueError: published vectors are not finite, or of a wrong shape.
    """
    documents: dict[str, Floats] = {}
    predicted = words = None
    if "documents" in victim.publishes:
        for split in SPLITS:
            vectors = fitted.publish_documents(corpus.texts(split), names.stream(f"publish {split}"))
            documents[split] = _checked(vectors, len(corpus.splits[split]), f"document vectors of {split}")
        if corpus.has_labels:
            predicted = np.asarray(fitted.predict(documents["test"].copy()), dtype=np.int64)
            if predicted.shape != (len(documents["test"]),):
                raise ValueError(f"task labels: shape {predicted.shape}, expected ({len(documents['test'])},)")
    if "words" in victim.publishes:
        words = fitted.publish_words(corpus.texts("test"), names.stream("publish words"))
        _checked(words.vectors, len(words.words), "word vectors")
    coverage = dict(fitted.coverage(corpus.texts("test"))) if hasattr(fitted, "coverage") else {}
    return Publications(documents, predicted, words, fitted.claim, coverage)


def publisher(victim: Victim, fitted: Callable[[], FittedVictim]) -> Callable[[Texts, np.random.Generator], Floats]:
    """Return what publishes texts with fresh noise; texts asked for again are not encoded again where that is the same.

    It is for victims that publish ``releases`` and whose mechanism is given the same vectors each time.
    """
    kept: dict[tuple[str, ...], NDArray[Any] | None] = {}

    def publish(texts: Texts, rng: np.random.Generator) -> Floats:
        there: Any = fitted()
        if "releases" not in victim.publishes or there.mechanism is None:
            return there.publish_documents(texts, rng)
        distinct = dict.fromkeys(texts)
        if (asked := tuple(distinct)) not in kept:
            if len(kept) == KEPT:
                kept.pop(next(iter(kept)))
            kept[asked] = there.inputs(Texts(asked))
        if (inputs := kept[asked]) is None:
            return there.publish_documents(texts, rng)
        places = {text: row for row, text in enumerate(distinct)}
        return there.mechanism.release(inputs[[places[text] for text in texts]], rng).astype(np.float32)

    return publish


def _checked(vectors: Floats, rows: int, what: str) -> Floats:
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ValueError(f"{what}: shape {vectors.shape}, expected ({rows}, d)")
    if vectors.dtype != np.float32:
        raise ValueError(f"{what}: {vectors.dtype}, expected float32")
    if not (finite := np.isfinite(vectors).all(1)).all():
        raise ValueError(f"{what}: {(~finite).sum()} of {rows} hold NaN or infinity; first in row {finite.argmin()}")
    return vectors


def save_publications(published: Publications, folder: Path) -> None:
    """Write publications into an empty folder (NumPy and JSON)."""
    for split, vectors in published.documents.items():
        np.save(folder / f"{split}.npy", vectors)
    if published.predicted is not None:
        np.save(folder / "predicted.npy", published.predicted)
    if published.words:
        np.save(folder / "words.npy", published.words.vectors)
        (folder / "words.json").write_text(json.dumps(published.words.words), encoding="utf-8")
        if published.words.text_index is not None:
            np.save(folder / "text_index.npy", published.words.text_index)
    claim = finite(asdict(published.claim)) if published.claim else None
    about = {"claim": claim, "coverage": dict(published.coverage)}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def load_publications(folder: Path) -> Publications:
    """Return what `save_publications` wrote."""

    def array(name: str) -> np.ndarray | None:
        path = folder / f"{name}.npy"
        return np.load(path, allow_pickle=False) if os.path.exists(path) else None

    documents = {split: vectors for split in SPLITS if (vectors := array(split)) is not None}
    words = None
    if (vectors := array("words")) is not None:
        words = PublishedWords(json.loads((folder / "words.json").read_text("utf-8")), vectors, array("text_index"))
    about = json.loads((folder / "about.json").read_text("utf-8"))
    claim = PrivacyClaim(**numbers(about["claim"])) if about["claim"] else None
    return Publications(documents, array("predicted"), words, claim, about["coverage"])
