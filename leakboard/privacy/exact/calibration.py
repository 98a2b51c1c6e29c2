"""Find the option ``epsilon`` at which a mechanism has a given true epsilon, so that mechanisms can be compared.

The true epsilon is the largest log-ratio over all pairs and outputs, that is, local differential privacy. It may be far
below the claim: SanText and TEM use about half of theirs.
"""

from __future__ import annotations

import math
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
"""Largest number of options that are tried; 20 halve the whole interval down to the tolerance 0.001."""
GUESSES = 8
"""Largest number of options that assume proportionality."""


def true_epsilon(recipe: Channel, space: WordSpace, seed: int = 0, rows: Integers | None = None) -> float:
    """Return the largest log-ratio of a mechanism; with ``rows``, among these inputs only, which is a lower bound."""
    fitted = recipe.fit(space, np.random.default_rng(seed))
    extremes = ColumnExtremes(len(fitted))
    scan(fitted, [extremes], rows)
    return extremes.worst().log_ratio


def calibrate(
    recipe: Any,
    space: WordSpace,
    epsilon: float,
    seed: int = 0,
    rows: Integers | None = None,
    tolerance: float = 1e-3,
) -> Any:
    """Return the recipe with an option whose true epsilon is at most ``epsilon``, and at least (1 - tolerance) of it.

    Each step reads the matrix once. The first options assume that the true epsilon is proportional to the option. Once
    an option with a larger and one with a smaller true epsilon are known, or after `GUESSES` steps, the interval is
    halved on the logarithmic scale. The true epsilon is as exact as the matrix (`FittedChannel.precision`).

    Args:
        recipe: a `Channel` with the option ``epsilon``, in which the true epsilon increases.
        space: the vocabulary.
        epsilon: the true epsilon asked for, in nats, above 0, not infinite.
        seed: of what the mechanism draws once, the same at each step.
        rows: inputs that are read; None: all. Other inputs may differ more, so with ``rows`` the result guarantees no
            true epsilon.
        tolerance: see above.

    Raises:
        RequestError: ``epsilon`` is not allowed, no option that was tried reaches it, or the true epsilon is infinite.
    """
    if not 0 < epsilon < math.inf:
        raise RequestError(f"calibrate: a true epsilon of {epsilon!r} is not allowed: above 0, not infinite")
    low, high, option, most, least = SMALLEST, LARGEST, epsilon, 0.0, math.inf
    for step in range(STEPS):
        tried = replace(recipe, epsilon=option)
        found = true_epsilon(tried, space, seed, rows)
        if (1 - tolerance) * epsilon <= found <= epsilon:
            return tried
        if found > epsilon:
            high, least = option, found
        else:
            low, most = option, found
        guess = option * (1 - tolerance / 2) * epsilon / found if found > 0 else math.inf
        is_open = step < GUESSES and (low == SMALLEST or high == LARGEST)
        option = float(guess if is_open and low < guess < high else math.sqrt(low * high))
    if low == SMALLEST:
        what = "is infinite" if math.isinf(least) else f"is more than {epsilon:g}"
        raise RequestError(f"calibrate: the true epsilon {what} even at the option epsilon={high:g}")
    reached = f"{most:.4g} at the option epsilon={low:.6g}"
    if high == LARGEST:
        raise RequestError(f"calibrate: a true epsilon of {epsilon:g} is out of reach: at most {reached}")
    above = f"{least:.4g} at {high:.6g}"
    raise RequestError(f"calibrate: a true epsilon of {epsilon:g} is jumped over: {reached}, and {above}")
