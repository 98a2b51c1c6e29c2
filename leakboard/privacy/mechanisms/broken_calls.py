"""Define controls for audits of whole calls. A call runs the mechanism's `release` on several rows at once.

The claimed epsilon is for changing one vector of the unit cube. The other vectors of all calls are public. No epsilon
holds for the broken controls.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from leakboard.privacy.mechanisms.broken import Array, Control
from leakboard.privacy.mechanisms.textbook import CHECKED, laplace_noise


class SharedByRows(Control):
    """Broken: all rows of a call get the same noise vector, so differences of rows are published without noise."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return laplace_noise(values[:1], self._scale(values), rng)


@dataclass(frozen=True, config=CHECKED)
class SeedUsedTwice(Control):
    """Broken: the first and second call share a seed, the third and fourth another, and so on."""

    seeds: list[int] = Field(default_factory=list)
    """The seed that the next call uses again; empty if the next call draws a new seed."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        if self.seeds:
            seed = self.seeds.pop()
        else:
            seed = int(rng.integers(2**62))
            self.seeds.append(seed)
        return laplace_noise(values, self._scale(values), np.random.default_rng(seed))


class FewSeeds(Control):
    """Broken: each call draws one of a hundred seeds, so the same noise returns after some calls."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return laplace_noise(values, self._scale(values), np.random.default_rng(int(rng.integers(100))))


class ScaledByRows(Control):
    """Broken: the noise scale uses the largest coordinate among the rows of the call instead of 1.

    The size of the noise on other rows reveals this coordinate.
    """

    def _scale(self, values: Array) -> float:
        return float(values.max()) * values.shape[-1] / self.epsilon


class SharedAndOwn(Control):
    """Sound: correct noise for every row, plus one number for the whole call, with ten times the scale.

    Further noise that does not depend on the input cannot make a release less private.
    """

    sound = True

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d/epsilon) for each coordinate and one Lap(10 d/epsilon) for the call."""
        return super().release(values, rng) + laplace_noise(values[:1, :1], 10 * self._scale(values), rng)


BROKEN_CALLS = (SharedByRows, SeedUsedTwice, FewSeeds, ScaledByRows)
SOUND_CALLS = (SharedAndOwn,)
