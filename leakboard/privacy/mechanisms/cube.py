"""Add noise to a normalised vector, as papers and their released code do, and state the proved epsilon of each variant.

The input is a vector of d coordinates in [0, 1]. Neighbours are any two such vectors. The *claimed* epsilon is the
authors'. The *proved* epsilon follows from the noise that the code draws:

* Independent Laplace noise of scale b proves d / b, since two vectors of the cube differ by up to d in L1 (`Laplace`).
  With b = 1/epsilon (``per_coordinate``, DPNR's algorithm), d / b is d times the claim. With b = d/epsilon (``l1``),
  d / b is the claim.
* Discrete Laplace noise (``l1`` only) proves the claim (`DiscreteLaplace`).
* Gaussian noise of deviation s proves the least epsilon that holds with the claim's delta, since two vectors of the
  cube differ by up to sqrt(d) in L2 (`Gaussian`).
* One number for all coordinates (``shared``, DPNR's released code) proves nothing if d > 1: differences of coordinates
  have no noise. If the smallest coordinate is known to be 0, subtracting the smallest published number removes the
  noise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass

from leakboard.claims import ReleaseClaim, ReleaseUnit
from leakboard.errors import RequestError
from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.mechanisms.textbook import (
    CHECKED,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Positive,
    Values,
    WordDropout,
    gaussian_epsilon,
)

if TYPE_CHECKING:
    from leakboard.privacy.mechanisms.textbook import Generator

Family = Literal["laplace", "discrete_laplace", "gaussian"]
Calibration = Literal["per_coordinate", "l1", "l2"]
Sampling = Literal["independent", "shared"]

ALLOWED: dict[Family, tuple[Calibration, ...]] = {
    "laplace": ("per_coordinate", "l1"),
    "discrete_laplace": ("l1",),
    "gaussian": ("per_coordinate", "l2"),
}
"""Allowed calibrations of each family."""


def check_release(family: Family, calibration: Calibration, sampling: Sampling) -> None:
    """Refuse a calibration or a sampling that the family does not have.

    Raises:
        RequestError: the options do not go together.
    """
    if calibration not in ALLOWED[family]:
        allowed = ", ".join(ALLOWED[family])
        raise RequestError(
            f"calibration: {calibration!r} is not allowed with mechanism {family!r} (allowed: {allowed})"
        )
    if family == "discrete_laplace" and sampling == "shared":
        raise RequestError("sampling: 'shared' is not allowed for 'discrete_laplace' (allowed: independent)")


@dataclass(frozen=True, config=CHECKED)
class CubeRelease(MechanismDefaults):
    """Adds noise to vectors of [0, 1]**dimension."""

    dimension: Annotated[int, Field(ge=1)]
    epsilon: Positive
    """Claimed epsilon."""
    family: Family = "laplace"
    calibration: Calibration = "per_coordinate"
    sampling: Sampling = "independent"
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Claimed delta: 0 for the Laplace families, above 0 for Gaussian noise."""

    def __post_init__(self) -> None:
        check_release(self.family, self.calibration, self.sampling)
        if (self.family == "gaussian") != (self.delta > 0):
            allowed = "above 0" if self.family == "gaussian" else "0"
            raise RequestError(
                f"delta: {self.delta:g} is not allowed with mechanism {self.family!r} (allowed: {allowed})"
            )

    @property
    def assumed_sensitivity(self) -> float:
        """The sensitivity behind the noise scale: 1, d (in L1) or sqrt(d) (in L2)."""
        return {"per_coordinate": 1.0, "l1": float(self.dimension), "l2": math.sqrt(self.dimension)}[self.calibration]

    @property
    def mechanism(self) -> Laplace | DiscreteLaplace | Gaussian:
        """The mechanism for the assumed sensitivity."""
        if self.family == "gaussian":
            return Gaussian(self.epsilon, self.delta, self.assumed_sensitivity)
        return (Laplace if self.family == "laplace" else DiscreteLaplace)(self.epsilon, self.assumed_sensitivity)

    def release(self, values: Values, generator: Generator) -> Values:
        """Return the values, one vector a row, with noise.

        Raises:
            ValueError: the width is wrong, or a coordinate is outside [0, 1], where the sensitivity does not hold.
        """
        if values.shape[-1] != self.dimension:
            raise ValueError(f"vectors of {values.shape[-1]} coordinates; this release is for {self.dimension}")
        if not bool(((values >= 0) & (values <= 1)).all()):
            raise ValueError(
                "a coordinate is NaN or outside [0, 1], where the sensitivity of the release does not hold"
            )
        mechanism: Any = self.mechanism
        if self.sampling == "independent":
            released: Values = mechanism.release(values, generator)
            return released
        column = values[..., :1]
        return values + (mechanism.release(column, generator) - column)

    @property
    def proved(self) -> float:
        """The epsilon that is proved for any two vectors of the cube at the claim's delta; infinite if none is."""
        if self.sampling == "shared" and self.dimension > 1:
            return math.inf
        if self.family == "discrete_laplace":
            return self.epsilon
        if self.family == "laplace":
            return self.epsilon * self.dimension / self.assumed_sensitivity
        mechanism = self.mechanism
        assert isinstance(mechanism, Gaussian)
        return gaussian_epsilon(self.delta, mechanism.scale, math.sqrt(self.dimension))

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64] | None:
        """Return ln p(output | first) - ln p(output | second) of each row; None for shared or discrete noise."""
        return None if self.sampling == "shared" else self.mechanism.log_ratio(outputs, first, second)

    def claim(self, unit: ReleaseUnit, amplified: Any = None, amplification_proved: bool = True) -> ReleaseClaim:
        """Return the claim of the authors with the proved epsilon.

        Args:
            unit: what two neighbouring inputs differ in.
            amplified: maps the epsilon of this release to the epsilon with word dropout; None without dropout.
            amplification_proved: whether words are hidden as the theorem of `WordDropout` requires.
        """
        if unit not in ("word", "document", "vector"):
            raise ValueError(f"claim: unit={unit!r} is not allowed: word, document or vector")
        amplified = amplified or (lambda epsilon: epsilon)
        noise = {"laplace": "Laplace", "discrete_laplace": "discrete Laplace", "gaussian": "Gaussian"}[self.family]
        drawn = "one number for all coordinates" if self.sampling == "shared" else "each coordinate by itself"
        norm = {
            "per_coordinate": "1, of one coordinate",
            "l1": f"{self.dimension} in L1",
            "l2": f"{self.assumed_sensitivity:.4g} in L2",
        }
        return ReleaseClaim(
            amplified(self.epsilon),
            self.delta,
            unit,
            f"{noise} noise, {drawn}",
            norm[self.calibration],
            amplified(self.proved) if amplification_proved else self.proved,
        )


@dataclass(frozen=True, config=CHECKED)
class HiddenWordRelease(MechanismDefaults):
    """Adds word dropout to a release, for audits: the two inputs are the vectors of two texts that differ in one word.

    With probability ``rate`` the word is hidden, and both texts give the corner 1, 0, 1, 0, ... of the cube. Otherwise
    each text gives its own vector. With independent Laplace noise, the epsilon of `WordDropout` is exact if one text's
    vector is this corner and the other text's is the opposite corner.
    """

    inner: CubeRelease
    rate: Annotated[float, Field(gt=0, le=1)]

    @property
    def dimension(self) -> int:
        """Number of coordinates of a vector."""
        return self.inner.dimension

    @property
    def epsilon(self) -> float:
        """Claimed epsilon, word dropout included."""
        return WordDropout(self.rate).amplified(self.inner.epsilon)

    @property
    def delta(self) -> float:
        """Claimed delta."""
        return self.inner.delta

    def release(self, values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Replace hidden rows by the corner, and return all rows with noise, float (n, d)."""
        hidden = generator.random((len(values), 1)) < self.rate
        corner = 1 - np.arange(self.dimension, dtype=values.dtype) % 2
        return self.inner.release(np.where(hidden, corner, values), generator)

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64] | None:
        """Return the log ratio of the inner release, a score that is not exact for this release."""
        return self.inner.log_ratio(outputs, first, second)
