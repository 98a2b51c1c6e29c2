"""Compare what attacks gain from two releases of the same texts: the difference of advantages, with a paired interval.

Both attacks rank the same texts, so errors that they share cancel: the jackknife leaves a text (or an author) out of
both. The interval also counts the spread of the difference over the seeds of the attacks. It reaches
t sqrt(s**2 + d**2 / k) to each side, with the jackknife's s, and the standard deviation d over k seeds. Student's t has
the degrees of freedom of Satterthwaite (1946), in which a value with few texts counts as a sample of its own.

With one seed, chance in the training of the attacks is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from leakboard.interfaces import Integers
from leakboard.metrics.areas import Area, Ranking, left_out
from leakboard.metrics.intervals import CONFIDENCE, Array, Design, jackknife_variance, unit_codes


class Difference(NamedTuple):
    """An advantage minus another one, with its interval; NaN as ends if one unit has nearly all texts of a kind."""

    value: float
    low: float
    high: float


Rankings = Sequence[Ranking]
"""Rankings of the test texts by the values of a secret, whose mean area counts."""


def advantage_difference(
    first: Sequence[Rankings],
    second: Sequence[Rankings],
    truth: Integers,
    units: Integers | None = None,
    confidence: float = CONFIDENCE,
) -> Difference:
    """Return the advantage of the second attack minus that of the first.

    Args:
        first: rankings of the first attack, for each seed.
        second: rankings of the second attack, for the same number of seeds, of the same texts and values.
        truth: int64 (n,), the value of each text.
        units: int64 (n,), the independent unit of each text (its author); None: the text itself.
        confidence: of the interval. With several comparisons, 1 - 0.05 / comparisons makes all of them hold in 95 %.
    """
    rows, codes = np.arange(len(truth)), unit_codes(units, len(truth))
    seeds = [2 * (_mean_left_out(b, rows) - _mean_left_out(a, rows)) for a, b in zip(first, second, strict=True)]
    areas = [[Area.of(of_seed, units) for of_seed in attack] for attack in (first, second)]
    differences = np.array([2 * (b.value - a.value) for a, b in zip(*areas, strict=True)])
    value, without_row = float(differences.mean()), np.mean(seeds, axis=0)
    over_rows = over_units = jackknife_variance(without_row)
    if codes.max() + 1 < len(codes):
        grouped = [
            2 * (_mean_left_out(b, codes) - _mean_left_out(a, codes)) for a, b in zip(first, second, strict=True)
        ]
        over_units = jackknife_variance(np.mean(grouped, axis=0))
    kinds = np.array([kind for ranking in first[0] for kind in (ranking.inside, ~ranking.inside)], np.float64)
    design = Design.of(over_rows, over_units, kinds, codes)
    sampling, of_training = (
        over_rows * design.effect,
        float(differences.var(ddof=1)) / len(seeds) if len(seeds) > 1 else 0.0,
    )
    degrees = _degrees(min(design.degrees, _degrees_of_kinds(without_row, truth)), sampling, of_training, len(seeds))
    reach = Design(1.0, degrees).quantile(confidence) * math.sqrt(sampling + of_training)
    # if all texts are ranked right, the jackknife shows nothing: an area's own interval does
    for attack in areas:
        reach += 2 * float(np.mean([_reach_of_extreme(area, confidence) for area in attack]))
    return Difference(value, max(-2.0, value - reach), min(2.0, value + reach))


def _mean_left_out(rankings: Rankings, codes: Integers) -> Array:
    """Return the weighted mean area without each unit, float64 (units,)."""
    weights = np.array([ranking.weight for ranking in rankings])
    return np.asarray(weights / weights.sum() @ np.array([left_out(ranking, codes)[1] for ranking in rankings]))


def _degrees_of_kinds(without_row: Array, truth: Integers) -> float:
    """Return the degrees of freedom of a jackknife variance whose terms are those of the texts with each value."""
    away = (without_row - without_row.mean()) ** 2
    parts, sizes = np.bincount(truth, away), np.bincount(truth)
    used = parts > 0
    if not used.any():
        return math.inf
    return float(parts.sum() ** 2 / (parts[used] ** 2 / np.maximum(1, sizes[used] - 1)).sum())


def _degrees(degrees: float, sampling: float, of_training: float, seeds: int) -> float:
    """Return the degrees of freedom of the sum of two variances (Satterthwaite)."""
    if not of_training:
        return degrees
    terms = (sampling**2 / degrees if degrees > 0 else math.inf) + of_training**2 / (seeds - 1)
    return (sampling + of_training) ** 2 / terms


def _reach_of_extreme(area: Area, confidence: float) -> float:
    """Return how far the interval of an area of 0 or 1 reaches; 0 for other areas."""
    return abs(area.interval(confidence)[area.value == 0.0] - area.value) if area.value in (0.0, 1.0) else 0.0
