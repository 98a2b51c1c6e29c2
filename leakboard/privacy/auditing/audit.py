"""A lower bound on a mechanism's epsilon, at a stated confidence, from attacking it while it runs.

The event is chosen on one half of the draws (`leakboard.privacy.auditing.events`) and tested on the other half, which
knows nothing of the choice (`leakboard.privacy.auditing.bound`, with the theorem). So the bound holds with the stated
confidence however many thresholds, statistics and pairs the choice was made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.privacy.auditing.bound import lower_bound
from leakboard.privacy.auditing.events import DIGITS, Pair, choose_event
from leakboard.privacy.auditing.trials import Mechanism, counts

DRAWS = 100_000
"""Releases of either input."""


@dataclass(frozen=True)
class Bound:
    """What an audit found: the event that tells the inputs apart best, and what it proves."""

    epsilon: float
    """Lower bound at ``confidence``; 0 where the event proves nothing."""
    confidence: float
    pair: str
    statistic: str
    event: str
    first: float
    """Share of the first input's releases in the event."""
    second: float
    draws: int
    """Releases of either input that the bound rests on."""


def audit(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws: int = DRAWS,
    confidence: float = 0.95,
    digits: int | None = DIGITS,
) -> Bound:
    """Return a lower bound on a mechanism's epsilon from ``draws`` releases of each input.

    Every pair gets its share of the first half of the draws; the second half tests the best event.

    Raises:
        ValueError: fewer than 100 draws a pair, no pair, or releases that are not finite.
    """
    event = choose_event(mechanism, pairs, generator, draws // 2, digits)
    tested = draws - draws // 2
    first, second = counts(mechanism.release, (event.pair.first, event.pair.second), event.holds, tested, generator)
    epsilon = lower_bound(first, second, tested, mechanism.delta, 1 - confidence)
    shares = (first / tested, second / tested)
    return Bound(epsilon, confidence, event.pair.name, event.statistic, event.description, *shares, tested)
