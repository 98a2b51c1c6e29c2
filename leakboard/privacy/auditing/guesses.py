"""Guessing coins from scores, and the largest bound that several numbers of guesses give.

What right guesses prove is said by `leakboard.privacy.auditing.one_run` and `leakboard.privacy.auditing.one_run_curve`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.privacy.auditing.one_run import ERROR, check_error
from leakboard.privacy.auditing.one_run_curve import epsilon_bound

Array = NDArray[Any]
Bound = Callable[[int, int, int, float], float]
"""Maps canaries, guesses, right guesses and an error to a lower bound on epsilon that is wrong so often at most."""

SHARES = (0.9, 0.5, 0.25, 0.1, 0.05, 0.02)
"""Shares of the canaries that are guessed. Not all: of m coins half come up only give or take sqrt(m) / 2."""


@dataclass(frozen=True)
class OneRunBound:
    """What one run proves, and the number of guesses that proved most."""

    epsilon: float
    """Lower bound for one privacy unit at ``confidence``; 0 where nothing is proved."""
    confidence: float
    canaries: int
    guesses: int
    right: int
    """Right guesses, of ``guesses``."""
    tried: int
    """Numbers of guesses that were tried; each got an equal share of the error."""


def guess(scores: Array, count: int) -> NDArray[np.int8]:
    """Return guesses of the coins, int8 (m,): 1 included, -1 excluded, 0 none.

    Half of ``count`` (and the odd one) are the highest scores, guessed to be included; half are the lowest. Of equal
    scores the first given count as higher, so the order of the canaries must not depend on the coins: with the
    included ones first, equal scores would give them away.

    Args:
        scores: float (m,), higher where a canary is more likely included.
        count: how many to guess.

    Raises:
        ValueError: scores are not finite numbers in one row, or there are fewer than ``count``.
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
    """Return the largest `epsilon_bound` over several numbers of guesses (`largest_bound`).

    Args:
        scores: float (m,), higher where a canary is more likely included; made without the coins.
        included: bool or 0 and 1 (m,), the coins.
        delta: of the claim, for one privacy unit.
        error: probability that the result may be wrong.
        shares: of the canaries that are guessed, each above 0 and at most 1, chosen before the coins were seen.
        group: privacy units that one canary is made of.

    Raises:
        ValueError: an array is of a wrong shape or not finite, a number is out of range, or no share makes a guess.
    """

    def bound(canaries: int, guesses: int, right: int, error: float) -> float:
        return epsilon_bound(canaries, guesses, right, delta, error, group=group)

    return largest_bound(scores, included, bound, error, shares)


def largest_bound(
    scores: Array, included: Array, bound: Bound, error: float = ERROR, shares: Sequence[float] = SHARES
) -> OneRunBound:
    """Return the largest bound over several numbers of guesses, each with an equal share of the error (Bonferroni).

    Args:
        scores: float (m,), higher where a canary is more likely included; made without the coins.
        included: bool or 0 and 1 (m,), the coins.
        bound: maps canaries, guesses, right guesses and an error to a lower bound on epsilon.
        error: probability that the result may be wrong.
        shares: of the canaries that are guessed, each above 0 and at most 1, chosen before the coins were seen.

    Raises:
        ValueError: an array is of a wrong shape or not finite, a number is out of range, or no share makes a guess.
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

    def of(count: int) -> OneRunBound:
        right = int(np.count_nonzero(guess(scores, count) == truth))
        epsilon = bound(len(coins), count, right, error / len(counts))
        return OneRunBound(epsilon, 1 - error, len(coins), count, right, len(counts))

    return max(map(of, counts), key=lambda result: result.epsilon)
