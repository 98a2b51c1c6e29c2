"""Guess the words of a sanitised text by Bayes' rule from the whole text: the channel, and trigrams as the prior.

1. Trigrams of the attacker's own texts say how likely a word is after two others (`leakboard.models.trigrams`).
2. At each place the ``beam`` likeliest words stay: those with the largest prior(x) P(y | x), several publications
   multiplied.
3. The forward-backward algorithm gives each word's posterior probability, or Viterbi's gives the likeliest text.

Under this prior, and with a beam of all words, no attacker gets more words right on average.
"""

from collections.abc import Sequence
from typing import Literal

from leakboard.attacks._reading.lattice import likeliest_text, likeliest_words
from leakboard.attacks._reading.likely_words import OwnWords, lattices, read_words
from leakboard.models.trigrams import Trigrams
from leakboard.suite.options import Count, attack
from leakboard.threats.sanitised_words import Reader, Releases, SanitisedWordsAttack, SanitisedWordsView, WordReadings


@attack(revision=1)
class SequenceBayes(SanitisedWordsAttack):
    observations: Count = 1
    """Number of publications of each text that the attacker sees."""
    beam: Count = 12
    """Likely words at each place; the time grows with its third power."""
    decoding: Literal["words", "text"] = "words"
    """words: the likeliest word at each place, which gets most words right; text: the likeliest text."""

    def fit(self, view: SanitisedWordsView, seed: int) -> Reader:
        """Count the attacker's own words, pairs and triples."""
        own, channel = OwnWords.of(view.auxiliary, view.channel), view.channel
        law = Trigrams.fit(own.texts, len(own.words))
        decode = likeliest_words if self.decoding == "words" else likeliest_text

        def read(texts: Sequence[Releases]) -> WordReadings:
            found = lattices(channel, own, texts, min(self.beam, len(own.words)))
            words = [
                read_words(own, channel, decode(one, law), text[0]) for one, text in zip(found, texts, strict=True)
            ]
            return WordReadings(words, f"trigrams of {len(own.texts):,} texts, {len(own.words):,} words")

        return read
