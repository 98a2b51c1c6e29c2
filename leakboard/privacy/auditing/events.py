"""Which event tells two neighbouring inputs apart best: a statistic of a release, on one side of a threshold.

Scores are rounded to `DIGITS` digits of their spread, so that the audit measures the mechanism and not its floating
point: with all of their bits, the likelihood ratios of a textbook Laplace release of 0 and of 1 fall into different
patterns of rounding errors, and it too is caught (Mironov 2012). ``digits=None`` looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.privacy.auditing.bound import lower_bounds
from leakboard.privacy.auditing.trials import Mechanism, releases

Array = NDArray[Any]
Score = Callable[[Array], Array]
"""Maps outputs (n, d) to one number each, float64 (n,)."""

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
    def description(self) -> str:
        """The event in words."""
        return f"{self.statistic} {'>=' if self.above else '<'} {self.threshold:.6g}"


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


def choose_event(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws: int,
    digits: int | None = DIGITS,
) -> Event:
    """Return the event that distinguishes a pair best, on ``draws`` releases of either input shared by the pairs.

    Raises:
        ValueError: fewer than 50 draws a pair, no pair, or releases that are not finite.
    """
    if not pairs or draws // len(pairs) < FEWEST:
        request = f"not {draws} draws for {len(pairs)} pairs"
        raise ValueError(f"an event is chosen on at least {FEWEST} draws for each pair, and one pair, {request}")
    events = [_best_event(mechanism, pair, draws // len(pairs), digits, generator) for pair in pairs]
    return max(events, key=lambda event: event.promise)


def _best_event(
    mechanism: Mechanism, pair: Pair, draws: int, digits: int | None, generator: np.random.Generator
) -> Event:
    """Return the event of one pair, either way round, that promises most on draws of its own."""
    sides = (pair.first, pair.second)
    learned = [np.concatenate(list(releases(mechanism.release, x, min(LEARNED, draws), generator))) for x in sides]
    statistics = statistics_of(mechanism, pair, *learned)
    if digits is not None:
        both = np.concatenate(learned)
        statistics = {name: rounded(score, both, digits) for name, score in statistics.items()}
    scores: dict[str, list[Array]] = {name: [] for name in statistics}
    for values in sides:
        parts: dict[str, list[Array]] = {name: [] for name in statistics}
        for outputs in releases(mechanism.release, values, draws, generator):
            for name, score in statistics.items():
                parts[name].append(score(outputs))
        for name, chunks in parts.items():
            scores[name].append(np.concatenate(chunks))
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
    positions = np.unique(np.concatenate([spread, atoms, atoms + 1]))
    candidates = both[positions[positions < len(both)]]
    below = [np.searchsorted(np.sort(side), candidates, side="left") for side in (first, second)]
    promises = {
        True: lower_bounds(n - below[0], n - below[1], n, delta, CHOOSING),
        False: lower_bounds(below[0], below[1], n, delta, CHOOSING),
    }
    above = bool(promises[True].max() >= promises[False].max())
    best = int(promises[above].argmax())
    return Event(pair, statistic, score, float(candidates[best]), above, float(promises[above][best]))


def statistics_of(mechanism: Mechanism, pair: Pair, first: Array, second: Array) -> dict[str, Score]:
    """Return the statistics that may tell the pair apart; a learned one is fitted on releases of its own."""
    statistics: dict[str, Score] = {
        "sum": lambda outputs: outputs.sum(1),
        "mean above the minimum": lambda outputs: outputs.mean(1) - outputs.min(1),
        "smallest coordinate": lambda outputs: outputs.min(1),
        "largest coordinate": lambda outputs: outputs.max(1),
        "learned classifier": fisher(first, second),
    }
    one, other = mechanism.vector_of(pair.first), mechanism.vector_of(pair.second)
    if one is None or other is None:
        return statistics
    direction = other - one
    statistics["projection on the difference"] = lambda outputs: outputs @ direction

    def log_ratio(outputs: Array) -> Array:
        ratio = mechanism.log_ratio(outputs, one, other)
        assert ratio is not None, "it was known for the first output"
        return ratio

    if mechanism.log_ratio(first[:1], one, other) is not None:
        statistics["likelihood ratio"] = log_ratio
    return statistics


def fisher(first: Array, second: Array) -> Score:
    """Return the discriminant of Fisher (1936) with a shrunken covariance (Ledoit and Wolf 2004)."""
    from scipy import linalg
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    labels = np.repeat([0, 1], [len(first), len(second)])
    outputs = np.concatenate([first, second])
    spread = outputs.std(0)
    varying = spread > 1e-12 * np.abs(outputs).max(initial=1e-300)
    if not varying.any():
        return lambda outputs: outputs.sum(1)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    try:
        weights = model.fit(outputs[:, varying], labels).coef_[0]
    except np.linalg.LinAlgError:  # singular values of almost singular covariances may not converge; QR always ends
        weights = linalg.lstsq(model.covariance_, model.means_[1] - model.means_[0], lapack_driver="gelsy")[0]
    return lambda outputs: outputs[:, varying] @ weights


def rounded(score: Score, outputs: Array, digits: int) -> Score:
    """Return a score in whole steps of 10**-digits of its spread over these outputs."""
    spread = float(np.std(score(outputs))) or 1.0
    step = 2.0 ** np.ceil(np.log2(spread)) * 10.0**-digits
    return lambda outputs: np.rint(score(outputs) / step) * step
