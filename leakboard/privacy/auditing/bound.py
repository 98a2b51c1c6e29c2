"""Turn counts of an event into a lower bound on epsilon, by one of two theorems.

Theorem for independent rows. If releases of neighbours x and x' are (epsilon, delta)-private, then
P(E | x) <= e**epsilon P(E | x') + delta for every event E. So epsilon >= ln((p - delta) / q) for any event with
P(E | x) >= p and P(E | x') <= q. Let p and q be Clopper-Pearson bounds (Clopper and Pearson 1934), each at half of the
error. Let the draws be independent of each other and of the choice of the event. Then the bound on epsilon holds with
the stated confidence.

Theorem for coins (Steinke, Nasr and Jagielski 2023, theorem 5.2 with delta = 0). Let each row have its own fair coin,
which decides whether the row is x or x'. Let the whole output be epsilon-private for changing one row. An auditor
guesses r of the coins from the whole output. Then, given the output, the number of right guesses is stochastically at
most Binomial(r, e**epsilon / (1 + e**epsilon)).

Proof. Given the output and the other coins, the odds of a coin are at most e**epsilon. Reveal the coins one by one:
each guess is right with a probability of at most e**epsilon / (1 + e**epsilon), whatever came out before.

Here the auditor guesses x for the r rows in the event, and v guesses are right. Let s be the Clopper-Pearson lower
bound of the share v / r. Then epsilon >= ln(s / (1 - s)) with the stated confidence. The releases may depend on each
other, since the theorem is about the whole output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.privacy.auditing.events import Array


@dataclass(frozen=True)
class Finding:
    """The event that tells the inputs apart best, and the bound that it proves."""

    epsilon: float
    """Lower bound, for each unit of distance if the claim has one; 0 if the event proves nothing."""
    pair: str
    score_name: str
    event: str
    first_rate: float
    """Share of the first input's releases in the event; for calls, the share guessed to be the first input."""
    second_rate: float
    """Share of the second input's releases in the event; for calls, the share guessed to be the first input."""
    draws: int
    """Approximate number of tested releases (or calls) of each input."""
    distance: float
    """Distance of the pair (`leakboard.privacy.auditing.events.Pair`)."""
    rows: tuple[int, int] | None = None
    """Number of tested releases of either input; None for calls and for the first rows."""


def bound_from_counts(
    true_positives: float, false_positives: float, rows: tuple[float, float], delta: float, error: float
) -> float:
    """Return the lower bound on epsilon that counts of an event prove, at least 0."""
    return float(np.maximum(log_ratios_from_counts(true_positives, false_positives, rows, delta, error), 0.0))


def log_ratios_from_counts(
    true_positives: Array | float,
    false_positives: Array | float,
    rows: tuple[float, float],
    delta: float,
    error: float,
) -> Array:
    """Return the lower bound for each pair of counts, float64; below 0 if the counts prove nothing.

    With delta = 0, rows may depend on each other (theorem for coins). With delta above 0, rows must be independent.

    Args:
        true_positives: number of rows of x in the event, or its expectation.
        false_positives: number of rows of x' in the event, or its expectation.
        rows: numbers of all rows of x and of x'.
        delta: of the claim.
        error: probability that a bound may be wrong.
    """
    if delta > 0:
        p = clopper_pearson_low(true_positives, rows[0], error / 2)
        q = clopper_pearson_high(false_positives, rows[1], error / 2)
        return _log_ratio(p - delta, q)
    share = clopper_pearson_low(true_positives, np.add(true_positives, false_positives), error)
    return _log_ratio(share, 1 - share)


def clopper_pearson_low(counts: Array | float, draws: Array | float, error: float) -> Array:
    """Return the Clopper-Pearson lower bound of a probability, wrong with probability at most ``error``; float64."""
    from scipy import stats

    bounds = stats.beta.ppf(error, np.maximum(counts, 1), draws - counts + 1)
    return np.where(np.greater(counts, 0), bounds, 0.0)


def clopper_pearson_high(counts: Array | float, draws: Array | float, error: float) -> Array:
    """Return the Clopper-Pearson upper bound of a probability, wrong with probability at most ``error``; float64."""
    from scipy import stats

    bounds = stats.beta.ppf(1 - error, counts + 1, np.maximum(draws - counts, 1))
    return np.where(np.less(counts, draws), bounds, 1.0)


def _log_ratio(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(p, 0.0)) - np.log(q)
