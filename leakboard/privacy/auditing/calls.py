"""Whole calls: does what is released of one row tell of another row, of the same call or of another?

Rows that are sound one by one may give each other away: noise drawn once for all rows of a call, a seed that serves two
calls, a scale that is read off the other rows. Here neighbours are two sequences of calls that differ in one row; all
other rows are public. In every call a fair coin decides whether one row is x or x'; the others are x. The coins are
guessed from all that was released.

Theorem. The calls of a mechanism, one after the other, are one mechanism on all their rows. If a row is released once
and the claim is epsilon, this mechanism is epsilon-private for changing that row with the others fixed, and any event
of the whole output counts: groups of rows need no theorem of their own. So the theorems of
`leakboard.privacy.auditing.one_run` and `leakboard.privacy.auditing.one_run_curve` bound the number of right guesses,
with the rows for canaries. They ask that the coins are independent, and nothing of the releases: calls may share seeds
or state. Clopper-Pearson bounds over calls would need independent calls, which is just what fails there.

What is proved is about the process that ran. Where a seed was drawn once for all calls and kept secret, it is refuted
that this process releases each row with the claimed epsilon. A claim with a delta near the error, or above it, is not
refuted by any number of right guesses: with that probability a sound mechanism may show all of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import Finding
from leakboard.privacy.auditing.events import DIGITS, Array, Pair, fisher, in_steps, step_of
from leakboard.privacy.auditing.guesses import OneRunBound, audit_scores, guess, largest_bound
from leakboard.privacy.auditing.one_run import one_run_bound
from leakboard.privacy.auditing.trials import finite

ROWS = 4
"""Rows of a call."""
CALLS = 4_000
"""Calls that are tested; as many for each pair learn and choose the statistic, half of them each."""
FEATURES = 600
"""Most numbers that a classifier is learned from."""


@dataclass(frozen=True)
class Calls:
    """Calls one after the other, and the row of each that a coin decided."""

    pair: Pair
    released: Array
    """Float (n, `ROWS`, d)."""
    positions: Array
    """Row of each call that a coin decided, int (n,): 1 and 2 in turn, so that one call tells a row's noise in the
    next."""

    @property
    def decided(self) -> Array:
        """The rows that coins decided, float (n, d)."""
        return self._rows(0)

    @property
    def others(self) -> Array:
        """The noise of the public rows, float (n, `ROWS` - 1, d), as far as it was added."""
        rows = [self._rows(step) for step in range(1, ROWS)]
        others: Array = np.stack(rows, axis=1) - self.pair.first
        return others

    def _rows(self, step: int) -> Array:
        rows: Array = self.released[np.arange(len(self.released)), (self.positions + step) % ROWS]
        return rows

    def noises(self) -> Iterator[Array]:
        """Yield what may have been the noise of the decided rows, float (n, d).

        The noise of the other rows of the call; of the same row in the calls before and after it (the first and the
        last call have one such neighbour); and in the call whose first row came out nearest, of those where the row
        was public.
        """
        last, residuals, others = len(self.released) - 1, self.released - self.pair.first, self.others
        calls = np.arange(last + 1)
        yield from (others[:, i] for i in range(ROWS - 1))
        for call in (np.abs(calls - 1), last - np.abs(last - calls - 1), self._alike()):
            yield residuals[call, self.positions]

    def _alike(self) -> Array:
        """Return for each call that of the other position whose first row came out nearest, int (n,)."""
        keys = self.released[:, 0, 0]
        alike = np.empty(len(keys), int)
        for position in (1, 2):
            own, other = (np.flatnonzero(test) for test in (self.positions == position, self.positions != position))
            order = other[np.argsort(keys[other], kind="stable")]
            place = np.searchsorted(keys[order], keys[own])
            before, after = order[np.maximum(place - 1, 0)], order[np.minimum(place, len(order) - 1)]
            nearer = np.abs(keys[before] - keys[own]) < np.abs(keys[after] - keys[own])
            alike[own] = np.where(nearer, before, after)
        return alike


Statistic = Callable[[Calls], Array]


@dataclass(frozen=True)
class CallsTest:
    """A statistic of calls, and the pair between whose inputs it tells."""

    pair: Pair
    name: str
    statistic: Statistic
    digits: int | None

    def score(self, calls: Calls) -> Array:
        """Return a number a call, higher where its coin likelier said the first input, float64 (n,)."""
        scores = self.statistic(calls)
        if self.digits is None:
            return scores
        return in_steps(scores, step_of(scores, self.digits))


def audit_calls(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    calls: int,
    error: float,
    digits: int | None = DIGITS,
) -> Finding:
    """Return the bound of the statistic and pair that look best on calls of their own.

    Args:
        mechanism: what is audited.
        pairs: neighbours, vectors.
        generator: of coins and noise.
        calls: that are tested.
        error: probability that the bound may be wrong.
        digits: of a score that count; None: all.

    Raises:
        ValueError: releases that are not finite.
    """
    test = choose_test(mechanism, pairs, generator, calls, digits)
    return _described(*run_test(mechanism, test, calls, generator, error))


def run_test(
    mechanism: Mechanism, test: CallsTest, calls: int, generator: np.random.Generator, error: float
) -> tuple[OneRunBound, CallsTest, Array, Array]:
    """Return the bound of a test on fresh calls, the test, and each call's score and coin."""
    released, coins = run_calls(mechanism, test.pair, calls, generator)
    scores = test.score(released)
    return audit_scores(scores, coins, mechanism.delta, error), test, scores, coins


def choose_test(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    calls: int,
    digits: int | None = DIGITS,
) -> CallsTest:
    """Return the statistic and pair that look best on calls of their own, about ``calls`` for each pair.

    Either input of each pair is tried as the public rows. What looks best is told by the quicker of the two theorems,
    which with a delta of 1e-4 and more sees little of a statistic that tells few calls.
    """

    def bound(calls: int, guesses: int, right: int, error: float) -> float:
        return one_run_bound(calls, guesses, right, mechanism.delta, error)

    tests = []
    for pair in [way for own in pairs for way in (own, own.swapped())]:
        learned, chosen = (run_calls(mechanism, pair, max(8, calls // 4), generator) for _ in range(2))
        for name, statistic in _statistics(*learned).items():
            test = CallsTest(pair, name, statistic, digits)
            looked = largest_bound(test.score(chosen[0]), chosen[1], bound)
            tests.append((looked.epsilon, looked.right / looked.guesses, test))
    return max(tests, key=lambda entry: entry[:2])[2]


def run_calls(mechanism: Mechanism, pair: Pair, calls: int, generator: np.random.Generator) -> tuple[Calls, Array]:
    """Return calls of a mechanism, and for each whether its coin said the first input, bool (n,)."""
    coins = generator.random(calls) < 0.5
    positions = 1 + np.arange(calls) % 2
    released = np.empty((calls, ROWS, len(pair.first)))
    for call, (coin, position) in enumerate(zip(coins, positions, strict=True)):
        rows = np.tile(pair.first, (ROWS, 1))
        rows[position] = pair.first if coin else pair.second
        released[call] = mechanism.release(rows, generator)
    return Calls(pair, finite(released), positions), coins


def _statistics(calls: Calls, coins: Array) -> Mapping[str, Statistic]:
    """Return scores, higher or lower for the first input; the learned one is fitted on these calls."""
    one, other = calls.pair.first, calls.pair.second
    direction = one - other
    statistics: dict[str, Statistic] = {
        "row less the likeliest noise": lambda calls: _less_noise(calls.decided, calls.noises(), one, other),
        "row less the mean noise": lambda calls: (calls.decided - calls.others.mean(1)) @ direction,
        "size of the other rows' noise": lambda calls: np.abs(calls.others).sum((1, 2)),
        "size of the other rows' noise, negative": lambda calls: -np.abs(calls.others).sum((1, 2)),
        "other rows along the difference": lambda calls: calls.others.sum(1) @ direction,
    }
    if ROWS * len(one) <= FEATURES:
        score = fisher(_features(calls)[coins], _features(calls)[~coins])
        statistics["learned classifier of the rows"] = lambda calls: -score(_features(calls))
    return statistics


def _features(calls: Calls) -> Array:
    """Return all rows of a call, the decided one first, float (n, `ROWS` d)."""
    return np.concatenate([calls.decided, calls.others.reshape(len(calls.released), -1)], axis=1)


def _less_noise(rows: Array, noises: Iterable[Array], one: Array, other: Array) -> Array:
    """Return how much nearer a row less noise is to the first input, float64 (n,), for the noise that fits best."""
    fits, result = np.full(len(rows), np.inf), np.zeros(len(rows))
    for noise in noises:
        near, far = (np.abs(rows - noise - vector).sum(1) for vector in (one, other))
        fit = np.minimum(near, far)
        result = np.where(fit < fits, far - near, result)
        fits = np.minimum(fit, fits)
    return result


def _described(bound: OneRunBound, test: CallsTest, scores: Array, coins: Array) -> Finding:
    guesses = guess(scores, bound.guesses) == 1
    first, second = (float(guesses[side].mean()) if side.any() else 0.0 for side in (coins, ~coins))
    where = f"{test.pair.name}: one row of {ROWS} in a call, beside rows like the first"
    counted = f"{bound.right} right guesses of {bound.guesses}"
    event = f"{test.name}: {counted}, the highest and the lowest of {len(scores)} calls"
    return Finding(bound.epsilon, where, test.name, event, first, second, len(scores) // 2)
