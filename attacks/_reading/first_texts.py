"""Write likely texts from the evidence for each word and the law of word order.

With a prior over texts from `leakboard.models.trigrams` and independent evidence about words, Bayes' rule gives::

    ln P(text | vector) = ln P(text) + weight * (sum over different words of their evidence) + constant

The evidence for a word is ln P(word | vector) / P(no word | vector), minus the same before the vector was seen. Beam
search finds texts with large values.
"""

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Floats, Integers
from leakboard.models.trigrams import Trigrams

Text = tuple[int, ...]
"""Codes of the words of a text."""
TEXTS_AT_ONCE = 100


def first_texts(
    evidence: Floats, trigrams: Trigrams, weight: float, words: int, beam: int, longest: int
) -> list[list[Text]]:
    """Return the likeliest texts of each vector, best first.

    Args:
        evidence: float32 (n, vocabulary).
        trigrams: the prior.
        weight: of the evidence, which is not independent.
        words: number of words that are tried, those with the largest evidence.
        beam: number of texts that are extended at each step.
        longest: largest number of words of a text.
    """
    words = min(words, evidence.shape[1])
    parts = np.array_split(evidence, max(1, len(evidence) // TEXTS_AT_ONCE))
    return [texts for part in parts for texts in _written(part, trigrams, weight, words, beam, longest)]


def _written(
    evidence: Floats, trigrams: Trigrams, weight: float, words: int, beam: int, longest: int
) -> list[list[Text]]:
    n, rows = len(evidence), np.arange(len(evidence))[:, None]
    chosen = np.argsort(-evidence, axis=1)[:, :words]
    gain = weight * np.take_along_axis(evidence, chosen, axis=1)
    options = np.concatenate([chosen, np.full((n, 1), trigrams.end)], axis=1)[:, None, :]
    line = np.full((n, 1, 2), trigrams.start)
    used, value = np.zeros((n, 1, words), bool), np.zeros((n, 1))
    finished: list[list[tuple[float, Text]]] = [[] for _ in range(n)]
    for step in range(longest + 1):
        law = trigrams.log_probabilities(line[:, :, -2, None], line[:, :, -1, None], options)
        new = np.where(used, 0.0, gain[:, None, :])
        total = value[:, :, None] + law + np.concatenate([new, np.zeros((*new.shape[:2], 1))], axis=2)
        if step:  # a text has a word
            _collect(finished, line, total[:, :, -1], beam)
        if step == longest:
            break
        flat = total[:, :, :-1].reshape(n, -1)
        best = np.argsort(-flat, axis=1)[:, :beam]
        parent, word = best // words, best % words
        value = np.take_along_axis(flat, best, axis=1)
        line = np.concatenate([line[rows, parent], chosen[rows, word][:, :, None]], axis=2)
        used = used[rows, parent]
        used[rows, np.arange(used.shape[1])[None, :], word] = True
    return [[text for _, text in texts] for texts in finished]


def _collect(finished: list[list[tuple[float, Text]]], line: Integers, ended: NDArray[np.float64], beam: int) -> None:
    """Keep the best texts that end here."""
    for texts, lines, values in zip(finished, line, ended, strict=True):
        found = [(float(value), tuple(map(int, codes[2:]))) for codes, value in zip(lines, values, strict=True)]
        texts[:] = sorted([*texts, *found], reverse=True)[:beam]
