"""Score word recovery (Zouhri and Abecidan 2021): is the true word among the first candidates?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Integers
from leakboard.metrics.intervals import Array
from leakboard.metrics.measures import Metric, Ratio, advantage, remaining_privacy

HEADLINE = 5
"""The headline counts a word as recovered if it is among this many first candidates."""
SENTENCES = 20
"""Number of recovered texts that a record keeps."""
UNPUBLISHED, ASKED = -1, -2
"""Marks instead of a row: the word has no vector, or the attacker asked for it."""


@dataclass(frozen=True)
class WordGuesses:
    """Ranked candidate words: row i of ``ranked`` holds indices into ``vocabulary``, best first; -1: no candidate."""

    vocabulary: list[str]
    ranked: Integers
    """int64 (V, k)."""
    similarity: Floats
    """float32 (V, k): cosine similarities of the candidates."""
    details: str = ""


@dataclass(frozen=True)
class RecoveredSentence:
    """A test text with the text that the attacker reads from its vectors.

    A word without a vector is an underscore; a word that the attacker knew before is in brackets.
    """

    text: str
    recovered: str
    words_right: int
    words: int
    similarity: float | None
    """Mean cosine of the first candidates; None if no word has a vector, and for attacks on whole texts."""
    similarities: str = ""
    """Cosine of the first candidate for each word, as in ``0.81 _ 0.67``; empty if `similarity` is None.

    A word without a vector or a candidate is an underscore, and so is one that the attacker asked for.
    """


def word_metrics(
    guesses: WordGuesses, published: Sequence[str], frequent: Sequence[str], units: Integers | None = None
) -> list[Metric]:
    """Return recall at 1 to 5 and mean reciprocal rank over the published vectors.

    A word that the attacker does not know cannot be recovered, but counts in the denominator.

    Args:
        guesses: one row of ranked candidates for each published vector.
        published: the true words, in the same order.
        frequent: the best constant guess: the most frequent words of train that the attacker did not ask for.
        units: int64 (V,), the text of each vector, since words of one text are not independent.

    Raises:
        NotApplicable: there is no vector to name.
        RequestError: the guesses are of a wrong shape, out of range or not finite.
    """
    if not len(published):
        raise NotApplicable("no published word is left to name: the attacker asked for every one (fewer anchors?)")
    ranks = true_ranks(guesses, published)
    words, every = np.asarray(published), np.ones(len(ranks))
    hits = {k: Ratio((ranks < k).astype(np.float64), every, units) for k in range(1, HEADLINE + 1)}
    by_constant = Ratio(np.isin(words, frequent[:HEADLINE]).astype(np.float64), every, units)
    reciprocal = Ratio(np.where(np.isfinite(ranks), 1 / (ranks + 1), 0.0), every, units)
    known_share = float(np.isin(words, guesses.vocabulary).mean())
    return [
        hits[HEADLINE].metric("attack_score"),
        remaining_privacy(hits[HEADLINE], by_constant),
        *advantage(hits[HEADLINE], by_constant),
        Metric("privacy_best_constant", 1 - by_constant.value, n=len(ranks)),
        *(hit.metric(f"recall@{k}") for k, hit in hits.items()),
        reciprocal.metric("mean_reciprocal_rank"),
        Metric("known_to_attacker", known_share, n=len(ranks)),
    ]


def true_ranks(guesses: WordGuesses, published: Sequence[str]) -> Array:
    """Return the rank of the true word among the candidates, from 0, float64 (V,); infinite if it is missing.

    Raises:
        RequestError: the guesses are of a wrong shape, out of range or not finite.
    """
    ranked = guesses.ranked
    if len(ranked) != len(published):
        raise RequestError(f"the attack ranked {len(ranked)} vectors, {len(published)} were published")
    if guesses.similarity.shape != ranked.shape or not np.isfinite(guesses.similarity).all():
        raise RequestError("the attack's similarities are not one finite number for each candidate")
    if ranked.size and not -1 <= ranked.min() <= ranked.max() < len(guesses.vocabulary):
        raise RequestError(f"the attack ranked words outside its vocabulary of {len(guesses.vocabulary)}")
    codes = {word: code for code, word in enumerate(guesses.vocabulary)}
    gold = np.array([codes.get(word, -2) for word in published])
    match = ranked == gold[:, None]
    return np.where(match.any(1), match.argmax(1), np.inf)


def recovered_sentences(
    guesses: WordGuesses, published: Sequence[str], sentences: Sequence[tuple[str, Sequence[tuple[str, int]]]]
) -> list[RecoveredSentence]:
    """Replace the words of test texts by the attacker's first candidates (algorithm A2 of the study).

    Args:
        guesses: guesses about the published vectors.
        published: the word of each vector.
        sentences: each text with its words and the row of each word's vector. The row is `UNPUBLISHED` for a word
            without a vector, and `ASKED` for a word that the attacker asked for. Such a word is shown in brackets, and
            not counted.
    """
    best = [guesses.vocabulary[code] if code >= 0 else "_" for code in guesses.ranked[:, 0]]
    result = []
    for text, places in sentences:
        shown = [best[row] if row >= 0 else f"[{word}]" if row == ASKED else "_" for word, row in places]
        rows = [row for _, row in places if row >= 0]
        right = sum(best[row] == published[row] for row in rows)
        counted = sum(row != ASKED for _, row in places)
        similarity = float(guesses.similarity[rows, 0].mean()) if rows else None
        named = (guesses.similarity[row, 0] if row >= 0 and guesses.ranked[row, 0] >= 0 else None for _, row in places)
        each = ["_" if cosine is None else f"{cosine:.2f}" for cosine in named]
        result.append(
            RecoveredSentence(text, " ".join(shown), right, counted, similarity, " ".join(each) if rows else "")
        )
    return result
