"""Bound epsilon by right guesses, with a theorem about whole trade-off curves.

The setting is that of `leakboard.privacy.auditing.one_run`: m canaries with fair coins, at most r guesses, W of them
right. A trade-off function f limits how well two neighbours can be told apart: a test with false positive rate a has a
false negative rate of at least f(a) (Dong, Roth and Su 2022, definition 2.1). Let x and x' be any two inputs that
differ in one coin. Training is f-private for this coin if P(E | x) <= 1 - f(P(E | x')) for every event E and all such
x and x'.

Theorem (Mahloujifar, Melis and Chaudhuri 2024, arXiv 2410.22235, for adversaries of at most r guesses; here each coin
has two values). Let training be f-private for each coin. Then for every set T of numbers from 1 to r

    sum over i in T of i P[W = i] / m <= 1 - f(sum over i in T of (r - i + 1) P[W = i - 1] / m).

Proof. Let E be the event that coin j is guessed right and W is in T. After flipping coin j, the same outputs give a
wrong guess of coin j, and W is one less. So P(E) <= 1 - f(P[coin j is guessed wrong and W + 1 is in T]). Take the mean
over the values of the coins and over j. Left: if W = i, the share of coins guessed right is i / m. Right: if W = i - 1,
the share of coins guessed wrong is at most (r - i + 1) / m. The mean may be taken inside, because 1 - f is concave and
increasing.

From the theorem follows a bound on P[W >= v] (their algorithm, in other words). Let g be the inverse of 1 - f, let
P_i = P[W >= i], and T = {i + 1, ..., r}. Write E[X; A] for the mean of X times the indicator of A. Then
E[W; W >= i + 1] = i P_{i + 1} + (P_{i + 1} + ... + P_r), and E[r - W; W >= i] = (r - i) P_i - (P_{i + 1} + ... + P_r).
So the theorem says

    (r - i) P_i >= m g((i P_{i + 1} + P_{i + 1} + ... + P_r) / m) + P_{i + 1} + ... + P_r.

The right side increases with every P. Start from P_v = p and P_i = 0 for i > v. If P[W >= v] >= p, this recursion gives
lower bounds on P_{v - 1}, ..., P_0. If the bound on P_0 exceeds 1, P[W >= v] < p. Then v right guesses refute the
curve at the error p (`refuted`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leakboard.privacy.auditing.one_run import ERROR, TOLERANCE, check_counts, one_run_bound

Curve = Callable[[float], float]
"""The function g, the inverse of 1 - f.

It maps the probability of an event to the least probability that the event can have after a coin is flipped.
"""


def epsilon_delta_curve(epsilon: float, delta: float) -> Curve:
    """Return g of (epsilon, delta)-privacy (Wasserman and Zhou 2010; Dong, Roth and Su 2022, proposition 2.5)."""
    fall, rise = float(np.exp(-epsilon)), float(np.exp(epsilon))
    return lambda p: max(0.0, fall * (p - delta), 1 - delta - rise * (1 - p))


def refuted(canaries: int, guesses: int, right: int, curve: Curve, error: float, *, group: int = 1) -> bool:
    """Return whether at least ``right`` right guesses have a probability below ``error`` if training has this curve.

    Args:
        canaries: m, each included by a fair coin of its own.
        guesses: r, the number of guessed coins.
        right: v, the number of right guesses.
        curve: g for one privacy unit.
        error: p, in (0, 1].
        group: number of privacy units in one canary. Its curve is g(g(...)), with one g for each unit (Dong, Roth and
            Su 2022, theorem 2.14).

    Raises:
        ValueError: a count is out of range.
    """
    check_counts(canaries, guesses, right, group)
    tail = tails = error  # P_i, and P_i + ... + P_r
    for i in range(right - 1, -1, -1):
        least = min(1.0, (i * tail + tails) / canaries)  # above 1 only by rounding
        for _ in range(group):
            least = curve(least)
        tail = max(tail, (canaries * least + tails) / (guesses - i))
        if tail > 1:
            return True
        tails += tail
    return False


def best_one_run_bound(
    canaries: int, guesses: int, right: int, delta: float, error: float = ERROR, *, group: int = 1
) -> float:
    """Return the largest epsilon that this theorem or `one_run_bound` refutes at ``error``, or 0.

    Both theorems bound the same probability from above, so the error is not split between them.

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
    simple = one_run_bound(canaries, guesses, right, delta, error, group=group)
    if delta == 0 and group == 1:  # randomised response attains this bound
        return simple

    def excluded(epsilon: float) -> bool:
        return refuted(canaries, guesses, right, epsilon_delta_curve(epsilon, delta), error, group=group)

    if not excluded(0.0):
        return simple
    low, high = 0.0, 1.0
    while excluded(high):
        low, high = high, 2 * high
    while high - low > TOLERANCE * max(high, 1e-12):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return max(simple, low)
