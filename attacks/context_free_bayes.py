"""Guess each word of a sanitised text by Bayes' rule, from its published word alone.

The guess is argmax_x prior(x) P(y | x). The prior is the word's count in the attacker's own texts plus 1, and P(y | x)
is the channel's (Tong et al. 2025; for channels in general Alvim et al. 2015). Several publications multiply. An
attacker who reads the sentence can do better: `sequence_bayes`.
"""

from collections.abc import Sequence

from leakboard.attacks._reading.likely_words import OwnWords, lattices, read_words
from leakboard.suite.options import Count, attack
from leakboard.threats.sanitised_words import Reader, Releases, SanitisedWordsAttack, SanitisedWordsView, WordReadings

BEAM = 12
"""Likely words of each of several publications that are compared by all of them."""


@attack(revision=1)
class ContextFreeBayes(SanitisedWordsAttack):
    observations: Count = 1
    """Number of publications of each text that the attacker sees."""

    def fit(self, view: SanitisedWordsView, seed: int) -> Reader:
        """Count the attacker's own words."""
        own, channel = OwnWords.of(view.auxiliary, view.channel), view.channel
        beam = 1 if self.observations == 1 else BEAM

        def read(texts: Sequence[Releases]) -> WordReadings:
            found = lattices(channel, own, texts, beam)
            words = [read_words(own, channel, one.codes[:, 0], text[0]) for one, text in zip(found, texts, strict=True)]
            return WordReadings(words, f"prior of {len(own.texts):,} texts, {len(own.words):,} words")

        return read
