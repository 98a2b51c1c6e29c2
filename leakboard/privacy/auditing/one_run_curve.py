"""Tests of a whole trade-off curve by one run with planted canaries (Mahloujifar, Melis and Chaudhuri 2024).

Canaries, coins and guesses are those of `leakboard.privacy.auditing.one_run`: m fair coins, at most r guesses, W of
them right. A trade-off function f says how well two neighbours can be told apart: of all tests whose rate of false
alarms is a, none misses less than f(a) (Dong, Roth and Su 2022, definition 2.1). Training is f-private for one coin if
P(E | x) <= 1 - f(P(E | x')) for every event E and all x and x' that differ in that coin, in either order.

Theorem (Mahloujifar, Melis and Chaudhuri 2024, arXiv 2410.22235, for adversaries of at most r guesses; here with two
values a coin). Let training be f-private for each coin. Then for every set T of numbers from 1 to r

    sum over i in T of i P[W = i] / m <= 1 - f(sum over i in T of (r - i + 1) P[W = i - 1] / m).

Proof. Let E be the event that coin j is guessed right and W is in T. The same outputs, with coin j flipped, guess it
wrong and have W one less. So E has at most the probability 1 - f(P[coin j is guessed wrong and W + 1 is in T]). Take
the mean over all coins, flips and j: the left side counts the right guesses, i / m of them, the right side the wrong
ones, r - W at most, and 1 - f is concave and grows.

`p_value` draws from it a bound on P[W >= v] (their algorithm, in other words). Let g be the inverse of 1 - f, P_i =
P[W >= i], and T = {i + 1, ..., r}. Then E[W; W >= i + 1] = i P_{i + 1} + (P_{i + 1} + ... + P_r), likewise for r - W,
and the theorem says

    (r - i) P_i >= m g((i P_{i + 1} + P_{i + 1} + ... + P_r) / m) + P_{i + 1} + ... + P_r.

The right side grows with every P, so from P_v = p and nothing above v it gives least values of P_{v - 1}, ..., P_0 that
hold wherever P[W >= v] is p or more. A p for which P_0 exceeds 1 is impossible.

What a refusal proves. A curve whose p-value is below an error is refuted at that error: the training is not f-private.
For f of (epsilon, delta) (`approximate_curve`, `epsilon_bound`) it bounds epsilon and assumes nothing. For the curve of
Gaussian noise it says only that there is less noise than that curve's; `epsilon_if_gaussian` is a lower bound only
where the curve of the training is that of Gaussian noise. It is larger than `one_run_bound` because it assumes more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from leakboard.privacy.auditing.one_run import ERROR, TOLERANCE, check_counts, check_error, one_run_bound
from leakboard.privacy.mechanisms.textbook import gaussian_epsilon

RESOLUTION = 1e-9
"""Of a p-value, relative."""
SMALLEST = 1e-12
"""P-values and losses below it are not told apart."""

Numbers = Sequence[float] | NDArray[np.float64]
Curve = Callable[[float], float]
"""g, the inverse of 1 - f: the least probability that an event has with a coin flipped, where it has this one."""


def gaussian_curve(mu: float) -> Curve:
    """Return g of mu-Gaussian privacy, f(a) = Phi(Phi^-1(1 - a) - mu) (Dong, Roth and Su 2022, definition 2.6)."""
    from scipy import special

    return lambda p: float(special.ndtr(special.ndtri(p) - mu))


def approximate_curve(epsilon: float, delta: float) -> Curve:
    """Return g of (epsilon, delta)-privacy (Wasserman and Zhou 2010; Dong, Roth and Su 2022, proposition 2.5)."""
    return profile_curve([epsilon], [delta])


def profile_curve(epsilons: Numbers, deltas: Numbers) -> Curve:
    """Return g of a training that is private for each of several (epsilon, delta), as many of either.

    Fewer pairs, or larger deltas, give a smaller g: what that refutes is refuted all the more.
    """
    fall, rise = np.exp(-np.asarray(epsilons, np.float64)), np.exp(np.asarray(epsilons, np.float64))
    delta = np.asarray(deltas, np.float64)
    return lambda p: max(0.0, float((fall * (p - delta)).max()), float((1 - delta - rise * (1 - p)).max()))


def p_value(canaries: int, guesses: int, right: int, curve: Curve, *, group: int = 1) -> float:
    """Return a bound on the probability of so many right guesses or more where training has this curve.

    Args:
        canaries: m, each included by a fair coin of its own.
        guesses: r, how many of the coins were guessed.
        right: v, how many of these guesses are right.
        curve: of one privacy unit.
        group: privacy units that one canary is made of; its curve is g(g(...)) (Dong, Roth and Su 2022, theorem 2.14).

    Raises:
        ValueError: a number is out of range.
    """
    check_counts(canaries, guesses, right, group)
    low, high = 0.0, 1.0  # impossible is what is above high
    if _least_total(canaries, guesses, right, curve, high, group) <= 1:
        return high
    while high - low > RESOLUTION * max(high, SMALLEST):
        middle = (low + high) / 2
        possible = _least_total(canaries, guesses, right, curve, middle, group) <= 1
        low, high = (middle, high) if possible else (low, middle)
    return high


def largest_refuted(
    canaries: int,
    guesses: int,
    right: int,
    family: Callable[[float], Curve],
    error: float = ERROR,
    *,
    group: int = 1,
) -> float:
    """Return the largest privacy loss whose curve is refuted at ``error``, less `TOLERANCE` of it at most; 0 for none.

    It exceeds the loss of a training whose curve is of the family with probability ``error`` at most.

    Args:
        canaries: m, each included by a fair coin of its own.
        guesses: r, a number that was fixed without looking at the coins.
        right: v, how many of these guesses are right.
        family: maps a loss from 0 to its curve; a larger loss has a smaller g everywhere.
        error: probability that the result may be wrong, between 0 and 1.
        group: privacy units that one canary is made of.

    Raises:
        ValueError: a number is out of range.
    """
    check_counts(canaries, guesses, right, group)
    check_error(error)

    def refuted(loss: float) -> bool:
        return _least_total(canaries, guesses, right, family(loss), error, group) > 1

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    while high - low > TOLERANCE * max(high, SMALLEST):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def epsilon_bound(
    canaries: int, guesses: int, right: int, delta: float, error: float = ERROR, *, group: int = 1
) -> float:
    """Return the largest epsilon that is refuted at ``error`` by this theorem or by `one_run_bound`'s; 0 where none is.

    Both bound the same probability, so the smaller of their p-values is one too: the error is not shared. This theorem
    is the tighter where canaries times delta is not small beside the error, the other one by a little where it is. With
    delta = 0 and canaries of one unit the other one alone is asked: randomised response attains it.

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
    other = one_run_bound(canaries, guesses, right, delta, error, group=group)
    if delta == 0 and group == 1:
        return other

    def family(epsilon: float) -> Curve:
        return approximate_curve(epsilon, delta)

    return max(other, largest_refuted(canaries, guesses, right, family, error, group=group))


def epsilon_if_gaussian(
    canaries: int, guesses: int, right: int, delta: float, error: float = ERROR, *, group: int = 1
) -> float:
    """Return a lower bound on epsilon at ``delta`` where the training's curve is that of Gaussian noise, of any size.

    Whatever its curve, the training is not mu-Gaussian private for the mu that belongs to this epsilon.

    Raises:
        ValueError: a number is out of range, or delta is not between 0 and 1.
    """
    _check_delta(delta)
    mu = largest_refuted(canaries, guesses, right, gaussian_curve, error, group=group)
    return gaussian_epsilon(delta, 1 / mu, 1.0) if mu else 0.0


def _least_total(canaries: int, guesses: int, right: int, curve: Curve, probability: float, group: int) -> float:
    """Return P_0, above 1 where P[W >= right] cannot be ``probability``, by the recursion of the module's docstring."""
    tail = tails = probability
    for i in range(right - 1, -1, -1):
        least = min(1.0, (i * tail + tails) / canaries)  # above 1 by rounding alone
        for _ in range(group):
            least = curve(least)
        tail = max(tail, (canaries * least + tails) / (guesses - i))
        if tail > 1:
            break
        tails += tail
    return tail


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} is not allowed: a number between 0 and 1")
