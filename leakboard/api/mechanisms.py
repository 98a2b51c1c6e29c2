"""Audit a mechanism that is given as a function: is it as private as it claims to be?

Two neighbouring inputs are released many times; an event that distinguishes their releases better than the claim allows
refutes the claim (`leakboard.privacy.auditing.audit`, with the theorems). First the inputs are single rows, then a row
among the other rows of a call, which may give it away. A low bound proves nothing: this audit failed to find more.

With delta = 0 the bound holds for any dependence between rows. With delta above 0 the bound of single rows assumes that
calls of up to 16 rows are independent of each other.

A claim has one epsilon for all neighbours, or one for each unit of a distance of the inputs (metric privacy). Then the
bound of a pair is divided by its distance.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from leakboard.api.arguments import as_int, check
from leakboard.api.symbols import SYMBOL_BUDGET, SymbolFunction, symbol_pairs
from leakboard.api.vectors import VectorFunction, accepted, takes_two, vector_pairs
from leakboard.errors import RequestError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from leakboard.api.distances import DistanceName
    from leakboard.mechanism import Mechanism
    from leakboard.privacy.auditing.bound import Finding
    from leakboard.privacy.auditing.curve import TradeOff
    from leakboard.privacy.auditing.distances import DistanceFunction

VERDICTS = {
    "violated": "more than the claimed {claimed}: the claim is violated",
    "not refuted": "no more than the claimed {claimed}: the claim is not refuted, which does not prove it",
}
MAX_DIMENSION = 1_000_000
"""Largest width of the vectors: a few of them fit into any memory."""
MAX_DRAWS = 10**10
"""Most releases of each input that can be asked for: they take hours."""
BUDGET = 100_000_000
"""Largest number of coordinates drawn, if ``draws`` and ``budget`` are not given."""
CALLS = 4_000
"""Number of calls, if it is not given."""
CALLS_VALUES = 1 << 27
"""Most numbers of the tested calls of four rows, if their number is not given, but at least `FEWEST_CALLS` are made."""
FEWEST_CALLS = 100
"""Smallest number of calls that an audit of calls tests."""


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of an audit of a mechanism."""

    epsilon_lower: float
    """Lower bound on epsilon, at ``confidence``; 0 where the event proves nothing. With ``metric`` it is for each unit
    of distance; infinite where inputs at distance 0 have different releases.

    With delta above 0 the bound of an event of single rows takes calls of up to 16 rows to be independent of each
    other.
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
    """An upper bound on the trade-off of errors for single rows, at ``confidence`` by itself.

    It has lower bounds on mu of Gaussian privacy and on Renyi divergences. With any delta it assumes that the rows of a
    call are independent of each other. None where the first rows or calls refuted the claim and other rows did not.
    """
    notes: tuple[str, ...] = ()
    """Inputs that could not be tried, with the reason."""
    metric: str = ""
    """Name of the distance that epsilon is claimed for each unit of; empty: epsilon is claimed for all neighbours."""
    distance: float = 1.0
    """Distance of the two inputs; 1 without ``metric``."""
    rows: tuple[int, int] | None = None
    """Number of tested releases of either input; None where the bound is that of calls or of the first rows."""

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
        apart = (f"these two are {self.distance:.4g} apart",) if self.metric else ()
        sentence = audited(self.epsilon_lower, self.confidence, verdict, self.metric)
        assumed = ("with delta above 0 the bound assumes that calls are independent of each other",)
        return "\n".join((sentence, what, *apart, *(assumed if self.delta > 0 and self.rows else ()), *self.notes))

    def plot(self) -> Figure:
        """Return the trade-off of errors that the claim allows to a test, and the errors that this audit reached."""
        from leakboard.board.figures import trade_off

        bound = self.trade_off
        curves = (
            []
            if bound is None
            else [(f"{100 * bound.joint_confidence:.0f} % confidence", bound.false_positives, bound.false_negatives)]
        )
        return trade_off(
            (self.epsilon * self.distance, self.delta), [(self.second, 1 - self.first, self.event)], curves
        )

    def __repr__(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in self.summary.splitlines())


def audit(
    release: Callable[[Any, np.random.Generator], Any],
    epsilon: float,
    *,
    delta: float = 0.0,
    dimension: int | None = None,
    inputs: Sequence[Any] | None = None,
    distance: DistanceName | DistanceFunction | None = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    domain: Literal["cube", "any"] = "cube",
    draws: int | None = None,
    budget: int | None = None,
    calls: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Audit:
    """Return a lower bound on the epsilon of a mechanism, from releasing neighbouring inputs many times.

    Args:
        release: maps vectors, float64 (n, d), and a NumPy generator to their releases, (n, d). The claim is about one
            row. The other rows of its call and all other calls are public. So rows that share their noise break the
            claim, and so do seeds that serve two calls.
        epsilon: claimed for one release; with ``distance`` for each unit of it.
        delta: claimed for one release. Above 0 the bound of single rows takes calls of up to 16 rows to be
            independent of each other. At 0 it assumes nothing.
        dimension: width d of the vectors; None with ``inputs``.
        inputs: of a mechanism whose outputs are words, texts, sets or other hashable objects. A list of pairs of
            neighbours by the claim; or a list of inputs, and all of them are neighbours of each other. Then ``release``
            maps a list of inputs and a NumPy generator to a list with an output for each input. Events are about the
            frequencies of outputs and of their parts: words of a text, members of a set or tuple. None with
            ``dimension``.
        distance: of two inputs, if the claim is metric privacy: P(E | x) <= exp(epsilon d(x, x')) P(E | x') + delta for
            any x and x'. ``euclidean``, ``l1``, ``angular`` (radians), ``words`` (in how many words two texts differ),
            or a function of two inputs. Vectors are tried at several distances; for ``angular`` they have length 1.
            None: epsilon is claimed for all neighbours.
        pairs: neighbouring vectors, (d,) each, by the claim. None: corners and inner points of the unit cube, for a
            mechanism that claims epsilon for any two vectors with coordinates in [0, 1].
        domain: ``any`` where the mechanism claims epsilon for any vectors, since it clips them. Then vectors outside
            the cube are tried, too, with NaN and infinity. An error that it raises for them is noted, and is no leak.
            NaN and infinity in a release count as 1e30. With ``pairs`` or ``distance`` only ``cube`` is allowed.
        draws: releases of either input: half to choose an event on, half to test it. Single rows prove no more than
            about ln(draws / 6.7), at 95 % confidence and delta 0: to refute a claim of 10 takes at least 148,000. None:
            rounds, each larger than all before, until the claim is refuted or ``budget`` is spent.
        budget: numbers that are drawn at most where ``draws`` is None, all coordinates of all releases; statistics are
            learned from further ones. None: 100,000,000 numbers, or 2,000,000 outputs.
        calls: calls of four rows that test one row among the others, where single rows do not refute the claim. From
            400 on, a tenth as many calls of 256 rows are tested instead, if they promise more. The test has a fifth of
            the error. At 95 % confidence and delta 0, 4,000 calls prove less than 6.34, and 400 large ones less than
            4.03. As many again for each pair choose the statistic. So by default ``release`` is called up to 17,200
            times (8,400 in one dimension). 0: none. None: 4,000 with ``dimension``, fewer above 8,388 coordinates; and
            0 with ``inputs``, where only 0 is allowed.
        confidence: of the bound.
        seed: of the coins and the noise.

    Raises:
        RequestError: an argument is wrong; a distance is not a finite number from 0; the release is not a finite array
            of numbers (n, d), or not one hashable object for each input.
    """
    from leakboard.api.distances import claimed_distance
    from leakboard.privacy.auditing import audit as auditing
    from leakboard.privacy.auditing.calls import ROWS
    from leakboard.privacy.auditing.first_rows import FIRST_ROWS_ERROR, audit_first_rows
    from leakboard.privacy.auditing.rounding import round_releases

    check(
        "release",
        release,
        takes_two(release),
        f"a function of {'vectors' if inputs is None else 'inputs'} and a generator",
    )
    dimension, draws, budget, calls, seed = map(as_int, (dimension, draws, budget, calls, seed))
    for name, value in {"epsilon": epsilon, "delta": delta, "confidence": confidence}.items():
        check(name, value, isinstance(value, Real) and not isinstance(value, bool), "a number")
    epsilon, delta, confidence = float(epsilon), float(delta), float(confidence)
    check("seed", seed, type(seed) is int and seed >= 0, "a whole number from 0")
    check("epsilon", epsilon, 0 <= epsilon < math.inf, "a number from 0, not infinite")
    check("delta", delta, 0 <= delta < 1, "a number from 0, below 1")
    check("confidence", confidence, 0.5 <= confidence < 1, "a number from 0.5, below 1")
    check("domain", domain, domain in ("cube", "any"), "'cube' or 'any'")
    metric = claimed_distance(distance, of_texts=inputs is not None)
    # a mechanism with a generator of its own may have the same seed, and its noise must not follow our coins
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(b"leakboard audit")))
    mechanism: Mechanism
    if inputs is None:
        good = type(dimension) is int and 1 <= dimension <= MAX_DIMENSION
        check("dimension", dimension, good, f"a whole number from 1 to {MAX_DIMENSION:,}, or None with inputs")
        check("domain", domain, pairs is None or domain == "cube", "'cube', since pairs are given")
        check("domain", domain, distance is None or domain == "cube", "'cube', since a distance is given")
        neighbours, more_pairs, unusual = vector_pairs(pairs, domain, dimension, epsilon, metric, rng)
        mechanism, width = VectorFunction(release, epsilon, delta, domain == "any"), dimension
        most = max(FEWEST_CALLS, CALLS_VALUES // (ROWS * width))
        budget, calls = BUDGET if budget is None else budget, min(CALLS, most) if calls is None else calls
    else:
        for argument, given in {"dimension": dimension, "pairs": pairs}.items():
            check(argument, given, given is None, "None, since inputs are given")
        check("domain", domain, domain == "cube", "'cube', since inputs are given")
        check("calls", calls, calls in (None, 0), "0, since inputs are given")
        neighbours, more_pairs, unusual = symbol_pairs(inputs, metric), [], []
        mechanism, width = SymbolFunction(release, epsilon, delta), 1
        budget, calls = SYMBOL_BUDGET if budget is None else budget, 0
    count = len(neighbours) + len(more_pairs) + len(unusual)
    fewest = 100 * count
    good = draws is None or (type(draws) is int and fewest <= draws <= MAX_DRAWS)
    allowed = f"a whole number from {fewest} for {count} pairs to {MAX_DRAWS:,}, or None for what the budget allows"
    check("draws", draws, good, allowed)
    least = 2 * width * fewest
    good = type(budget) is int and budget >= least
    allowed = f"a whole number from {least} on, for {count} pairs"
    check("budget", budget, good, allowed if inputs is not None else f"{allowed} in {width} dimensions")
    good = type(calls) is int and (calls == 0 or calls >= FEWEST_CALLS)
    check("calls", calls, good, f"a whole number from {FEWEST_CALLS}, or 0 for none")
    first_rows, first_error, notes = None, 0.0, list[str]()
    try:
        if inputs is None:
            # no release may come before the first rows
            first_error = FIRST_ROWS_ERROR * (1 - confidence)
            first_rows = audit_first_rows(mechanism, neighbours[0], rng, first_error)
            if unusual:
                usable, notes = accepted(mechanism, unusual, rng)
                more_pairs += usable
            mechanism = round_releases(mechanism, neighbours + more_pairs, rng)
        result = auditing.audit(
            mechanism,
            neighbours,
            rng,
            draws,
            confidence,
            budget=budget,
            calls=0 if first_rows and first_rows.epsilon > epsilon else calls,
            spent=first_error,
            more_pairs=more_pairs,
            public=np.full(width, 0.5) if inputs is None and pairs is None and distance is None else None,
        )
    except RequestError:
        raise
    except ValueError as error:
        raise RequestError(f"release: {error}") from None
    by_first_rows = first_rows is not None and first_rows.epsilon > epsilon >= result.epsilon
    bound: Finding = first_rows if first_rows is not None and by_first_rows else result
    curve = None if by_first_rows else result.trade_off
    event = bound.pair, bound.event, bound.first_rate, bound.second_rate, bound.draws
    name = "" if metric is None else metric.name
    apart = name, bound.distance, bound.rows
    return Audit(bound.epsilon, epsilon, delta, confidence, *event, curve, tuple(notes), *apart)
