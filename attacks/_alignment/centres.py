"""Compress vectors as a store does, by the centres that its stored vectors show.

Product quantisation replaces each part of a vector by the nearest of a few centres, and int8 each coordinate by the
nearest of 256 levels. A stolen vector is what its code stands for, so the thief sees the centres. It compresses a
candidate itself, and gets the very vector that would be stored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leakboard.errors import NotApplicable
from leakboard.interfaces import Floats, Integers
from leakboard.models.search import normalised

MOST_UNSEEN = 0.02
"""Largest chance that a centre was not seen: the share of rows whose value no other row has (Good 1953)."""


def compression(stored: Floats) -> Callable[[Floats], Floats]:
    """Return how the store compresses vectors of length 1, float32 (n, d) to (n, d).

    The parts are the widest ones of equal width whose values nearly all repeat.

    Args:
        stored: stolen vectors, float32 (m, d).

    Raises:
        NotApplicable: the stored vectors show no centres.
    """
    dimension = stored.shape[1]
    for parts in range(1, dimension + 1):
        if dimension % parts == 0 and (centres := _centres(np.split(stored, parts, axis=1))) is not None:
            return lambda vectors: _compressed(normalised(vectors), centres)
    raise NotApplicable("recompress: the stored vectors have no repeated parts, so they show no centres")


def _centres(parts: list[Floats]) -> list[Floats] | None:
    """Return the distinct values of each part, float32 (centres, width); None if too many of a part are seen once."""
    centres = []
    for part in parts:
        values, counts = np.unique(part, axis=0, return_counts=True)
        if (counts == 1).sum() > MOST_UNSEEN * len(part):
            return None
        centres.append(values)
    return centres


def _compressed(vectors: Floats, centres: list[Floats]) -> Floats:
    """Return the nearest centre of each part, side by side."""
    parts = np.split(vectors, len(centres), axis=1)
    return np.hstack([own[_nearest(part, own)] for part, own in zip(parts, centres, strict=True)])


def _nearest(part: Floats, centres: Floats) -> Integers:
    rows: Integers = ((centres**2).sum(1) - 2 * part @ centres.T).argmin(1)
    return rows
