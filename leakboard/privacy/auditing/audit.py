"""A lower bound on a mechanism's epsilon, at a stated confidence, from attacking it while it runs.

Theorem. If releases of neighbours x and x' are (epsilon, delta)-private, then P(E | x) <= e**epsilon P(E | x') + delta
for every event E. So epsilon >= ln((p - delta) / q) for any event with P(E | x) >= p and P(E | x') <= q. The event is
chosen on one half of the draws; on the other half, which knows nothing of the choice, p and q are Clopper-Pearson
bounds, each at half of the error. The bound therefore holds with the stated confidence however many thresholds,
statistics and pairs the choice was made from, and it is never infinite: q is never 0.

Scores are rounded to `DIGITS` digits of their spread, so that the audit judges the mechanism and not its floating
point: with all of their bits, the likelihood ratios of a textbook Laplace release of 0 and of 1 fall into different
patterns of rounding errors, and it too is caught (Mironov 2012). ``digits=None`` looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[Any]
Score = Callable[[Array], Array]
"""Maps outputs (n, d) to one number each, float64 (n,)."""

DRAWS = 100_000
"""Releases of either input."""
VALUES = 1 << 18
"""Released values held at once: as many as stay in a processor's cache."""
CHUNK = 8_192
"""Releases of a text held at once."""
CHOOSING = 1e-4
"""Error of the bounds that events are compared by: so small that no lucky one of thousands wins."""
FEWEST = 50
"""Releases of either input that an event of a pair is chosen on, at least."""
LEARNED = 2_000
"""Releases of either input that a learned statistic is fitted on."""
THRESHOLDS = 512
"""Most thresholds tried for a statistic; never more than a quarter of the draws."""
ATOMS = 32
"""Most frequent scores that are thresholds too, with the score above each."""
DIGITS = 9
"""Digits of a score that count."""


class Mechanism(Protocol):
    """Anything that releases vectors and claims a privacy for it."""

    @property
    def epsilon(self) -> float:
        """What is claimed."""

    @property
    def delta(self) -> float:
        """What is claimed."""

    def release(self, values: Array, generator: np.random.Generator) -> Array:
        """Release every row of ``values`` by itself."""


@dataclass(frozen=True)
class Pair:
    """Two inputs that the claim says are neighbours: vectors, float (d,), or a text each, object (1,)."""

    name: str
    first: Array
    second: Array

    def swapped(self) -> Pair:
        """Return the pair the other way round."""
        return Pair(f"{self.name}, swapped", self.second, self.first)


@dataclass(frozen=True)
class Bound:
    """What an audit found: the event that tells the inputs apart best, and what it proves."""

    epsilon: float
    """Lower bound at ``confidence``; 0 where the event proves nothing."""
    confidence: float
    pair: str
    statistic: str
    event: str
    first: float
    """Share of the first input's releases in the event."""
    second: float
    draws: int
    """Releases of either input that the bound rests on."""


def corners(dimensions: int, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs of corners of the unit cube: all apart, alternating, and one coordinate apart."""
    zeros, ones = np.zeros(dimensions, dtype), np.ones(dimensions, dtype)
    pairs = [Pair("zeros and ones", zeros, ones)]
    if dimensions > 1:
        single = np.eye(dimensions, dtype=dtype)[0]
        pairs += [_alternating(dimensions, dtype), Pair("one coordinate", zeros, single)]
    return pairs


def normalised_corners(dimensions: int, dtype: Any = np.float64) -> list[Pair]:
    """Return pairs of corners that min-max normalisation can give: each vector holds a 0 and a 1."""
    pairs = [_alternating(dimensions, dtype)]
    if dimensions > 2:
        first, second = np.zeros((2, dimensions), dtype)
        first[0] = second[:2] = 1
        pairs.append(Pair("one coordinate", first, second))
    return pairs


def _alternating(dimensions: int, dtype: Any) -> Pair:
    alternating = (np.arange(dimensions) % 2).astype(dtype)
    return Pair("alternating", alternating, 1 - alternating)


def lower_bound(hits: int, misses: int, draws: int, delta: float, error: float) -> float:
    """Return ln((p - delta) / q), p below P(E | x) and q above P(E | x') together with probability 1 - ``error``.

    Args:
        hits: releases of x in the event.
        misses: releases of x' in the event.
        draws: releases of either.
        delta: the claim's.
        error: probability that the bound may be wrong, shared equally by p and q (Clopper and Pearson 1934).
    """
    return float(_lower_bounds(np.array([hits]), np.array([misses]), draws, delta, error)[0])


def _lower_bounds(hits: Array, misses: Array, draws: int, delta: float, error: float) -> Array:
    p = np.where(hits > 0, stats.beta.ppf(error / 2, np.maximum(hits, 1), draws - hits + 1), 0.0)
    full = misses >= draws
    q = np.where(full, 1.0, stats.beta.ppf(1 - error / 2, misses + 1, np.maximum(draws - misses, 1)))
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.maximum(p - delta, 0.0)) - np.log(q), 0.0)


def audit(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws: int = DRAWS,
    confidence: float = 0.95,
    digits: int | None = DIGITS,
) -> Bound:
    """Return a lower bound on a mechanism's epsilon from ``draws`` releases of each input.

    Every pair gets its share of the first half of the draws; the second half tests the best event.

    Raises:
        ValueError: fewer than 100 draws a pair, no pair, or releases that are not finite.
    """
    event = choose_event(mechanism, pairs, generator, draws // 2, digits)
    tested = draws - draws // 2
    first, second = counts(mechanism.release, (event.pair.first, event.pair.second), event.holds, tested, generator)
    epsilon = lower_bound(first, second, tested, mechanism.delta, 1 - confidence)
    shares = (first / tested, second / tested)
    return Bound(epsilon, confidence, event.pair.name, event.statistic, event.told, *shares, tested)


def choose_event(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws: int,
    digits: int | None = DIGITS,
) -> Event:
    """Return the event that tells a pair apart best, on ``draws`` releases of either input shared by the pairs.

    Raises:
        ValueError: fewer than 50 draws a pair, no pair, or releases that are not finite.
    """
    if not pairs or draws // len(pairs) < FEWEST:
        asked = f"not {draws} draws for {len(pairs)} pairs"
        raise ValueError(f"an event is chosen on at least {FEWEST} draws for each pair, and one pair, {asked}")
    found = [_best_event(mechanism, pair, draws // len(pairs), digits, generator) for pair in pairs]
    return max(found, key=lambda event: event.promise)


def counts(
    release: Callable[[Array, np.random.Generator], Array],
    inputs: tuple[Array, Array],
    holds: Callable[[Array], Array],
    draws: int,
    generator: np.random.Generator,
) -> tuple[int, int]:
    """Return of how many of ``draws`` releases of either input an event holds.

    The releases of both are shown in one random order: nothing but the outputs themselves can tell them apart.

    Raises:
        ValueError: a release is not finite, or the event does not answer with one bool for each release.
    """
    found = np.zeros(2, np.int64)
    for both in zip(*(releases(release, values, draws, generator) for values in inputs), strict=True):
        outputs = np.concatenate(both)
        order = generator.permutation(len(outputs))
        told = np.asarray(holds(outputs[order]))
        if told.shape != (len(outputs),) or told.dtype != np.bool_:
            raise ValueError(f"an event is one bool for each release, not {told.dtype} of shape {told.shape}")
        answers = np.empty(len(outputs), bool)
        answers[order] = told
        found += [np.count_nonzero(part) for part in np.split(answers, 2)]
    return int(found[0]), int(found[1])


@dataclass(frozen=True)
class Event:
    """A pair with a statistic and a threshold; ``promise`` is the bound on the draws it was chosen from."""

    pair: Pair
    statistic: str
    score: Score
    threshold: float
    above: bool
    promise: float

    def holds(self, outputs: Array) -> Array:
        """Return whether the event holds for releases (n, d), bool (n,)."""
        scores = self.score(outputs)
        return scores >= self.threshold if self.above else scores < self.threshold

    @property
    def told(self) -> str:
        """The event in words."""
        return f"{self.statistic} {'>=' if self.above else '<'} {self.threshold:.6g}"


def _best_event(
    mechanism: Mechanism, pair: Pair, draws: int, digits: int | None, generator: np.random.Generator
) -> Event:
    """Return the event of one pair, either way round, that promises most on draws of its own."""
    sides = (pair.first, pair.second)
    learned = [np.concatenate(list(releases(mechanism.release, x, min(LEARNED, draws), generator))) for x in sides]
    statistics = _statistics(mechanism, pair, *learned)
    if digits is not None:
        statistics = {name: _rounded(score, np.concatenate(learned), digits) for name, score in statistics.items()}
    scores: dict[str, list[Array]] = {name: [] for name in statistics}
    for values in sides:
        parts: dict[str, list[Array]] = {name: [] for name in statistics}
        for outputs in releases(mechanism.release, values, draws, generator):
            for name, score in statistics.items():
                parts[name].append(score(outputs))
        for name, found in parts.items():
            scores[name].append(np.concatenate(found))
    events = [
        _best_threshold(way, name, statistics[name], *ordered, mechanism.delta)
        for name, (first, second) in scores.items()
        for way, ordered in ((pair, (first, second)), (pair.swapped(), (second, first)))
    ]
    return max(events, key=lambda event: event.promise)


def _best_threshold(pair: Pair, statistic: str, score: Score, first: Array, second: Array, delta: float) -> Event:
    n = len(first)
    both, occurrences = np.unique(np.concatenate([first, second]), return_counts=True)
    spread = np.linspace(0, len(both) - 1, min(THRESHOLDS, n // 4)).astype(int)
    atoms = np.argsort(-occurrences, kind="stable")[:ATOMS]  # an event that parts an atom from its neighbour
    places = np.unique(np.concatenate([spread, atoms, atoms + 1]))
    candidates = both[places[places < len(both)]]
    below = [np.searchsorted(np.sort(side), candidates, side="left") for side in (first, second)]
    promises = {
        True: _lower_bounds(n - below[0], n - below[1], n, delta, CHOOSING),
        False: _lower_bounds(below[0], below[1], n, delta, CHOOSING),
    }
    above = bool(promises[True].max() >= promises[False].max())
    place = int(promises[above].argmax())
    return Event(pair, statistic, score, float(candidates[place]), above, float(promises[above][place]))


def _statistics(mechanism: Mechanism, pair: Pair, first: Array, second: Array) -> dict[str, Score]:
    """Return the statistics that may tell the pair apart; a learned one is fitted on releases of its own."""
    found: dict[str, Score] = {
        "sum": lambda outputs: outputs.sum(1),
        "mean above the minimum": lambda outputs: outputs.mean(1) - outputs.min(1),
        "smallest coordinate": lambda outputs: outputs.min(1),
        "largest coordinate": lambda outputs: outputs.max(1),
        "learned classifier": _classifier(first, second),
    }
    given = (pair.first, pair.second)
    if hasattr(mechanism, "vector_of"):  # the pair holds texts, which become vectors first
        vectors = [mechanism.vector_of(values) for values in given]
        if any(vector is None for vector in vectors):
            return found
        given = (vectors[0], vectors[1])
    direction = given[1] - given[0]
    found["projection on the difference"] = lambda outputs: outputs @ direction
    ratio = getattr(mechanism, "log_ratio", None)
    if ratio and ratio(first[:1], *given) is not None:
        found["likelihood ratio"] = lambda outputs: ratio(outputs, *given)
    return found


def _classifier(first: Array, second: Array) -> Score:
    """Return the discriminant of Fisher (1936) with a shrunken covariance (Ledoit and Wolf 2004)."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    labels = np.repeat([0, 1], [len(first), len(second)])
    outputs = np.concatenate([first, second])
    spread = outputs.std(0)
    varying = spread > 1e-12 * np.abs(outputs).max(initial=1e-300)
    if not varying.any():
        return lambda outputs: outputs.sum(1)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(outputs[:, varying], labels)
    return lambda outputs: outputs[:, varying] @ model.coef_[0]


def _rounded(score: Score, outputs: Array, digits: int) -> Score:
    """Return a score in whole steps of 10**-digits of its spread over these outputs."""
    spread = float(np.std(score(outputs))) or 1.0
    step = 2.0 ** np.ceil(np.log2(spread)) * 10.0**-digits
    return lambda outputs: np.rint(score(outputs) / step) * step


def releases(
    release: Callable[[Array, np.random.Generator], Array],
    values: Array,
    draws: int,
    generator: np.random.Generator,
) -> Iterator[Array]:
    """Yield ``draws`` releases of one input in chunks, float (n, d).

    Raises:
        ValueError: a release is not finite.
    """
    rows = min(draws, max(1, VALUES // len(values)) if values.dtype != object else CHUNK)
    inputs = np.tile(values, (rows, 1))
    for start in range(0, draws, rows):
        outputs = release(inputs[: draws - start], generator)
        if not np.isfinite(outputs).all():
            raise ValueError("the mechanism released NaN or infinity")
        yield outputs
