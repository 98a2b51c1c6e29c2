"""Turn scores of canaries into guesses of coins, and right guesses into a lower bound on epsilon.

A canary is a text that a coin includes in the training data or leaves out. Several numbers of guesses are tried, each
with an equal share of the error (Bonferroni). So the largest bound may be taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.privacy.auditing.events import Array
from leakboard.privacy.auditing.one_run import ERROR, check_error
from leakboard.privacy.auditing.one_run_curve import best_one_run_bound

BoundFunction = Callable[[int, int, int, float], float]
"""Maps the numbers of canaries, guesses and right guesses, and an error, to a lower bound on epsilon."""

SHARES = (0.9, 0.5, 0.25, 0.1, 0.05, 0.02)
"""Shares of the canaries to guess.

Half of the guesses say "included", but coins rarely include exactly half of the canaries. So guesses of all canaries
would rarely all be right.
"""


@dataclass(frozen=True)
class OneRunBound:
    """The largest bound that one run proves, with the numbers of guesses behind it."""

    epsilon: float
    """Lower bound on the epsilon of one privacy unit; 0 if nothing is proved."""
    confidence: float
    """Probability that the bound holds."""
    canaries: int
    """Number of canaries."""
    guesses: int
    """Number of guesses that gave the largest bound."""
    right: int
    """Number of right guesses among them."""
    tried: int
    """How many numbers of guesses were tried, each with an equal share of the error."""


def guess(scores: Array, count: int) -> NDArray[np.int8]:
    """Guess coins from scores, int8 (m,): 1 included (high scores), -1 excluded (low scores), 0 no guess.

    Of equal scores, the first counts as higher. So the order of the canaries must not depend on the coins.

    Args:
        scores: float (m,). Higher scores mean that a canary is likelier included.
        count: number of guesses.

    Raises:
        ValueError: the scores are not one row of finite numbers, or there are fewer than ``count``.
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError(f"scores of shape {scores.shape} are not allowed: one finite number for each canary")
    if not 0 <= count <= len(scores):
        raise ValueError(f"count={count!r} is not allowed: from 0 to the {len(scores)} canaries")
    order = np.argsort(-scores, kind="stable")
    guesses = np.zeros(len(scores), np.int8)
    guesses[order[: count - count // 2]] = 1
    guesses[order[len(scores) - count // 2 :]] = -1
    return guesses


def audit_scores(
    scores: Array,
    included: Array,
    delta: float,
    error: float = ERROR,
    shares: Sequence[float] = SHARES,
    *,
    group: int = 1,
) -> OneRunBound:
    """Return the largest `best_one_run_bound` over several numbers of guesses.

    Args:
        scores: float (m,), computed without the coins. Higher scores mean that a canary is likelier included.
        included: the coins, (m,), as bool or 0 and 1.
        delta: of the claim, for one privacy unit.
        error: probability that the result may be wrong.
        shares: shares of the canaries to guess, each in (0, 1], chosen without looking at the coins.
        group: number of privacy units in one canary.

    Raises:
        ValueError: an array has a wrong shape or is not finite, a number is out of range, or no share makes a guess.
    """

    def bound(canaries: int, guesses: int, right: int, error: float) -> float:
        return best_one_run_bound(canaries, guesses, right, delta, error, group=group)

    return largest_bound(scores, included, bound, error, shares)


def largest_bound(
    scores: Array, included: Array, bound: BoundFunction, error: float = ERROR, shares: Sequence[float] = SHARES
) -> OneRunBound:
    """Return the same as `audit_scores`, with the function ``bound`` in place of `best_one_run_bound`.

    Raises:
        ValueError: an array has a wrong shape or is not finite, a number is out of range, or no share makes a guess.
    """
    check_error(error)
    coins = np.asarray(included)
    if coins.shape != np.shape(scores) or not np.isin(coins, (0, 1)).all():
        raise ValueError(f"coins of shape {coins.shape} are not one bool for each of {np.shape(scores)} scores")
    if not all(0 < share <= 1 for share in shares):
        raise ValueError(f"shares={tuple(shares)!r} are not allowed: numbers above 0, at most 1")
    counts = sorted({round(share * len(coins)) for share in shares} - {0}, reverse=True)
    if not counts:
        raise ValueError(f"shares={tuple(shares)!r} of {len(coins)} canaries make no guess")
    truth = np.where(coins, 1, -1)

    def bound_of(count: int) -> OneRunBound:
        right = int(np.count_nonzero(guess(scores, count) == truth))
        epsilon = bound(len(coins), count, right, error / len(counts))
        return OneRunBound(epsilon, 1 - error, len(coins), count, right, len(counts))

    return max(map(bound_of, counts), key=lambda result: result.epsilon)
