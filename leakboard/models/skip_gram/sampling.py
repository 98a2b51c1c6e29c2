"""Which units take part in a step: a Poisson sample, as the accountant assumes, or batches one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leakboard.interfaces import Integers


class Sampler(Protocol):
    """Chooses the units of each step."""

    def draw(self, step: int, generator: np.random.Generator) -> Integers:
        """Return distinct units, int64."""


@dataclass(frozen=True)
class PoissonSampler:
    """Every unit takes part with the same probability, each independently of the others and of other steps."""

    units: int
    probability: float

    def draw(self, step: int, generator: np.random.Generator) -> Integers:
        """Return the units of a step in increasing order, int64; their number is binomial.

        The gaps between units that take part are geometric, which costs as much as the sample is large.
        """
        runs, last = [], -1
        expected = self.units * self.probability
        while last < self.units:
            gaps = generator.geometric(self.probability, int(expected + 5 * expected**0.5) + 5)
            runs.append(last + np.cumsum(gaps))
            last = int(runs[-1][-1])
        units = np.concatenate(runs)
        return units[: np.searchsorted(units, self.units)]


@dataclass(frozen=True)
class SequentialBatches:
    """Units in the order of the data, so many at a time, over and over: nothing is hidden by sampling."""

    units: int
    size: int

    def draw(self, step: int, generator: np.random.Generator) -> Integers:
        """Return the units of step 0, 1, ..., int64 (size,)."""
        return (step * self.size + np.arange(min(self.size, self.units))) % self.units

    def visits(self, steps: int) -> int:
        """Return in how many of the first ``steps`` a unit takes part at most."""
        return -(-steps * min(self.size, self.units) // self.units)
