"""Turn counts of an event into a lower bound on epsilon, by one of two theorems.

Theorem for independent rows. If releases of neighbours x and x' are (epsilon, delta)-private, then
P(E | x) <= e**epsilon P(E | x') + delta for every event E. So epsilon >= ln((p - delta) / q) for any event with
P(E | x) >= p and P(E | x') <= q. Let p and q be Clopper-Pearson bounds (Clopper and Pearson 1934), each at half of the
error, from draws that were not used to choose the event. Then the bound on epsilon holds with the stated confidence. It
is never infinite, because q is never 0. The draws must be independent of each other.

Theorem for coins (Steinke, Nasr and Jagielski 2023, theorem 5.2 with delta = 0). Let each row have its own fair coin,
which decides whether the row is x or x'. Let the whole output be epsilon-private for changing one row. An auditor
guesses r of the coins from the whole output. Then, given the output, the number of right guesses is stochastically at
most Binomial(r, e**epsilon / (1 + e**epsilon)).

Proof. Given the output and the other coins, the odds of a coin are at most e**epsilon. Reveal the coins one by one:
each guess is right with a probability of at most e**epsilon / (1 + e**epsilon), whatever came out before.

Here the auditor guesses x for the r rows in the event. If v of them are releases of x, epsilon >= ln(s / (1 - s)) with
the stated confidence. The number s is the Clopper-Pearson lower bound of the share v / r. The releases may depend on
each other, since the theorem is about the whole output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.privacy.auditing.events import Array


@dataclass(frozen=True)
class Finding:
    """The event that tells the inputs apart best, and the bound that it proves."""

    epsilon: float
    """Lower bound; 0 if the event proves nothing.

    With delta above 0, the bound of an event of single rows assumes independent rows.
    """
    pair: str
    score_name: str
    event: str
    first_rate: float
    """Share of the first input's releases that are in the event.

    For calls: share of the calls with the first input for which the guess was the first input.
    """
    second_rate: float
    """Share of the second input's releases that are in the event.

    For calls: share of the calls with the second input for which the guess was the first input.
    """
    draws: int
    """Approximate number of tested releases (or calls) of each input; coins decide the exact numbers."""


def bound_from_counts(
    true_positives: float, false_positives: float, rows: tuple[float, float], delta: float, error: float
) -> float:
    """Return the lower bound on epsilon that counts of an event prove, at least 0 (`log_ratios_from_counts`)."""
    return float(np.maximum(log_ratios_from_counts(true_positives, false_positives, rows, delta, error), 0.0))


def log_ratios_from_counts(
    true_positives: Array | float,
    false_positives: Array | float,
    rows: tuple[float, float],
    delta: float,
    error: float,
) -> Array:
    """Return the lower bound for each pair of counts, float64; below 0 for events that prove nothing yet.

    With delta = 0, the theorem for coins is used: rows may depend on each other. With delta above 0, the theorem for
    independent rows is used. Its assumption matters. For example, let a call publish all its inputs without noise with
    probability delta, and otherwise nothing. Each row is (0, delta)-private. But the rows of a call are in the event
    all together or not at all, so the counts are not binomial. The bound exceeds 0 more often than the error allows.

    Args:
        true_positives: number of rows of x in the event; a fraction if it is an expected number, to choose an event.
        false_positives: number of rows of x' in the event, likewise.
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
