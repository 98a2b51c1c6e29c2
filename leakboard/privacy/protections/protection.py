"""Define a protection of a vector store: a recipe, and the fitted state with its key.

1. ``Protection.fit`` learns from the stored vectors and draws the key.
2. `FittedProtection.protect` makes the vectors that the store holds, and that an eavesdropper sees.
3. `FittedProtection.protect_query` makes the query. The store returns the stored vectors that are nearest by cosine.

All input vectors are scaled to length 1 first, so that a claim about unit vectors holds for any input. A vector of
zeros has no direction, and stays zero.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, dataclass_transform, get_type_hints

import numpy as np
import pydantic.dataclasses
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import ConfigDict

from leakboard.claims import ReleaseClaim
from leakboard.errors import RequestError
from leakboard.interfaces import Floats, Plugin
from leakboard.store import load_fields, save_fields


@dataclass_transform(frozen_default=True, kw_only_default=True)
def protection(revision: int) -> Callable[[type], Any]:
    """Make a class a recipe, whose fields are its options; it is a part of a victim, as an encoder is.

    Args:
        revision: the version of the recipe's results. Add 1 if a change gives other vectors for the same options.
    """

    def decorate(cls: type) -> Any:
        strict = ConfigDict(extra="forbid", strict=True)
        recipe: Any = pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=strict)(cls)
        recipe.__leakboard_kind__, recipe.__leakboard_revision__ = "victims", revision
        return recipe

    return decorate


@dataclass(frozen=True)
class FittedProtection:
    """A protection with its key and what it learned. Its fields are arrays and numbers, which are saved."""

    @property
    def claim(self) -> ReleaseClaim | None:
        """The privacy claim for one stored vector; None: no claim."""
        return None

    def protect(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the vectors that the store holds, float32 (n, d'), for vectors (n, d) of any length."""
        return self.stored(unit_length(vectors), rng).astype(np.float32, copy=False)

    def protect_query(self, vectors: Floats, rng: Generator) -> Floats:
        """Return the queries of a search by cosine, float32 (n, d'), for vectors (n, d) of any length."""
        return self.query(unit_length(vectors), rng).astype(np.float32, copy=False)

    @abstractmethod
    def stored(self, vectors: Floats, rng: Generator) -> Any:
        """Return what `protect` returns, for vectors of length 1, in any float type."""

    def query(self, vectors: Floats, rng: Generator) -> Any:
        """Return what `protect_query` returns, for vectors of length 1; by default as `stored`."""
        return self.stored(vectors, rng)

    def save(self, folder: Path) -> None:
        """Write the fields into an empty folder, as NumPy and JSON."""
        save_fields(self, folder)


class Protection(Plugin):
    """A recipe for a protection."""

    def fit(self, vectors: Floats, rng: Generator) -> FittedProtection:
        """Learn from the stored vectors, float (n, d), and draw the key.

        Raises:
            RequestError: the store has less than two vectors, or they do not suit the options.
        """
        if len(vectors) < 2:
            raise RequestError(f"protection: a store of {len(vectors)} vectors is not allowed: at least 2")
        return self.learn(unit_length(vectors), rng)

    @abstractmethod
    def learn(self, vectors: Floats, rng: Generator) -> FittedProtection:
        """Return what `fit` returns, for two or more vectors of length 1."""

    def load(self, folder: Path) -> FittedProtection:
        """Return the state that `FittedProtection.save` wrote, of the type in ``learn``'s return annotation."""
        fitted: FittedProtection = load_fields(get_type_hints(type(self).learn)["return"], folder)
        return fitted


def unit_length(vectors: NDArray[Any]) -> Floats:
    """Return the rows scaled to length 1, float32 (n, d); rows of zeros stay."""
    exact = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return (exact / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def at_most(name: str, value: int, limit: int, of_what: str) -> None:
    """Refuse an option above a limit.

    Args:
        name: of the recipe and the option, such as ``truncation.dimensions``.
        value: of the option.
        limit: its largest allowed value.
        of_what: where the limit comes from, for the message.

    Raises:
        RequestError: the value is above the limit.
    """
    if value > limit:
        raise RequestError(f"{name}: {value} is not allowed: from 1 to {limit}, {of_what}")
