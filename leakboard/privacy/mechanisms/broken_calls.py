"""Controls for audits of whole calls: each row is sound by itself, but not beside the other rows.

As in `leakboard.privacy.mechanisms.broken` they claim epsilon for changing one whole vector of the unit cube, here with
the other vectors of all calls public. No epsilon holds for the broken ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass

from leakboard.privacy.mechanisms.broken import Control
from leakboard.privacy.mechanisms.textbook import CHECKED, laplace_noise

Array = NDArray[Any]


class SharedByRows(Control):
    """Broken: noise drawn once for all rows of a call. The difference of two rows is published as it is."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus one vector of Lap(d/epsilon) numbers."""
        return values + laplace_noise(values[:1], values.shape[-1] / self.epsilon, rng)


@dataclass(frozen=True, config=CHECKED)
class SeedUsedTwice(Control):
    """Broken: every seed serves two calls, one after the other. Which two, depends on the calls before."""

    seeds: list[int] = Field(default_factory=list)
    """The seed that the next call uses up; none where it draws one."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d/epsilon) numbers, every second time those of the call before."""
        if self.seeds:
            seed = self.seeds.pop()
        else:
            seed = int(rng.integers(2**62))
            self.seeds.append(seed)
        return values + laplace_noise(values, values.shape[-1] / self.epsilon, np.random.default_rng(seed))


class FewSeeds(Control):
    """Broken: seeds of two digits, so that every noise comes back after some calls."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d/epsilon) numbers of one of a hundred seeds."""
        seeded = np.random.default_rng(int(rng.integers(100)))
        return values + laplace_noise(values, values.shape[-1] / self.epsilon, seeded)


class ScaledByRows(Control):
    """Broken: the sensitivity is read off the rows of the call, as their largest coordinate instead of 1."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d max / epsilon) numbers."""
        return values + laplace_noise(values, float(values.max()) * values.shape[-1] / self.epsilon, rng)


class SharedAndOwn(Control):
    """Sound: to correct noise of its own every row gets a number that all rows of a call share.

    What is added independently of the input cannot make a release less private.
    """

    sound = True

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d/epsilon) a coordinate and Lap(10 d/epsilon) a call."""
        scale = values.shape[-1] / self.epsilon
        return values + laplace_noise(values, scale, rng) + laplace_noise(values[:1, :1], 10 * scale, rng)


BROKEN_CALLS = (SharedByRows, SeedUsedTwice, FewSeeds, ScaledByRows)
SOUND_CALLS = (SharedAndOwn,)
