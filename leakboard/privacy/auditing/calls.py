"""Audit whole calls: does the release of one row reveal another row, of the same call or of another call?

A call runs the mechanism's `release` on several rows. Rows that are private one by one may reveal each other, for
example if they share noise. Neighbours are two sequences of calls that differ in one row; all other rows are public. In
every call a fair coin decides whether one row is x or x'; the other rows are x, or in large calls a third vector. The
attacker guesses the coins from the whole output.

Theorem. The calls of a mechanism, one after the other, are one mechanism on all their rows. Let every row be released
once. If the claim holds, this mechanism is (epsilon, delta)-private for changing one row while the others are fixed. So
the theorems of `leakboard.privacy.auditing.one_run` and `leakboard.privacy.auditing.one_run_curve` bound the number of
right guesses, with rows in place of canaries.

These theorems need independent coins, but no independent releases: calls may share seeds or state. The bound is about
the whole sequence of calls, not about one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import Finding
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.guesses import audit_scores, guess, largest_bound
from leakboard.privacy.auditing.one_run import one_run_bound
from leakboard.privacy.auditing.scores import DIGITS, fisher, round_to, rounding_step
from leakboard.privacy.auditing.trials import finite, noise_generator

ROWS = 4
"""Number of rows of a call."""
CALLS = 4_000
"""Number of tested calls. For each pair, about as many other calls are drawn to choose the statistic."""
MANY_ROWS = 256
"""Number of rows of a large call, unless the calls of a test would have more than `MAX_LARGE_VALUES` numbers."""
LARGE_CALLS, FEWEST_LARGE_CALLS = 0.1, 40
"""Number of tested large calls, as a share of that of the others; if there would be fewer, none are made."""
MAX_LARGE_VALUES, FEWEST_LARGE_ROWS = 1 << 24, 16
"""Most numbers of all tested large calls, and the least number of their rows; if fewer would fit, none are made."""
EXACT = 1e-6
"""Misfit of noise that counts as exact: above the rounding errors of single precision."""
MAX_FEATURES = 600
"""A classifier is learned only if the rows of a call have at most this many coordinates together."""


@dataclass(frozen=True)
class Calls:
    """The releases of successive calls. In each call, a coin decided the input of one row (the decided row)."""

    pair: Pair
    released: Array
    """Releases of n calls of r rows, float (n, r, d)."""
    positions: Array
    """Position of the decided row in each call, int (n,): 1, 2 and 3 in turn; of large calls, first, middle, last."""
    public: Array
    """Input of the other rows, float (d,)."""

    @property
    def rows(self) -> int:
        """Number of rows of a call."""
        return int(self.released.shape[1])

    @property
    def decided(self) -> Array:
        """The decided row of each call, float (n, d)."""
        return self._rows(0)

    @cached_property
    def public_noise(self) -> Array:
        """The noise of the public rows, float (n, r - 1, d)."""
        rows = [self._rows(step) for step in range(1, self.rows)]
        noise: Array = np.stack(rows, axis=1) - self.public
        return noise

    def _rows(self, step: int) -> Array:
        rows: Array = self.released[np.arange(len(self.released)), (self.positions + step) % self.rows]
        return rows

    def possible_noises(self) -> Iterator[Array]:
        """Yield guesses of the noise in the decided rows, float (n, d).

        First the noise of each public row of the same call. Then the noise of one row of the call before, of the call
        after, and of the most similar call. It is the row at the position that is decided in this call. In the similar
        call this row is public.
        """
        last, residuals, public = len(self.released) - 1, self.released - self.public, self.public_noise
        indices = np.arange(last + 1)
        yield from (public[:, i] for i in range(self.rows - 1))
        # the only neighbour of the first and of the last call counts twice
        before, after = np.abs(indices - 1), last - np.abs(last - indices - 1)
        for neighbour_calls in (before, after, self._nearest_calls()):
            yield residuals[neighbour_calls, self.positions]

    def opposite_noises(self) -> Iterator[Array]:
        """Yield guesses of the noise in the decided rows, float (n, d), if noises of a call cancel each other.

        First the negative noise of each public row of the same call, as of antithetic draws. Then their negative sum,
        as of noise that adds up to 0.
        """
        yield from (-self.public_noise[:, i] for i in range(self.rows - 1))
        yield -self.public_noise.sum(1)

    def _nearest_calls(self) -> Array:
        """Return for each call the index of the most similar call that decides another position, int (n,)."""
        keys = self.released[:, 0, 0]  # compares calls by the first coordinate of the first row
        nearest = np.empty(len(keys), int)
        for position in np.unique(self.positions):
            indices, others = np.flatnonzero(self.positions == position), np.flatnonzero(self.positions != position)
            order = others[np.argsort(keys[others], kind="stable")]
            rank = np.searchsorted(keys[order], keys[indices])
            before, after = order[np.maximum(rank - 1, 0)], order[np.minimum(rank, len(order) - 1)]
            before_is_nearer = np.abs(keys[before] - keys[indices]) < np.abs(keys[after] - keys[indices])
            nearest[indices] = np.where(before_is_nearer, before, after)
        return nearest


StatisticFunction = Callable[[Calls], Array]
"""Maps n calls to one number each, float64 (n,)."""


@dataclass(frozen=True)
class CallsStatistic:
    """A statistic of calls, and the pair of inputs that it tells apart."""

    pair: Pair
    name: str
    function: StatisticFunction
    digits: int | None
    rows: int = ROWS
    """Number of rows of the calls."""
    public: Array | None = None
    """Input of the other rows of the calls, float (d,); None: the pair's first input."""

    def score(self, calls: Calls) -> Array:
        """Return one number for each call, float64 (n,). Higher numbers mean that the first input is likelier."""
        scores = self.function(calls)
        # the step may be computed from the tested scores: the theorem allows scores to depend on the whole output
        return scores if self.digits is None else round_to(scores, rounding_step(scores, self.digits))


def audit_calls(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    count: int,
    error: float,
    digits: int | None = DIGITS,
    public: Array | None = None,
) -> Finding:
    """Choose a statistic and a pair, of small or of large calls; return the bound that they prove on fresh calls.

    Args:
        mechanism: to audit.
        pairs: pairs of neighbouring vectors.
        generator: of coins and noise.
        count: number of tested calls, if they are small; of large calls `LARGE_CALLS` as many are tested.
        error: probability that the bound may be wrong.
        digits: digits to which scores are rounded; None: no rounding.
        public: input of the other rows of large calls, float (d,); None: the pair's first input.

    Raises:
        ValueError: a release is not finite.
    """
    candidates = _candidates(mechanism, pairs, generator, _half_of_choice(count), digits)
    large = round(LARGE_CALLS * count)
    rows = min(MANY_ROWS, MAX_LARGE_VALUES // max(1, large * len(pairs[0].first)))
    if large >= FEWEST_LARGE_CALLS and rows >= FEWEST_LARGE_ROWS:
        candidates += _candidates(mechanism, pairs, generator, large // 2, digits, rows, public)
    statistic = _best(candidates)
    return run_statistic(mechanism, statistic, count if statistic.rows == ROWS else large, generator, error)


def run_statistic(
    mechanism: Mechanism, statistic: CallsStatistic, count: int, generator: np.random.Generator, error: float
) -> Finding:
    """Return the bound that a statistic proves on fresh calls."""
    calls, coins = run_calls(mechanism, statistic.pair, count, generator, statistic.rows, statistic.public)
    scores = statistic.score(calls)
    bound = audit_scores(scores, coins, mechanism.delta, error)
    guessed_first = guess(scores, bound.guesses) == 1
    first_rate, second_rate = (float(guessed_first[side].mean()) if side.any() else 0.0 for side in (coins, ~coins))
    others = "the first input" if statistic.public is None else "another public vector"
    guesses = f"{bound.right} of {bound.guesses} guesses right, in {count} calls"
    return Finding(
        epsilon=statistic.pair.per_unit(bound.epsilon),
        pair=f"{statistic.pair.name} (one row of {statistic.rows} in a call; the other rows are {others})",
        score_name=statistic.name,
        event=f"first input guessed by {statistic.name} ({guesses})",
        first_rate=first_rate,
        second_rate=second_rate,
        draws=count // 2,
        distance=statistic.pair.distance,
    )


def choose_statistic(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    count: int,
    digits: int | None = DIGITS,
) -> CallsStatistic:
    """Choose the statistic and pair with the largest bound on calls that are drawn only for this choice.

    About ``count`` calls are made for each pair: half learn statistics, half choose.
    """
    return _best(_candidates(mechanism, pairs, generator, _half_of_choice(count), digits))


def _half_of_choice(count: int) -> int:
    return max(8, count // 4)


Candidate = tuple[float, float, CallsStatistic]
"""A bound, the share of guesses that are right, and the statistic that gave both."""


def _best(candidates: Sequence[Candidate]) -> CallsStatistic:
    return max(candidates, key=lambda entry: entry[:2])[2]


def _candidates(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    count: int,
    digits: int | None,
    rows: int = ROWS,
    public: Array | None = None,
) -> list[Candidate]:
    """Return the statistics of each pair, learned from ``count`` calls, with their bounds on as many other calls.

    The inputs of a pair change places if the other rows are the first input.
    """

    def bound(canaries: int, guesses: int, right: int, error: float) -> float:
        # the faster of the two theorems
        return one_run_bound(canaries, guesses, right, mechanism.delta, error)

    candidates = []
    for pair in [ordered for given in pairs for ordered in ((given, given.swapped()) if public is None else (given,))]:
        learned, (calls_to_choose, coins) = (
            run_calls(mechanism, pair, count, generator, rows, public) for _ in range(2)
        )
        statistics = _statistics(*learned) if rows == ROWS else _statistics_of_many_rows(*learned)
        for name, function in statistics.items():
            statistic = CallsStatistic(pair, name, function, digits, rows, public)
            result = largest_bound(statistic.score(calls_to_choose), coins, bound)
            candidates.append((pair.per_unit(result.epsilon), result.right / result.guesses, statistic))
    return candidates


def run_calls(
    mechanism: Mechanism,
    pair: Pair,
    count: int,
    generator: np.random.Generator,
    rows: int = ROWS,
    public: Array | None = None,
) -> tuple[Calls, Array]:
    """Call a mechanism; return the calls, and whether each coin chose the first input, bool (n,).

    Raises:
        ValueError: a release is not finite, or does not have the shape of the rows.
    """
    coins, noise = generator.random(count) < 0.5, noise_generator(generator)
    public = pair.first if public is None else public
    decided = [1, 2, 3] if rows == ROWS else [0, rows // 2, rows - 1]
    positions = np.resize(decided, count)
    released = np.empty((count, rows, len(pair.first)))
    for call, (coin, position) in enumerate(zip(coins, positions, strict=True)):
        inputs = np.tile(public, (rows, 1))
        inputs[position] = pair.first if coin else pair.second
        outputs = mechanism.release(inputs, noise)
        if outputs.shape != inputs.shape:
            raise ValueError(f"the mechanism released shape {outputs.shape}; allowed: that of its rows, {inputs.shape}")
        released[call] = outputs
    return Calls(pair, finite(released), positions, public), coins


def _statistics(calls: Calls, coins: Array) -> Mapping[str, StatisticFunction]:
    """Return statistics by name. Higher values mean that the first input is likelier."""
    first, second = calls.pair.first, calls.pair.second
    direction = first - second
    statistics: dict[str, StatisticFunction] = {
        "row minus the likeliest noise": lambda calls: _nearness_without_noise(
            calls.decided, calls.possible_noises(), first, second
        ),
        "row minus the likeliest opposite noise": lambda calls: _nearness_without_noise(
            calls.decided, calls.opposite_noises(), first, second
        ),
        "row minus the mean noise": lambda calls: (calls.decided - calls.public_noise.mean(1)) @ direction,
        # unknown which input makes these larger, so both signs
        "size of the other rows' noise": lambda calls: np.abs(calls.public_noise).sum((1, 2)),
        "size of the other rows' noise, negative": lambda calls: -np.abs(calls.public_noise).sum((1, 2)),
        "other rows along the difference": lambda calls: calls.public_noise.sum(1) @ direction,
    }
    if ROWS * len(first) <= MAX_FEATURES:
        score = fisher(_features(calls)[coins], _features(calls)[~coins])
        statistics["learned classifier of the rows"] = lambda calls: -score(_features(calls))
    return statistics


def _statistics_of_many_rows(calls: Calls, coins: Array) -> Mapping[str, StatisticFunction]:
    """Return statistics of large calls by name, as `_statistics` does.

    If one row shifts or scales all others, as in normalising by the smallest and largest value, their mean shows it.
    """
    direction = calls.pair.first - calls.pair.second
    statistics: dict[str, StatisticFunction] = {
        "other rows along the difference": lambda calls: calls.public_noise.sum(1) @ direction,
        "other rows against the difference": lambda calls: -calls.public_noise.sum(1) @ direction,
        "size of the other rows' noise": lambda calls: np.abs(calls.public_noise).sum((1, 2)),
        "size of the other rows' noise, negative": lambda calls: -np.abs(calls.public_noise).sum((1, 2)),
    }
    if 3 * len(direction) <= MAX_FEATURES:
        means = _means(calls)
        score = fisher(means[coins], means[~coins])
        statistics["learned classifier of the rows' means"] = lambda calls: -score(_means(calls))
    return statistics


def _means(calls: Calls) -> Array:
    """Return the decided row, and the mean noise of the public rows, with and without its sign, float (n, 3 d)."""
    public = calls.public_noise
    return np.concatenate([calls.decided, public.mean(1), np.abs(public).mean(1)], axis=1)


def _features(calls: Calls) -> Array:
    """Return the decided row, the noise of the public rows, and products of both, float (n, (r + 2) d).

    The products are of the decided row and the mean public noise, with and without its sign. They show a secret of the
    call, such as a coin that decides whether its rows are used.
    """
    public, mean = calls.public_noise, calls.public_noise.mean(1)
    parts = calls.decided, public.reshape(len(public), -1), calls.decided * mean, calls.decided * np.abs(mean)
    return np.concatenate(parts, axis=1)


def _nearness_without_noise(rows: Array, noises: Iterable[Array], first: Array, second: Array) -> Array:
    """Subtract the best-fitting noise, and return how much nearer to the first input each row is, float64 (n,).

    The result is divided by the misfit that is left, so that exact noise counts most.
    """
    misfit, result = np.full(len(rows), np.inf), np.zeros(len(rows))
    for noise in noises:
        to_first, to_second = (np.abs(rows - noise - vector).sum(1) for vector in (first, second))
        nearest = np.minimum(to_first, to_second)
        result = np.where(nearest < misfit, to_second - to_first, result)
        misfit = np.minimum(nearest, misfit)
    return result / (misfit + EXACT)
