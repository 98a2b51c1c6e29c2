"""Count the pairs of inputs with an infinite ratio: an output is possible for the one and impossible for the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.interfaces import Integers
from leakboard.privacy.channels.words import Numbers

DISTINCT = 2_000
"""Largest number of different supports that are all compared with each other."""


@dataclass(frozen=True)
class InfiniteShare:
    """The share of ordered pairs (x, x') of different inputs for which some output of x is impossible for x'."""

    share: float
    is_exact: bool
    """Whether all pairs were compared; False: those of `DISTINCT` inputs, chosen at random."""


class Supports:
    """The possible outputs of each input."""

    def __init__(self) -> None:
        self.packed: list[NDArray[np.uint8]] = []

    def add(self, rows: Integers, logs: Numbers) -> None:
        """Read some rows."""
        self.packed.append(np.packbits(np.isfinite(logs), axis=1))

    def infinite_share(self, seed: int = 0) -> InfiniteShare:
        """Compare the supports; ``seed`` chooses inputs if there are too many different supports."""
        packed = np.ascontiguousarray(np.concatenate(self.packed))
        inputs = len(packed)
        distinct, times = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_counts=True)
        bits = distinct.view(np.uint8).reshape(len(distinct), -1)
        is_exact = len(distinct) <= DISTINCT
        if not is_exact:
            rows = np.random.default_rng(seed).choice(inputs, DISTINCT, replace=False)
            bits, times, inputs = packed[rows], np.ones(DISTINCT, np.int64), DISTINCT
        table = np.unpackbits(bits, axis=1).astype(np.float32)
        common = table @ table.T  # counts below 2^24 are exact
        is_within = common == table.sum(1, keepdims=True)
        pairs = inputs * (inputs - 1)
        finite = int(times @ is_within.astype(np.int64) @ times) - inputs
        return InfiniteShare(1 - finite / pairs, is_exact)
