"""Store unit vectors as they are: the baseline of all protections."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.random import Generator

from leakboard.interfaces import Floats
from leakboard.privacy.protections.protection import FittedProtection, Protection, protection


@protection(revision=1)
class NoProtection(Protection):
    """Stores unit vectors as they are."""

    def learn(self, vectors: Floats, rng: Generator) -> FittedNoProtection:
        """Return the identity; nothing is learned or drawn."""
        return FittedNoProtection()


@dataclass(frozen=True)
class FittedNoProtection(FittedProtection):
    """The identity."""

    def stored(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the vectors as they are."""
        return vectors
