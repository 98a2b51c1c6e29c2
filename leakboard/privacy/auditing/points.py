"""Map a release to scores whose single values tell inputs apart, where densities tell nothing.

A leak may be a set of values that only one input can give: a release without noise, a grid that depends on the input,
a word that is never drawn, or a product of signs. A threshold on a smooth score misses it. An event of one value of
these scores finds it (`leakboard.privacy.auditing.thresholds`). A useless score never makes a bound wrong.
"""

from __future__ import annotations

import numpy as np

from leakboard.privacy.auditing.events import Array, Score

NEAR = 1e-9
"""Largest distance of a coordinate without noise from its input, as a share of the input's size or of 1."""
PERIOD = 2.0
"""Period of the residues of sums. It shows grids that divide it, such as 1/4 or 1/10, and whether numbers are odd."""
RESIDUE_STEP = 1e-6
"""Step to which residues are rounded."""
MAX_PAIRED = 64
"""Number of leading coordinates among which two are chosen for a product of signs."""
ZERO = 4.0
"""Number of standard errors within which a mean may be 0."""
MAX_VALUES = 4_096
"""Number of the most frequent values in a table of values."""


def point_scores(
    first_input: Array | None, second_input: Array | None, first_releases: Array, second_releases: Array
) -> dict[str, Score]:
    """Return scores by name.

    Args:
        first_input: the vector before noise, float (d,); None: unknown.
        second_input: the vector before noise, float (d,); None: unknown.
        first_releases: releases of the first input to learn from, float (n, d).
        second_releases: releases of the second input, float (m, d).
    """
    weights = np.random.default_rng(0).uniform(1, 2, first_releases.shape[1:])
    scores: dict[str, Score] = {
        # equal releases have equal sums, and different releases almost never
        "weighted sum": lambda outputs: outputs @ weights,
        f"sum modulo {PERIOD:g}": _residue,
    }
    if first_input is not None and second_input is not None:
        scores["coordinates without noise"] = _without_noise(first_input, second_input)
    scores |= _table_of_values(first_releases @ weights, second_releases @ weights, weights)
    if first_releases.shape[1] > 1:
        known = first_input is not None and second_input is not None and (first_input != second_input).any()
        column = int(np.argmax(first_input != second_input)) if known else 0
        scores[f"coordinate {column + 1}"] = lambda outputs: outputs[:, column]
        scores |= _parities(first_releases, second_releases)
    return scores


def _residue(outputs: Array) -> Array:
    steps = np.rint(outputs.sum(1, dtype=np.float64) / RESIDUE_STEP)
    residue: Array = np.mod(steps, PERIOD / RESIDUE_STEP) * RESIDUE_STEP
    return residue


def _without_noise(first: Array, second: Array) -> Score:
    """Count coordinates that equal those of the first input, minus those that equal those of the second."""
    differing = np.flatnonzero(first != second)
    sides = [(side[differing], NEAR * np.maximum(1, np.abs(side[differing]))) for side in (first, second)]

    def score(outputs: Array) -> Array:
        columns = outputs[:, differing]
        to_first, to_second = ((np.abs(columns - values) <= near).sum(1) for values, near in sides)
        counts: Array = (to_first - to_second).astype(np.float64)
        return counts

    return score


def _table_of_values(first_keys: Array, second_keys: Array, weights: Array) -> dict[str, Score]:
    """Return the log ratio of the frequencies of a release under the two inputs, if releases are repeated."""
    step = RESIDUE_STEP
    first_keys, second_keys = np.rint(first_keys / step), np.rint(second_keys / step)
    values, counts = np.unique(np.concatenate([first_keys, second_keys]), return_counts=True)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MAX_VALUES])
    values = values[frequent[counts[frequent] > 1]]
    if not len(values):
        return {}
    sides = [np.sort(keys) for keys in (first_keys, second_keys)]
    first_counts, second_counts = (
        np.searchsorted(keys, values, "right") - np.searchsorted(keys, values, "left") for keys in sides
    )
    ratios = np.log(first_counts + 0.5) - np.log(second_counts + 0.5)

    def score(outputs: Array) -> Array:
        keys = np.rint(outputs @ weights / step)
        index = np.minimum(np.searchsorted(values, keys), len(values) - 1)
        return np.where(values[index] == keys, ratios[index], 0.0)

    return {"density ratio of values": score}


def _parities(first_releases: Array, second_releases: Array) -> dict[str, Score]:
    """Return two products of signs: of leading coordinates, and of two coordinates.

    Signs are relative to the mean of each coordinate, or to 0 if the mean may be 0. Of all products, each is the one
    whose mean differs most.
    """
    both = np.concatenate([first_releases, second_releases])
    half = both.mean(0)
    half[np.abs(half) < ZERO * both.std(0) / np.sqrt(len(both))] = 0.0
    first_signs, second_signs = (np.where(releases < half, -1.0, 1.0) for releases in (first_releases, second_releases))
    leading = np.cumprod(first_signs, axis=1).mean(0) - np.cumprod(second_signs, axis=1).mean(0)
    count = 2 + int(np.argmax(np.abs(leading[1:])))
    chosen = {f"product of the signs of the first {count} coordinates": np.arange(count)}
    if first_signs.shape[1] > 2:
        products = [
            signs[:, :MAX_PAIRED].T @ signs[:, :MAX_PAIRED] / len(signs) for signs in (first_signs, second_signs)
        ]
        difference = np.triu(np.abs(products[0] - products[1]), 1)
        i, j = np.unravel_index(np.argmax(difference), difference.shape)
        chosen[f"product of the signs of coordinates {i + 1} and {j + 1}"] = np.array([i, j])

    def product(columns: Array) -> Score:
        def score(outputs: Array) -> Array:
            negative = (outputs[:, columns] < half[columns]).sum(1)
            signs: Array = 1.0 - 2.0 * (negative % 2)
            return signs

        return score

    return {name: product(columns) for name, columns in chosen.items()}
