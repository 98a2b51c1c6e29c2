"""Find the units of texts, tokens or words, whose vectors an encoder averages."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.attacks._reading.asking import questions
from leakboard.attacks._reading.joining import Joiner
from leakboard.attacks.bag_of_words import Split
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable
from leakboard.interfaces import Floats, Texts
from leakboard.logs import log_progress
from leakboard.models import static_vectors
from leakboard.models.static_vectors import StaticVectors
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import TextsView

SAMPLE = 20
"""Known texts whose vectors are compared with means."""
LARGEST_ERROR = 1e-3
"""Largest distance of their vectors from means (share of their length)."""


@dataclass(frozen=True)
class Units:
    """Units with their vectors, and how texts are split into units and joined again."""

    names: list[str]
    vectors: Floats
    """float32 (units, d)."""
    split: Split
    """Splits texts into units that have a vector."""
    join: Callable[[Mapping[int, int]], list[str]]
    """Returns the words of a text from how often each unit is in it."""
    source: str
    """Where the vectors are from."""

    def explain(self, known: KnownTexts) -> bool:
        """Return whether vectors of known texts are the means of their units' vectors."""
        if known.vectors.shape[1] != self.vectors.shape[1]:
            return False
        rows = {name: row for row, name in enumerate(self.names)}
        texts = [[rows[name] for name in text] for text in self.split(known.texts[:SAMPLE])]
        published = np.array([vector for vector, text in zip(known.vectors, texts, strict=False) if text])
        means = np.array([self.vectors[text].mean(0) for text in texts if text])
        return len(means) > 0 and bool(np.linalg.norm(means - published) < LARGEST_ERROR * np.linalg.norm(published))


def public_tokens(view: TextsView) -> Units:
    """Return the tokens of the public table of static vectors.

    Raises:
        RequestError: the table's package is not installed.
    """
    vectors = StaticVectors.read(*static_vectors.wordllama())
    names = [str(vectors.tokenizer.id_to_token(row)) for row in range(len(vectors.table))]

    def split(texts: Sequence[str]) -> list[list[str]]:
        return [[names[row] for row in rows] for rows in vectors.tokens(texts)]

    join = Joiner.of(vectors, [*view.train.texts, *view.dev.texts])
    return Units(names, vectors.table, split, join, f"{len(names)} public tokens")


def asked_words(view: TextsView, limit: int) -> Units:
    """Return the most frequent words of the attacker's texts, with the vectors of texts of one word.

    The words of a sample of texts are asked for first. If means of their vectors are not the vectors of the texts, the
    attacker asks no more.

    Args:
        view: the attacker's view.
        limit: largest number of words beyond those of the sample.

    Raises:
        NotApplicable: the encoder does not answer, or the vectors of the sample are no means.
    """
    encode, who = questions(view)
    if encode is None:
        raise NotApplicable(f"no vectors of words can be asked for: {who}")
    counts = Counter(word for text in [*view.train.texts, *view.dev.texts] for word in words(text))
    first = sorted({word for text in view.train.texts[:SAMPLE] for word in words(text)})
    others = sorted(counts.keys() - set(first), key=lambda word: (-counts[word], word))[:limit]
    vectors, empty = np.split(encode(Texts([*first, ""])), [len(first)])
    if not _words(first, vectors, empty, who).explain(view.train):
        raise NotApplicable("the published vectors are no means of vectors of words")
    if others:
        log_progress(f"asking for the vectors of {len(others)} words")
        vectors = np.concatenate([vectors, encode(Texts(others))])
    return _words([*first, *others], vectors, empty, who)


def _words(asked: list[str], vectors: Floats, empty: Floats, who: str) -> Units:
    """Return words as units. Words with the vector of an empty text are left out: they leave no trace."""
    traced = np.flatnonzero((vectors != empty).any(1))
    names = [asked[row] for row in traced]
    known = set(names)

    def split(texts: Sequence[str]) -> list[list[str]]:
        return [[word for word in words(text) if word in known] for text in texts]

    def join(counts: Mapping[int, int]) -> list[str]:
        return sorted(names[row] for row in counts)

    return Units(names, vectors[traced], split, join, f"{len(names)} words by {who}")
