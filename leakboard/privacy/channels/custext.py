"""Publish a word of a small set that belongs to the input: CusText (Chen et al. 2023).

From a set of K words, y is published with probability proportional to exp(epsilon u / 2). The score u is the
similarity, scaled to [0, 1] over the set. The paper is "conservative": the sets partition the vocabulary. The most
frequent word that has no set takes its K nearest words that have none.

| rule | sets |
|---|---|
| `CusText` | a partition: the paper, algorithms 1 and 2 |
| `CusTextAsReleased` | words that have a set become vectors of zeros, and so come back into late sets |
| `CusTextAsInPyPantera` | the K nearest words of each word; with ``cosine`` the K least similar ones |

Sources: sai4july/CusText 4a3ced8, ``CusText/sst2/utils.py:208-220``, and Kekkodf/pypantera 8c4fd52,
``custext.py:84,105``. Of the released code's two branches this is the one of ``ct_vectors``, the default. Not here: the
branch of ``glove_840B-300d``, with Euclidean distances, where words that have a set move to 1e9.

CusText+ keeps stop words. It is the option ``kept``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import (
    DIFFERENT,
    Channel,
    ChannelClaim,
    FittedChannel,
    Positive,
    channel,
    log_softmax,
)
from leakboard.privacy.channels.words import Numbers, WordSpace

Similarities = Callable[[int, Integers], Numbers]
"""Similarities of a word to the words of a set."""


@dataclass(frozen=True)
class FittedSets(FittedChannel):
    """A mechanism that publishes a word of the input's set."""

    epsilon: float
    sets: Integers
    """Words of each input's set, int64 (V, K); -1 fills the rows of small sets."""
    logs: Numbers
    """ln P of these words, float64 (V, K); -inf where the set has no word."""
    is_kept: NDArray[np.bool_]
    """Whether a word is published as it is, bool (V,)."""
    is_partition: bool
    """Whether the sets are a partition. Then the claim holds: weights and sums change by at most exp(epsilon / 2)."""

    @property
    def claim(self) -> ChannelClaim:
        """Epsilon between two words whose sets share a word. A set is public: it shows ln(V / K) nats of every word."""
        scope = "words that are not kept and whose sets share a word"
        return ChannelClaim(self.epsilon, DIFFERENT, scope=scope, is_proved=self.is_partition)

    def distances(self, rows: Integers, columns: Integers) -> Numbers:
        """Return 1 for two words whose sets share a word, infinity for other words and for kept words."""
        in_set = np.zeros((len(rows), len(self) + 1), bool)
        in_set[np.arange(len(rows))[:, None], self.sets[rows]] = True
        in_set[:, -1] = False  # the filling
        share = in_set[:, self.sets[columns]].any(2) & ~self.is_kept[rows, None] & ~self.is_kept[columns]
        return np.where(rows[:, None] == columns, 0, np.where(share, 1, np.inf))

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        logs = np.full((len(rows), len(self) + 1), -np.inf)
        logs[np.arange(len(rows))[:, None], self.sets[rows]] = self.logs[rows]
        return logs[:, :-1]


class SetsChannel(Channel):
    """A recipe that gives every word a set of outputs."""

    is_partition: ClassVar[bool] = False
    epsilon: Any
    size: Any
    kept: Any

    @abstractmethod
    def outputs(self, space: WordSpace) -> tuple[Integers, Similarities]:
        """Return each word's set, int64 (V, K) filled with -1, and the similarities."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedSets:
        """Return the mechanism; nothing is drawn. Words of a set that are equally similar are equally likely."""
        sets, similarities = self.outputs(space)
        logs = np.full(sets.shape, -np.inf)
        is_kept = np.isin(space.words, self.kept)
        for word, row in enumerate(sets):
            members = row[row >= 0]
            scores = similarities(word, members)
            span = scores.max() - scores.min()
            scores = (scores - scores.min()) / (span if span > 0 else 1)
            logs[word, : len(members)] = log_softmax(scores[None] * (self.epsilon / 2))[0]
        kept = np.flatnonzero(is_kept)
        sets[kept], logs[kept] = -1, -np.inf
        sets[kept, 0], logs[kept, 0] = kept, 0.0
        return FittedSets(space, self.epsilon, sets, logs, is_kept, self.is_partition)


@channel(revision=1)
class CusText(SetsChannel):
    """Publishes a word of the input's cluster, by Euclidean distance."""

    is_partition: ClassVar[bool] = True
    epsilon: Positive
    """Epsilon between two words of one cluster."""
    size: Annotated[int, Field(ge=1, le=1_000)] = 20
    """Words in a cluster; the last cluster may have fewer. 1,000 take about 1 GB for 34,573 words."""
    kept: tuple[str, ...] = ()
    """Words that are published as they are, such as stop words (CusText+)."""

    def outputs(self, space: WordSpace) -> tuple[Integers, Similarities]:
        """Return a partition, in the order of public frequencies."""
        left = np.ones(len(space), bool)
        sets = np.full((len(space), min(self.size, len(space))), -1)
        for word in space.by_frequency:
            if left[word]:
                candidates = np.flatnonzero(left)
                members = candidates[nearest_first(space.euclidean(np.array([word]), candidates)[0])[: self.size]]
                sets[members, : len(members)], left[members] = members, False
        return sets, lambda word, members: -space.euclidean(np.array([word]), members)[0]


@channel(revision=1)
class CusTextAsReleased(CusText):
    """Publishes words as the released code does: words that have a set already fill the sets of late words."""

    is_partition: ClassVar[bool] = False

    def outputs(self, space: WordSpace) -> tuple[Integers, Similarities]:
        """Return sets that overlap; a word of an earlier set has the similarity 0."""
        unit = space.unit.copy()
        sets = np.full((len(space), min(self.size, len(space))), -1)
        used_before: dict[int, Numbers] = {}
        for word in space.by_frequency:
            if sets[word, 0] < 0:
                members = nearest_first(-(unit @ unit[word])[::-1])[: self.size]
                members = len(space) - 1 - members  # of equal words the code takes the last one first
                fresh = members[sets[members, 0] < 0]
                sets[fresh] = members
                vectors = unit[members].copy()
                used_before |= {int(x): vectors @ unit[x] for x in fresh}
                unit[members] = 0
                if sets[word, 0] < 0:  # a vector of zeros: the code does not find the word, and keeps it
                    sets[word, 0], used_before[int(word)] = word, np.zeros(1)
        return sets, lambda word, members: used_before[word]


@channel(revision=1)
class CusTextAsInPyPantera(CusText):
    """Publishes words as pypantera does: every word has a set of its own."""

    is_partition: ClassVar[bool] = False
    score: Literal["euclidean", "cosine"] = "euclidean"
    """With ``cosine`` the code sorts the similarities from the least one on."""

    def outputs(self, space: WordSpace) -> tuple[Integers, Similarities]:
        """Return the K nearest words of each word."""

        def similarities(word: int, members: Integers) -> Numbers:
            if self.score == "cosine":
                return space.unit[members] @ space.unit[word]
            return -space.euclidean(np.array([word]), members)[0]

        everything = np.arange(len(space))
        sign = 1 if self.score == "cosine" else -1
        ordered = [nearest_first(sign * similarities(word, everything))[: self.size] for word in range(len(space))]
        return np.stack(ordered), similarities


def nearest_first(distances: Numbers) -> Integers:
    """Return the order from the least distance on; ties keep the vocabulary's order."""
    return np.argsort(distances, kind="stable")
