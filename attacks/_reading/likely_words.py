"""Find the words that a published word may have been: the likeliest inputs of a channel under the attacker's prior."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Corpus, Integers
from leakboard.privacy.channels.channel import ROWS, FittedChannel
from leakboard.privacy.channels.texts import TOKEN, TextChannel
from leakboard.threats.sanitised_words import Releases

Numbers = NDArray[np.float64]
PAIRS = 20_000_000
"""Pairs of a word and a published word whose probabilities are computed at once."""


@dataclass(frozen=True)
class OwnWords:
    """The words that the attacker thinks of: those of its own texts, and those of the channel."""

    words: list[str]
    counts: Numbers
    """How often each occurs in the attacker's texts, plus 1, float64 (W,)."""
    inputs: Integers
    """The channel's input of each word, int64 (W,); the token's for a word outside the vocabulary."""
    texts: list[Integers]
    """The attacker's texts as codes of these words."""

    @classmethod
    def of(cls, corpus: Corpus, channel: TextChannel) -> "OwnWords":
        """Count the words of train and dev; unseen words of the channel count as 1 (Tong et al. 2025)."""
        plain = [words(text) for split in ("train", "dev") for text in corpus.texts(split)]
        counts = Counter(word for text in plain for word in text)
        every = [*counts, *(word for word in channel.known.space.words if word not in counts)]
        codes = {word: code for code, word in enumerate(every)}
        coded = [np.array([codes[word] for word in text], np.int64) for text in plain]
        return cls(every, np.array([counts[word] + 1.0 for word in every]), channel.inputs(every), coded)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The code of each word."""
        return {word: code for code, word in enumerate(self.words)}

    @cached_property
    def log_prior(self) -> Numbers:
        """The logarithm of each word's share, float64 (W,)."""
        prior: Numbers = np.log(self.counts / self.counts.sum())
        return prior


@dataclass(frozen=True)
class Lattice:
    """The likeliest words at each place of a text, and how likely they made its publications."""

    codes: Integers
    """Codes of words, int64 (T, k)."""
    logs: Numbers
    """ln P(published words | word), float64 (T, k); -inf for places that have fewer words."""

    def best(self, scores: Numbers, most: int) -> "Lattice":
        """Return the ``most`` words of each place with the largest scores.

        Args:
            scores: of the candidates, float64 (T, k).
            most: of each place.
        """
        kept = np.argsort(-scores, axis=1, kind="stable")[:, :most]
        return Lattice(np.take_along_axis(self.codes, kept, axis=1), np.take_along_axis(self.logs, kept, axis=1))


def lattices(channel: TextChannel, own: OwnWords, texts: Sequence[Releases], most: int) -> list[Lattice]:
    """Return the lattice of each text, of the ``most`` likeliest words at each place.

    Several publications are independent, so their probabilities multiply. A published word outside the vocabulary was
    kept: it is the word itself, and the lattice has no other word there (the token's code, if it is new).

    Raises:
        NotApplicable: the channel has no matrix that can be computed.
    """
    flat = [list(zip(*text, strict=True)) for text in texts]
    places = [place for text in flat for place in text]
    ends = np.cumsum([len(text) for text in flat])
    codes, logs = np.zeros((len(places), most), np.int64), np.full((len(places), most), -np.inf)
    is_kept = np.array([place[0] not in channel.rows for place in places], bool)
    for row in np.flatnonzero(is_kept):
        codes[row, 0], logs[row, 0] = own.codes.get(places[row][0], own.codes[TOKEN]), 0
    replaced = np.flatnonzero(~is_kept)
    if len(replaced):
        outputs = np.array([[channel.rows[word] for word in places[row]] for row in replaced], np.int64)
        try:
            codes[replaced], logs[replaced] = _likeliest(channel, own, outputs, most)
        except RequestError as error:
            raise NotApplicable(f"the attacker cannot compute the channel's matrix: {error}") from None
    return [Lattice(*part) for part in zip(np.split(codes, ends[:-1]), np.split(logs, ends[:-1]), strict=True)]


def _likeliest(channel: TextChannel, own: OwnWords, outputs: Integers, most: int) -> tuple[Integers, Numbers]:
    """Return the likeliest words for each row of published words, int64 (n, m), and the logs of their likelihoods."""
    seen, place = np.unique(outputs, return_inverse=True)
    found, joint = _inputs_of(channel, own, seen, most)
    place = place.reshape(outputs.shape)
    if outputs.shape[1] == 1:
        codes = found[place[:, 0]]
        return codes, joint[place[:, 0]] - own.log_prior[codes]
    codes, logs = np.zeros((len(outputs), most), np.int64), np.full((len(outputs), most), -np.inf)
    step = max(1, PAIRS // (most * outputs.shape[1] ** 2))
    for block in (slice(start, start + step) for start in range(0, len(outputs), step)):
        tried = np.sort(found[place[block]].reshape(len(outputs[block]), -1), axis=1)
        likelihood = np.zeros(tried.shape)
        for column in outputs[block].T:
            likelihood += _log_likelihoods(channel.known, own.inputs[tried], column[:, None])
        likelihood[:, 1:][tried[:, 1:] == tried[:, :-1]] = -np.inf  # a word of several lists counts once
        best = np.argsort(-(likelihood + own.log_prior[tried]), axis=1, kind="stable")[:, :most]
        codes[block], logs[block] = (np.take_along_axis(values, best, axis=1) for values in (tried, likelihood))
    return codes, logs


def _inputs_of(channel: TextChannel, own: OwnWords, outputs: Integers, most: int) -> tuple[Integers, Numbers]:
    """Return for each published word the likeliest words, int64 (n, most), and ln prior(x) P(y | x), from the best on.

    Words outside the vocabulary share a row, so the most frequent ones are enough. If they are kept, none is replaced.
    """
    if channel.unknown == "kept":
        tried = np.array([code for code, word in enumerate(own.words) if word in channel.rows], np.int64)
    else:
        is_outside = own.inputs == channel.token
        outside = np.flatnonzero(is_outside)
        outside = outside[np.argsort(-own.counts[outside], kind="stable")[:most]]
        tried = np.sort(np.concatenate([np.flatnonzero(~is_outside), outside]))
    found, joint = np.full((len(outputs), most), tried[0]), np.full((len(outputs), most), -np.inf)
    for start in range(0, len(tried), ROWS):
        block = tried[start : start + ROWS]
        logs = channel.known.log_probabilities(own.inputs[block])[:, outputs].T + own.log_prior[block]
        codes = np.concatenate([found, np.broadcast_to(block, logs.shape)], axis=1)
        both = np.concatenate([joint, logs], axis=1)
        best = np.argpartition(-both, most - 1, axis=1)[:, :most]
        found, joint = np.take_along_axis(codes, best, axis=1), np.take_along_axis(both, best, axis=1)
    order = np.argsort(-joint, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(joint, order, axis=1)


def _log_likelihoods(channel: FittedChannel, inputs: Integers, outputs: Integers) -> Numbers:
    """Return ln P(y | x) of pairs, float64 with the shape of ``inputs``; each row of the matrix is computed once."""
    shape = inputs.shape
    flat_inputs, flat_outputs = inputs.ravel(), np.broadcast_to(outputs, shape).ravel()
    order = np.argsort(flat_inputs, kind="stable")
    distinct, first = np.unique(flat_inputs[order], return_index=True)
    ends, logs = np.append(first[1:], len(order)), np.empty(len(order))
    for start in range(0, len(distinct), ROWS):
        rows = distinct[start : start + ROWS]
        pairs = order[first[start] : ends[start : start + ROWS][-1]]
        matrix = channel.log_probabilities(rows)
        logs[pairs] = matrix[np.searchsorted(rows, flat_inputs[pairs]), flat_outputs[pairs]]
    return logs.reshape(shape)


def read_words(own: OwnWords, channel: TextChannel, codes: Integers, published: Sequence[str]) -> list[str]:
    """Return the words with these codes; a published word outside the vocabulary is itself."""
    return [own.words[code] if word in channel.rows else word for code, word in zip(codes, published, strict=True)]
