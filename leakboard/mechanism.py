"""The contract of mechanisms: what releases a vector under noise, and what audits may ask of it."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.random import Generator
from numpy.typing import NDArray


class MechanismDefaults:
    """What audits may ask of a mechanism beyond its releases, with the answers of one that knows nothing more.

    A mechanism inherits it and overrides what it knows better.
    """

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any] | None:
        """Return ln p(output | first) - ln p(output | second) of each row of ``outputs``, float64 (n,); None: unknown.

        The inputs are vectors, float (d,), the outputs float (n, d). Infinite where one of them cannot give the
        output; NaN, where neither can, counts as 0.
        """
        return None

    def vector_of(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return the vector, float (d,), that an input becomes before noise: the input itself, unless it is a text.

        None where that is random.
        """
        return values


class Mechanism(Protocol):
    """Anything that releases vectors and claims a privacy for it.

    `MechanismDefaults` has what a mechanism need not know.
    """

    @property
    def epsilon(self) -> float:
        """What is claimed for one release."""

    @property
    def delta(self) -> float:
        """What is claimed for one release."""

    def release(self, values: NDArray[Any], generator: Generator) -> NDArray[Any]:
        """Release every row of ``values`` by itself."""

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any] | None:
        """Return how much likelier each output is for the first input; `MechanismDefaults` does not know."""

    def vector_of(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return the vector that an input becomes before noise; of `MechanismDefaults` the input itself."""


class ReleaseMechanism(Mechanism, Protocol):
    """The last step of a private victim: a vector of the unit cube goes in, a noisy vector comes out.

    Its epsilon must hold for every two vectors of the cube (for a claim about one coordinate: every two that differ in
    one), since audits try corners. Several threads draw its releases at once.
    """

    @property
    def dimension(self) -> int:
        """Width d of the vectors, whose coordinates lie in [0, 1]."""
