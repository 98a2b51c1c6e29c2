"""Define what a mechanism must do: it releases a vector under noise, and answers the questions of audits.

A mechanism inherits from `MechanismDefaults` and has the members of `Mechanism`, or of `ReleaseMechanism` if it is the
last step of a victim.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.random import Generator
from numpy.typing import NDArray


class MechanismDefaults:
    """Default answers to an audit's questions, for a mechanism that has no better ones."""

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any] | None:
        """Return ln p(output | first) - ln p(output | second) of each row of ``outputs``, float64 (n,).

        Args:
            outputs: float (n, d).
            first: an input, float (d,).
            second: another input, float (d,).

        Returns:
            None if the ratio is not known. A value is infinite if only one of the inputs can give the output. A value
            is NaN if neither input can give the output; audits count NaN as 0.
        """
        return None

    def vector_of(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return an input's vector before noise, float (d,): the input itself, or a text's vector; None: random."""
        return values


class Mechanism(Protocol):
    """Any method that releases vectors and claims an epsilon for each release."""

    @property
    def epsilon(self) -> float:
        """Epsilon that is claimed for one release, with ``delta``; for each unit of distance if the claim has one."""

    @property
    def delta(self) -> float:
        """Delta that is claimed for one release, with ``epsilon``."""

    def release(self, values: NDArray[Any], generator: Generator) -> NDArray[Any]:
        """Release each row of ``values``, independently of the other rows."""

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any] | None:
        """Return how much likelier each output is for the first input: see `MechanismDefaults.log_ratio`."""

    def vector_of(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return the vector before noise: see `MechanismDefaults.vector_of`."""


class ReleaseMechanism(Mechanism, Protocol):
    """The last step of a private victim: it maps a vector of the unit cube to a noisy vector.

    Its epsilon must hold for every two vectors of the cube, since audits try the corners of the cube. If the claim is
    about one coordinate, it must hold for every two vectors that differ in one coordinate. Several threads call
    ``release`` at once.
    """

    @property
    def dimension(self) -> int:
        """Width d of the vectors; their coordinates are in [0, 1]."""
