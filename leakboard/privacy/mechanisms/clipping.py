"""Clip a vector to an L2 norm and add noise: ADePT's release (Krishna, Gupta and Dupuy 2021), and a corrected one.

A state s in (-1, 1)^d is clipped to norm C: it becomes s min(1, C / ||s||). Neighbours are any two states. Clipped,
they are at most 2 C apart in L2 and, by Cauchy and Schwarz, at most 2 C sqrt(d) in L1. States along (1, ..., 1) and
its opposite attain both bounds.

| family | calibration | scale of the noise | what is proved |
|---|---|---|---|
| Laplace | ``as_published`` | 2 C / epsilon: the L2 bound in place of the L1 bound | sqrt(d) times the claim |
| Laplace | ``corrected`` | 2 C sqrt(d) / epsilon | the claim |
| Gaussian | ``as_published`` | 2 C sqrt(2 ln(1.25 / delta)) / epsilon | computed; the claim up to an epsilon of 1 |
| Gaussian | ``corrected`` | the least that gives the claim (`Gaussian`) | the claim |

Habernal (2021) found the flaw of the Laplace noise. The Gaussian formula is that of Dwork and Roth (2014, theorem A.1),
which holds below epsilon 1, with the right bound of 2 C in L2. `ClippedRelease` works on (s + 1) / 2, so that its
inputs are in the unit cube. It clips around the cube's centre, and all lengths are half of those above.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass

from leakboard.claims import ReleaseClaim
from leakboard.errors import RequestError
from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.mechanisms.textbook import (
    CHECKED,
    Gaussian,
    Positive,
    Values,
    gaussian_epsilon,
    gaussian_log_ratio,
    gaussian_noise,
    laplace_log_ratio,
    laplace_noise,
)

Family = Literal["laplace", "gaussian"]
Calibration = Literal["as_published", "corrected"]


def clipped(vectors: Values, norm: float) -> Values:
    """Shorten every row of float (n, d) to at most this 2-norm. Gradients pass through a tensor."""
    if isinstance(vectors, np.ndarray):
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return vectors * np.minimum(1, norm / np.maximum(lengths, norm)).astype(vectors.dtype)
    return vectors * (norm / vectors.norm(dim=-1, keepdim=True).clamp(min=norm))


def check_clipping(norm: float, dimension: int) -> None:
    """Refuse a norm that no state exceeds, since the noise would then be larger than the claim needs.

    Raises:
        RequestError: the norm is larger than sqrt(dimension).
    """
    if norm > (longest := math.sqrt(dimension)):
        raise RequestError(
            f"clipping_norm: {norm:g} is not allowed with dimension {dimension}: at most {longest:.4g}, "
            "the length of the longest state"
        )


@dataclass(frozen=True, config=CHECKED)
class ClippedRelease(MechanismDefaults):
    """Clips vectors of [0, 1]**dimension around the centre of the cube, and adds noise to every coordinate."""

    dimension: Annotated[int, Field(ge=1)]
    epsilon: Positive
    """Claimed epsilon."""
    clipping_norm: Positive
    """C, the largest 2-norm of a clipped state."""
    family: Family = "laplace"
    calibration: Calibration = "as_published"
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Claimed delta: 0 for Laplace noise, above 0 for Gaussian noise."""

    def __post_init__(self) -> None:
        check_clipping(self.clipping_norm, self.dimension)
        if (self.family == "gaussian") != (self.delta > 0):
            allowed = "above 0" if self.family == "gaussian" else "0"
            raise RequestError(f"delta: {self.delta:g} is not allowed with noise {self.family!r} (allowed: {allowed})")

    @property
    def largest_distance(self) -> float:
        """Largest distance of two clipped vectors of the cube: in L1 for Laplace noise, in L2 for Gaussian noise."""
        return self.clipping_norm * (math.sqrt(self.dimension) if self.family == "laplace" else 1.0)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise, or standard deviation of the Gaussian noise, in the cube."""
        if self.family == "laplace":
            is_correct = self.calibration == "corrected"
            return (self.largest_distance if is_correct else self.clipping_norm) / self.epsilon
        if self.calibration == "corrected":
            return Gaussian(self.epsilon, self.delta, self.largest_distance).scale
        return self.largest_distance * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon

    @property
    def proved(self) -> float:
        """The epsilon that is proved for any two vectors of the cube at the claim's delta."""
        if self.calibration == "corrected":
            return self.epsilon
        if self.family == "laplace":
            return self.largest_distance / self.scale
        return gaussian_epsilon(self.delta, self.scale, self.largest_distance)

    def vector_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return vectors clipped around the centre of the cube, float of the same shape."""
        return 0.5 + clipped(values - 0.5, self.clipping_norm / 2)

    def release(self, values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Return the clipped values, one vector a row, with noise."""
        noise = laplace_noise if self.family == "laplace" else gaussian_noise
        centres = self.vector_of(values)
        return centres + noise(centres, self.scale, generator)

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        ratio = laplace_log_ratio if self.family == "laplace" else gaussian_log_ratio
        return ratio(outputs, self.vector_of(first), self.vector_of(second), self.scale)

    @property
    def claim(self) -> ReleaseClaim:
        """The claim about any two texts, with the proved epsilon. Lengths are those of states, as in the paper."""
        bound = 2 * self.clipping_norm
        sensitivity = f"{bound:.4g} in L2"
        if self.family == "laplace":
            is_correct = self.calibration == "corrected"
            right = f"{2 * self.largest_distance:.4g} in L1"
            sensitivity = right if is_correct else f"{bound:.4g}, the bound in L2, for noise that needs {right}"
        noise = f"{self.family.capitalize()} noise after clipping to the L2 norm {self.clipping_norm:g}"
        return ReleaseClaim(self.epsilon, self.delta, "document", noise, sensitivity, self.proved)
