"""Choosing what to test: of all pairs and statistics those whose best event promises most on fresh tosses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import bound_of_tosses
from leakboard.privacy.auditing.curve import ScoreCurve, curve_thresholds
from leakboard.privacy.auditing.densities import learned_scores
from leakboard.privacy.auditing.events import DIGITS, FEWEST, Array, Event, Pair, Score, rounded, statistics_of
from leakboard.privacy.auditing.thresholds import Threshold, best_threshold
from leakboard.privacy.auditing.trials import answers_of_tosses, counts_of_tosses, tosses

MOST_LEARNED = 50_000
"""Releases of either input that statistics are learned from, at most."""
LEARNED_NUMBERS = 4_000_000
"""Numbers of either input that statistics are learned from, at most: wide vectors have fewer releases."""
COMPARED, KEPT = 8, 2
"""Statistics of the best pair that are compared once more, and those that later rounds choose from."""


@dataclass(frozen=True)
class Candidate:
    """A statistic of a pair, with its scores so far of the pair's first and second input, float64 (n,) and (m,)."""

    pair: Pair
    statistic: str
    score: Score
    first: Array
    second: Array

    def threshold(self, fresh: int, delta: float, error: float) -> Threshold:
        """Return the threshold that promises most on ``fresh`` tosses of either input."""
        return best_threshold(self.first, self.second, fresh, delta, error)

    def event(self, threshold: Threshold) -> Event:
        """Return the event of a threshold."""
        return Event(self.pair, self.statistic, self.score, threshold)

    def curve(self, threshold: Threshold) -> ScoreCurve:
        """Return a curve of the scores on the side of a threshold."""
        sign = 1 if threshold.above else -1
        thresholds = curve_thresholds(sign * self.first, sign * self.second)
        return ScoreCurve(lambda outputs: sign * self.score(outputs), thresholds)

    def grown(self, first: Array, second: Array) -> Candidate:
        """Return it with further scores."""
        sides = (np.concatenate(part) for part in ((self.first, first), (self.second, second)))
        return Candidate(self.pair, self.statistic, self.score, *sides)


class Chosen(NamedTuple):
    """An event, with what is fixed on the same draws."""

    event: Event
    curve: ScoreCurve
    """Of the event's statistic."""
    draws: int
    """Releases of either input that test both."""


def candidates(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws: int,
    fresh: int,
    error: float,
    digits: int | None,
) -> list[Candidate]:
    """Return `KEPT` statistics of the pair, one way round, whose best event promises most; the best statistic first.

    Half of the draws choose the pair, which shares them with the others; the other half are of that pair alone.

    Args:
        mechanism: what is audited.
        pairs: neighbours.
        generator: of coins and noise.
        draws: releases of either input to choose by.
        fresh: releases of either input that will test the event.
        error: that the test's bound may have.
        digits: of a score that count; None: all.

    Raises:
        ValueError: fewer than 50 draws a pair, no pair, or releases that are not finite.
    """
    if not pairs or draws // len(pairs) < FEWEST:
        request = f"not {draws} draws for {len(pairs)} pairs"
        raise ValueError(f"an event is chosen on at least {FEWEST} draws for each pair, and one pair, {request}")
    found = _sorted(
        [own for pair in pairs for own in _of_pair(mechanism, pair, generator, draws // 2 // len(pairs), digits)],
        mechanism.delta,
        fresh,
        error,
    )
    best = [candidate for candidate in found if candidate.pair is found[0].pair][:COMPARED]
    return _sorted(_more(best, mechanism, draws - draws // 2, generator), mechanism.delta, fresh, error)[:KEPT]


def _sorted(found: list[Candidate], delta: float, fresh: int, error: float) -> list[Candidate]:
    promises = [candidate.threshold(fresh, delta, error).promise for candidate in found]
    return [found[i] for i in np.argsort(-np.array(promises), kind="stable")]


def _more(
    kept: Sequence[Candidate], mechanism: Mechanism, draws: int, generator: np.random.Generator
) -> list[Candidate]:
    """Return statistics of one pair with scores of further draws."""
    scores = scored(mechanism, kept[0].pair, {c.statistic: c.score for c in kept}, 2 * draws, generator)
    return [candidate.grown(*scores[candidate.statistic]) for candidate in kept]


def refined_event(
    mechanism: Mechanism, pairs: Sequence[Pair], generator: np.random.Generator, sizes: Sequence[int], error: float
) -> Chosen:
    """Return the event that promises most on ``sizes[-1]`` releases of either input, chosen on all sizes before.

    The pair and `KEPT` of its statistics are chosen on the first size, the threshold on all. ``error`` is the test's.

    Raises:
        ValueError: fewer than 50 draws a pair, no pair, or releases that are not finite.
    """
    kept = candidates(mechanism, pairs, generator, sizes[0], sizes[-1], error, DIGITS)
    for size in sizes[1:-1]:
        kept = _more(kept, mechanism, size, generator)
    found = [(c.threshold(sizes[-1], mechanism.delta, error), c) for c in kept]
    threshold, candidate = max(found, key=lambda entry: entry[0].promise)
    return Chosen(candidate.event(threshold), candidate.curve(threshold), sizes[-1])


def confirmed(mechanism: Mechanism, event: Event, draws: int, generator: np.random.Generator, error: float) -> float:
    """Return the bound of an event on ``draws`` fresh tosses of either input.

    An event that was chosen on rows which depend on each other may promise what it does not keep: in one call noise
    that all rows share tells both inputs apart, in another it lifts both above the threshold.
    """
    inputs = event.pair.first, event.pair.second
    counted, sizes = counts_of_tosses(mechanism.release, inputs, event.holds, 2 * draws, generator)
    return bound_of_tosses(*counted, sizes, mechanism.delta, error)


def _of_pair(
    mechanism: Mechanism, pair: Pair, generator: np.random.Generator, draws: int, digits: int | None
) -> list[Candidate]:
    """Return every statistic of a pair, either way round, with scores of tosses of its own."""
    size = min(MOST_LEARNED, draws, max(FEWEST, LEARNED_NUMBERS // len(pair.first)))
    learned = _sides(tosses(mechanism.release, (pair.first, pair.second), 2 * size, generator))
    statistics = statistics_of(mechanism, pair, *learned)
    one, other = mechanism.vector_of(pair.first), mechanism.vector_of(pair.second)
    size = min(map(len, learned))
    direction = None if one is None or other is None else other - one
    statistics |= learned_scores(learned[0][:size], learned[1][:size], direction)
    if digits is not None:
        both = np.concatenate(learned)
        statistics = {name: rounded(score, both, digits) for name, score in statistics.items()}
    scores = scored(mechanism, pair, statistics, 2 * draws, generator)
    swapped = pair.swapped()
    return [
        Candidate(way, name, statistics[name], *sides)
        for name, (first, second) in scores.items()
        for way, sides in ((pair, (first, second)), (swapped, (second, first)))
    ]


def scored(
    mechanism: Mechanism, pair: Pair, scores: Mapping[str, Score], draws: int, generator: np.random.Generator
) -> dict[str, tuple[Array, Array]]:
    """Return by name the scores of the first and of the second input in ``draws`` tosses, float64 (n,) and (m,)."""
    return answers_of_tosses(mechanism.release, (pair.first, pair.second), scores, draws, generator)


def _sides(tossed: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the releases of the first and of the second input, float (n, d) and (m, d)."""
    chunks = list(tossed)
    return (
        np.concatenate([outputs[coins] for outputs, coins in chunks]),
        np.concatenate([outputs[~coins] for outputs, coins in chunks]),
    )
