"""Define controls for audits: mechanisms that break their claimed epsilon, and sound mechanisms that look broken.

Inputs are vectors of d coordinates in [0, 1]. The claimed epsilon is for changing the whole vector, so the L1
sensitivity is d.

An audit should refute the claim of every broken control in two dimensions, at a claimed epsilon near 1. In many
dimensions an audit may miss some.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.mechanisms.textbook import CHECKED, Positive, laplace_log_ratio, laplace_noise

Array = NDArray[Any]


@dataclass(frozen=True, config=CHECKED)
class Control(MechanismDefaults):
    """A mechanism that claims ``epsilon`` for any two vectors of the unit cube."""

    epsilon: Positive

    sound = False
    """Whether the claim holds in every dimension d."""

    @property
    def delta(self) -> float:
        """0: all controls claim pure differential privacy."""
        return 0.0

    def proved(self, dimensions: int) -> float:
        """Return the epsilon that is proved for any two vectors of the unit cube; infinity if none is."""
        return self.epsilon if self.sound else math.inf

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus noise."""
        return values + self._noise(values, rng)

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return laplace_noise(values, self._scale(values), rng)

    def _scale(self, values: Array) -> float:
        return values.shape[-1] / self.epsilon


class LaplaceControl(Control):
    """A control with independent Laplace noise. Its log density ratio is known."""

    def log_ratio(self, outputs: Array, first: Array, second: Array) -> Array:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        return laplace_log_ratio(outputs, first, second, self._scale(outputs))


class Copy(Control):
    """Broken: publishes the vector unchanged (Habernal 2022, NoPrivacyMechanism)."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values."""
        return values.copy()


class DpTextSampler(Control):
    """Broken: the noise of DPText (Beigi et al. 2019), which inverts the distribution function on a wrong interval.

    The formula -b sgn(u) ln(1 - 2|u|) needs u in (-1/2, 1/2). With u in (0, 1), half of the draws are NaN and the
    others are positive. NaN becomes 0, as Habernal (2022) assumes. Noise is never negative, so an output below 1 cannot
    come from an input of 1: epsilon is infinite.
    """

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        draws = np.where(rng.random(values.shape) < 0.5, rng.exponential(size=values.shape), 0.0)
        return self._scale(values) * draws


class DpTextSamplerWithoutNan(Control):
    """Broken: `DpTextSampler` with a new draw instead of each NaN, so the noise is exponential."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return rng.exponential(self._scale(values), values.shape)


class AdeptSensitivity(LaplaceControl):
    """Broken for d > 1: Laplace noise for a sensitivity of 1 in any dimension (ADePT, as in Habernal 2022)."""

    assumed = "1, whatever the dimension"
    """The sensitivity behind the noise scale."""

    def _scale(self, values: Array) -> float:
        return 1 / self.epsilon

    def proved(self, dimensions: int) -> float:
        """Return d times the claim, which opposite corners of the cube attain."""
        return dimensions * self.epsilon


class HalfScale(LaplaceControl):
    """Broken: Laplace noise of half the scale."""

    def _scale(self, values: Array) -> float:
        return values.shape[-1] / (2 * self.epsilon)

    def proved(self, dimensions: int) -> float:
        """Return twice the claim."""
        return 2 * self.epsilon


class SharedDraw(Control):
    """Broken for d > 1: one Laplace number for a whole row, as in DPNR's released code.

    The differences between coordinates are published without noise.
    """

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return laplace_noise(values[..., :1], self._scale(values), rng)

    def proved(self, dimensions: int) -> float:
        """Return the claim if d = 1, else infinity."""
        return self.epsilon if dimensions == 1 else math.inf


class FixedSeed(Control):
    """Broken: all rows and calls have the same noise, from a fixed seed, so an attacker can subtract the noise."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return laplace_noise(values[0], self._scale(values), np.random.default_rng(0))


class Averaged(Control):
    """Broken: the mean of two correct releases, each of which spends epsilon."""

    def _noise(self, values: Array, rng: np.random.Generator) -> Array:
        return (super()._noise(values, rng) + super()._noise(values, rng)) / 2

    def proved(self, dimensions: int) -> float:
        """Return twice the claim (composition)."""
        return 2 * self.epsilon


class RandomBits(Control):
    """Sound: coin flips that do not depend on the input (Habernal 2022, CompletelyRandomMechanism)."""

    sound = True

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return zeros and ones."""
        return rng.integers(0, 2, values.shape).astype(values.dtype)

    def proved(self, dimensions: int) -> float:
        """Return 0: the output does not depend on the input."""
        return 0.0


class HalvedOutput(LaplaceControl):
    """Sound: a correct Laplace release, halved afterwards. Post-processing cannot make a release less private.

    Habernal (2022) lists this mechanism as one with a wrong sensitivity.
    """

    sound = True

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return (values + Lap(d/epsilon) noise) / 2."""
        return 0.5 * super().release(values, rng)

    def log_ratio(self, outputs: Array, first: Array, second: Array) -> Array:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        return super().log_ratio(2 * outputs, first, second)


BROKEN = (Copy, DpTextSampler, DpTextSamplerWithoutNan, AdeptSensitivity, HalfScale, Averaged, SharedDraw, FixedSeed)
SOUND = (RandomBits, HalvedOutput)
