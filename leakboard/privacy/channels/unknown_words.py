"""Publish words outside the vocabulary: one public token in papers, other rules in released code.

| rule | an unknown word becomes |
|---|---|
| ``token`` | the token, which the mechanism then replaces as any word: ours, since papers name no rule |
| ``kept`` | itself |
| ``uniform`` | any word, known or not, with the same probability |

Sources of ``kept``: sjmeis/MLDP 65a9eb8, ``mechanisms.py:72-96``, and sai4july/CusText 4a3ced8,
``CusText/sst2/utils.py:266-275``. Source of ``uniform``: xiangyue9607/SanText 9c35f6e, ``SanText.py:73-77``.

Known words never become unknown ones. So under ``kept`` and ``uniform`` an unknown output proves an unknown input.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import ChannelClaim, FittedChannel, Precision
from leakboard.privacy.channels.words import Numbers, WordSpace


@dataclass(frozen=True)
class UnknownWords(FittedChannel):
    """A channel over the words of ``known`` and unknown words after them."""

    known: FittedChannel
    token: int
    """Index of the known word whose place unknown words take. The claim treats unknown words as this word."""
    rule: Literal["token", "kept", "uniform"]

    @property
    def claim(self) -> ChannelClaim:
        """The claim of the mechanism, for unknown words, too."""
        claim = self.known.claim
        return replace(claim, is_proved=claim.is_proved and self.rule == "token")

    @property
    def claimed_outputs(self) -> Integers:
        """The outputs of the mechanism's claim, and the unknown words."""
        return np.concatenate([self.known.claimed_outputs, np.arange(len(self.known), len(self))])

    @property
    def special_inputs(self) -> Integers:
        """The token, and the unknown words."""
        return np.append(np.arange(len(self.known), len(self)), self.token)

    @property
    def precision(self) -> Precision:
        """The precision of the mechanism."""
        return self.known.precision

    def distances(self, rows: Integers, columns: Integers) -> Numbers:
        """Return the mechanism's distances, with the token for unknown words."""
        return self.known.distances(self.known_of(rows), self.known_of(columns))

    def known_of(self, rows: Integers) -> Integers:
        """Return the words, with the token for unknown words, int64 (n,)."""
        return np.where(rows < len(self.known), rows, self.token)

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        logs = np.full((len(rows), len(self)), -np.inf)
        logs[:, : len(self.known)] = self.known.log_probabilities(self.known_of(rows))
        unknown = np.flatnonzero(rows >= len(self.known))
        if self.rule == "uniform":
            logs[unknown] = -math.log(len(self))
        if self.rule == "kept":
            logs[unknown] = -np.inf
            logs[unknown, rows[unknown]] = 0.0
        return logs


def with_unknown_words(
    known: FittedChannel, unknown: list[str], token: int, rule: Literal["token", "kept", "uniform"]
) -> UnknownWords:
    """Return the channel over known and unknown words.

    Args:
        known: the mechanism.
        unknown: words that are not in its vocabulary.
        token: index of the known word whose place unknown words take.
        rule: see the module's table.

    Raises:
        RequestError: an unknown word is known.
    """
    space = known.space
    vectors = np.vstack([space.vectors, np.repeat(space.vectors[token : token + 1], len(unknown), axis=0)])
    frequencies = None if space.frequencies is None else np.append(space.frequencies, np.zeros(len(unknown)))
    return UnknownWords(WordSpace([*space.words, *unknown], vectors, frequencies), known, token, rule)
