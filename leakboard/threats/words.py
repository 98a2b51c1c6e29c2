"""Name the words of published word vectors (Zouhri and Abecidan 2021).

The attacker has texts of its own and the victim's recipe, and may query the vectors of words. The published vectors
come without words and in random order. The attacker answers with ranked candidates for each vector. Words of a static
table that the attacker queried are not scored. The headline is recall at 5: the share of vectors whose word is
among the first five candidates.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakboard.claims import PrivacyClaim
from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Attack, Corpus, Floats, Integers, PublishedWords
from leakboard.metrics.measures import Metric
from leakboard.metrics.word_scores import (
    ASKED,
    HEADLINE,
    SENTENCES,
    UNPUBLISHED,
    WordGuesses,
    recovered_sentences,
    word_metrics,
)
from leakboard.threats.oracle import Oracle
from leakboard.threats.threat import AttackResult, Threat, VictimSide, attacker_corpus, expect, shuffled

__all__ = ["Namer", "WordGuesses", "WordsAttack", "WordsThreat", "WordsView"]


@dataclass(frozen=True)
class WordsView:
    """The view of an attacker of word vectors before it sees them."""

    auxiliary: Corpus
    """Texts that the attacker collected: train and dev."""
    contextual: bool
    """Whether a word's vector depends on its context; otherwise each word has one vector."""
    claim: PrivacyClaim | None
    """The victim's claim; it is public, and so is the mechanism."""
    oracle: Oracle


Namer = Callable[[Floats], WordGuesses]
"""Ranks candidate words for published vectors, float32 (V, d)."""


class WordsThreat(Threat["WordsAttack"]):
    """Word recovery: which word does a vector belong to?"""

    name: ClassVar = "words"
    sees: ClassVar = "the published vectors of words in random order, and texts of its own"
    title: ClassVar = "words: which word is this vector?"
    headline: ClassVar = f"recall@{HEADLINE}"
    headline_title: ClassVar = "share found among five candidates"
    found: ClassVar = "the right word is among five candidates in {score}, in {constant} without the vectors"
    things: ClassVar = "words"
    needs: ClassVar = "words"
    revision: ClassVar = 4

    def evaluate(self, attack: WordsAttack, side: VictimSide) -> AttackResult:
        """Show the vectors of the words that the attack did not query, in random order; score the ranked candidates.

        Raises:
            RequestError: the ranking is malformed, or the attack queried a static table after it saw the vectors.
        """
        published = published_words(side)
        auxiliary = attacker_corpus(side)
        view = WordsView(auxiliary, published.text_index is not None, side.published.claim, Oracle(side, auxiliary))
        namer = attack.fit(view, side.streams.seed_for("attack"))
        queried = view.oracle.queried if published.text_index is None else frozenset()
        kept = np.array([row for row, word in enumerate(published.words) if word not in queried], np.int64)
        vectors, order = shuffled(published.vectors[kept], side.streams.stream("shuffle"))
        rows = kept[order]
        guesses = namer(vectors)
        expect(guesses, WordGuesses, "words")
        if published.text_index is None and view.oracle.queried != queried:
            raise RequestError("an attack on words must query the victim before it sees the table, not afterwards")
        gold = [published.words[row] for row in rows]
        counts = Counter(word for text in side.corpus.texts("train") for word in words(text) if word not in queried)
        units = None if published.text_index is None else published.text_index[rows]
        metrics = word_metrics(guesses, gold, [word for word, _ in counts.most_common(HEADLINE)], units)
        position = np.full(len(published.words), ASKED)
        position[rows] = np.arange(len(rows))
        sentences = recovered_sentences(guesses, gold, _sentences(side, published, position))
        right, total = sum(s.words_right for s in sentences), sum(s.words for s in sentences)
        metrics.append(Metric("sentence_words_right", right / total if total else None, n=total))
        return AttackResult(
            secrets=("words",),
            test_size=len(rows),
            metrics=[*metrics, *view.oracle.ledger()],
            details=guesses.details,
            sentences=sentences[:SENTENCES],
            claim=side.published.claim,
        )


class WordsAttack(Attack):
    """An attack that names word vectors."""

    threat: ClassVar = WordsThreat()

    @abstractmethod
    def fit(self, view: WordsView, seed: int) -> Namer:
        """Learn to name vectors."""


def published_words(side: VictimSide) -> PublishedWords:
    """Return the words that a victim publishes."""
    assert side.published.words is not None, "attacks on words meet only victims that publish words"
    return side.published.words


def _sentences(
    side: VictimSide, published: PublishedWords, position: Integers
) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return the test texts with their words and the shuffled row of each word's vector."""
    texts = side.corpus.texts("test")
    if published.text_index is None:
        rows = {word: int(position[row]) for row, word in enumerate(published.words)}
        return [(text, [(word, rows.get(word, UNPUBLISHED)) for word in words(text)]) for text in texts]
    result: list[tuple[str, list[tuple[str, int]]]] = [(text, []) for text in texts]
    for row, (word, owner) in enumerate(zip(published.words, published.text_index, strict=True)):
        result[owner][1].append((word, int(position[row])))
    return result
