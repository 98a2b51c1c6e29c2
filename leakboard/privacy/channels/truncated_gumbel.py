"""Publish one of the K nearest words, for a random K, after noise on the distances, as mldp-text does.

The mechanism is that of Xu et al. (2021, FLAIRS). Their text was not read. So this is the rule of released code alone:
sjmeis/MLDP 65a9eb8, ``mechanisms.py:125-131,157-185``.

K is Poisson(ln(V - 1)), truncated to at most V - 1. K = 0 publishes the input. Of the K nearest words, the input among
them, the one with the least distance plus noise is published. So this code never publishes the farthest word.
The noise is Gumbel(0, b), truncated to [-d_max, d_max], with

    a = (epsilon - 2 (1 + ln V) / d_min) / 3,    b = 2 d_max / min(W(2 a d_max), ln(a d_min)),

where W is Lambert's function, and d_min and d_max are the least and the largest distance of one random word. So epsilon
must exceed (5 + 2 ln V) / d_min. A smaller one is refused here; the package runs.

The law has no closed form. Time t runs over the range of distance plus noise, in `CELLS` cells. In a cell, words share
the probability of the minimum by their integrated hazards. So rows sum to 1, and shares have errors of second order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import Channel, Positive, Precision, channel
from leakboard.privacy.channels.santext import FittedEuclidean
from leakboard.privacy.channels.words import Numbers, WordSpace

CELLS = 300
"""Cells of the time."""


@channel(revision=1)
class TruncatedGumbelAsInMLDP(Channel):
    """Publishes one of the K nearest words, as mldp-text does."""

    epsilon: Positive
    """Epsilon for each unit of Euclidean distance."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedTruncatedGumbel:
        """Draw the word whose distances set the noise.

        Raises:
            RequestError: epsilon is too small for the formula.
        """
        least, largest = extremes_of(space, int(rng.integers(len(space))))
        scale = noise_scale(self.epsilon, len(space), least, largest)
        return FittedTruncatedGumbel(space, self.epsilon, scale, largest)


def extremes_of(space: WordSpace, word: int) -> tuple[float, float]:
    """Return the least distance above 0 and the largest distance of a word to others; both 1 if all are 0."""
    distances = space.euclidean(np.array([word]))[0]
    distances = distances[distances > 0]
    return (float(distances.min()), float(distances.max())) if len(distances) else (1.0, 1.0)


def noise_scale(epsilon: float, words: int, least: float, largest: float) -> float:
    """Return b.

    Raises:
        RequestError: epsilon is too small for the formula.
    """
    from scipy import special

    a = (epsilon - 2 * (1 + math.log(words)) / least) / 3
    if a * least <= 1:
        needed = (5 + 2 * math.log(words)) / least
        raise RequestError(f"truncated_gumbel: epsilon={epsilon:g} is not allowed: above {needed:.4g} for these words")
    return 2 * largest / min(float(special.lambertw(2 * a * largest).real), math.log(a * least))


@dataclass(frozen=True)
class FittedTruncatedGumbel(FittedEuclidean):
    """The mechanism with its noise."""

    scale: float
    """b, in units of distance."""
    largest: float
    """Largest absolute noise, in units of distance."""

    @property
    def precision(self) -> Precision:
        """Shares in a cell have errors."""
        return "approximate"

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix. One row of 34,573 words takes about a second."""
        distances = self.space.euclidean(rows)
        distances[np.arange(len(rows)), rows] = -1  # an input is the first of its equals
        return np.stack([self._row(int(word), row) for word, row in zip(rows, distances, strict=True)])

    def _row(self, word: int, distances: Numbers) -> Numbers:
        order = np.argsort(distances, kind="stable")
        ranked = np.maximum(distances[order], 0)
        counts = self._count_logs()
        times = np.linspace(-self.largest, self.largest, CELLS + 1)
        survival = -np.diff(self._log_survival(times - ranked[:, None]), axis=1)  # integrated hazards (V, CELLS)
        together = np.cumsum(survival, axis=0)[: len(counts) - 1]  # of the K nearest, for K from 1
        before = np.cumsum(together, axis=1) - together
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.log(-np.expm1(-together)) - np.log(together) - before + counts[1:, None]
        shares[together == 0] = -np.inf
        tails = np.logaddexp.accumulate(shares[::-1], axis=0)[::-1]
        with np.errstate(divide="ignore"):
            parts = tails + np.log(survival[: len(tails)])
        logs = np.full(len(order), -np.inf)
        logs[order[: len(tails)]] = np.logaddexp.reduce(parts, axis=1)
        logs[word] = np.logaddexp(logs[word], counts[0])
        return logs

    def _count_logs(self) -> Numbers:
        """Return ln P(K = k) for k from 0 to V - 1."""
        from scipy import special

        counts = np.arange(len(self))
        mean = math.log(len(self) - 1)
        logs = special.xlogy(counts, mean) - special.gammaln(counts + 1)
        logs -= np.logaddexp.reduce(logs)
        return np.asarray(logs)

    def _log_survival(self, noise: Numbers) -> Numbers:
        """Return ln P(noise of the mechanism > noise); at least -700, so that the last cell has finite hazards."""
        inside = np.clip(noise, -self.largest, self.largest)
        below, above, at = (np.exp(-np.exp(-x / self.scale)) for x in (-self.largest, self.largest, inside))
        return np.log(np.maximum((above - at) / (above - below), 1e-300))
