"""Release rows by controls for audits of whole calls: each row is private by itself, but not together with other rows.

As in `leakboard.privacy.mechanisms.broken`, the claimed epsilon is for changing one whole vector of the unit cube; here
the other vectors of all calls are public. No epsilon holds for the broken ones.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from leakboard.privacy.mechanisms.broken import Array, Control
from leakboard.privacy.mechanisms.textbook import CHECKED, laplace_noise


class SharedByRows(Control):
    """Broken: noise drawn once for all rows of a call. The difference of two rows is published without noise."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return laplace_noise(values[:1], self._scale(values), rng)


@dataclass(frozen=True, config=CHECKED)
class SeedUsedTwice(Control):
    """Broken: every seed serves two consecutive calls. Earlier calls decide which two."""

    seeds: list[int] = Field(default_factory=list)
    """The seed that the next call uses again; empty if it draws a new one."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        if self.seeds:
            seed = self.seeds.pop()
        else:
            seed = int(rng.integers(2**62))
            self.seeds.append(seed)
        return laplace_noise(values, self._scale(values), np.random.default_rng(seed))


class FewSeeds(Control):
    """Broken: one of a hundred seeds, so every noise returns after some calls."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return laplace_noise(values, self._scale(values), np.random.default_rng(int(rng.integers(100))))


class ScaledByRows(Control):
    """Broken: the sensitivity uses the largest coordinate among the rows of the call instead of 1."""

    def _scale(self, values: Array) -> float:
        return float(values.max()) * values.shape[-1] / self.epsilon


class SharedAndOwn(Control):
    """Sound: correct noise for every row, plus one number of ten times the scale that all rows of a call share.

    Noise that is independent of the input cannot make a release less private.
    """

    sound = True

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d/epsilon) a coordinate and Lap(10 d/epsilon) a call."""
        return super().release(values, rng) + laplace_noise(values[:1, :1], 10 * self._scale(values), rng)


BROKEN_CALLS = (SharedByRows, SeedUsedTwice, FewSeeds, ScaledByRows)
SOUND_CALLS = (SharedAndOwn,)
