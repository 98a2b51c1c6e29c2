"""Add fresh noise to every stored vector and every query: queries are texts too, and go to the same server.

| recipe | law | claim |
|---|---|---|
| `GaussianNoise` | N(0, sigma^2) on each coordinate | none |
| `MetricLaplace` | density exp(-epsilon length) of the noise (LapMech) | 2 epsilon |
| `Purkayastha` | density exp(-epsilon angle) on the sphere (PurMech: Du et al. 2023) | pi epsilon |

The last two are metric privacy: the log ratio of two densities is at most epsilon times the distance of the inputs.
Stored vectors have length 1. So any two differ by at most 2 in L2, and by at most pi in angle, and opposite vectors
attain both. The claims hold for one release in real arithmetic; draws in floating point leak more
(`leakboard.privacy.mechanisms.textbook`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from pydantic import Field

from leakboard.claims import ReleaseClaim
from leakboard.errors import RequestError
from leakboard.interfaces import Floats
from leakboard.privacy.protections.protection import FittedProtection, Protection, protection

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def directions(count: int, dimension: int, rng: Generator) -> Any:
    """Return uniform directions, float64 (n, d)."""
    drawn = rng.normal(size=(count, dimension))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@protection(revision=1)
class GaussianNoise(Protection):
    """Adds independent Gaussian noise to each coordinate."""

    sigma: Positive
    """Standard deviation of the noise on each coordinate of a vector of length 1."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedGaussianNoise:
        """Return the noise; nothing is learned or drawn."""
        return FittedGaussianNoise(self.sigma)


@dataclass(frozen=True)
class FittedGaussianNoise(FittedProtection):
    """Gaussian noise."""

    sigma: float

    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return the vectors with noise."""
        return vectors + rng.normal(0, self.sigma, vectors.shape)


@protection(revision=1)
class MetricLaplace(Protection):
    """Adds noise in a uniform direction, with a length from Gamma(d, 1 / epsilon)."""

    epsilon: Positive
    """Epsilon for each unit of distance in L2."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedMetricLaplace:
        """Return the noise; nothing is learned or drawn."""
        return FittedMetricLaplace(self.epsilon)


@dataclass(frozen=True)
class FittedMetricLaplace(FittedProtection):
    """Noise z with density proportional to exp(-epsilon |z|)."""

    epsilon: float

    @property
    def claim(self) -> ReleaseClaim:
        """2 epsilon: by the triangle inequality the densities for x and x' differ by at most exp(epsilon |x - x'|)."""
        total = 2 * self.epsilon
        law = f"noise z with density exp(-{self.epsilon:g} |z|)"
        return ReleaseClaim(total, 0.0, "document", law, "2 in L2, of two unit vectors", proved=total)

    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return the vectors with noise."""
        count, dimension = vectors.shape
        lengths = rng.gamma(dimension, 1 / self.epsilon, (count, 1))
        return vectors + lengths * directions(count, dimension, rng)


@protection(revision=1)
class Purkayastha(Protection):
    """Turns vectors by a random angle in a uniform direction."""

    epsilon: Positive
    """Epsilon for each radian."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedPurkayastha:
        """Return the noise; nothing is learned or drawn.

        Raises:
            RequestError: the vectors have less than 3 dimensions.
        """
        if (dimension := vectors.shape[1]) < 3:
            raise RequestError(f"purkayastha: vectors of {dimension} dimensions are not allowed: at least 3")
        return FittedPurkayastha(self.epsilon)


@dataclass(frozen=True)
class FittedPurkayastha(FittedProtection):
    """Unit vectors with density proportional to exp(-epsilon angle) on the sphere."""

    epsilon: float

    @property
    def claim(self) -> ReleaseClaim:
        """Pi epsilon: angles obey the triangle inequality, and the density's constant is the same for all inputs."""
        total = math.pi * self.epsilon
        law = f"unit vector at an angle a with density exp(-{self.epsilon:g} a)"
        return ReleaseClaim(total, 0.0, "document", law, "pi in angle, of two unit vectors", proved=total)

    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return the turned vectors; a vector of zeros counts as the first axis, so that the claim holds for it."""
        count, dimension = vectors.shape
        centres = vectors.astype(np.float64)
        centres[~vectors.any(axis=1), 0] = 1
        turned = purkayastha_angles(count, dimension, self.epsilon, rng)[:, None]
        tangents = rng.normal(size=centres.shape)
        tangents -= (tangents * centres).sum(1, keepdims=True) * centres
        tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
        return np.cos(turned) * centres + np.sin(turned) * tangents


def purkayastha_angles(count: int, dimension: int, epsilon: float, rng: Generator) -> Any:
    """Draw angles in (0, pi) with density proportional to exp(-epsilon t) sin(t)^(d - 2), float64 (n,).

    Exact rejection sampling from the better of two envelopes, with p = d - 2 and the mode m:

    - Gaussian, for wide densities: the second derivative of the log density, -p / sin(t)^2, is at most -p. So the
      density is below that of N(m, 1 / p). About sin(m) of the draws are accepted.
    - Gamma, for densities near 0: sin(t) <= t, so the density is below that of Gamma(p + 1, 1 / epsilon). About
      exp(-p m^2 / 6) of the draws are accepted.

    Args:
        count: number of angles n.
        dimension: d, at least 3.
        epsilon: above 0.
        rng: draws the angles.
    """
    power = dimension - 2
    mode = math.atan2(power, epsilon)
    is_near_zero = -power * mode**2 / 6 > math.log(math.sin(mode))
    angles = np.empty(0)
    while (missing := count - len(angles)) > 0:
        if is_near_zero:
            drawn = rng.gamma(power + 1, 1 / epsilon, 2 * missing)
        else:
            drawn = rng.normal(mode, 1 / math.sqrt(power), 2 * missing)
        log_uniform = -rng.exponential(size=2 * missing)
        is_inside = (drawn > 0) & (drawn < math.pi)
        drawn, log_uniform = drawn[is_inside], log_uniform[is_inside]
        if is_near_zero:
            log_share = power * np.log(np.sin(drawn) / drawn)
        else:
            log_sines = np.log(np.sin(drawn) / math.sin(mode))
            log_share = power * (log_sines + (drawn - mode) ** 2 / 2) - epsilon * (drawn - mode)
        angles = np.append(angles, drawn[log_uniform < log_share][:missing])
    return angles
