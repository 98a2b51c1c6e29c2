"""Bound epsilon by right guesses, from one run with planted canaries (Steinke, Nasr and Jagielski 2023).

Canaries are texts planted in the training data. Each of m canaries has its own fair coin, which decides whether the
canary is included. The model is trained once. An auditor sees everything but the coins, guesses the coins of r
canaries, and abstains on the others; v guesses are right.

Theorem (Steinke, Nasr and Jagielski 2023, corollary 5.4 of theorem 5.2; arXiv 2305.08846, code in appendix D). Let
the auditor's view be (epsilon, delta)-private for flipping one coin. Let q = e**epsilon / (1 + e**epsilon), and
f(k) = P[Binomial(r, q) >= k]. Then the number W of right guesses has

    P[W >= v] <= f(v) + 2 m delta max over i = 1, ..., m of (f(v - i) - f(v)) / i.

The right side is `p_value`. If the p-value of an epsilon is below an error, the epsilon is refuted at that error. The
paper calls f(v) beta; its alpha is twice the maximum. Canaries without a guess count in m, too.

Assumptions:

- The coins are independent and fair. So the number of included canaries is random.
- Two training sets that differ in one coin are neighbours in the sense of the claim.
- The computation of scores, the order of the canaries and the number of guesses do not use the coins.

Groups. If one canary is g privacy units, flipping its coin changes g units. For the coin, the training is then private
at epsilon_g = g epsilon and

    delta_g = delta (1 + e**epsilon + ... + e**((g - 1) epsilon)) = delta (e**(g epsilon) - 1) / (e**epsilon - 1)

(Vadhan 2017, lemma 2.2, by a chain of g neighbours: P(E | x_0) <= e**epsilon P(E | x_1) + delta, and so on). With
``group=g``, arguments and results are of one unit.

Limits. A low bound proves nothing: only this attack failed. If all r guesses are right, they prove no more than about
ln(r / ln(1 / error)).
"""

from __future__ import annotations

import math

import numpy as np

ERROR = 0.05
"""Default probability that a bound may be wrong."""
TOLERANCE = 1e-6
"""Precision of a bound: absolute here, relative in `one_run_curve`."""


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float, *, group: int = 1) -> float:
    """Bound the probability of at least ``right`` right guesses if training is (epsilon, delta)-private.

    Args:
        canaries: m, each included by a fair coin of its own.
        guesses: r, the number of guessed coins.
        right: v, the number of right guesses.
        epsilon: for one privacy unit, at least 0, finite.
        delta: for one privacy unit, from 0 to 1.
        group: number of privacy units in one canary.

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
    """Return delta (1 + e**epsilon + ... + e**((group - 1) epsilon)), at most 1, for delta above 0."""
    from scipy import special

    return math.exp(min(0.0, math.log(delta) + float(special.logsumexp(epsilon * np.arange(group)))))


def one_run_bound(
    canaries: int, guesses: int, right: int, delta: float, error: float = ERROR, *, group: int = 1
) -> float:
    """Return the largest epsilon that is refuted at ``error``, to `TOLERANCE`, or 0.

    The bound exceeds the true epsilon with probability at most ``error``.

    Proof. If a number of right guesses refutes an epsilon, the number refutes every smaller epsilon, too. So the bound
    exceeds the true epsilon only if W refutes the true epsilon. The probability of this is at most ``error``.

    Args:
        canaries: m, each included by a fair coin of its own.
        guesses: r, fixed without looking at the coins.
        right: v, the number of right guesses.
        delta: of the claim, for one privacy unit.
        error: probability that the bound may be wrong, in (0, 1).
        group: number of privacy units in one canary.

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
    """Refuse impossible counts.

    Raises:
        ValueError: right guesses exceed guesses, guesses exceed canaries, or a number is too small.
    """
    if not 0 <= right <= guesses <= canaries:
        raise ValueError(f"{right} right of {guesses} guesses of {canaries} canaries are not possible counts")
    if group < 1:
        raise ValueError(f"group={group!r} is not allowed: a canary is at least 1 privacy unit")


def check_error(error: float) -> None:
    """Refuse an error outside (0, 1).

    Raises:
        ValueError: the error is out of range.
    """
    if not 0 < error < 1:
        raise ValueError(f"error={error!r} is not allowed: a number between 0 and 1")
