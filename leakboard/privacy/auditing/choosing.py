"""Choose what to test: the pair, score and threshold whose event promises the largest bound on fresh releases.

Choose freely: fresh releases test the choice, so errors here only weaken bounds. Only `confirm` proves a bound.

A threshold is chosen from rates on both sides of it. On each side the event has one rate for each input. Both rates are
shifted by `CAUTION` standard errors towards a smaller bound, so that no lucky threshold of thousands wins. The best
event on many fresh releases may not have been seen at all. So beyond the last scores a tail is assumed to fall
exponentially, with the mean excess of the last scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import bound_from_counts, log_ratios_from_counts
from leakboard.privacy.auditing.curve import ScoreCurve, curve_thresholds
from leakboard.privacy.auditing.events import Array, Event, Pair, Score, Threshold
from leakboard.privacy.auditing.scores import DIGITS, scores_of
from leakboard.privacy.auditing.trials import answers_by_input, coin_flip_releases, count_event

MIN_DRAWS = 50
"""Fewest releases of each input that an event of a pair is chosen on."""
MAX_LEARNED = 50_000
"""Most releases of each input that scores are learned from."""
MAX_LEARNED_NUMBERS = 4_000_000
"""Most numbers of each input that scores are learned from: wide vectors have fewer releases."""
MAX_COMPARED, MAX_KEPT = 8, 2
"""Scores of the best pair that are compared once more, and scores that later rounds choose from."""
SPREAD_THRESHOLDS = 256
"""Thresholds at equally spaced ranks; as many again are in the tails, at ranks that grow geometrically."""
MAX_ATOMS = 32
"""Most frequent scores that are thresholds too, each with the next score above it."""
CAUTION = 2.0
"""Standard errors by which a rate is shifted towards a smaller bound."""
TAIL_SCORES = 30
"""Last scores that a tail is extrapolated from."""


@dataclass(frozen=True)
class Candidate:
    """A score of a pair, with its values so far for the first and the second input, float64 (n,) and (m,)."""

    pair: Pair
    score_name: str
    score: Score
    first_scores: Array
    second_scores: Array

    def threshold(self, fresh: int, delta: float, error: float) -> Threshold:
        """Return the threshold that promises most on ``fresh`` releases of each input."""
        return best_threshold(self.first_scores, self.second_scores, fresh, delta, error)

    def event(self, threshold: Threshold) -> Event:
        """Return the event of a threshold."""
        return Event(self.pair, self.score_name, self.score, threshold)

    def curve(self, threshold: Threshold) -> ScoreCurve:
        """Return tests for a trade-off curve of this score, on the side of a threshold."""
        sign = threshold.sign
        thresholds = curve_thresholds(sign * self.first_scores, sign * self.second_scores)
        return ScoreCurve(lambda outputs: sign * self.score(outputs), thresholds)

    def with_scores(self, first_scores: Array, second_scores: Array) -> Candidate:
        """Return the candidate with further values of its score."""
        return replace(
            self,
            first_scores=np.concatenate([self.first_scores, first_scores]),
            second_scores=np.concatenate([self.second_scores, second_scores]),
        )


class ChosenEvent(NamedTuple):
    """An event, with a trade-off curve fixed on the same draws."""

    event: Event
    curve: ScoreCurve
    """Of the event's score."""
    draws: int
    """Releases of each input that test both."""


def choose_event(
    mechanism: Mechanism, pairs: Sequence[Pair], generator: np.random.Generator, sizes: Sequence[int], error: float
) -> ChosenEvent:
    """Choose the event that promises the largest bound on ``sizes[-1]`` fresh releases of each input.

    Releases of the first size choose the pair and `MAX_KEPT` of its scores. Releases of all sizes but the last choose
    the threshold. The test on fresh releases comes later, and may be wrong with probability ``error``.

    Raises:
        ValueError: fewer than `MIN_DRAWS` draws for each pair, no pair, or releases that are not finite.
    """
    kept = choose_candidates(mechanism, pairs, generator, sizes[0], sizes[-1], error, DIGITS)
    for size in sizes[1:-1]:
        kept = _with_more_draws(kept, mechanism, size, generator)
    thresholds = [candidate.threshold(sizes[-1], mechanism.delta, error) for candidate in kept]
    threshold, candidate = max(zip(thresholds, kept, strict=True), key=lambda entry: entry[0].promise)
    return ChosenEvent(candidate.event(threshold), candidate.curve(threshold), sizes[-1])


def choose_candidates(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws_per_input: int,
    fresh: int,
    error: float,
    digits: int | None,
) -> list[Candidate]:
    """Return `MAX_KEPT` scores of the pair, in one order, whose best event promises most; the best score first.

    Half of the draws, shared among the pairs, choose the pair. The other half compares its best scores once more.

    Args:
        mechanism: to audit.
        pairs: neighbours.
        generator: of coins and noise.
        draws_per_input: releases of each input to choose by.
        fresh: releases of each input that will test the event.
        error: of that test.
        digits: digits of a score that count; None: all.

    Raises:
        ValueError: fewer than `MIN_DRAWS` draws for each pair, no pair, or releases that are not finite.
    """
    if not pairs or draws_per_input // len(pairs) < MIN_DRAWS:
        request = f"not {draws_per_input} draws for {len(pairs)} pairs"
        raise ValueError(f"an event is chosen on at least {MIN_DRAWS} draws for each pair, and one pair, {request}")
    size = draws_per_input // 2 // len(pairs)
    all_candidates = [
        candidate for pair in pairs for candidate in _candidates_of_pair(mechanism, pair, generator, size, digits)
    ]
    ranked = _sorted(all_candidates, mechanism.delta, fresh, error)
    best = [candidate for candidate in ranked if candidate.pair is ranked[0].pair][:MAX_COMPARED]
    compared = _with_more_draws(best, mechanism, draws_per_input - draws_per_input // 2, generator)
    return _sorted(compared, mechanism.delta, fresh, error)[:MAX_KEPT]


def confirm(
    mechanism: Mechanism, event: Event, draws_per_input: int, generator: np.random.Generator, error: float
) -> float:
    """Return the bound of an event on ``draws_per_input`` fresh releases of each input.

    It is proved, as in `leakboard.privacy.auditing.bound`, if these draws were not used to choose the event. An event
    that was chosen on dependent rows may promise more than it proves: noise that all rows of a call share can separate
    the inputs in one call and lift both above the threshold in another.
    """
    counts, rows = count_event(mechanism.release, event.pair.inputs, event.holds, 2 * draws_per_input, generator)
    return bound_from_counts(*counts, rows, mechanism.delta, error)


def _candidates_of_pair(
    mechanism: Mechanism, pair: Pair, generator: np.random.Generator, draws_per_input: int, digits: int | None
) -> list[Candidate]:
    """Return every score of a pair, in both orders; the scores are learned on separate draws."""
    size = min(MAX_LEARNED, draws_per_input, max(MIN_DRAWS, MAX_LEARNED_NUMBERS // len(pair.first)))
    chunks = list(coin_flip_releases(mechanism.release, pair.inputs, 2 * size, generator))
    first_releases, second_releases = (
        np.concatenate([outputs[coins == is_first] for outputs, coins in chunks]) for is_first in (True, False)
    )
    scores = scores_of(mechanism, pair, first_releases, second_releases, digits)
    values = answers_by_input(mechanism.release, pair.inputs, scores, 2 * draws_per_input, generator)
    swapped = pair.swapped()
    return [
        candidate
        for name, (first_scores, second_scores) in values.items()
        for candidate in (
            Candidate(pair, name, scores[name], first_scores, second_scores),
            Candidate(swapped, name, scores[name], second_scores, first_scores),
        )
    ]


def _sorted(candidates: list[Candidate], delta: float, fresh: int, error: float) -> list[Candidate]:
    promises = [candidate.threshold(fresh, delta, error).promise for candidate in candidates]
    return [candidates[i] for i in np.argsort(-np.array(promises), kind="stable")]


def _with_more_draws(
    candidates: Sequence[Candidate], mechanism: Mechanism, draws_per_input: int, generator: np.random.Generator
) -> list[Candidate]:
    """Return candidates of one pair with the scores of further draws."""
    scores = {candidate.score_name: candidate.score for candidate in candidates}
    values = answers_by_input(mechanism.release, candidates[0].pair.inputs, scores, 2 * draws_per_input, generator)
    return [candidate.with_scores(*values[candidate.score_name]) for candidate in candidates]


def best_threshold(first_scores: Array, second_scores: Array, fresh: int, delta: float, error: float) -> Threshold:
    """Return the threshold that promises most on ``fresh`` releases of each input.

    Args:
        first_scores: of the first input, (n,).
        second_scores: of the second, (m,).
        fresh: releases of each input that will test it.
        delta: of the claim.
        error: of that test.
    """
    first_scores, second_scores = np.sort(first_scores), np.sort(second_scores)
    values = _threshold_values(np.sort(np.concatenate([first_scores, second_scores])))
    best = []
    for above in (True, False):
        p = _counts(first_scores, values, above) / len(first_scores)
        q = np.maximum(_counts(second_scores, values, above) / len(second_scores), _tail(second_scores, values, above))
        low_p = np.maximum(p - CAUTION * np.sqrt(p / len(first_scores)), 0.0)
        high_q = np.minimum(q + CAUTION * np.sqrt(q / len(second_scores)), 1.0)
        promises = log_ratios_from_counts(low_p * fresh, high_q * fresh, (fresh, fresh), delta, error)
        i = int(np.argmax(promises))
        best.append(Threshold(float(values[i]), above, float(promises[i])))
    return max(best, key=lambda threshold: threshold.promise)


def _counts(scores: Array, values: Array, above: bool) -> Array:
    below = np.searchsorted(scores, values, "left")
    return len(scores) - below if above else below


def _threshold_values(scores: Array) -> Array:
    """Return thresholds among sorted scores, (k,): spread over the ranks, dense in the tails, and around atoms."""
    n = len(scores)
    tail = np.unique(np.geomspace(1, n, SPREAD_THRESHOLDS).astype(int)) - 1
    ranks = np.concatenate([np.linspace(0, n - 1, SPREAD_THRESHOLDS).astype(int), tail, n - 1 - tail])
    starts = np.concatenate([[0], np.flatnonzero(np.diff(scores)) + 1])
    sizes = np.diff(np.append(starts, n))
    repeated = np.flatnonzero(sizes > 1)
    atoms = repeated[np.argsort(-sizes[repeated], kind="stable")[:MAX_ATOMS]]
    following = np.minimum(atoms + 1, len(starts) - 1)
    return np.unique(scores[np.concatenate([ranks, starts[atoms], starts[following]])])


def _tail(scores: Array, values: Array, above: bool) -> Array:
    """Return the share of an exponential tail beyond each value, float64 (k,); 0 for values before the last scores."""
    ordered, beyond = (scores, values) if above else (-scores[::-1], -values)
    n, k = len(ordered), min(TAIL_SCORES, len(ordered) // 4)
    last = ordered[n - k :]
    excess = float((last - last[0]).mean()) if k else 0.0
    if excess <= 0:
        return np.zeros(len(values))
    return np.where(beyond > last[0], k / n * np.exp(-np.maximum(beyond - last[0], 0.0) / excess), 0.0)
