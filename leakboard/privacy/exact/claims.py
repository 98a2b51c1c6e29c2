"""Compare pairs of inputs with a claim, in particular pairs that are close: ratios per distance are largest there.

All outputs of each pair are compared exactly. Not all pairs are compared: each of the chosen inputs with the inputs
that are nearest in the claim's distance, and with random ones. So a largest ratio is a lower bound for all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import ChannelClaim, FittedChannel
from leakboard.privacy.channels.words import Numbers
from leakboard.privacy.exact.extremes import Witness

WHOLE = 1_000
"""Largest vocabulary whose matrix is computed once, and not anew for the neighbours of each input (8 MB)."""
ROUNDING = 1e-9
"""Largest difference of logarithms that counts as rounding, times 1 + the bound (nats)."""


@dataclass(frozen=True)
class ClaimCheck:
    """How the log-ratios of pairs compare with the claim's bound, additive + epsilon d."""

    used: float
    """Largest (log-ratio - additive) / (epsilon d): 1 uses the whole claim, more violates it. A lower bound."""
    quantiles: Numbers
    """The same of each pair: quantiles at 1, 50 and 99 %, float64 (3,)."""
    violated: float
    """Share of the compared pairs that violate the claim."""
    pairs: int
    """Number of compared pairs about which the claim says something."""
    worst: Witness | None
    """The pair with the largest share of the claim; None: the claim says nothing about any compared pair."""
    is_complete: bool
    """Whether all pairs were compared about which the claim says something."""


def check_claim(
    channel: FittedChannel,
    rng: np.random.Generator,
    inputs: int | Integers = 2_000,
    nearest: int = 50,
    random: int = 10,
) -> ClaimCheck:
    """Compare some inputs with their neighbours.

    Args:
        channel: the mechanism.
        rng: chooses inputs and random partners.
        inputs: number of inputs, all if the vocabulary has no more; or the inputs, int64. The channel's
            ``special_inputs`` are added.
        nearest: number of nearest partners of each input.
        random: number of random partners of each input.
    """
    size, claim, outputs = len(channel), channel.claim, channel.claimed_outputs
    if isinstance(inputs, int):
        chosen = np.arange(size) if size <= inputs else np.sort(rng.choice(size, inputs, replace=False))
    else:
        chosen = inputs
    chosen = np.union1d(chosen, channel.special_inputs)
    shares: list[Numbers] = []
    violations, worst, most, is_complete = 0, None, -math.inf, len(chosen) == size
    few = channel.log_probabilities(np.arange(size)) if size <= WHOLE else None
    for first in chosen:
        distances = channel.distances(np.array([first]), np.arange(size))[0]
        distances[first] = np.inf
        close = np.argpartition(distances, min(nearest, size - 1))[:nearest]
        partners = np.unique(np.concatenate([close, rng.integers(0, size, random)]))
        partners = partners[np.isfinite(distances[partners])]
        is_complete = is_complete and len(partners) == np.isfinite(distances).sum()
        if not len(partners):
            continue
        compared = np.append(first, partners)
        logs = (channel.log_probabilities(compared) if few is None else few[compared])[:, outputs]
        likelier, other, at, gaps = _largest_gaps(logs)
        used = share_used(gaps, claim, distances[partners])
        shares.append(used)
        violations += int(is_violation(gaps, claim, distances[partners]).sum())
        if used.max() > most:
            pair, most = int(used.argmax()), float(used.max())
            rows = np.array([first, partners[pair]])[[likelier[pair], other[pair]]]
            values = logs[[0, pair + 1]][[likelier[pair], other[pair]], at[pair]]
            worst = Witness(int(rows[0]), int(rows[1]), int(outputs[at[pair]]), float(values[0]), float(values[1]))
    every = np.concatenate([*shares, np.empty(0)])
    quantiles = np.quantile(every, [0.01, 0.5, 0.99], method="lower") if len(every) else np.full(3, np.nan)
    return ClaimCheck(max(most, 0.0), quantiles, violations / max(len(every), 1), len(every), worst, is_complete)


def share_used(gaps: Numbers, claim: ChannelClaim, distances: Numbers) -> Numbers:
    """Return (log-ratio - additive) / (epsilon d); at distance 0, infinity for a violation, else 0."""
    allowed, left = claim.epsilon * distances, gaps - claim.additive
    at_zero = np.where(is_violation(gaps, claim, distances), np.inf, 0.0)
    is_bounded = (distances > 0) & (distances < np.inf)
    share: Numbers = np.where(is_bounded, left / np.where(is_bounded, allowed, 1), at_zero)
    return share


def is_violation(gaps: Numbers, claim: ChannelClaim, distances: Numbers) -> NDArray[np.bool_]:
    """Return whether log-ratios exceed the claim by more than rounding."""
    bounds = claim.additive + claim.epsilon * distances
    return np.where(np.isinf(bounds), False, gaps > bounds + ROUNDING * (1 + bounds))


def _largest_gaps(logs: Numbers) -> tuple[Integers, Integers, Integers, Numbers]:
    """Compare the first row with each other row, in both directions.

    Returns:
        For each other row: 0 if the output is likelier for the first row, else 1; the opposite; the output; the gap.
    """
    with np.errstate(invalid="ignore"):
        gaps = logs[0] - logs[1:]
    gaps[np.isnan(gaps)] = 0  # impossible for both
    high, low = gaps.argmax(1), gaps.argmin(1)
    rows = np.arange(len(gaps))
    is_first = gaps[rows, high] >= -gaps[rows, low]
    at = np.where(is_first, high, low)
    return (~is_first).astype(np.int64), is_first.astype(np.int64), at, np.abs(gaps[rows, at])
