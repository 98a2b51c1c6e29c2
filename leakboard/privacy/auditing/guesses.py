"""Turn scores of canaries into guesses of coins, and right guesses into a lower bound on epsilon.

The theorems are in `leakboard.privacy.auditing.one_run` and `leakboard.privacy.auditing.one_run_curve`. Several numbers
of guesses are tried, each with an equal share of the error (Bonferroni), so the largest bound may be taken.
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
"""Maps canaries, guesses, right guesses and an error to a lower bound on epsilon, wrong with at most that error."""

SHARES = (0.9, 0.5, 0.25, 0.1, 0.05, 0.02)
"""Shares of the canaries that are guessed.

At most 90 % are guessed: the number of included canaries varies by sqrt(m) / 2, so guesses about all would be wrong for
some.
"""


@dataclass(frozen=True)
class OneRunBound:
    """The bound that one run proves, with the number of guesses that gave the largest one."""

    epsilon: float
    """Lower bound for one privacy unit at ``confidence``; 0 if nothing is proved."""
    confidence: float
    canaries: int
    guesses: int
    right: int
    """Right guesses, of ``guesses``."""
    tried: int
    """Numbers of guesses that were tried; each had an equal share of the error."""


def guess(scores: Array, count: int) -> NDArray[np.int8]:
    """Guess coins from scores, int8 (m,): 1 included, -1 excluded, 0 no guess.

    Half of ``count`` (plus the odd one) are the highest scores, guessed as included; the other half are the lowest. Of
    equal scores the first counts as higher. The order of the canaries must therefore not depend on the coins: if the
    included canaries came first, equal scores would reveal them.

    Args:
        scores: float (m,), higher if a canary is more likely included.
        count: number of guesses.

    Raises:
        ValueError: the scores are not one row of finite numbers, or there are fewer than ``count``.
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError(f"scores of shape {scores.shape} are not one finite number a canary")
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
        scores: float (m,), higher if a canary is more likely included; computed without the coins.
        included: bool or 0 and 1 (m,), the coins.
        delta: of the claim, for one privacy unit.
        error: probability that the result may be wrong.
        shares: shares of the canaries to guess, each in (0, 1], chosen without looking at the coins.
        group: privacy units in one canary.

    Raises:
        ValueError: an array has a wrong shape or is not finite, a number is out of range, or no share makes a guess.
    """

    def bound(canaries: int, guesses: int, right: int, error: float) -> float:
        return best_one_run_bound(canaries, guesses, right, delta, error, group=group)

    return largest_bound(scores, included, bound, error, shares)


def largest_bound(
    scores: Array, included: Array, bound: BoundFunction, error: float = ERROR, shares: Sequence[float] = SHARES
) -> OneRunBound:
    """Return the largest bound over several numbers of guesses, as `audit_scores`, for any theorem ``bound``.

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
