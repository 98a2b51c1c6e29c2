"""The bound on epsilon that counts of an event prove.

Theorem. If releases of neighbours x and x' are (epsilon, delta)-private, then P(E | x) <= e**epsilon P(E | x') + delta
for every event E. So epsilon >= ln((p - delta) / q) for any event with P(E | x) >= p and P(E | x') <= q. With p and q
Clopper-Pearson bounds, each at half of the error, from draws that the choice of the event did not see, that holds with
the stated confidence, and it is never infinite: q is never 0. The draws must be independent of each other.

Theorem for coins (Steinke, Nasr and Jagielski 2023, theorem 5.2 with delta = 0). Let a fair coin of its own decide of
every row whether it is x or x', and let all that is released be epsilon-private for changing one row. Whoever guesses
some of the coins from all that is released has more right guesses than v with no more probability than a sum of as many
coins with P(right) = e**epsilon / (1 + e**epsilon): given the releases and the other coins, no coin's odds exceed
e**epsilon. So with r rows in the event, v of them x, epsilon >= ln(s / (1 - s)) for the Clopper-Pearson bound s below
the share v / r. This holds however the releases depend on each other; it needs the claim for the call as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Finding:
    """The event that tells the inputs apart best, and what it proves."""

    epsilon: float
    """Lower bound; 0 where the event proves nothing.

    With delta above 0 the bound of an event of single rows takes the rows of a call to be independent of each other.
    """
    pair: str
    statistic: str
    event: str
    first: float
    """Share of the first input's releases in the event; of calls with the first input those guessed to have it."""
    second: float
    """Share of the second input's releases in the event; of calls with the second those guessed to have the first."""
    draws: int
    """Releases of either input, or calls with it, that the bound rests on, about: coins decide which input is there."""


def bound_of_tosses(
    true_positives: int, false_positives: int, tosses: tuple[float, float], delta: float, error: float
) -> float:
    """Return `bounds_of_tosses` of one pair of counts."""
    return float(bounds_of_tosses(np.array(true_positives), np.array(false_positives), tosses, delta, error))


def bounds_of_tosses(
    true_positives: Array, false_positives: Array, tosses: tuple[float, float], delta: float, error: float
) -> Array:
    """Return the bound of each count of rows in an event, float64 like the counts; coins decided which rows are x.

    With delta = 0 by the theorem for coins, whatever depends on what. With delta above 0 it is ln((p - delta) / q), p
    below P(E | x) and q above P(E | x') together (Clopper and Pearson 1934), for rows that are independent: a call that
    shows all of its rows with probability delta, and else nothing, has an epsilon of 0 for each row, and its bounds are
    above 0 too often.

    Args:
        true_positives: rows of x in the event.
        false_positives: rows of x' in the event.
        tosses: rows of x and of x' in all.
        delta: the claim's.
        error: probability that a bound may be wrong.
    """
    return np.maximum(logs_of_tosses(true_positives, false_positives, tosses, delta, error), 0.0)


def logs_of_tosses(
    true_positives: Array, false_positives: Array, tosses: tuple[float, float], delta: float, error: float
) -> Array:
    """Return what `bounds_of_tosses` does, below 0 too: so events that prove nothing yet can be compared.

    Expected counts, which are no whole numbers, may be put in.
    """
    if delta > 0:
        p, q = low(true_positives, tosses[0], error / 2), high(false_positives, tosses[1], error / 2)
        return _log_ratio(p - delta, q)
    share = low(true_positives, np.add(true_positives, false_positives), error)
    return _log_ratio(share, 1 - share)


def low(counts: Array, draws: Array | float, error: float) -> Array:
    """Return the Clopper-Pearson bound below a probability, float64 like the counts; wrong with probability error."""
    from scipy import stats

    bounds = stats.beta.ppf(error, np.maximum(counts, 1), draws - counts + 1)
    return np.where(counts > 0, bounds, 0.0)


def high(counts: Array, draws: Array | float, error: float) -> Array:
    """Return the Clopper-Pearson bound above a probability, float64 like the counts; wrong with probability error."""
    from scipy import stats

    bounds = stats.beta.ppf(1 - error, counts + 1, np.maximum(draws - counts, 1))
    return np.where(counts < draws, bounds, 1.0)


def _log_ratio(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(p, 0.0)) - np.log(q)
