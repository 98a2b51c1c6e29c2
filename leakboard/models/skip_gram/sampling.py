"""Choose the units of a step: a Poisson sample, as the accountant assumes, or batches in the order of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Integers


@dataclass(frozen=True)
class PoissonSampler:
    """Every unit takes part with the same probability, independently of other units and of other steps."""

    units: int
    probability: float

    def draw(self, step: int, generator: np.random.Generator) -> Integers:
        """Return the units of a step in increasing order, int64; their number is binomial.

        The gaps between these units are geometric, so the time is proportional to the size of the sample.
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
    """Batches of fixed size in the order of the data, again and again: sampling hides nothing."""

    units: int
    size: int

    def draw(self, step: int, generator: np.random.Generator) -> Integers:
        """Return the units of step 0, 1, ..., int64 (size,)."""
        return (step * self.size + np.arange(min(self.size, self.units))) % self.units

    def visits(self, steps: int) -> int:
        """Return in how many of the first ``steps`` a unit takes part at most."""
        return -(-steps * min(self.size, self.units) // self.units)


Sampler = PoissonSampler | SequentialBatches
