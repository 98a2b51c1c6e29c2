"""A lower bound on a training's epsilon from one run with planted canaries (Steinke, Nasr and Jagielski 2023).

Of m canaries each is included if a fair coin of its own says so. The model is trained once. An auditor, who sees
everything but the coins, guesses the coins of r canaries and abstains on the others; v of its guesses are right.

Theorem (Steinke, Nasr and Jagielski 2023, corollary 5.4 of theorem 5.2; arXiv 2305.08846, code in appendix D). Let
what the auditor sees be (epsilon, delta)-private for flipping one coin, q = e**epsilon / (1 + e**epsilon), and
f(k) = P[Binomial(r, q) >= k]. Then the number W of right guesses has

    P[W >= v] <= f(v) + 2 m delta max over i = 1, ..., m of (f(v - i) - f(v)) / i.

The right side is `p_value`: an epsilon at which it is below an error is refuted at that error. The paper calls f(v)
beta and the maximum, with its factor 2, alpha. Every canary counts in m, those too that nothing is guessed about.

What the theorem needs: the coins are independent and fair (a draw of exactly m/2 canaries is not); flipping one makes
neighbours of the claim (a text added or removed, or put in another's place where that is the claim's neighbour); and
neither scores nor order of the canaries nor the number of guesses looked at the coins.

Groups. If one canary is g privacy units, flipping its coin changes g units, and the training is
(g epsilon, delta (1 + e**epsilon + ... + e**((g - 1) epsilon)))-private for it (Vadhan 2017, lemma 2.2: a chain of g
neighbours, P(E | x_0) <= e**epsilon P(E | x_1) + delta <= ...; the sum is delta (e**(g epsilon) - 1) / (e**epsilon -
1)). With ``group=g`` the epsilon and delta of every function here are those of one unit, and this pair enters the
theorem. With delta = 0 the bound for the unit is the bound for the canary over g.

What it does not do: a low bound proves nothing, for one attack failed. And r right guesses of r prove no more than
about ln(r / ln(1 / error)), so many canaries are needed to refute a large epsilon.
"""

from __future__ import annotations

import math

import numpy as np

ERROR = 0.05
"""Probability that a bound may be wrong."""
TOLERANCE = 1e-6
"""A bound is below the largest refuted epsilon by no more than this, and never above it."""


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float, *, group: int = 1) -> float:
    """Return a bound on the probability of so many right guesses or more where training is (epsilon, delta)-private.

    Args:
        canaries: m, each included by a fair coin of its own.
        guesses: r, how many of the coins were guessed.
        right: v, how many of these guesses are right.
        epsilon: for one privacy unit, from 0, finite.
        delta: for one privacy unit, from 0 to 1.
        group: privacy units that one canary is made of.

    Raises:
        ValueError: a number is out of range.
    """
    from scipy import special, stats

    check_counts(canaries, guesses, right, group)
    if not 0 <= delta <= 1:
        raise ValueError(f"delta={delta!r} is not allowed: a number from 0 to 1")
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon={epsilon!r} is not allowed: a number from 0, not infinite")
    q = special.expit(group * epsilon)
    tail = float(stats.binom.sf(right - 1, guesses, q))
    if delta == 0 or right == 0:
        return tail
    below = np.cumsum(stats.binom.pmf(np.arange(right - 1, -1, -1), guesses, q))  # f(v - i) - f(v) for i = 1, ..., v
    steepest = float((below / np.arange(1, right + 1)).max())
    return min(1.0, tail + 2 * canaries * _group_delta(epsilon, delta, group) * steepest)


def _group_delta(epsilon: float, delta: float, group: int) -> float:
    """Return delta (1 + e**epsilon + ... + e**((group - 1) epsilon)), at most 1; delta above 0."""
    from scipy import special

    return math.exp(min(0.0, math.log(delta) + float(special.logsumexp(epsilon * np.arange(group)))))


def one_run_bound(
    canaries: int, guesses: int, right: int, delta: float, error: float = ERROR, *, group: int = 1
) -> float:
    """Return the largest epsilon that is refuted at ``error``, to `TOLERANCE`; 0 where none is.

    It exceeds the true epsilon with probability ``error`` at most: a private training is private at every larger
    epsilon too, and even the least v that refutes one of these is reached with no more than that probability.

    Args:
        canaries: m, each included by a fair coin of its own.
        guesses: r, a number that was fixed without looking at the coins.
        right: v, how many of these guesses are right.
        delta: of the claim, for one privacy unit.
        error: probability that the bound may be wrong, between 0 and 1.
        group: privacy units that one canary is made of.

    Raises:
        ValueError: a number is out of range.
    """
    from scipy import optimize

    check_error(error)

    def excess(epsilon: float) -> float:
        return p_value(canaries, guesses, right, epsilon, delta, group=group) - error

    if excess(0.0) >= 0:
        return 0.0
    high = 1.0
    while excess(high) < 0:
        high *= 2
    root = optimize.brentq(excess, 0.0, high, xtol=TOLERANCE / 2)
    return max(0.0, root - TOLERANCE / 2)


def check_counts(canaries: int, guesses: int, right: int, group: int) -> None:
    """Refuse counts that cannot be.

    Raises:
        ValueError: names them.
    """
    if not 0 <= right <= guesses <= canaries:
        raise ValueError(f"{right} right of {guesses} guesses of {canaries} canaries are not possible counts")
    if group < 1:
        raise ValueError(f"group={group!r} is not allowed: a canary is at least 1 privacy unit")


def check_error(error: float) -> None:
    """Refuse an error that is no probability of being wrong.

    Raises:
        ValueError: names it.
    """
    if not 0 < error < 1:
        raise ValueError(f"error={error!r} is not allowed: a number between 0 and 1")
