"""Release vectors by textbook mechanisms, each with its theorem.

Noise is drawn anew for every coordinate and every release. The sensitivity is the largest distance between two
neighbouring inputs. The code that clips or normalises the input must prove the sensitivity; mechanisms do not check it.

Limit of `Laplace` and `Gaussian`: they draw in floating point, so the possible outputs depend on the input. An attacker
who reads every bit of an output may tell inputs apart at any epsilon (Mironov 2012, On significance of the least
significant bits for differential privacy). Publish with `DiscreteLaplace`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from leakboard.mechanism import MechanismDefaults

if TYPE_CHECKING:
    import torch

    Generator = np.random.Generator | torch.Generator
    """Random generator: of NumPy for arrays, of torch for tensors."""

Values = TypeVar("Values", NDArray[np.floating], "torch.Tensor")
"""Float array or tensor (n, d), one vector a row."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1)]
CHECKED = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=CHECKED)
class Laplace(MechanismDefaults):
    """Adds Lap(sensitivity / epsilon) noise to every coordinate.

    Theorem (Dwork, McSherry, Nissim and Smith 2006, proposition 1): if neighbours are at most ``sensitivity`` apart in
    L1, the release is epsilon-differentially private.

    Proof. The densities at any output differ by a factor of at most exp(||x - x'||_1 / scale).
    """

    epsilon: Positive
    sensitivity: Positive
    """Largest L1 distance of neighbours."""

    @property
    def delta(self) -> float:
        """0: pure differential privacy."""
        return 0.0

    @property
    def scale(self) -> float:
        """Scale b of the noise; its standard deviation is b * sqrt(2)."""
        return self.sensitivity / self.epsilon

    def release(self, values: Values, generator: Generator) -> Values:
        """Return values with noise, of the same type and shape."""
        return values + laplace_noise(values, self.scale, generator)

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        return laplace_log_ratio(outputs, first, second, self.scale)


@dataclass(frozen=True, config=CHECKED)
class Gaussian(MechanismDefaults):
    """Adds N(0, scale**2) noise to every coordinate, with the least scale that gives (epsilon, delta).

    Theorem (Balle and Wang 2018, theorem 8). Let neighbours be at most ``sensitivity`` = D apart in L2, and let s be
    the scale. The release is (epsilon, delta)-differentially private if and only if

        delta >= Phi(D / (2 s) - epsilon s / D) - e**epsilon Phi(-D / (2 s) - epsilon s / D).

    The right side decreases in s.
    """

    epsilon: Positive
    delta: Annotated[float, Field(gt=0, lt=1)]
    sensitivity: Positive
    """Largest L2 distance of neighbours."""

    @property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        return gaussian_scale(self.epsilon, self.delta, self.sensitivity)

    def release(self, values: Values, generator: Generator) -> Values:
        """Return values with noise, of the same type and shape."""
        return values + gaussian_noise(values, self.scale, generator)

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
        """Return ln p(output | first) - ln p(output | second) of each row, float64 (n,)."""
        return gaussian_log_ratio(outputs, first, second, self.scale)


@dataclass(frozen=True, config=CHECKED)
class DiscreteLaplace(MechanismDefaults):
    """Rounds values to a grid and adds two-sided geometric noise. Every input has the same possible outputs.

    Theorem (Ghosh, Roughgarden and Sundararajan 2009, for integers): noise k with probability proportional to
    exp(-|k| / b) is D/b-private for integer inputs at most D apart in L1. Rounding to the grid g moves each of d
    coordinates by at most g/2. So neighbours at most ``sensitivity`` apart are at most sensitivity + d g apart on the
    grid. With b = (sensitivity + d g) / (g epsilon), the release is epsilon-private.
    """

    epsilon: Positive
    sensitivity: Positive
    """Largest L1 distance of neighbours, before rounding."""
    grid: Positive = 2.0**-10
    """Distance g between possible outputs; a power of two is exact in floating point."""

    @property
    def delta(self) -> float:
        """0: pure differential privacy."""
        return 0.0

    def scale(self, dimensions: int) -> float:
        """Scale b of the noise, in steps of the grid."""
        return (self.sensitivity + dimensions * self.grid) / (self.grid * self.epsilon)

    def release(self, values: NDArray[np.floating], generator: np.random.Generator) -> NDArray[np.float64]:
        """Return multiples of the grid, float64 (n, d).

        The noise is the difference of two geometric numbers with success probability 1 - exp(-1/b).
        """
        success = -math.expm1(-1 / self.scale(values.shape[-1]))
        up, down = generator.geometric(success, (2, *values.shape))
        return (np.rint(np.asarray(values, np.float64) / self.grid) + (up - down)) * self.grid


@dataclass(frozen=True, config=CHECKED)
class WordDropout:
    """Hides every word independently with probability ``rate``. The choice is secret, and new for every release.

    Theorem (amplification, claimed by Lyu, He and Li 2020 in their theorem 2): masking before a mechanism that is
    epsilon-private for changing one word gives the epsilon ln((1 - rate) e**epsilon + rate). Assumptions:

    - The sentence with the word hidden is a neighbour of the sentence, too.
    - Every word is masked independently (not a fixed number of words).
    - All pieces of a word are masked together.
    - The mechanism is truly epsilon-private.

    Proof. Let two texts differ in one word. Let Q0 be the law of the output if this word is hidden, and Q1 and Q2 the
    laws if the first and the second text keep the word. With dropout, the texts have the laws P = rate Q0 +
    (1 - rate) Q1 and P' = rate Q0 + (1 - rate) Q2. Let alpha = (1 - rate) e**epsilon + rate. Then alpha P' - P >= 0
    follows from Q1 <= e**epsilon Q0 and Q1 <= e**epsilon Q2. With a delta above 0, the release is private at
    (1 - rate) delta (Balle, Barthe and Gaboardi 2018, theorem 2: advanced joint convexity).
    """

    rate: Probability

    def keep(self, words: int, generator: Generator) -> Any:
        """Return whether each word is kept, bool (words,)."""
        if isinstance(generator, np.random.Generator):
            return generator.random(words) >= self.rate
        import torch

        return torch.rand(words, generator=generator) >= self.rate

    def amplified(self, epsilon: float) -> float:
        """Return the epsilon of a release with dropout, if the theorem's assumptions hold."""
        if self.rate == 1:
            return 0.0
        return float(np.logaddexp(math.log1p(-self.rate) + epsilon, math.log(self.rate) if self.rate else -math.inf))


def laplace_noise(like: Values, scale: float, generator: Generator) -> Values:
    """Return Lap(scale) noise of the type and shape of ``like``."""
    if not isinstance(like, np.ndarray):
        import torch

        # Inverting the distribution function in float32 would never give noise beyond 17 times the scale.
        first, second = (torch.empty_like(like).exponential_(generator=generator) for _ in range(2))  # type: ignore[arg-type]
        return (first - second) * scale
    assert isinstance(generator, np.random.Generator), "arrays take NumPy's generator"
    size: Any = np.float32 if like.dtype == np.float32 else np.float64
    magnitude = generator.standard_exponential(like.shape, dtype=size)
    signs = generator.integers(0, 2, like.shape, dtype=np.int8) * np.int8(2) - np.int8(1)
    magnitude *= signs
    magnitude *= scale
    return magnitude.astype(like.dtype, copy=False)


def laplace_log_ratio(
    outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any], scale: float
) -> NDArray[np.float64]:
    """Return ln p(output | first) - ln p(output | second) of each row under Lap(scale) noise, float64 (n,)."""
    outputs = np.asarray(outputs, np.float64)
    return (np.abs(outputs - second).sum(-1) - np.abs(outputs - first).sum(-1)) / scale


def gaussian_noise(like: Values, scale: float, generator: Generator) -> Values:
    """Return N(0, scale**2) noise of the type and shape of ``like``."""
    if not isinstance(like, np.ndarray):
        import torch

        return torch.empty_like(like).normal_(0.0, scale, generator=generator)  # type: ignore[arg-type]
    assert isinstance(generator, np.random.Generator), "arrays take NumPy's generator"
    return generator.normal(0.0, scale, like.shape).astype(like.dtype)


def gaussian_log_ratio(
    outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any], scale: float
) -> NDArray[np.float64]:
    """Return ln p(output | first) - ln p(output | second) of each row under N(0, scale**2) noise, float64 (n,)."""
    outputs = np.asarray(outputs, np.float64)
    squares: NDArray[np.float64] = ((outputs - second) ** 2).sum(-1) - ((outputs - first) ** 2).sum(-1)
    return squares / (2 * scale**2)


def gaussian_delta(epsilon: float, scale: float, sensitivity: float) -> float:
    """Return the least delta of a Gaussian release (Balle and Wang 2018, theorem 8)."""
    from scipy import special

    half, drift = sensitivity / (2 * scale), epsilon * scale / sensitivity
    return float(special.ndtr(half - drift) - math.exp(epsilon + special.log_ndtr(-half - drift)))


def gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least standard deviation that gives (epsilon, delta), found numerically."""
    from scipy import optimize

    def excess(log_scale: float) -> float:
        return gaussian_delta(epsilon, math.exp(log_scale), 1.0) - delta

    low, high = -1.0, 1.0
    while excess(low) < 0:
        low -= 2
    while excess(high) > 0:
        high += 2
    return sensitivity * math.exp(optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-13))


def gaussian_epsilon(delta: float, scale: float, sensitivity: float) -> float:
    """Return the least epsilon of a Gaussian release at this delta, found numerically by inverting `gaussian_delta`."""
    from scipy import optimize

    if gaussian_delta(0.0, scale, sensitivity) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(high, scale, sensitivity) > delta:
        high *= 2
    return float(optimize.brentq(lambda e: gaussian_delta(e, scale, sensitivity) - delta, 0.0, high, rtol=1e-13))
