"""Score attacks that read the words of texts whose words were replaced.

The headline is the share of words that are right. It is compared with the better of two guesses: every published word
is the true one, and every word is the most frequent one. Intervals are over texts, or over authors where these are
known.

| words | which |
|---|---|
| names | words of the names of the corpus's people (secrets of the kind entity) |
| numbers | words with a digit |
| rare words | words that occur at most `RARE` times in the attacker's own texts |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.metrics.measures import Metric, Ratio, advantage, remaining_privacy
from leakboard.metrics.sensitive_words import has_digit
from leakboard.metrics.word_scores import SENTENCES, RecoveredSentence

RARE = 5
"""Largest number of occurrences of a rare word in the attacker's own texts."""
Words = Sequence[Sequence[str]]
"""The words of each text."""


@dataclass(frozen=True)
class WordReadings:
    """The words that the attacker reads: as many for each text as were published."""

    texts: Words
    details: str = ""


def sanitised_metrics(
    read: Words,
    truth: Words,
    published: Words,
    frequent: str,
    sensitive: Mapping[str, Callable[[str], bool]],
    units: Integers | None = None,
) -> list[Metric]:
    """Return the share of words that are right, of all words and of sensitive ones.

    Args:
        read: the attacker's words of each text.
        truth: the private words of each text.
        published: the published words of each text.
        frequent: the most frequent word.
        sensitive: for each kind of sensitive words, whether a word is one.
        units: int64 (n,), the author of each text, if known.

    Raises:
        RequestError: a text is missing, or was read with another number of words.
    """
    if len(read) != len(truth):
        raise RequestError(f"the attack read {len(read)} texts, {len(truth)} were published")
    for place, (one, other) in enumerate(zip(read, truth, strict=True)):
        if len(one) != len(other):
            raise RequestError(f"text {place}: the attack read {len(one)} words, {len(other)} were published")
    found = _right(read, truth, units)
    kept = _right(published, truth, units)
    by_frequent = _right([[frequent] * len(text) for text in truth], truth, units)
    constant = max(kept, by_frequent, key=lambda ratio: ratio.value)
    metrics = [
        found.metric("attack_score"),
        remaining_privacy(found, constant),
        *advantage(found, constant),
        Metric("privacy_best_constant", 1 - constant.value, n=len(truth)),
        found.metric("words_right"),
        kept.metric("words_kept"),
    ]
    chosen = {**sensitive, "sensitive": lambda word: any(is_one(word) for is_one in sensitive.values())}
    for name, is_one in chosen.items():
        right = _right(read, truth, units, is_one)
        known = right.metric(f"{name}_right") if right.denominator.any() else Metric(f"{name}_right", None, n=0)
        metrics.append(known)
    return metrics


def _right(
    read: Words, truth: Words, units: Integers | None, is_counted: Callable[[str], bool] = lambda word: True
) -> Ratio:
    """Return the share of counted words that are right."""
    right, counted = np.zeros(len(truth)), np.zeros(len(truth))
    for place, (one, other) in enumerate(zip(read, truth, strict=True)):
        same = [guess == word for guess, word in zip(one, other, strict=True) if is_counted(word)]
        right[place], counted[place] = sum(same), len(same)
    return Ratio(right, counted, units)


def sensitive_kinds(names: Sequence[str], own_counts: Mapping[str, int]) -> dict[str, Callable[[str], bool]]:
    """Return the kinds of sensitive words.

    Args:
        names: words of people's names, in lower case.
        own_counts: how often each word occurs in the attacker's own texts.
    """
    return {
        "names": frozenset(names).__contains__,
        "numbers": has_digit,
        "rare": lambda word: own_counts.get(word, 0) <= RARE,
    }


def read_sentences(read: Words, truth: Words, texts: Sequence[str]) -> list[RecoveredSentence]:
    """Return the first texts next to what the attacker reads, for people to look at."""
    shown = list(zip(texts, read, truth, strict=True))[:SENTENCES]
    return [
        RecoveredSentence(text, " ".join(one), sum(map(str.__eq__, one, other)), len(other), None)
        for text, one, other in shown
    ]
