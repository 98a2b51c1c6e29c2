"""Choose a cluster of words, then a word of it: CluSanT (2025; AwonSomeSauce/CluSanT 07c73be, ``src/clusant.py``).

The vocabulary is cut into clusters of equal size: a random word and its nearest words that have no cluster. Both steps
are exponential mechanisms with epsilon: on the distance of centroids, scaled by the largest one, and on the distance of
words, scaled by the diameter of the chosen cluster. So one word costs 2 epsilon (``dp_type="standard"``).

Not here: ``dp_type="metric"``. In the released code a cluster of one word gives 0 / 0; here the word has probability 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import (
    DIFFERENT,
    ROWS,
    Channel,
    ChannelClaim,
    FittedChannel,
    Positive,
    channel,
    log_softmax,
)
from leakboard.privacy.channels.words import Numbers, WordSpace


@channel(revision=1)
class CluSanT(Channel):
    """Publishes a word of a random cluster, near clusters and near words first."""

    epsilon: Positive
    """Epsilon of each of the two steps."""
    clusters: Annotated[int, Field(ge=1, le=5_000)] = 40
    """Sets the size of a cluster, floor(V / clusters). The number of clusters is ceil(V / size). 5,000 take 1 GB."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedCluSanT:
        """Draw the clusters, which are public."""
        size = len(space) // min(self.clusters, len(space))
        left, cluster_of, number = np.arange(len(space)), np.empty(len(space), np.int64), 0
        while len(left):
            seed = rng.choice(left, 1)
            members = np.argsort(space.euclidean(seed, left)[0], kind="stable")[:size]
            cluster_of[left[members]], number = number, number + 1
            left = np.delete(left, members)
        centroids = np.stack([space.centred[cluster_of == c].mean(0) for c in range(number)])
        apart = np.stack([np.linalg.norm(centroids - centroid, axis=1) for centroid in centroids])
        scores = -apart / (apart.max() or 1) * (self.epsilon / 2)
        members_of = [np.flatnonzero(cluster_of == c) for c in range(number)]
        diameters = np.array([diameter(space, members) for members in members_of])
        return FittedCluSanT(space, self.epsilon, cluster_of, log_softmax(scores), diameters)


def diameter(space: WordSpace, members: Integers) -> float:
    """Return the largest distance of two words, from blocks of rows."""
    blocks = (members[start : start + ROWS] for start in range(0, len(members), ROWS))
    return max(float(space.euclidean(block, members).max()) for block in blocks)


@dataclass(frozen=True)
class FittedCluSanT(FittedChannel):
    """CluSanT with its clusters."""

    epsilon: float
    cluster_of: Integers
    """Cluster of each word, int64 (V,)."""
    cluster_logs: Numbers
    """ln P(chosen cluster | input's cluster), float64 (C, C)."""
    diameters: Numbers
    """Largest distance of two words of each cluster, float64 (C,)."""

    @property
    def claim(self) -> ChannelClaim:
        """2 epsilon. In a cluster the scores of any input differ by at most the diameter, so each step is private."""
        return ChannelClaim(2 * self.epsilon, DIFFERENT, is_proved=True)

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        order = np.argsort(self.cluster_of, kind="stable")
        cluster = self.cluster_of[order]
        starts = np.flatnonzero(np.diff(cluster, prepend=-1))
        scores = -self.space.euclidean(rows, order) * (self.epsilon / 2)
        scores /= np.where(self.diameters > 0, self.diameters, 1)[cluster]
        scores[:, self.diameters[cluster] == 0] = 0  # equal vectors are equally likely
        scores -= np.maximum.reduceat(scores, starts, axis=1)[:, cluster]
        scores -= np.log(np.add.reduceat(np.exp(scores), starts, axis=1))[:, cluster]
        logs = np.empty_like(scores)
        logs[:, order] = scores + self.cluster_logs[self.cluster_of[rows]][:, cluster]
        return logs
