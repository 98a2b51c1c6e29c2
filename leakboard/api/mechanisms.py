"""Audit a mechanism that is given as a function: is it as private as it claims to be?

Two neighbouring inputs are released many times; an event that distinguishes their releases better than the claim allows
refutes the claim (`leakboard.privacy.auditing.audit`, with the theorems). First the inputs are single rows, then a row
among the other rows of a call, which may give it away. A low bound proves nothing: this audit failed to find more.

With delta = 0 the bound holds for any dependence between rows of a call. With delta above 0 the bound of single rows
assumes that they are independent of each other.

A claim has one epsilon for all neighbours. Claims whose epsilon grows with the distance of the inputs (metric privacy)
cannot be stated, and are not audited.
"""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.api.arguments import as_int
from leakboard.errors import RequestError
from leakboard.mechanism import MechanismDefaults

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from leakboard.privacy.auditing.bound import Finding
    from leakboard.privacy.auditing.curve import TradeOff
    from leakboard.privacy.auditing.events import Pair

Array = NDArray[Any]
Release = Callable[[Array, np.random.Generator], Array]

VERDICTS = {
    "violated": "more than the claimed {claimed}: the claim is violated",
    "not refuted": "no more than the claimed {claimed}: the claim is not refuted, which does not prove it",
}
MAX_DIMENSION = 1_000_000
"""Largest width of the vectors: a few of them fit into any memory."""
MAX_DRAWS = 10**10
"""Most releases of each input that can be asked for: they take hours."""
TRIED = 64
"""Rows of the releases that try the function."""
NOT_FINITE = 1e30
"""Size of the number that stands for NaN and infinity in releases."""
FEWEST_CALLS = 100
"""Smallest number of calls that an audit of calls tests."""


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of an audit of a mechanism."""

    epsilon_lower: float
    """Lower bound on epsilon, at ``confidence``; 0 where the event proves nothing.

    With delta above 0 the bound of an event of single rows takes the rows of a call to be independent of each other.
    """
    epsilon: float
    """Claimed epsilon."""
    delta: float
    """Claimed delta."""
    confidence: float
    pair: str
    """The neighbouring inputs that differ most."""
    event: str
    """The event that distinguishes them best, in words."""
    first: float
    """Share of the first input's releases in the event; in an audit of calls, share of its calls guessed right."""
    second: float
    """Share of the second input's releases in the event; in an audit of calls, share of its calls guessed wrong."""
    draws: int
    """Releases of either input, or calls with it, that the bound rests on, about: coin flips choose the input."""
    trade_off: TradeOff | None = None
    """An upper bound on the trade-off of errors for single rows, with lower bounds on mu of Gaussian privacy and on
    Renyi divergences; at ``confidence`` by itself. It takes rows of a call to be independent of each other, with any
    delta; None where the first rows or calls refuted the claim and other rows did not."""
    notes: tuple[str, ...] = ()
    """Inputs that could not be tried, with the reason."""

    @property
    def verdict(self) -> Literal["violated", "not refuted"]:
        """``violated`` where the bound exceeds the claim; an audit cannot prove a claim."""
        return "violated" if self.epsilon_lower > self.epsilon else "not refuted"

    @property
    def summary(self) -> str:
        """The result in two plain sentences, and the notes."""
        from leakboard.threats.sentence_parts import audited, percent

        verdict = VERDICTS[self.verdict].format(claimed=f"{self.epsilon:.3g}")
        shares = f"{percent(self.first)} of the releases of the one input and {percent(self.second)} of the other's"
        what = f"the event: {self.event}, for the pair: {self.pair}; it holds for {shares}, {self.draws} each"
        return "\n".join((audited(self.epsilon_lower, self.confidence, verdict), what, *self.notes))

    def plot(self) -> Figure:
        """Return the trade-off of errors that the claim allows to a test, and the errors that this audit reached."""
        from leakboard.board.figures import trade_off

        bound = self.trade_off
        curves = (
            []
            if bound is None
            else [(f"{100 * bound.joint_confidence:.0f} % confidence", bound.false_positives, bound.false_negatives)]
        )
        return trade_off((self.epsilon, self.delta), [(self.second, 1 - self.first, self.event)], curves)

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in self.summary.splitlines())


def audit(
    release: Release,
    epsilon: float,
    *,
    delta: float = 0.0,
    dimension: int,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    domain: Literal["cube", "any"] = "cube",
    draws: int | None = None,
    budget: int = 100_000_000,
    calls: int = 4000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Audit:
    """Return a lower bound on the epsilon of a mechanism, from releasing neighbouring inputs many times.

    All neighbours have the same claimed epsilon. A claim of metric privacy, whose epsilon grows with the distance of
    the inputs, would be called violated even if it is true.

    Args:
        release: maps vectors, float64 (n, d), and a NumPy generator to their releases, (n, d). The claim is about one
            row, the other rows of its call and all other calls being public: rows that share their noise, and seeds
            that serve two calls, break it.
        epsilon: claimed for one release.
        delta: claimed for one release. Above 0 the bound of single rows takes the rows of a call to be
            independent of each other: noise that they share can raise false alarms. At 0 it does not.
        dimension: width d of the vectors.
        pairs: neighbouring vectors, (d,) each, by the claim. None: corners and inner points of the unit cube, for a
            mechanism that claims epsilon for any two vectors with coordinates in [0, 1].
        domain: ``any`` where the mechanism claims epsilon for any vectors, since it clips them. Then vectors outside
            the cube are tried, too, with NaN and infinity. An error that it raises for them is noted, and is no leak.
            NaN and infinity in a release count as 1e30. With ``pairs`` only ``cube`` is allowed.
        draws: releases of either input: half to choose an event on, half to test it. Single rows prove no more than
            about ln(draws / 6.4), at 95 % confidence and delta 0: to refute a claim of 10 takes at least 142,000. None:
            rounds, each larger than all before, until the claim is refuted or ``budget`` is spent.
        budget: numbers that are drawn at most where ``draws`` is None, all coordinates of all releases; statistics are
            learned from further ones.
        calls: calls of four rows that test one row among the others, with a fifth of the error, where single rows do
            not refute the claim; 4,000 prove no more than 6.3 at 95 % confidence and delta 0. As many again for each
            pair choose the statistic: by default ``release`` is called 16,000 times (8,000 in one dimension). 0: none.
        confidence: of the bound.
        seed: of the noise.

    Raises:
        RequestError: an argument is wrong; the release is not a finite array of numbers (n, d); or delta is above
            0 and all rows of a call get the same noise.
    """
    from leakboard.privacy.auditing import audit as auditing
    from leakboard.privacy.auditing.events import corners, interior, outside
    from leakboard.privacy.auditing.first_rows import FIRST_ROWS_ERROR, audit_first_rows

    _check("release", release, _takes_two(release), "a function of vectors and a generator")
    dimension, draws, budget, calls, seed = map(as_int, (dimension, draws, budget, calls, seed))
    for name, value in {"epsilon": epsilon, "delta": delta, "confidence": confidence}.items():
        _check(name, value, isinstance(value, Real) and not isinstance(value, bool), "a number")
    epsilon, delta, confidence = float(epsilon), float(delta), float(confidence)
    _check("seed", seed, type(seed) is int and seed >= 0, "a whole number from 0")
    _check("epsilon", epsilon, 0 <= epsilon < math.inf, "a number from 0, not infinite")
    _check("delta", delta, 0 <= delta < 1, "a number from 0, below 1")
    good = type(dimension) is int and 1 <= dimension <= MAX_DIMENSION
    _check("dimension", dimension, good, f"a whole number from 1 to {MAX_DIMENSION:,}")
    _check("confidence", confidence, 0.5 <= confidence < 1, "a number from 0.5, below 1")
    _check("domain", domain, domain in ("cube", "any"), "'cube' or 'any'")
    _check("domain", domain, pairs is None or domain == "cube", "'cube', since pairs are given")
    neighbours = corners(dimension) if pairs is None else _pairs(pairs, dimension)
    rng = np.random.default_rng(seed)
    more_pairs = interior(dimension, rng) if pairs is None else []
    count = len(neighbours) + len(more_pairs) + (len(outside(dimension)) if domain == "any" else 0)
    fewest = 100 * count
    good = draws is None or (type(draws) is int and fewest <= draws <= MAX_DRAWS)
    allowed = f"a whole number from {fewest} for {count} pairs to {MAX_DRAWS:,}, or None for what the budget allows"
    _check("draws", draws, good, allowed)
    least = 2 * dimension * fewest
    good = type(budget) is int and budget >= least
    _check("budget", budget, good, f"a whole number from {least} on, for {count} pairs in {dimension} dimensions")
    good = type(calls) is int and (calls == 0 or calls >= FEWEST_CALLS)
    _check("calls", calls, good, f"a whole number from {FEWEST_CALLS}, or 0 for none")
    mechanism = _Function(release, epsilon, delta, domain == "any")
    first_error, notes = FIRST_ROWS_ERROR * (1 - confidence), list[str]()
    try:
        # no release may come before the first rows
        first_rows = audit_first_rows(mechanism, neighbours[0], rng, first_error)
        _require_own_noise(mechanism, neighbours[0].first, rng)
        if domain == "any":
            accepted, notes = _accepted(mechanism, outside(dimension), rng)
            more_pairs += accepted
        result = auditing.audit(
            mechanism,
            neighbours,
            rng,
            draws,
            confidence,
            budget=budget,
            calls=0 if first_rows.epsilon > epsilon else calls,
            spent=first_error,
            more_pairs=more_pairs,
        )
    except ValueError as error:
        raise RequestError(f"release: {error}") from None
    by_first_rows = first_rows.epsilon > epsilon >= result.epsilon
    bound: Finding = first_rows if by_first_rows else result
    curve = None if by_first_rows else result.trade_off
    event = bound.pair, bound.event, bound.first_rate, bound.second_rate, bound.draws
    return Audit(bound.epsilon, epsilon, delta, confidence, *event, curve, tuple(notes))


@dataclass(frozen=True)
class _Function(MechanismDefaults):
    """A function with its claim, as audits need it."""

    function: Release
    epsilon: float
    delta: float
    accepts_any: bool
    """Whether the inputs may be any numbers; then NaN and infinity in releases become numbers."""

    def release(self, values: Array, generator: np.random.Generator) -> Array:
        """Release a copy of every row, float64 (n, d), since a function may write into its argument."""
        with np.errstate(all="ignore" if self.accepts_any else None):
            given = self.function(np.array(values, np.float64), generator)
        released = np.asarray(given)
        is_masked = isinstance(given, np.ma.MaskedArray)
        if released.shape != values.shape or released.dtype.kind not in "fiub" or is_masked:
            shown = f"{'masked ' if is_masked else ''}{released.dtype} of shape {released.shape}"
            raise ValueError(f"it gives {shown} for vectors of shape {values.shape}; allowed: numbers of that shape")
        numbers = released.astype(np.float64)
        if released.dtype.kind in "iu" and (numbers.astype(released.dtype) != released).any():
            raise ValueError("it gives whole numbers beyond 2^53, whose last digits an audit would lose")
        if self.accepts_any:  # a function of a release is as private as the release
            numbers = np.nan_to_num(numbers, nan=NOT_FINITE, posinf=NOT_FINITE, neginf=-NOT_FINITE)
        return numbers

    def vector_of(self, values: Array) -> Array | None:
        """Return the input itself; None if it is not finite, since audits compute with it."""
        return values if np.isfinite(values).all() else None


def _takes_two(release: object) -> bool:
    """Return whether an object can be called with two arguments, as far as Python can tell without calling it."""
    if not callable(release):
        return False
    try:
        inspect.signature(release).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # of some functions in C
        return True
    return True


def _require_own_noise(mechanism: _Function, values: Array, rng: np.random.Generator) -> None:
    """Refuse a function that shares noise within a call, with delta above 0."""
    first, second = (mechanism.release(np.tile(values, (TRIED, 1)), rng) for _ in range(2))
    is_shared = all((released == released[0]).all() for released in (first, second))
    if mechanism.delta > 0 and is_shared and not np.array_equal(first[0], second[0]):
        shown = "all rows of a call get the same noise, and delta is above 0; draw it with the shape of the vectors"
        raise RequestError(f"release: {shown}, or audit the claim with delta 0")


def _accepted(mechanism: _Function, pairs: Sequence[Pair], rng: np.random.Generator) -> tuple[list[Pair], list[str]]:
    """Return the pairs whose inputs a function accepts, and a note for each of the others."""
    accepted, notes = [], []
    for pair in pairs:
        try:
            for values in pair.inputs:
                mechanism.release(np.tile(values, (TRIED, 1)), rng)
        except Exception as error:  # a function may refuse such inputs in any way
            notes.append(f"not tried, since the function refuses it: {pair.name} ({type(error).__name__}: {error})")
        else:
            accepted.append(pair)
    return accepted, notes


def _pairs(pairs: Sequence[tuple[Any, Any]], dimension: int) -> list[Pair]:
    from leakboard.privacy.auditing.events import Pair

    allowed, result = f"two vectors of {dimension} finite numbers", []
    _check("pairs", pairs, isinstance(pairs, Iterable), f"pairs, of {allowed} each")
    for number, pair in enumerate(pairs):
        try:
            vectors = [np.asarray(vector, np.float64) for vector in pair]
        except (TypeError, ValueError):
            shown = " ".join(repr(pair).split())
            raise RequestError(f"pairs[{number}]: {shown} is not allowed: {allowed}") from None
        has_shape = len(vectors) == 2 and all(vector.shape == (dimension,) for vector in vectors)
        shapes = " and ".join(str(vector.shape) for vector in vectors)
        _check(f"pairs[{number}]", f"shape {shapes}", has_shape, allowed)
        _check(f"pairs[{number}]", [vector.tolist() for vector in vectors], bool(np.isfinite(vectors).all()), allowed)
        differ = not np.array_equal(vectors[0], vectors[1])
        _check(f"pairs[{number}]", [vector.tolist() for vector in vectors], differ, f"{allowed} that differ")
        result.append(Pair(f"pair {number}", *vectors))
    _check("pairs", pairs, bool(result), "at least one, or None for corners of the unit cube")
    return result


def _check(name: str, value: object, good: bool, allowed: str) -> None:
    if not good:
        raise RequestError(f"{name}: {value!r} is not allowed: {allowed}")
