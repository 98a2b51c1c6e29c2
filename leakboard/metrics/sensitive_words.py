"""Score which of the words that matter come back: numbers, capitalised words and rare words.

| class | its words |
|---|---|
| ``numbers`` | words with a digit |
| ``capitalised words`` | words that the corpus writes mostly with a capital letter, beginnings of sentences left out |
| ``rare words`` | words in fewer than one of 1,000 texts that the attacker learns from |

Many capitalised words are persons, places and products; in German they are all nouns. A corpus in lower case has none.

``sensitive_*`` metrics score all three classes; there capitalised words are called ``names``. ``distinctive_*`` metrics
score words of the first two classes that at most 2 % of the attacker's texts have. Words of more texts, such as
weekdays and the prefix of telephone numbers, tell little about one text. Recall and precision are over different words,
pooled over texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.data.tokens import words
from leakboard.interfaces import Integers
from leakboard.metrics.measures import Metric, Ratio

RARE = 1e-3
"""A word is rare if a smaller share of the attacker's texts has it."""
WIDESPREAD = 0.02
"""A word is distinctive if no larger share of the attacker's texts has it."""
SENTENCE_ENDS = (".", "!", "?", ":", "…")
CLOSING = "\"'\u201d\u2019\u00bb)]"
"""Closing quotes and brackets, which may stand after the end of a sentence."""
FIRST_PERSON = re.compile(r"\W*I['\u2019]")
"""Beginning of "I'll", which is no name."""


@dataclass(frozen=True)
class WordClass:
    """A kind of words."""

    metrics: str
    """Beginning of the names of its metrics."""
    name: str
    holds: Callable[[str], bool]
    """Whether a word belongs to it."""


def word_classes(corpus: Iterable[str], known: Sequence[str]) -> list[WordClass]:
    """Return the classes of words that matter.

    Args:
        corpus: all texts, as they are written.
        known: the texts that the attacker learns from.
    """
    named = capitalised_words(corpus)
    holding = Counter(word for text in known for word in set(words(text)))
    frequent = {word for word, count in holding.items() if count >= RARE * len(known)}
    widespread = {word for word, count in holding.items() if count > WIDESPREAD * len(known)}
    return [
        WordClass("sensitive", "numbers", has_digit),
        WordClass("sensitive", "names", named.__contains__),
        WordClass("sensitive", "rare words", lambda word: word not in frequent),
        WordClass("distinctive", "numbers", lambda word: has_digit(word) and word not in widespread),
        WordClass("distinctive", "capitalised words", (named - widespread).__contains__),
    ]


def has_digit(word: str) -> bool:
    """Return whether a word counts as a number."""
    return any(character.isdigit() for character in word)


def capitalised_words(texts: Iterable[str]) -> set[str]:
    """Return words that are mostly written with a capital letter, except where a sentence begins."""
    written, capital = Counter[str](), Counter[str]()
    for text in texts:
        begins = True
        for token in text.split():
            word = "".join(words(token))
            if len(word) > 1 and not begins and not FIRST_PERSON.match(token):
                written[word] += 1
                capital[word] += re.sub(r"^\W+", "", token)[:1].isupper()
            begins = token.rstrip(CLOSING).endswith(SENTENCE_ENDS)
    return {word for word, count in capital.items() if 2 * count > written[word]}


def sensitive_metrics(
    guessed: Sequence[str], truth: Sequence[str], units: Integers | None, classes: Sequence[WordClass]
) -> list[Metric]:
    """Return recall and precision of the words of each class."""
    metrics = []
    for kind in classes:
        held, named = ([{w for w in words(text) if kind.holds(w)} for text in texts] for texts in (truth, guessed))
        shared = np.array([len(a & b) for a, b in zip(held, named, strict=True)], np.float64)
        for name, of, whose in (("recall", held, "test texts"), ("precision", named, "guesses")):
            score = Ratio(shared, np.array([len(found) for found in of], np.float64), units)
            if score.denominator.any():
                metrics.append(score.metric(f"{kind.metrics}_{name}", kind.name))
            else:
                status = f"the {whose} have no such words"
                metrics.append(Metric(f"{kind.metrics}_{name}", None, kind.name, n=len(truth), status=status))
    return metrics
