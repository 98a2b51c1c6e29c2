"""Choose the event to test: the pair, score and threshold that promise the largest bound on fresh releases.

Fresh releases test the event. So the choice costs no error probability, and a bad choice only weakens the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.privacy.auditing.curve import ThresholdedScore, curve_thresholds
from leakboard.privacy.auditing.events import Array, Event, Pair, Score, Threshold
from leakboard.privacy.auditing.scores import DIGITS, scores_of
from leakboard.privacy.auditing.symbols import symbol_scores
from leakboard.privacy.auditing.thresholds import LEAST_REPEATS, best_thresholds
from leakboard.privacy.auditing.trials import coin_flip_releases, count_event, scores_by_input

MIN_DRAWS = 50
"""Smallest number of releases of each input of a pair for choosing an event."""
MAX_LEARNED = 50_000
"""Largest number of releases of each input for learning scores."""
MAX_LEARNED_NUMBERS = 4_000_000
"""Largest number of released coordinates (releases x d) of each input for learning scores.

At least `MIN_DRAWS` releases are drawn.
"""
MAX_PAIRS = 2
"""Number of the best pairs that are kept."""
MAX_COMPARED, MAX_KEPT = 8, 2
"""Number of the best scores of a kept pair that are compared once more, and number of its scores that are kept.

Scores of single values (`leakboard.privacy.auditing.points`) are compared and kept in addition: few releases may not
show a rare value.
"""


@dataclass(frozen=True)
class Candidate:
    """A score of a pair, with its values so far: (n,) of the first input, and (m,) of the second."""

    pair: Pair
    score_name: str
    score: Score
    of_points: bool
    """Whether single values of the score are expected to tell the inputs apart."""
    first_scores: Array
    second_scores: Array

    def with_scores(self, first_scores: Array, second_scores: Array) -> Candidate:
        """Return the candidate with further values added."""
        return replace(
            self,
            first_scores=np.concatenate([self.first_scores, first_scores]),
            second_scores=np.concatenate([self.second_scores, second_scores]),
        )

    def choice(self, fresh: int, delta: float, error: float) -> Choice:
        """Return the event that promises the largest bound on ``fresh`` releases of each input of the pair."""
        of_first, of_second = best_thresholds(self.first_scores, self.second_scores, fresh, delta, error)
        if of_second.promise > of_first.promise:
            swapped = replace(
                self, pair=self.pair.swapped(), first_scores=self.second_scores, second_scores=self.first_scores
            )
            return Choice(swapped, of_second, True)
        return Choice(self, of_first, False)

    def has_repeated_scores(self) -> bool:
        """Return whether enough scores are equal for an event of a single score."""
        values = np.sort(np.concatenate([self.first_scores, self.second_scores]))
        step = LEAST_REPEATS - 1
        return bool((values[step:] == values[:-step]).any())


@dataclass(frozen=True)
class Choice:
    """A candidate and a threshold; the event is likelier for the candidate's first input."""

    candidate: Candidate
    threshold: Threshold
    is_swapped: bool
    """Whether the inputs of the candidate were exchanged."""

    @property
    def promise(self) -> float:
        """The promised bound, for each unit of distance if the claim has one."""
        return self.candidate.pair.per_unit(self.threshold.promise)

    @property
    def event(self) -> Event:
        """The event."""
        return Event(self.candidate.pair, self.candidate.score_name, self.candidate.score, self.threshold)

    def ordered(self, scores: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return scores of the pair's inputs in the order of the event's inputs."""
        return scores[::-1] if self.is_swapped else scores

    def counts(self, scores: tuple[Array, Array]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Count scores of the pair's inputs in the event, and all of them; both in the order of the event's inputs."""
        first, second = self.ordered(scores)
        in_event = (int(np.count_nonzero(self.threshold.holds(side))) for side in (first, second))
        return (next(in_event), next(in_event)), (len(first), len(second))

    @property
    def thresholded(self) -> ThresholdedScore:
        """The score with thresholds for a trade-off curve; higher scores are in the event."""
        threshold, score = self.threshold, self.candidate.score
        if threshold.side == "==":
            thresholds = np.ones(1)
        else:
            sides = self.candidate.first_scores, self.candidate.second_scores
            thresholds = curve_thresholds(*map(threshold.turned, sides))
        return ThresholdedScore(lambda outputs: threshold.turned(score(outputs)), thresholds)


class ChosenEvent(NamedTuple):
    """An event, and thresholds for a trade-off curve. The same draws chose both; fresh draws will test both."""

    event: Event
    thresholded: ThresholdedScore
    """The event's score with thresholds for the curve."""
    draws: int
    """Number of releases of each input that will test both."""
    is_certain: bool = False
    """Whether fresh releases have already refuted the claim by this event, so that the choice ended early."""


def choose_event(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    sizes: Sequence[int],
    error: float,
    *,
    more_pairs: Sequence[Pair] = (),
    certain_error: float = 0.0,
) -> ChosenEvent:
    """Choose the event that promises the largest bound on fresh releases.

    Args:
        mechanism: to audit.
        pairs: pairs of neighbours.
        generator: of coins and noise.
        sizes: number of releases of each input in each round. The last round will test the event, and is not drawn.
        error: probability that this test may be wrong.
        more_pairs: pairs for which no densities are learned.
        certain_error: if a round's fresh releases refute the claim at this error, the choice ends; 0: it never does.

    Raises:
        ValueError: fewer than `MIN_DRAWS` draws for each pair, no pair, or releases that are not finite.
    """
    candidates = choose_candidates(mechanism, pairs, generator, sizes[0], sizes[-1], error, DIGITS, more_pairs)
    for size in sizes[1:-1]:
        index, choice = best_choice(candidates, size // len(pairs_of(candidates)), mechanism.delta, error)
        fresh = draw_scores(candidates, mechanism, size, generator)
        counts, rows = choice.counts(fresh[index])
        bound = bound_from_counts(*counts, rows, mechanism.delta, certain_error) if certain_error else 0.0
        if choice.event.pair.per_unit(bound) > mechanism.epsilon:
            return ChosenEvent(choice.event, choice.thresholded, size, is_certain=True)
        candidates = [c.with_scores(*scores) for c, scores in zip(candidates, fresh, strict=True)]
    _, choice = best_choice(candidates, sizes[-1], mechanism.delta, error)
    return ChosenEvent(choice.event, choice.thresholded, sizes[-1])


def choose_candidates(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws_per_input: int,
    fresh: int,
    error: float,
    digits: int | None,
    more_pairs: Sequence[Pair] = (),
) -> list[Candidate]:
    """Choose the most promising pairs; return the best scores of each, the best first.

    Args:
        mechanism: to audit.
        pairs: pairs of neighbours.
        generator: of coins and noise.
        draws_per_input: number of releases of each input for the choice.
        fresh: number of releases of each input that will test the event.
        error: probability that this test may be wrong.
        digits: digits to which scores are rounded; None: no rounding.
        more_pairs: pairs for which no densities are learned.

    Raises:
        ValueError: fewer than `MIN_DRAWS` draws for each pair, no pair, or releases that are not finite.
    """
    count, delta = len(pairs) + len(more_pairs), mechanism.delta
    if not pairs or draws_per_input // count < MIN_DRAWS:
        rule = f"at least one pair, and {MIN_DRAWS} draws of each input for each pair"
        raise ValueError(f"{draws_per_input} draws for {count} pairs are too few to choose an event: {rule}")
    # inner pairs show leaks of single values, which take fewer draws than densities
    size = draws_per_input // 2 // (2 * len(pairs) + len(more_pairs))
    ranked = _sorted(
        [
            candidate
            for some, draws, learned in ((pairs, 2 * size, True), (more_pairs, size, False))
            for pair in some
            for candidate in _candidates_of_pair(mechanism, pair, generator, draws, digits, learned)
        ],
        delta,
        fresh,
        error,
    )
    compared: list[Candidate] = []
    for pair in pairs_of(ranked)[:MAX_PAIRS]:
        of_pair = [candidate for candidate in ranked if candidate.pair is pair]
        compared += of_pair[:MAX_COMPARED] + [candidate for candidate in of_pair[MAX_COMPARED:] if candidate.of_points]
    drawn = draw_scores(compared, mechanism, draws_per_input - draws_per_input // 2, generator)
    compared = [c.with_scores(*scores) for c, scores in zip(compared, drawn, strict=True)]
    kept: list[Candidate] = []
    for candidate in _sorted(compared, delta, fresh, error):
        is_good = sum(other.pair is candidate.pair for other in kept) < MAX_KEPT
        if is_good or (candidate.of_points and candidate.has_repeated_scores()):
            kept.append(candidate)
    return kept


def best_choice(candidates: Sequence[Candidate], fresh: int, delta: float, error: float) -> tuple[int, Choice]:
    """Return the event with the largest promise on ``fresh`` releases of each input, and its candidate's index."""
    choices = [candidate.choice(fresh, delta, error) for candidate in candidates]
    index = int(np.argmax([choice.promise for choice in choices]))
    return index, choices[index]


def draw_scores(
    candidates: Sequence[Candidate], mechanism: Mechanism, draws_per_input: int, generator: np.random.Generator
) -> list[tuple[Array, Array]]:
    """Return scores of fresh releases of both inputs for each candidate. Pairs share the releases equally."""
    pairs, drawn = pairs_of(candidates), dict[int, dict[str, tuple[Array, Array]]]()
    for pair in pairs:
        scores = {candidate.score_name: candidate.score for candidate in candidates if candidate.pair is pair}
        total = 2 * (draws_per_input // len(pairs))
        drawn[id(pair)] = scores_by_input(mechanism.release, pair.inputs, scores, total, mechanism.delta, generator)
    return [drawn[id(candidate.pair)][candidate.score_name] for candidate in candidates]


def pairs_of(candidates: Sequence[Candidate]) -> list[Pair]:
    """Return the pairs of candidates in their order, each once."""
    return list({id(candidate.pair): candidate.pair for candidate in candidates}.values())


def bound_on_fresh_draws(
    mechanism: Mechanism, event: Event, draws_per_input: int, generator: np.random.Generator, error: float
) -> float:
    """Return the bound that an event proves on ``draws_per_input`` fresh releases of each input."""
    inputs, total, delta = event.pair.inputs, 2 * draws_per_input, mechanism.delta
    counts, rows = count_event(mechanism.release, inputs, event.holds, total, delta, generator)
    return event.pair.per_unit(bound_from_counts(*counts, rows, delta, error))


def _candidates_of_pair(
    mechanism: Mechanism,
    pair: Pair,
    generator: np.random.Generator,
    draws_per_input: int,
    digits: int | None,
    learned: bool,
) -> list[Candidate]:
    size = min(MAX_LEARNED, draws_per_input, max(MIN_DRAWS, MAX_LEARNED_NUMBERS // len(pair.first)))
    # these draws only train the scores
    chunks = list(coin_flip_releases(mechanism.release, pair.inputs, 2 * size, mechanism.delta, generator))
    first_releases, second_releases = (
        np.concatenate([outputs[coins == is_first] for outputs, coins in chunks]) for is_first in (True, False)
    )
    if first_releases.dtype == object:
        scores, points = symbol_scores(pair.first[0], pair.second[0], first_releases, second_releases)
    else:
        scores, points = scores_of(mechanism, pair, first_releases, second_releases, digits, learned=learned)
    every, total = scores | points, 2 * draws_per_input
    values = scores_by_input(mechanism.release, pair.inputs, every, total, mechanism.delta, generator)
    return [Candidate(pair, name, score, name in points, *values[name]) for name, score in every.items()]


def _sorted(candidates: list[Candidate], delta: float, fresh: int, error: float) -> list[Candidate]:
    promises = [candidate.choice(fresh, delta, error).promise for candidate in candidates]
    return [candidates[i] for i in np.argsort(-np.array(promises), kind="stable")]
