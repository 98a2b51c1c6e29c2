"""Guess the words of a sanitised text by Bayes' rule from the whole text: the channel, and trigrams as the prior.

1. Trigrams of the attacker's own texts say how likely a word is after two others (`leakboard.models.trigrams`).
2. At each place the ``candidates`` likeliest words are taken: those with the largest prior(x) P(y | x), several
   publications multiplied.
3. Own texts of the same topic change the prior (`leakboard.attacks._reading.topics`): once from single words, and again
   from pairs of words. The ``beam`` likeliest words under pairs stay.
4. The forward-backward algorithm gives each word's posterior probability, or Viterbi's gives the likeliest text.

If the trigrams were the law of the texts, and with a beam of all words, no attacker would get more words right on
average. They are an estimate. So the attacker publishes dev texts of its own by the channel, and chooses the exponent w
of the prior trigrams(x)^w words(x)^(1 - w), and then the share of the topic, that read most of them right. At w = 0 and
without a topic it looks at single words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._reading.lattice import Pairs, likeliest_text, likeliest_words, pair_posteriors, shares
from leakboard.attacks._reading.likely_words import Lattice, Numbers, OwnWords, lattices, read_words
from leakboard.attacks._reading.topics import Topics
from leakboard.data.tokens import words
from leakboard.interfaces import Integers
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
TOPICS = (0.5, 0.0)
"""Shares of the topic in the prior of single words that are tried; the first of equal ones is chosen."""
CHOSEN_ON = 100
"""Largest number of dev texts on which the exponent and the topic are chosen.

Their words are also counted in the prior of single words, so the choice slightly favours small exponents.
"""
Choice = tuple[float, float]
"""The exponent of the trigrams, and the share of the topic."""


@attack(revision=2)
class SequenceBayes(SanitisedWordsAttack):
    observations: Count = 1
    """Number of publications of each text that the attacker sees."""
    candidates: Count = 64
    """Likely words at each place from which pairs of words choose, at least as many as the beam; time and memory grow
    with its square."""
    beam: Count = 12
    """Words at each place that trigrams see; time and memory grow with its third power."""
    decoding: Literal["words", "text"] = "words"
    """words: the likeliest word at each place, which gets most words right; text: the likeliest text."""
    weight: Annotated[float, Field(ge=0, le=1)] | None = None
    """Exponent of the trigrams in the prior; null: chosen on dev texts of the attacker's own."""
    topic: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of the topic in the prior of single words; null: 0 or 0.5, chosen on dev texts of the attacker's own."""

    def fit(self, view: SanitisedWordsView, seed: int) -> Reader:
        """Count the attacker's own words, pairs and triples, and publish its dev texts."""
        own, channel = OwnWords.of(view.auxiliary, view.channel), view.channel
        train, is_chosen = own.texts[: len(view.auxiliary.texts("train"))], None in (self.weight, self.topic)
        dev = [words(text) for text in view.auxiliary.texts("dev")[: CHOSEN_ON if is_chosen else 0]]
        rng = np.random.default_rng(seed)
        tried: list[Releases] = [*zip(*(channel.publish(dev, rng) for _ in range(self.observations)), strict=True)]
        known, law = (Prior.of(own, texts) for texts in (train, own.texts))

        def read(texts: Sequence[Releases]) -> WordReadings:
            most = min(max(self.candidates, self.beam), len(own.words))
            found = lattices(channel, own, [*tried, *texts], most)
            found_of_dev, found_of_texts = found[: len(tried)], found[len(tried) :]

            def best(options: Sequence[Choice]) -> Choice:
                """Return the options that read most words of the dev texts right, the first of equal ones."""
                right = np.zeros(len(options), np.int64)
                for one, releases, text in zip(found_of_dev, tried, dev, strict=True):
                    for i, codes in enumerate(self._codes(one, known, options)):
                        right[i] += sum(map(str.__eq__, read_words(own, channel, codes, releases[0]), text))
                return options[int(right.argmax())]

            weight, topic = self.weight, self.topic
            if weight is None:
                assumed = TOPICS[0] if topic is None else topic
                weight, _ = best([(weight, assumed) for weight in WEIGHTS])
            if topic is None:
                _, topic = best([(weight, topic) for topic in TOPICS])
            guessed = [
                read_words(own, channel, *self._codes(one, law, [(weight, topic)]), text[0])
                for one, text in zip(found_of_texts, texts, strict=True)
            ]
            size = f"{len(own.texts):,} texts, {len(own.words):,} words"
            return WordReadings(guessed, f"trigrams of {size}, weight {weight:g}, topic {topic:g}")

        return read

    def _codes(self, lattice: Lattice, prior: "Prior", options: Sequence[Choice]) -> list[Integers]:
        """Return the code of the word that is read at each place, int64 (T,), for each of the options."""
        if not len(lattice.codes):
            return [np.empty(0, np.int64)] * len(options)
        single, pairs = lattice.logs + prior.words[lattice.codes], Pairs.of(lattice.codes, prior.trigrams)
        decode = likeliest_words if self.decoding == "words" else likeliest_text
        read = []
        for weight, topic in options:
            wide = prior.mixed(lattice, shares(single), weight, topic)
            posterior = pair_posteriors(wide.logs, pairs, weight)
            narrow = prior.mixed(lattice, posterior, weight, topic).best(posterior, self.beam)
            read.append(decode(narrow, prior.trigrams, weight))
        return read


@dataclass(frozen=True)
class Prior:
    """What an attacker knows of texts before it sees one."""

    words: Numbers
    """The logarithm of each word's share, float64 (W,)."""
    trigrams: Trigrams
    topics: Topics

    @classmethod
    def of(cls, own: OwnWords, texts: Sequence[Integers]) -> "Prior":
        """Count the pairs, the triples and the topics of texts, given as codes of the attacker's words."""
        return cls(own.log_prior, Trigrams.fit(texts, len(own.words)), Topics.of(texts, len(own.words)))

    def mixed(self, lattice: Lattice, posterior: Numbers, weight: float, topic: float) -> Lattice:
        """Return the lattice with the prior of single words and of the topic.

        Args:
            lattice: of T places with k candidates.
            posterior: of the candidates, float64 (T, k).
            weight: exponent of the trigrams.
            topic: share of the topic.
        """
        gains = self.topics.log_gains(lattice.codes, posterior, self.words, topic)
        return replace(lattice, logs=lattice.logs + (1 - weight) * self.words[lattice.codes] + gains)
