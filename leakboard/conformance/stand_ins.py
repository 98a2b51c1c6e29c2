"""Make the corpus that victims are fitted on, and a victim for attacks."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from leakboard.claims import ReleaseClaim
from leakboard.data.tokens import words
from leakboard.interfaces import (
    Corpus,
    FittedVictim,
    Floats,
    Publication,
    PublishedWords,
    Secret,
    Strings,
    Texts,
    Victim,
)
from leakboard.privacy.mechanisms.cube import CubeRelease
from leakboard.privacy.mechanisms.normalisation import min_max
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.suite.options import Count, victim

PERSONS = ("anna", "otto")


@functools.cache
def corpus() -> Corpus:
    """Return 120 texts by 40 users; their words show a label, an attribute and two entities."""
    import pandas as pd

    from leakboard.data.corpora import build_corpus

    rng = np.random.default_rng(0)
    names = [f"{first}{second}" for first in "bdfglmnprst" for second in ("an", "ell", "ik", "on", "ura", "yt")]
    frequent = 1 / np.arange(1, len(names) + 1)
    rows: list[dict[str, Any]] = []
    for user in range(40):
        age = int(rng.integers(3))
        for _ in range(3):
            label, *persons = (int(rng.random() < share) for share in (0.5, 0.4, 0.2))
            shown = [("dull", "fine")[label], ("young", "ripe", "old")[age]]
            shown += [name for name, is_present in zip(PERSONS, persons, strict=True) if is_present]
            text = " ".join([*shown, *rng.choice(names, 12, p=frequent / frequent.sum()), f"text{len(rows)}."])
            values = {"label": label, "age": age} | dict(zip(PERSONS, persons, strict=True))
            rows.append({"text": text, "row": len(rows), "user": f"user {user}", **values})
    frame = pd.DataFrame(rows)
    splits = {"train": frame[:72], "dev": frame[72:90], "test": frame[90:]}
    secrets = [Secret("age", ("young", "ripe", "old"), "attribute")]
    secrets += [Secret(name, ("absent", "present"), "entity") for name in PERSONS]
    return build_corpus("conformance", splits, secrets, ("dull", "fine"))


@functools.cache
def corpus_without_labels() -> Corpus:
    """Return the same texts without a task label."""
    whole = corpus()
    return dataclasses.replace(whole, splits=whole.splits.remove_columns("label"))


def corpus_for(victim: Victim) -> Corpus:
    """Return the corpus that a victim's example is fitted on."""
    return victim.example_corpus() or corpus()


def published(victim: Victim, fitted: FittedVictim, corpus: Corpus) -> list[Any]:
    """Return all publications of the test texts, and the fitted victim's predictions."""
    texts = corpus.texts("test")
    result: list[Any] = []
    if "documents" in victim.publishes:
        vectors = fitted.publish_documents(texts, np.random.default_rng(0))
        result.append(vectors)
        if corpus.has_labels:
            result.append(fitted.predict(vectors))
    if "words" in victim.publishes:
        result.append(fitted.publish_words(texts, np.random.default_rng(0)))
    if not {"texts", "rewritten_texts"}.isdisjoint(victim.publishes):
        result.append(list(fitted.publish_texts(texts, np.random.default_rng(0))))
    return result


@victim
class Tabled(Victim):
    """A table of words: a word's vector is the sum of its neighbours' random vectors.

    The vector of a text is the mean of its words' vectors. With an epsilon the victim adds noise. It publishes
    documents, words and releases, so that most attacks apply to it.
    """

    dimensions: Count = 8
    """Length of a vector."""
    epsilon: Positive | None = None
    """Epsilon claimed for one release; null adds no noise."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words", "releases")

    def fit(self, corpus: Corpus, seed: int) -> FittedTabled:
        """Sum the vectors of the neighbours of every word that occurs twice."""
        texts = [words(text) for text in corpus.texts("train")]
        counts = Counter(word for text in texts for word in text)
        vocabulary = np.array(sorted(word for word, count in counts.items() if count > 1))
        rows = {word: row for row, word in enumerate(vocabulary)}
        random = np.random.default_rng(seed).standard_normal((len(rows), self.dimensions))
        table = random.copy()
        for text in texts:
            for first, second in pairwise(rows[word] for word in text if word in rows):
                table[first] += random[second]
                table[second] += random[first]
        return FittedTabled(vocabulary, min_max(table).astype(np.float32), self.epsilon)


@dataclass(frozen=True)
class FittedTabled(FittedVictim):
    """A table of words, fitted."""

    vocabulary: Strings
    table: Floats
    epsilon: float | None

    @property
    def mechanism(self) -> CubeRelease | None:
        """Noise on the unit cube; None without an epsilon."""
        return None if self.epsilon is None else CubeRelease(self.table.shape[1], self.epsilon, calibration="l1")

    @property
    def claim(self) -> ReleaseClaim | None:
        """The mechanism's claim."""
        return self.mechanism.claim("word") if self.mechanism else None

    def inputs(self, texts: Texts) -> Floats:
        """Return the mean of the vectors of each text, float32 (n, d)."""
        rows = {word: row for row, word in enumerate(self.vocabulary)}
        known = [[rows[word] for word in words(text) if word in rows] for text in texts]
        centre = np.full(self.table.shape[1], 0.5, np.float32)
        return np.stack([self.table[chosen].mean(0) if chosen else centre for chosen in known])

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Release the mean vector of each text."""
        return self._released(self.inputs(texts), rng)

    def unprotected(self, texts: Texts) -> Floats:
        """Return the mean vector of each text: the table counts as public."""
        return self.inputs(texts)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Release the table."""
        return PublishedWords(self.vocabulary.tolist(), self._released(self.table, rng))

    def _released(self, vectors: Floats, rng: np.random.Generator) -> Floats:
        return self.mechanism.release(vectors, rng).astype(np.float32) if self.mechanism else vectors
