"""Replace the words of texts by a channel: each word alone, so that the claim is about one word.

The published text has as many words, and an empty text stays empty: the number of words is public.

| rule | a word outside the vocabulary becomes |
|---|---|
| ``token`` | the token, a word of the vocabulary, which the mechanism then replaces as any word |
| ``kept`` | itself, as in the code of MLDP and CusText (`leakboard.privacy.channels.unknown_words`) |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.random import Generator

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import FittedChannel
from leakboard.privacy.channels.unknown_words import with_unknown_words

TOKEN = "unk"  # noqa: S105 (no password)
"""The word of the vocabulary that stands for all words outside of it."""
OUTSIDE = ["<unknown 1>", "<unknown 2>"]
"""Words that stand for all words outside the vocabulary in an audit of the rule ``kept``."""
Rule = Literal["token", "kept"]


@dataclass(frozen=True)
class TextChannel:
    """A channel with a rule for words outside its vocabulary, which has the word `TOKEN`."""

    known: FittedChannel
    unknown: Rule = "token"
    true_epsilon: float | None = None
    """The largest log-ratio of two words over all outputs, whatever the claim's distance; None: not computed."""

    @cached_property
    def rows(self) -> dict[str, int]:
        """The index of each word of the vocabulary."""
        return {word: row for row, word in enumerate(self.known.space.words)}

    @property
    def token(self) -> int:
        """The index of the token."""
        return self.rows[TOKEN]

    @property
    def audited(self) -> FittedChannel:
        """The channel whose matrix an audit reads: with two words outside the vocabulary if these are kept."""
        if self.unknown == "token":
            return self.known
        return with_unknown_words(self.known, OUTSIDE, self.token, "kept")

    def inputs(self, plain: Sequence[str]) -> Integers:
        """Return the index of each word, int64 (n,); the token's for a word outside the vocabulary."""
        return np.array([self.rows.get(word, self.token) for word in plain], np.int64)

    def publish(self, texts: Sequence[Sequence[str]], rng: Generator) -> list[list[str]]:
        """Replace the words of texts; all words of all texts are drawn independently."""
        every = [word for text in texts for word in text]
        vocabulary = self.known.space.words
        drawn = [vocabulary[row] for row in self.known.sample(self.inputs(every), rng)]
        if self.unknown == "kept":
            drawn = [new if word in self.rows else word for word, new in zip(every, drawn, strict=True)]
        left = iter(drawn)
        return [[next(left) for _ in text] for text in texts]
