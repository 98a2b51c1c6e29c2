"""Choose the event to test: the pair, score and threshold that promise the largest bound on fresh releases.

Fresh releases test the event. So the choice costs no error probability, and a bad choice only weakens the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import bound_from_counts, log_ratios_from_counts
from leakboard.privacy.auditing.curve import ThresholdedScore, curve_thresholds
from leakboard.privacy.auditing.events import Array, Event, Pair, Score, Threshold
from leakboard.privacy.auditing.scores import DIGITS, scores_of
from leakboard.privacy.auditing.trials import coin_flip_releases, count_event, scores_by_input

MIN_DRAWS = 50
"""Smallest number of releases of each input of a pair for choosing an event."""
MAX_LEARNED = 50_000
"""Largest number of releases of each input for learning scores."""
MAX_LEARNED_NUMBERS = 4_000_000
"""Largest number of released coordinates (releases x d) of each input for learning scores.

At least `MIN_DRAWS` releases are drawn.
"""
MAX_COMPARED, MAX_KEPT = 8, 2
"""Number of the best pair's scores that are compared once more, and number of scores that are kept."""
SPREAD_THRESHOLDS = 256
"""Number of thresholds at equally spaced ranks. Each tail has up to as many more."""
MAX_ATOMS = 32
"""Number of the most frequent scores that become thresholds."""
CAUTION = 2.0
"""Number of standard errors by which a rate is shifted towards a smaller bound."""
TAIL_SCORES = 30
"""Number of the most extreme scores from which a tail is extrapolated; at most a quarter of the scores."""


@dataclass(frozen=True)
class Candidate:
    """A score of a pair, with its values so far: (n,) of the first input, and (m,) of the second."""

    pair: Pair
    score_name: str
    score: Score
    first_scores: Array
    second_scores: Array

    def threshold(self, fresh: int, delta: float, error: float) -> Threshold:
        """Return the threshold that promises the largest bound on ``fresh`` releases of each input."""
        return best_threshold(self.first_scores, self.second_scores, fresh, delta, error)

    def event(self, threshold: Threshold) -> Event:
        """Return the event of a threshold."""
        return Event(self.pair, self.score_name, self.score, threshold)

    def thresholded(self, threshold: Threshold) -> ThresholdedScore:
        """Return this score with thresholds for a trade-off curve.

        If the event of ``threshold`` has the low scores, the score changes its sign.
        """
        sign = threshold.sign
        thresholds = curve_thresholds(sign * self.first_scores, sign * self.second_scores)
        return ThresholdedScore(lambda outputs: sign * self.score(outputs), thresholds)

    def with_scores(self, first_scores: Array, second_scores: Array) -> Candidate:
        """Return the candidate with further values added."""
        return replace(
            self,
            first_scores=np.concatenate([self.first_scores, first_scores]),
            second_scores=np.concatenate([self.second_scores, second_scores]),
        )


class ChosenEvent(NamedTuple):
    """An event, and thresholds for a trade-off curve. The same draws chose both; fresh draws will test both."""

    event: Event
    thresholded: ThresholdedScore
    """The event's score with thresholds for the curve."""
    draws: int
    """Number of releases of each input that will test both."""


def choose_event(
    mechanism: Mechanism, pairs: Sequence[Pair], generator: np.random.Generator, sizes: Sequence[int], error: float
) -> ChosenEvent:
    """Choose the event that promises the largest bound on fresh releases.

    Args:
        mechanism: to audit.
        pairs: pairs of neighbours.
        generator: of coins and noise.
        sizes: number of releases of each input in each round. The last round will test the event, and is not drawn.
        error: probability that this test may be wrong.

    Raises:
        ValueError: fewer than `MIN_DRAWS` draws for each pair, no pair, or releases that are not finite.
    """
    kept = choose_candidates(mechanism, pairs, generator, sizes[0], sizes[-1], error, DIGITS)
    for size in sizes[1:-1]:
        kept = _with_more_draws(kept, mechanism, size, generator)
    thresholds = [candidate.threshold(sizes[-1], mechanism.delta, error) for candidate in kept]
    threshold, candidate = max(zip(thresholds, kept, strict=True), key=lambda entry: entry[0].promise)
    return ChosenEvent(candidate.event(threshold), candidate.thresholded(threshold), sizes[-1])


def choose_candidates(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws_per_input: int,
    fresh: int,
    error: float,
    digits: int | None,
) -> list[Candidate]:
    """Choose the most promising pair and order of its inputs; return its `MAX_KEPT` best scores, the best first.

    Args:
        mechanism: to audit.
        pairs: pairs of neighbours.
        generator: of coins and noise.
        draws_per_input: number of releases of each input for the choice.
        fresh: number of releases of each input that will test the event.
        error: probability that this test may be wrong.
        digits: digits to which scores are rounded; None: no rounding.

    Raises:
        ValueError: fewer than `MIN_DRAWS` draws for each pair, no pair, or releases that are not finite.
    """
    if not pairs or draws_per_input // len(pairs) < MIN_DRAWS:
        rule = f"at least one pair, and {MIN_DRAWS} draws of each input for each pair"
        raise ValueError(f"{draws_per_input} draws for {len(pairs)} pairs are too few to choose an event: {rule}")
    size = draws_per_input // 2 // len(pairs)
    all_candidates = [
        candidate for pair in pairs for candidate in _candidates_of_pair(mechanism, pair, generator, size, digits)
    ]
    ranked = _sorted(all_candidates, mechanism.delta, fresh, error)
    best = [candidate for candidate in ranked if candidate.pair is ranked[0].pair][:MAX_COMPARED]
    compared = _with_more_draws(best, mechanism, draws_per_input - draws_per_input // 2, generator)
    return _sorted(compared, mechanism.delta, fresh, error)[:MAX_KEPT]


def bound_on_fresh_draws(
    mechanism: Mechanism, event: Event, draws_per_input: int, generator: np.random.Generator, error: float
) -> float:
    """Return the bound that an event proves on ``draws_per_input`` fresh releases of each input."""
    counts, rows = count_event(mechanism.release, event.pair.inputs, event.holds, 2 * draws_per_input, generator)
    return bound_from_counts(*counts, rows, mechanism.delta, error)


def _candidates_of_pair(
    mechanism: Mechanism, pair: Pair, generator: np.random.Generator, draws_per_input: int, digits: int | None
) -> list[Candidate]:
    size = min(MAX_LEARNED, draws_per_input, max(MIN_DRAWS, MAX_LEARNED_NUMBERS // len(pair.first)))
    # these draws only train the scores
    chunks = list(coin_flip_releases(mechanism.release, pair.inputs, 2 * size, generator))
    first_releases, second_releases = (
        np.concatenate([outputs[coins == is_first] for outputs, coins in chunks]) for is_first in (True, False)
    )
    scores = scores_of(mechanism, pair, first_releases, second_releases, digits)
    values = scores_by_input(mechanism.release, pair.inputs, scores, 2 * draws_per_input, generator)
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
    scores = {candidate.score_name: candidate.score for candidate in candidates}
    values = scores_by_input(mechanism.release, candidates[0].pair.inputs, scores, 2 * draws_per_input, generator)
    return [candidate.with_scores(*values[candidate.score_name]) for candidate in candidates]


def best_threshold(first_scores: Array, second_scores: Array, fresh: int, delta: float, error: float) -> Threshold:
    """Return the threshold that promises the largest bound on ``fresh`` releases of each input.

    Args:
        first_scores: scores of the first input, (n,).
        second_scores: scores of the second input, (m,).
        fresh: number of releases of each input that will test the event.
        delta: of the claim.
        error: probability that this test may be wrong.
    """
    first_scores, second_scores = np.sort(first_scores), np.sort(second_scores)
    values = _threshold_values(np.sort(np.concatenate([first_scores, second_scores])))
    best = []
    for above in (True, False):
        p = _counts(first_scores, values, above) / len(first_scores)
        # the best event may be too rare to occur among these draws, so its rate is extrapolated
        q = np.maximum(_counts(second_scores, values, above) / len(second_scores), _tail(second_scores, values, above))
        # without caution, a lucky one of thousands of thresholds would win
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
    """Return thresholds from sorted scores, (k,): spread over the ranks, dense in the tails, and at frequent scores."""
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
    """Extrapolate the share of scores beyond each value by an exponential tail, float64 (k,); 0 before the tail."""
    ordered, beyond = (scores, values) if above else (-scores[::-1], -values)
    n, k = len(ordered), min(TAIL_SCORES, len(ordered) // 4)
    last = ordered[n - k :]
    # the mean distance of the extreme scores sets the decay
    excess = float((last - last[0]).mean()) if k else 0.0
    if excess <= 0:
        return np.zeros(len(values))
    return np.where(beyond > last[0], k / n * np.exp(-np.maximum(beyond - last[0], 0.0) / excess), 0.0)
