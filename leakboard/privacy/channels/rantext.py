"""Publish a word within a random radius of the input: RANTEXT (Tong et al. 2023; mengtong0110/InferDPT 4adf4af).

The radius r is the length of Laplace noise on each coordinate. A word at distance d < r is published with probability
proportional to exp(epsilon / 2 (1 - d / r)). The proof takes two inputs and an output from one list of candidates. But
the list is centred at the input, so close words have different lists, and the claim does not hold.

The scale of the noise is the coordinate's range over epsilon below 2, and over Z(epsilon) from 2 on
(``func.py:132-144``). Z is nearly constant, so the radius hardly depends on epsilon. Digits and unknown tokens, which
the code replaces by another rule, are not here.

On a line the radius is exponential. Between two distances of words the probabilities are smooth functions of it, so the
Gauss-Legendre rule on each piece is exact up to rounding (`leakboard.privacy.channels.rays`). In more dimensions the
law of the radius is rounded (`radius_law`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import (
    DIFFERENT,
    Channel,
    ChannelClaim,
    FittedChannel,
    Positive,
    Precision,
    channel,
    log_softmax,
)
from leakboard.privacy.channels.rays import exponential_nodes
from leakboard.privacy.channels.words import Numbers, WordSpace

CELLS = 20
"""Cells of the law of the squared length, for each mean square of a coordinate."""
LARGEST_TERM = 40.0
"""Longest noise on a coordinate, in scales: longer noise has the probability e^-40."""
RESOLVED = 1e-15
"""Least probability of a cell; smaller ones may be rounding errors."""
RADII = 200
"""Radii to which the law is rounded."""
MAX_WORDS = 30
"""Largest vocabulary on a line whose matrix is exact: its time grows with V^4."""


@channel(revision=2)
class RANTEXT(Channel):
    """Publishes a word within a random radius of the input, near words first."""

    epsilon: Positive
    """Epsilon that the paper claims between any two words."""

    def fit(self, space: WordSpace, rng: Generator) -> FittedRANTEXT:
        """Compute the law of the radius; nothing is drawn."""
        ranges = np.ptp(space.centred, axis=0)
        scales = ranges / (self.epsilon if self.epsilon < 2 else z_of(self.epsilon))
        if scales.shape == (1,) and scales[0] > 0 and len(space) <= MAX_WORDS:
            radii, logs = exponential_nodes(space.euclidean(np.arange(len(space))), float(scales[0]))
            return FittedRANTEXT(space, self.epsilon, radii, logs, is_exact=True)
        radii, logs = radius_law(scales[scales > 0]) if scales.any() else (np.full(1, np.inf), np.zeros(1))
        return FittedRANTEXT(space, self.epsilon, radii, logs)


def z_of(epsilon: float) -> float:
    """Return the code's Z of an epsilon from 2 on: about 9.3."""
    return 0.01658160142016071 * math.log(19.064721649556482 * epsilon - 38.1294334077209) + 9.311083811697406


def radius_law(scales: Numbers) -> tuple[Numbers, Numbers]:
    """Return radii and the logarithms of their probabilities, float64 (k,) each; the last radius is infinite.

    The squared length is a sum of independent squares, and its law is a product of Fourier transforms. Each cell has an
    error of at most `RESOLVED`. The infinite radius has the sum of these errors, about 1e-10. So no ratio is infinite,
    as in the true law, where all radii are possible. But no log-ratio exceeds about 23 + ln V: larger ones are capped.

    Args:
        scales: of the Laplace noise on each coordinate, float64 (d,), above 0.
    """
    squares = scales**2
    longest = 2 * squares.sum() + squares.max() * LARGEST_TERM**2
    cells = 1 << math.ceil(math.log2(longest / squares.mean() * CELLS))
    width = longest / cells
    edges = np.sqrt(np.maximum(np.arange(cells + 1) - 0.5, 0) * width)  # a square is rounded to a multiple of the width
    product = np.ones(cells // 2 + 1, complex)
    for scale in scales:
        product *= np.fft.rfft(-np.diff(np.exp(-edges / scale)))
    masses = np.maximum(np.fft.irfft(product, cells), 0)
    masses[masses < RESOLVED] = 0
    lengths = np.sqrt(np.maximum(np.arange(cells), 0.25) * width)  # the first cell holds squares from 0 on
    possible = lengths[masses > 0]
    chances, edges = np.histogram(lengths, RADII, (possible[0], possible[-1]), weights=masses)
    totals, _ = np.histogram(lengths, edges, weights=masses * lengths)
    is_possible = chances > 0
    radii = np.append(totals[is_possible] / chances[is_possible], np.inf)
    chances = np.append(chances[is_possible], cells * RESOLVED)
    return radii, np.log(chances / chances.sum())


@dataclass(frozen=True)
class FittedRANTEXT(FittedChannel):
    """RANTEXT with the law of its radius."""

    epsilon: float
    radii: Numbers
    """float64 (k,), above 0; within an infinite one, all words are equally likely."""
    radius_logs: Numbers
    """ln of the probability of each radius, float64 (k,)."""
    is_exact: bool = False
    """Whether the radii are the nodes of a rule that is exact up to rounding."""

    @property
    def claim(self) -> ChannelClaim:
        """Epsilon, which the paper claims."""
        return ChannelClaim(self.epsilon, DIFFERENT)

    @property
    def precision(self) -> Precision:
        """A rounded law has an infinite radius, so the true epsilon is at least the one computed."""
        return "exact" if self.is_exact else "lower bound"

    def log_probabilities(self, rows: Integers) -> Numbers:
        """Return the rows of the matrix."""
        distances = self.space.euclidean(rows)
        logs = np.full(distances.shape, -np.inf)
        for radius, log_chance in zip(self.radii, self.radius_logs, strict=True):
            scores = np.where(distances < radius, distances * (-self.epsilon / 2 / radius), -np.inf)
            np.logaddexp(logs, log_softmax(scores) + log_chance, out=logs)
        return logs
