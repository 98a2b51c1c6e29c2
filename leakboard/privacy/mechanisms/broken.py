"""Controls for audits: mechanisms that claim epsilon and break it, and sound ones that look as if they did.

An audit must catch every broken one at its default number of draws, and leave the sound ones alone. They release
vectors whose coordinates lie in [0, 1], and claim epsilon for changing the whole vector: its L1 sensitivity is d.
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
    """A mechanism that claims epsilon for any two vectors of the unit cube."""

    epsilon: Positive

    sound = False

    @property
    def delta(self) -> float:
        """Pure differential privacy is what all of them claim."""
        return 0.0

    def proved(self, dimensions: int) -> float:
        """Return the epsilon that holds for vectors of the unit cube; infinite where none does."""
        return self.epsilon if self.sound else math.inf


class Copy(Control):
    """Broken: publishes the vector as it is (Habernal 2022, NoPrivacyMechanism)."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values."""
        return values.copy()


class DpTextSampler(Control):
    """Broken: the noise of DPText (Beigi et al. 2019), an inverse distribution function fed from the wrong interval.

    -b sgn(u) ln(1 - 2|u|) asks for u in (-1/2, 1/2); with u in (0, 1) half of the draws are NaN and the others
    positive. NaN becomes 0, as Habernal (2022) assumes. Noise is never negative, so an output below 1 cannot come from
    an input of 1: epsilon is infinite.
    """

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus d/epsilon times the sampler's numbers, 0 for NaN."""
        noise = np.where(rng.random(values.shape) < 0.5, rng.exponential(size=values.shape), 0.0)
        return values + values.shape[-1] / self.epsilon * noise


class DpTextSamplerWithoutNan(Control):
    """Broken: as `DpTextSampler`, but NaN is drawn again, so that the noise is exponential."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus exponential noise of scale d/epsilon."""
        return values + rng.exponential(values.shape[-1] / self.epsilon, values.shape)


class AdeptSensitivity(Control):
    """Broken for d > 1: Laplace noise for a sensitivity of 1 whatever d is (ADePT, as in Habernal 2022)."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(1/epsilon)."""
        return values + laplace_noise(values, 1 / self.epsilon, rng)

    assumed = "1, whatever the dimension"
    """The sensitivity that its noise is scaled to."""

    def log_ratio(self, outputs: Array, first: Array, second: Array) -> Array:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        return laplace_log_ratio(outputs, first, second, 1 / self.epsilon)

    def proved(self, dimensions: int) -> float:
        """Return d times what is claimed, which corners of the cube attain."""
        return dimensions * self.epsilon


class HalfScale(Control):
    """Broken: Laplace noise of half the scale."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d / (2 epsilon))."""
        return values + laplace_noise(values, values.shape[-1] / (2 * self.epsilon), rng)

    def log_ratio(self, outputs: Array, first: Array, second: Array) -> Array:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        return laplace_log_ratio(outputs, first, second, outputs.shape[-1] / (2 * self.epsilon))

    def proved(self, dimensions: int) -> float:
        """Return twice what is claimed."""
        return 2 * self.epsilon


class SharedDraw(Control):
    """Broken for d > 1: one Laplace number for a whole row, as DPNR's released code draws it.

    Differences between coordinates are published as they are.
    """

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus one Lap(d/epsilon) a row."""
        return values + laplace_noise(values[..., :1], values.shape[-1] / self.epsilon, rng)

    def proved(self, dimensions: int) -> float:
        """Return what is claimed for one coordinate; for more nothing holds."""
        return self.epsilon if dimensions == 1 else math.inf


class FixedSeed(Control):
    """Broken: noise from a fixed seed is known to everybody, who may subtract it."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus Lap(d/epsilon) numbers that are the same at every call."""
        return values + laplace_noise(values[0], values.shape[-1] / self.epsilon, np.random.default_rng(0))


class Averaged(Control):
    """Broken: the mean of two correct releases, which spend epsilon each."""

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return the values plus the mean of two Lap(d/epsilon)."""
        scale = values.shape[-1] / self.epsilon
        return values + (laplace_noise(values, scale, rng) + laplace_noise(values, scale, rng)) / 2

    def proved(self, dimensions: int) -> float:
        """Return twice what is claimed (composition)."""
        return 2 * self.epsilon


class RandomBits(Control):
    """Sound: coin flips, whatever the input (Habernal 2022, CompletelyRandomMechanism)."""

    sound = True

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return zeros and ones."""
        return rng.integers(0, 2, values.shape).astype(values.dtype)

    def proved(self, dimensions: int) -> float:
        """Return 0: nothing of the input is in the output."""
        return 0.0


class HalvedOutput(Control):
    """Sound: a correct Laplace release, halved afterwards (Habernal's sixth, named a wrong sensitivity there).

    What is done to a private release cannot make it less private.
    """

    sound = True

    def release(self, values: Array, rng: np.random.Generator) -> Array:
        """Return half of the values plus Lap(d/epsilon)."""
        return 0.5 * (values + laplace_noise(values, values.shape[-1] / self.epsilon, rng))

    def log_ratio(self, outputs: Array, first: Array, second: Array) -> Array:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        return laplace_log_ratio(2 * outputs, first, second, outputs.shape[-1] / self.epsilon)


BROKEN = (Copy, DpTextSampler, DpTextSamplerWithoutNan, AdeptSensitivity, HalfScale, Averaged, SharedDraw, FixedSeed)
SOUND = (RandomBits, HalvedOutput)
