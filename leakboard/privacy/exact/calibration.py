"""Find the option ``epsilon`` at which a mechanism has a given true epsilon, so that mechanisms can be compared.

The true epsilon is the largest log-ratio over all pairs, that is, local differential privacy. It may be far below the
claim: SanText and TEM use about half of theirs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leakboard.errors import RequestError
from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import Channel
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.extremes import ColumnExtremes
from leakboard.privacy.exact.scan import scan

SMALLEST, LARGEST = 1e-6, 1e6
"""Options ``epsilon`` between which a mechanism is calibrated."""
STEPS = 30
"""Largest number of options that are tried; most mechanisms need about five."""


def true_epsilon(recipe: Channel, space: WordSpace, seed: int = 0, rows: Integers | None = None) -> float:
    """Return the largest log-ratio of a mechanism; with ``rows``, among these inputs only, which is a lower bound."""
    fitted = recipe.fit(space, np.random.default_rng(seed))
    extremes = ColumnExtremes(len(fitted))
    scan(fitted, [extremes], rows)
    return extremes.worst(fitted.claimed_outputs).log_ratio


def calibrate(
    recipe: Any,
    space: WordSpace,
    epsilon: float,
    seed: int = 0,
    rows: Integers | None = None,
    tolerance: float = 1e-3,
) -> Any:
    """Return the recipe with an option whose true epsilon is at most ``epsilon``, and at least (1 - tolerance) of it.

    Each step reads the matrix once. The next option assumes that the true epsilon is proportional to the option. Where
    this leaves the interval that is still possible, the interval is halved on the logarithmic scale. If the true
    epsilon jumps over the one asked for, the largest option below the jump is returned.

    Args:
        recipe: a `Channel` with the option ``epsilon``, in which the true epsilon increases.
        space: the vocabulary.
        epsilon: the true epsilon asked for, in nats, above 0.
        seed: of what the mechanism draws once, the same at each step.
        rows: inputs that are read; None: all.
        tolerance: see above.

    Raises:
        RequestError: every option that was tried has a larger true epsilon, or every one a smaller one.
    """
    low, high, option, best, most = SMALLEST, LARGEST, epsilon, None, 0.0
    for _ in range(STEPS):
        tried = replace(recipe, epsilon=option)
        found = true_epsilon(tried, space, seed, rows)
        if found > epsilon:
            high = option
        else:
            low, best, most = option, tried, found
            if found >= (1 - tolerance) * epsilon:
                break
        guess = option * (1 - tolerance / 2) * epsilon / found if found > 0 else np.inf
        option = float(guess if low < guess < high else np.sqrt(low * high))
    if best is None:
        raise RequestError(f"calibrate: even the option epsilon={high:g} gives more than a true epsilon of {epsilon:g}")
    if high == LARGEST and most < (1 - tolerance) * epsilon:
        raise RequestError(f"calibrate: a true epsilon of {epsilon:g} is out of reach: at most {most:.4g} was found")
    return best
