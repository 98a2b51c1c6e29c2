"""Audit functions of vectors: their inputs and their releases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakboard.api.arguments import check
from leakboard.errors import RequestError
from leakboard.mechanism import Mechanism, MechanismDefaults

if TYPE_CHECKING:
    from leakboard.api.distances import ClaimedDistance
    from leakboard.privacy.auditing.events import Pair

Array = NDArray[Any]
Release = Callable[[Array, np.random.Generator], Array]
"""Maps vectors, float64 (n, d), and a generator to their releases, (n, d)."""
TRIED = 64
"""Rows of the releases that try the function."""
NOT_FINITE = 1e30
"""Size of the number that replaces NaN and infinity in releases."""


def vector_pairs(
    pairs: Sequence[tuple[Any, Any]] | None,
    domain: str,
    dimension: int,
    epsilon: float,
    distance: ClaimedDistance | None,
    rng: np.random.Generator,
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Return the pairs to audit, pairs for which no densities are learned, and pairs that a function may refuse.

    Raises:
        RequestError: the given pairs are not pairs of vectors, or their distance is not a number from 0.
    """
    from leakboard.privacy.auditing.distances import pairs_at_distances
    from leakboard.privacy.auditing.events import corners, interior, outside

    if pairs is not None:
        given = _pairs(pairs, dimension)
        return (given if distance is None else [distance.measure(pair, *pair.inputs) for pair in given]), [], []
    if distance is None:
        return corners(dimension), interior(dimension, rng), outside(dimension) if domain == "any" else []
    try:
        return *pairs_at_distances(dimension, epsilon, distance.function, rng), []
    except (TypeError, ValueError) as error:
        raise RequestError(f"distance: {error}") from None


@dataclass(frozen=True)
class VectorFunction(MechanismDefaults):
    """A function with its claim, as audits need it."""

    function: Release
    epsilon: float
    delta: float
    accepts_any: bool
    """Whether the inputs may be any numbers; then NaN and infinity in releases become numbers."""

    def release(self, values: Array, generator: np.random.Generator) -> Array:
        """Release a copy of every row, float64 (n, d), since a function may write into its argument."""
        with np.errstate(all="ignore" if self.accepts_any else None):
            given = self.function(np.array(values, np.float64), generator)
        try:
            released = np.asarray(given)
        except ValueError:  # a tuple of arrays of several shapes
            released = np.empty((), object)
        is_masked = isinstance(given, np.ma.MaskedArray)
        if released.shape != values.shape or released.dtype.kind not in "fiub" or is_masked:
            shown = f"{'masked ' if is_masked else ''}{released.dtype} of shape {released.shape}"
            shown = type(given).__name__ if released.shape == () else shown.replace("object of", "objects of", 1)
            raise ValueError(f"it gives {shown} for vectors of shape {values.shape}; allowed: numbers of that shape")
        numbers = released.astype(np.float64)
        if released.dtype.kind in "iu" and (numbers.astype(released.dtype) != released).any():
            raise ValueError("it gives whole numbers beyond 2^53, whose last digits an audit would lose")
        if self.accepts_any:  # a function of a release is as private as the release
            numbers = np.nan_to_num(numbers, nan=NOT_FINITE, posinf=NOT_FINITE, neginf=-NOT_FINITE)
        return numbers

    def vector_of(self, values: Array) -> Array | None:
        """Return the input itself; None if it is not finite, since audits compute with it."""
        return values if np.isfinite(values).all() else None


def takes_two(release: object) -> bool:
    """Return whether an object can be called with two arguments, as far as Python can tell without calling it."""
    if not callable(release):
        return False
    try:
        inspect.signature(release).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # of some functions in C
        return True
    return True


def accepted(mechanism: Mechanism, pairs: Sequence[Pair], rng: np.random.Generator) -> tuple[list[Pair], list[str]]:
    """Return the pairs whose inputs a function accepts, and a note for each of the others."""
    from leakboard.privacy.auditing.trials import noise_generator

    accepted, notes, noise = [], [], noise_generator(rng)
    for pair in pairs:
        try:
            for values in pair.inputs:
                mechanism.release(np.tile(values, (TRIED, 1)), noise)
        except Exception as error:  # a function may refuse such inputs in any way
            notes.append(f"not tried, since the function refuses it: {pair.name} ({type(error).__name__}: {error})")
        else:
            accepted.append(pair)
    return accepted, notes


def _pairs(pairs: Sequence[tuple[Any, Any]], dimension: int) -> list[Pair]:
    from leakboard.privacy.auditing.events import Pair

    allowed, result = f"two vectors of {dimension} finite numbers", []
    check("pairs", pairs, isinstance(pairs, Iterable), f"pairs, of {allowed} each")
    for number, pair in enumerate(pairs):
        try:
            vectors = [np.asarray(vector, np.float64) for vector in pair]
        except (TypeError, ValueError):
            shown = " ".join(repr(pair).split())
            raise RequestError(f"pairs[{number}]: {shown} is not allowed: {allowed}") from None
        has_shape = len(vectors) == 2 and all(vector.shape == (dimension,) for vector in vectors)
        shapes = " and ".join(str(vector.shape) for vector in vectors)
        check(f"pairs[{number}]", f"shape {shapes}", has_shape, allowed)
        check(f"pairs[{number}]", [vector.tolist() for vector in vectors], bool(np.isfinite(vectors).all()), allowed)
        differ = not np.array_equal(vectors[0], vectors[1])
        check(f"pairs[{number}]", [vector.tolist() for vector in vectors], differ, f"{allowed} that differ")
        result.append(Pair(f"pair {number}", vectors[0], vectors[1]))
    check("pairs", pairs, bool(result), "at least one, or None for corners of the unit cube")
    return result
