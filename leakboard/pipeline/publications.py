"""Fit a victim and publish its vectors: two stages that all attacks on a publication share."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leakboard.claims import claim_as_json, claim_from_json
from leakboard.data.auxiliary import divide
from leakboard.data.corpora import SPLITS
from leakboard.interfaces import (
    AuxiliaryRegime,
    Corpus,
    Coverage,
    FittedVictim,
    Floats,
    Integers,
    PublishedWords,
    Texts,
    Victim,
)
from leakboard.metrics.retrieval import half_texts, ranks_of
from leakboard.models.classifier import LinearClassifier
from leakboard.pipeline.repetition import find_faults
from leakboard.randomness import Streams, seed_libraries, stream
from leakboard.threats.published import Publications
from leakboard.workspace import also_shared, without_shared_rows


@lru_cache(maxsize=4)
def victim_and_attacker_corpus(
    corpus: Corpus, regime: AuxiliaryRegime | None, seed: int
) -> tuple[Corpus, Corpus | None]:
    """Return the victim's corpus and the attacker's; None for an attacker with another dataset."""
    if regime is None:
        return corpus, None
    return divide(corpus, regime, stream(seed, corpus.name, "auxiliary"))


def fit(victim: Victim, corpus: Corpus, streams: Streams) -> FittedVictim:
    """Train a victim on train and dev."""
    seed = streams.seed_for("fit")
    seed_libraries(seed)
    return victim.fit(corpus.only("train", "dev"), seed)


def publish(victim: Victim, load: Callable[[], FittedVictim], corpus: Corpus, streams: Streams) -> Publications:
    """Publish vectors of the documents or of the words, or texts (`Victim.publishes`).

    Args:
        victim: the victim's recipe.
        load: returns the fitted victim, loaded anew at each call.
        corpus: the victim's corpus.
        streams: random streams of the victim.

    Raises:
        ValueError: published vectors have a wrong shape or dtype, or are not finite; or a published text is missing.
    """
    seed_libraries(streams.seed_for("publish"))
    fitted = load()
    documents: dict[str, Floats] = {}
    predicted = probabilities = ranks = words = published_texts = None
    if "documents" in victim.publishes:
        for split in SPLITS:
            vectors = fitted.publish_documents(corpus.texts(split), streams.stream(f"publish {split}"))
            documents[split] = _checked(vectors, len(corpus.splits[split]), f"document vectors of {split}")
        if corpus.has_labels:
            has_head = type(fitted).predict is not FittedVictim.predict
            # a victim could remember its texts and predict from them; a fresh copy and a random order prevent this
            order = streams.stream("predict").permutation(len(documents["test"]))
            predicted = _predicted(load(), documents["test"], order) if has_head else None
            try:
                classifier = LinearClassifier.fit(documents["train"], corpus.column("train", "label"))
                probabilities = classifier.probabilities(documents["test"], len(corpus.values("label")))
            except ValueError:  # numbers that logistic regression refuses
                if predicted is None:
                    raise
            predicted = probabilities.argmax(1) if predicted is None and probabilities is not None else predicted
        if victim.encodes_texts and victim.encodes_parts and corpus.has_texts:
            ranks = _search_ranks(load, corpus.texts("test"), documents["test"], streams)
    if "words" in victim.publishes:
        words = fitted.publish_words(corpus.texts("test"), streams.stream("publish words"))
        _checked(words.vectors, len(words.words), "word vectors")
    if not {"texts", "rewritten_texts"}.isdisjoint(victim.publishes):
        # the stream of the documents: their vectors are of these texts
        published_texts = fitted.publish_texts(corpus.texts("test"), streams.stream("publish test"))
        if len(published_texts) != len(corpus.splits["test"]):
            raise ValueError(f"{len(published_texts)} texts of test, expected {len(corpus.splits['test'])}")
    claim, coverage = fitted.claim, fitted.coverage(corpus.texts("test"))
    publishes_vectors = not {"documents", "words"}.isdisjoint(victim.publishes)
    with without_shared_rows():  # kept rows are found by their text, so they would hide a victim that mixes up texts
        faults = find_faults(victim, load, corpus.texts("test"), streams) if publishes_vectors else ()
    return Publications(documents, predicted, words, claim, coverage, probabilities, ranks, faults, published_texts)


def _search_ranks(load: Callable[[], FittedVictim], texts: Texts, documents: Floats, streams: Streams) -> Integers:
    """Publish half of the words of texts, and return the rows and ranks of their texts, int64 (q, 2)."""
    rows, halves = half_texts(texts, streams.stream("searches"))
    if not len(rows):
        return np.empty((0, 2), np.int64)
    with also_shared(halves):  # the searches of all victims of a plugin are the same
        vectors = load().publish_queries(halves, streams.stream("publish searches"))
    _checked(vectors, len(rows), "half texts")
    if vectors.shape[1] != documents.shape[1]:
        raise ValueError(f"half texts: {vectors.shape[1]} coordinates, expected {documents.shape[1]} as of whole texts")
    return np.stack([rows, ranks_of(rows, vectors, documents)], axis=1)


def _predicted(fitted: FittedVictim, vectors: Floats, order: Integers) -> Integers | None:
    """Show the vectors in this order to the victim's classifier; return its labels, int64 (n,). None: it has none."""
    if (labels := fitted.predict(vectors[order])) is None:
        return None
    predicted = np.asarray(labels, dtype=np.int64)
    if predicted.shape != (len(vectors),):
        raise ValueError(f"task labels: shape {predicted.shape}, expected ({len(vectors)},)")
    return predicted[np.argsort(order)]


def _checked(vectors: Floats, rows: int, what: str) -> Floats:
    if not isinstance(vectors, np.ndarray):
        raise ValueError(f"{what}: {type(vectors).__name__}, expected a NumPy array")
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ValueError(f"{what}: shape {vectors.shape}, expected ({rows}, d)")
    if vectors.dtype != np.float32:
        raise ValueError(f"{what}: {vectors.dtype}, expected float32")
    if not (finite := np.isfinite(vectors).all(1)).all():
        raise ValueError(f"{what}: {(~finite).sum()} of {rows} hold NaN or infinity; first in row {finite.argmin()}")
    return vectors


def save_publications(published: Publications, folder: Path) -> None:
    """Write publications into an empty folder, as NumPy and JSON files."""
    for split, vectors in published.documents.items():
        np.save(folder / f"{split}.npy", vectors)
    for name in ("predicted", "probabilities", "ranks"):
        if (values := getattr(published, name)) is not None:
            np.save(folder / f"{name}.npy", values)
    if published.words:
        np.save(folder / "words.npy", published.words.vectors)
        (folder / "words.json").write_text(json.dumps(published.words.words), encoding="utf-8")
        if published.words.text_index is not None:
            np.save(folder / "text_index.npy", published.words.text_index)
    if published.texts is not None:
        (folder / "texts.json").write_text(json.dumps(published.texts), encoding="utf-8")
    about: dict[str, Any] = {
        "claim": claim_as_json(published.claim),
        "coverage": dataclasses.asdict(published.coverage),
    }
    about |= {"faults": published.faults} if published.faults else {}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def load_publications(folder: Path) -> Publications:
    """Read the publications that `save_publications` wrote; vectors of documents are mapped from their files."""

    def array(name: str, mode: Literal["r"] | None = None) -> np.ndarray | None:
        path = folder / f"{name}.npy"
        return np.asarray(np.load(path, mode, allow_pickle=False)) if os.path.exists(path) else None

    documents = {split: vectors for split in SPLITS if (vectors := array(split, "r")) is not None}
    words = None
    if (vectors := array("words")) is not None:
        words = PublishedWords(json.loads((folder / "words.json").read_text("utf-8")), vectors, array("text_index"))
    texts = folder / "texts.json"
    about = json.loads((folder / "about.json").read_text("utf-8"))
    claim = claim_from_json(about["claim"])
    coverage = Coverage(**about["coverage"])
    return Publications(
        documents,
        array("predicted"),
        words,
        claim,
        coverage,
        array("probabilities"),
        array("ranks"),
        tuple(about.get("faults", ())),
        Texts(json.loads(texts.read_text("utf-8"))) if texts.is_file() else None,
    )
