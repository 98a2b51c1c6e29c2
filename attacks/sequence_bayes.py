"""Guess the words of a sanitised text by Bayes' rule from the whole text: the channel, and trigrams as the prior.

1. Trigrams of the attacker's own texts say how likely a word is after two others (`leakboard.models.trigrams`).
2. At each place the ``beam`` likeliest words stay: those with the largest prior(x) P(y | x), several publications
   multiplied.
3. The forward-backward algorithm gives each word's posterior probability, or Viterbi's gives the likeliest text.

If the trigrams were the law of the texts, and with a beam of all words, no attacker would get more words right on
average. They are an estimate. So the attacker publishes dev texts of its own by the channel, and chooses the exponent w
of the prior trigrams(x)^w words(x)^(1 - w) that reads most of them right. At w = 0 it looks at single words.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._reading.lattice import likeliest_text, likeliest_words
from leakboard.attacks._reading.likely_words import Lattice, OwnWords, lattices, read_words
from leakboard.data.tokens import words
from leakboard.models.trigrams import Trigrams
from leakboard.suite.options import Count, attack
from leakboard.threats.sanitised_words import (
    Reader,
    Releases,
    SanitisedWordsAttack,
    SanitisedWordsView,
    WordReadings,
)

WEIGHTS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Exponents that are tried."""
CHOSEN_ON = 100
"""Largest number of dev texts on which the exponent is chosen."""


@attack(revision=1)
class SequenceBayes(SanitisedWordsAttack):
    observations: Count = 1
    """Number of publications of each text that the attacker sees."""
    beam: Count = 12
    """Likely words at each place; time and memory grow with its third power."""
    decoding: Literal["words", "text"] = "words"
    """words: the likeliest word at each place, which gets most words right; text: the likeliest text."""
    weight: Annotated[float, Field(ge=0, le=1)] | None = None
    """Exponent of the trigrams in the prior; null: chosen on dev texts of the attacker's own."""

    def fit(self, view: SanitisedWordsView, seed: int) -> Reader:
        """Count the attacker's own words, pairs and triples, and publish its dev texts."""
        own, channel = OwnWords.of(view.auxiliary, view.channel), view.channel
        decode = likeliest_words if self.decoding == "words" else likeliest_text
        dev = [words(text) for text in view.auxiliary.texts("dev")[: CHOSEN_ON if self.weight is None else 0]]
        rng = np.random.default_rng(seed)
        tried: list[Releases] = [*zip(*(channel.publish(dev, rng) for _ in range(self.observations)), strict=True)]
        known = Trigrams.fit(own.texts[: len(view.auxiliary.texts("train"))], len(own.words))
        law = Trigrams.fit(own.texts, len(own.words))

        def read_one(lattice: Lattice, text: Releases, law: Trigrams, weight: float) -> list[str]:
            mixed = replace(lattice, logs=lattice.logs + (1 - weight) * own.log_prior[lattice.codes])
            return read_words(own, channel, decode(mixed, law, weight), text[0])

        def right(found: Sequence[Lattice], weight: float) -> int:
            read = (read_one(one, text, known, weight) for one, text in zip(found, tried, strict=True))
            return sum(sum(map(str.__eq__, one, text)) for one, text in zip(read, dev, strict=True))

        def read(texts: Sequence[Releases]) -> WordReadings:
            found = lattices(channel, own, [*tried, *texts], self.beam)
            weight, found_of_dev = self.weight, found[: len(tried)]
            if weight is None:
                weight = max(WEIGHTS, key=lambda weight: right(found_of_dev, weight))
            guessed = [read_one(one, text, law, weight) for one, text in zip(found[len(tried) :], texts, strict=True)]
            details = f"trigrams of {len(own.texts):,} texts, {len(own.words):,} words, weight {weight:g}"
            return WordReadings(guessed, details)

        return read
