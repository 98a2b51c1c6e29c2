"""Turn counts of an event into a lower bound on epsilon, by a theorem about coins.

Each row has its own fair coin, which decides whether the row is x or x'. The auditor guesses x for the r rows whose
release is in the event; v of these guesses are right. Let q = e**epsilon / (1 + e**epsilon).

Theorem, delta = 0 (Steinke, Nasr and Jagielski 2023, theorem 5.2). Let the whole output be epsilon-private for changing
one row. Then, given the output, v is stochastically at most Binomial(r, q).

Proof. Given the output and the other coins, the odds of a coin are at most e**epsilon. Reveal the coins one by one:
each guess is right with a probability of at most q, whatever came out before.

So epsilon >= ln(s / (1 - s)), where s is the Clopper-Pearson lower bound of the share v / r (Clopper and Pearson 1934).
All releases may depend on each other.

Theorem, delta above 0. Let calls of at most k rows be independent of each other, and let each be (epsilon, delta)-
private for changing one row. Then v is at most B + G. Given the output, B is Binomial(r, q). G is a sum of independent
numbers from 0 to k, one for each call, and its mean is at most M = m delta / (2 (1 + e**epsilon)), with m rows in all.

Proof. Reveal the coins of a call one by one, and let p be the probability that the next coin is x, given the output and
the coins before. With a fresh uniform number U, the coin is x if U < p. Count it in B if U < q, and in G if
q <= U < p. So a guess of x that is right counts in B or in G, and B is as stated. G counts a row with probability
(p - q)+, the positive part. Let F be the event that p > q. By privacy, P(x, F) - e**epsilon P(x', F) <= delta / 2. The
left side is the mean of p - e**epsilon (1 - p) = (1 + e**epsilon) (p - q) over F. So the mean of (p - q)+ is at most
delta / (2 (1 + e**epsilon)).

So P(G > M + sqrt(2 k M L) + k L / 3) <= e**-L for any L (Bernstein's inequality: Boucheron, Lugosi and Massart 2013,
corollary 2.11; the variance of G is at most k M). Half of the error is for G, half for B: v minus this limit of G takes
the place of v.

M depends on epsilon. Its largest value, at epsilon = 0, gives a first bound. M at this bound gives a larger bound, and
so on. Proof. Let no more rows be shown than the limit at the true epsilon, and let B be within its bound. If a bound is
below the true epsilon, the limit there is larger than the limit at the true epsilon. So the next bound is not above the
true epsilon either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leakboard.privacy.auditing.events import Array
from leakboard.privacy.auditing.trials import ROWS_WITH_DELTA

STEPS = 6
"""Number of times that the bound with delta above 0 is refined. More steps hardly raise it."""
LowerBound = Callable[[Array | float, Array | float, float], Array]
"""Maps counts, numbers of draws and an error to lower bounds of probabilities, float64."""


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


def clopper_pearson_low(counts: Array | float, draws: Array | float, error: float) -> Array:
    """Return the Clopper-Pearson lower bound of a probability, wrong with probability at most ``error``; float64."""
    from scipy import stats

    bounds = stats.beta.ppf(error, np.maximum(counts, 1), draws - counts + 1)
    return np.where(np.greater(counts, 0), bounds, 0.0)


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
    low: LowerBound = clopper_pearson_low,
) -> Array:
    """Return the lower bound for each pair of counts, float64; below 0 if the counts prove nothing.

    With delta = 0, all rows may depend on each other. With delta above 0, calls of at most `ROWS_WITH_DELTA` rows must
    be independent of each other.

    Args:
        true_positives: number of rows of x in the event, or its expectation.
        false_positives: number of rows of x' in the event, or its expectation.
        rows: numbers of all rows of x and of x'.
        delta: of the claim.
        error: probability that a bound may be wrong.
        low: lower bound of a probability.
    """
    guesses = np.add(true_positives, false_positives)
    if delta == 0:
        return _log_odds(low(true_positives, guesses, error))
    bounds = np.zeros_like(guesses, float)
    # A refuted epsilon lowers the limit, and the lower limit may refute a larger epsilon.
    for _ in range(STEPS):
        shown = _most_shown(sum(rows), delta, np.maximum(bounds, 0.0), error / 2)
        bounds = _log_odds(low(np.maximum(true_positives - shown, 0.0), guesses, error / 2))
    return bounds


def _most_shown(rows: float, delta: float, epsilon: Array, error: float) -> Array:
    """Return the limit of G, which calls with this epsilon exceed with probability at most ``error``, float64."""
    from scipy import special

    mean = rows * delta / 2 * special.expit(-epsilon)
    nats = -np.log(error)
    return mean + np.sqrt(2 * ROWS_WITH_DELTA * mean * nats) + ROWS_WITH_DELTA * nats / 3


def clopper_pearson_high(counts: Array | float, draws: Array | float, error: float) -> Array:
    """Return the Clopper-Pearson upper bound of a probability, wrong with probability at most ``error``; float64."""
    from scipy import stats

    bounds = stats.beta.ppf(1 - error, counts + 1, np.maximum(draws - counts, 1))
    return np.where(np.less(counts, draws), bounds, 1.0)


def _log_odds(share: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(share) - np.log(1 - share)
