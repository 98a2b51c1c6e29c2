"""Make texts that the victim has not seen, read their secrets, and let the victim publish them.

A trained encoder treats new texts in another way than those of train: it has seen all words and neighbours of train.
An attacker that knows vectors of train alone learns from vectors unlike those of the test texts. Made texts are new to
the victim, and there may be as many as the attacker likes. A classifier of vectors learns the answers of a classifier
of texts: distillation (Hinton, Vinyals and Dean 2015), without its probabilities.

1. A made text is the start of one known text and the end of another.
2. Some of its words are replaced, by random words of known texts or by shuffled letters. The more new words and new
   neighbours the new texts of dev have, the more words are replaced.
3. A classifier of texts that learned from train guesses the secrets of each made text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.logs import log_progress
from leakboard.metrics.baselines import read_secrets
from leakboard.threats.secrets import KnownTexts, SecretsView


def publish_made_texts(view: SecretsView, number: int, seed: int) -> KnownTexts:
    """Return made texts with guessed secrets, as the victim publishes them.

    Args:
        view: the attacker's view.
        number: of the texts.
        seed: draws the texts.
    """
    texts = Splicer.of(view.train.texts, view.dev.texts)(number, np.random.default_rng(seed))
    log_progress(f"vectors of {number:,} made texts")
    vectors = view.oracle.encode(texts)
    log_progress(f"secrets of {number:,} made texts")
    train, dev = (
        (part.texts, np.stack([part.values[secret.name] for secret in view.secrets], axis=1))
        for part in (view.train, view.dev)
    )
    guesses = read_secrets(view.secrets, train, dev, texts, seed)
    values = {secret.name: guesses[:, column] for column, secret in enumerate(view.secrets)}
    return KnownTexts(texts, vectors, values)


@dataclass(frozen=True)
class Splicer:
    """Makes texts from pairs of known texts."""

    texts: Sequence[Sequence[str]]
    """The strings between blanks of each known text that is not empty."""
    replaced: float
    """Half of the largest share of words that are replaced in a text."""
    unknown: float
    """Share of the replaced words that become shuffled letters, which are hardly ever a known word."""

    @classmethod
    def of(cls, train: Sequence[str], dev: Sequence[str]) -> Splicer:
        """Choose the shares by the texts of dev that are not in train, or by all if none is new.

        Raises:
            RequestError: no known text has a word.
        """
        pairs = {pair for text in train for pair in itertools.pairwise(words(text))}
        seen = {word for text in train for word in words(text)}
        known = set(train)
        new = [words(text) for text in dev if text not in known] or [words(text) for text in dev]
        new_words = _share([word not in seen for text in new for word in text])
        new_pairs = _share([pair not in pairs for text in new for pair in itertools.pairwise(text)])
        replaced = 1 - math.sqrt(1 - new_pairs)  # a pair is new if one of its two words was replaced
        unknown = min(new_words / replaced, 1.0) if replaced else 0.0
        if not (texts := [text.split() for text in train if text.split()]):
            raise RequestError("made_texts: no known text has a word to make texts from")
        return cls(texts, replaced, unknown)

    def __call__(self, number: int, rng: np.random.Generator) -> Texts:
        """Return made texts; each has its own share of replaced words, uniform from 0 to the largest."""
        pool = np.array([word for text in self.texts for word in text], dtype=object)
        chosen = rng.integers(len(self.texts), size=(number, 2))
        made = []
        for (first, second), cut, share in zip(
            chosen, rng.random(number), rng.uniform(0, min(2 * self.replaced, 1.0), number), strict=True
        ):
            start, end = self.texts[first], self.texts[second]
            kept = round(cut * len(start))
            text = [*start[:kept], *end[max(0, len(end) - len(start) + kept) :]]
            places = np.flatnonzero(rng.random(len(text)) < share)
            drawn = pool[rng.integers(len(pool), size=len(places))]
            for place, word, is_unknown in zip(places, drawn, rng.random(len(places)) < self.unknown, strict=True):
                text[place] = "".join(rng.permutation(list(word * 2))) if is_unknown else word
            made.append(" ".join(text))
        return Texts(made)


def _share(events: Sequence[bool]) -> float:
    return sum(events) / len(events) if events else 0.0
