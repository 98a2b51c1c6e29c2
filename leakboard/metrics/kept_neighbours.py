"""Measure how many nearest neighbours vectors keep when they are changed: what a search in them loses.

Each vector of test searches the vectors of train by cosine, before and after the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from leakboard.interfaces import Floats, Integers
from leakboard.metrics.intervals import ratio_interval
from leakboard.models.search import nearest

NEIGHBOURS = 10
"""Number of neighbours that are compared."""
MAX_QUERIES = 1_000
"""Largest number of vectors of test that search. If they are independent, the standard error is at most 0.016."""


class Kept(NamedTuple):
    """The share of the neighbours before that are among the neighbours after, with its 95 % interval."""

    share: float
    low: float
    high: float


def neighbours_kept(
    before: Mapping[str, Floats], after: Mapping[str, Floats], rng: np.random.Generator, units: Integers | None = None
) -> Kept:
    """Return the share of the `NEIGHBOURS` nearest vectors of train that stay the nearest.

    Equally near vectors count in the order of the rows, so vectors with many ties keep fewer.

    Args:
        before: ``train`` and ``test``, float32 (n, d).
        after: of the same rows, float32 (n, e).
        rng: draws the vectors of test that search, if there are more than `MAX_QUERIES`.
        units: int64 (n,), the author of each vector of test, as unit of the interval; None: each vector is a unit.
    """
    count = len(before["test"])
    queries = np.sort(rng.choice(count, min(count, MAX_QUERIES), replace=False))
    old, new = (nearest(vectors["test"][queries], vectors["train"], NEIGHBOURS).rows for vectors in (before, after))
    kept = np.array([len(np.intersect1d(*pair)) for pair in zip(old, new, strict=True)], np.float64)
    possible = np.full(len(kept), float(old.shape[1]))
    return Kept(
        float(kept.sum() / possible.sum()), *ratio_interval(kept, possible, None if units is None else units[queries])
    )
