"""Statistics learned from releases of either input where the density is not known.

The best statistic is the ratio of the two densities (Neyman and Pearson 1933). For noise that is drawn coordinate by
coordinate its logarithm is a sum over coordinates, so it is learned as a table for each, or as one table for all where
the noise is the same. Boosted trees over a few summaries add what depends on several coordinates at once, such as a
scale that a whole row shares. A statistic that was learned badly finds less; it never makes a bound wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Score = Callable[[Array], Array]

CELLS = 1024
"""Cells of a table, equally wide between the outermost of the releases it was learned from."""
BINS = 64
"""Most bins of equal mass that the densities of a coordinate are counted in."""
FEWEST_IN_BIN = 100
"""Learned releases of either input in a bin, about."""
FEWEST_FOR_TREES = 2_000
"""Learned releases of either input, at least, for trees."""


def learned_scores(first: Array, second: Array, direction: Array | None) -> dict[str, Score]:
    """Return scores that are higher for releases like the first, by name.

    Args:
        first: releases of the first input, float (n, d).
        second: as many of the second.
        direction: difference of the second input and the first, float (d,); None where it is not known. Coordinates
            that it says are equal are not counted in the table for all.
    """
    if direction is None or len(direction) != first.shape[1] or not direction.any():
        direction = second.mean(0) - first.mean(0)
    if not direction.any():
        direction = np.ones(first.shape[1])
    half, tables = len(first) // 2, {}
    for monotone in (False, True):
        like = ", monotone" if monotone else ""
        tables[f"density ratios of the coordinates{like}"] = _apart(first[:half], second[:half], monotone)
        if first.shape[1] > 1:
            together = _together(first[:half], second[:half], direction, monotone)
            tables[f"density ratio of all coordinates{like}"] = together
    if len(first) < FEWEST_FOR_TREES:
        return tables
    return {**tables, "boosted trees": _trees(first[half:], second[half:], direction, list(tables.values()))}


def _apart(first: Array, second: Array, monotone: bool) -> Score:
    """Return the sum of the log density ratios of the coordinates, each with a table of its own."""
    found = [_table(*sides, monotone) for sides in zip(first.T, second.T, strict=True)]
    low, steps, tables = (np.stack(part) for part in zip(*found, strict=True))
    offsets = np.arange(first.shape[1]) * CELLS
    return lambda outputs: tables.ravel().take(_cells(outputs, low, steps) + offsets).sum(1)


def _together(first: Array, second: Array, direction: Array, monotone: bool) -> Score:
    """Return the sum of the log density ratios of the coordinates that differ, with one table for all of them.

    Coordinates are turned so that all differ in the same sense.
    """
    differ = np.flatnonzero(direction)
    signs = np.sign(direction[differ])

    def turned(outputs: Array) -> Array:
        turned: Array = outputs[:, differ] * signs
        return turned

    centre = np.median(turned(np.concatenate([first, second])), axis=0)
    one, other = ((turned(side) - centre).ravel() for side in (first, second))
    low, step, table = _table(one, other, monotone)
    return lambda outputs: table.take(_cells(turned(outputs), low + centre, step)).sum(1)


def _cells(outputs: Array, low: Array, steps: Array) -> Array:
    return np.clip((outputs - low) / steps, 0, CELLS - 1).astype(np.intp)


def _table(first: Array, second: Array, monotone: bool) -> tuple[Array, Array, Array]:
    """Return the least value, a cell's width, and the log density ratio in each cell, from values (n,) of either.

    A bin's ratio stands at the mean of its values, and is interpolated between: values that many releases share, as of
    a discrete release, keep ratios of their own.

    A monotone table is the most likely one that only rises or only falls (isotonic regression): with less noise, where
    the ratio is monotone, as it is for log-concave noise.
    """
    from sklearn.isotonic import isotonic_regression

    both = np.sort(np.concatenate([first, second]))
    bins = int(np.clip(len(first) // FEWEST_IN_BIN, 2, BINS))
    edges = np.unique(both[np.linspace(0, len(both) - 1, bins + 1).astype(int)][1:-1])
    places = [np.searchsorted(edges, side, "right") for side in (first, second)]
    counts = np.array([np.bincount(place, minlength=len(edges) + 1) for place in places])
    sums = np.bincount(np.concatenate(places), np.concatenate([first, second]), len(edges) + 1)
    held = counts.sum(0) > 0  # nothing lies before an edge that is the least value
    middles = sums[held] / counts.sum(0)[held]
    counts = counts[:, held] + 1
    total = counts.sum(0)
    share = counts[0] / total
    if monotone:
        rising = bool(first.mean() > second.mean())
        share = isotonic_regression(share, sample_weight=total, increasing=rising)
    inner = np.quantile(both, [1e-4, 1 - 1e-4]) if len(both) > 1e4 else both[[0, -1]]
    step = float(inner[1] - inner[0]) / CELLS or 1.0
    centres = inner[0] + step * (np.arange(CELLS) + 0.5)
    return (
        np.asarray(inner[0], np.float64),
        np.asarray(step),
        np.interp(centres, middles, np.log(share) - np.log1p(-share)),
    )


def _trees(first: Array, second: Array, direction: Array, scores: list[Score]) -> Score:
    """Return the log odds of boosted trees over other scores, the projection, norms, and few coordinates themselves."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    centre = np.median(np.concatenate([first, second]), axis=0)
    raw = slice(0, first.shape[1] if first.shape[1] <= 8 else 0)

    def summaries(outputs: Array) -> Array:
        away = np.abs(outputs - centre)
        columns = [score(outputs) for score in scores]
        columns += [outputs @ direction, away.sum(1), away.max(1), away.min(1)]
        return np.column_stack([*columns, outputs[:, raw]])

    model = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=8, learning_rate=0.15, min_samples_leaf=100, early_stopping=False, random_state=0
    )
    labels = np.repeat([1, 0], [len(first), len(second)])
    model.fit(summaries(np.concatenate([first, second])), labels)
    return lambda outputs: model.decision_function(summaries(outputs))
