"""A lower bound on a mechanism's epsilon, at a stated confidence, from attacking it while it runs.

First single rows (`audit`): neighbours are two inputs of a row. The draws come in rounds, each larger than all before.
An event is chosen on the rounds before (`leakboard.privacy.auditing.choosing`) and tested on fresh tosses, which know
nothing of the choice (`leakboard.privacy.auditing.bound`, with the theorems). So a round's bound holds with its share
of the error however many thresholds, statistics and pairs the choice was made from, and all rounds' together with the
whole error: the audit may stop after any. It does when the claim is refuted. If rows do not refute it, whole calls
follow (`leakboard.privacy.auditing.calls`), with a share of the error of their own, set aside before anything is drawn.

With delta = 0 rows of a call may depend on each other. With delta above 0 the bound of single rows takes them to be
independent, and so does the trade-off curve with any delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import Finding, bound_of_tosses
from leakboard.privacy.auditing.calls import audit_calls
from leakboard.privacy.auditing.choosing import Candidate, candidates, scored
from leakboard.privacy.auditing.curve import TradeOff
from leakboard.privacy.auditing.events import DIGITS, Pair
from leakboard.privacy.auditing.thresholds import Threshold

BUDGET = 100_000_000
"""Numbers that an audit of rows draws at most, all coordinates of all releases, beside those it learns from."""
MOST = 5_000_000
"""Releases of either input that an audit draws at most, where vectors are short."""
CHOSEN = 50_000
"""Releases of either input that the first event is chosen on."""
GROWTH = 3
"""A round draws so many times what was drawn before it; the last one draws what is left."""
CALLS_ERROR = 0.2
"""Share of the error that the audit of whole calls gets."""


@dataclass(frozen=True)
class Bound(Finding):
    """What an audit found."""

    confidence: float
    """Of epsilon."""
    trade_off: TradeOff | None = None
    """The curve of the best statistic on single rows, with mu and Renyi divergences; at ``confidence`` by itself.

    It takes rows of a call to be independent, with any delta; None where calls refuted the claim and rows did not.
    """


def audit(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws: int | None = None,
    confidence: float = 0.95,
    digits: int | None = DIGITS,
    *,
    budget: int = BUDGET,
    calls: int = 0,
) -> Bound:
    """Return a lower bound on a mechanism's epsilon.

    Args:
        mechanism: what is audited.
        pairs: neighbours; the first rounds share their draws among them.
        generator: of coins and noise.
        draws: releases of either input, half to choose and half to test; None: rounds, as far as the budget goes.
        confidence: of the bound.
        digits: of a score that count; None: all.
        budget: numbers that are drawn at most to choose and test, where ``draws`` is None.
        calls: calls that test single rows among others (`leakboard.privacy.auditing.calls.CALLS`), where single rows do
            not refute the claim; 0 for none.

    Raises:
        ValueError: fewer than 100 draws a pair, no pair, or releases that are not finite.
    """
    error = 1 - confidence
    shared = CALLS_ERROR * error if calls else 0.0
    plan = rounds(draws, budget, len(pairs[0].first) if pairs else 1)
    bound = _audit_rows(mechanism, pairs, generator, plan, error - shared, confidence, digits)
    if not calls or bound.epsilon > mechanism.epsilon:
        return bound
    found = audit_calls(mechanism, pairs, generator, calls, shared, digits)
    if found.epsilon <= bound.epsilon:
        return bound
    curve = bound.trade_off if found.epsilon <= mechanism.epsilon else None
    event = found.pair, found.statistic, found.event
    return Bound(found.epsilon, *event, found.first, found.second, found.draws, confidence, curve)


def rounds(draws: int | None, budget: int, dimension: int) -> list[int]:
    """Return the releases of either input of each round; the first is for choosing alone."""
    if draws is not None:
        return [draws // 2, draws - draws // 2]
    total = min(budget // (2 * dimension), MOST)
    sizes = [min(CHOSEN, total // 2)]
    while (left := total - sum(sizes)) > 0:
        size = GROWTH * max(1, sum(sizes))
        sizes.append(size if left >= GROWTH * size else left)
    return sizes


def _errors(tests: int, error: float) -> list[float]:
    """Return each round's share of the error: half for the last, the rest in equal parts."""
    return [error] if tests == 1 else [error / 2 / (tests - 1)] * (tests - 1) + [error / 2]


def _audit_rows(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    sizes: Sequence[int],
    error: float,
    confidence: float,
    digits: int | None,
) -> Bound:
    """Return the largest bound of all rounds.

    The trade-off curve is of the last round that ran. Which one that is depends on the draws, so each round's curve has
    a share of the error, and the one that is returned holds with the confidence of all.
    """
    errors, delta = _errors(len(sizes) - 1, error), mechanism.delta
    wholes = _errors(len(sizes) - 1, 1 - confidence)
    kept = candidates(mechanism, pairs, generator, sizes[0], sizes[-1], errors[-1], digits)
    best = None
    for left, size, share in zip(reversed(range(len(errors))), sizes[1:], errors, strict=True):
        thresholds = [candidate.threshold(size, delta, share) for candidate in kept]
        chosen = int(np.argmax([threshold.promise for threshold in thresholds]))
        candidate, threshold = kept[chosen], thresholds[chosen]
        scored_by = {c.statistic: c.score for c in (kept if left else [candidate])}
        scores = scored(mechanism, candidate.pair, scored_by, 2 * size, generator)
        fresh = scores[candidate.statistic]
        bound = _tested(candidate, threshold, fresh, delta, share, confidence)
        best = bound if best is None or bound.epsilon > best.epsilon else best
        if not left or best.epsilon > mechanism.epsilon:
            break
        kept = [c.grown(*scores[c.statistic]) for c in kept]
    assert best is not None, "there is a round of tests"
    curve = _curve(candidate, threshold, fresh, wholes[-1 - left])
    return replace(best, trade_off=replace(curve, confidence=confidence))


def _tested(
    candidate: Candidate,
    threshold: Threshold,
    scores: tuple[np.ndarray, np.ndarray],
    delta: float,
    error: float,
    confidence: float,
) -> Bound:
    """Return what the counts of an event in fresh scores prove."""
    hits, misses = (int(np.count_nonzero(threshold.holds(side))) for side in scores)
    sizes = len(scores[0]), len(scores[1])
    epsilon = bound_of_tosses(hits, misses, sizes, delta, error)
    event, (first, second) = candidate.event(threshold), (hits / max(1, sizes[0]), misses / max(1, sizes[1]))
    draws = sum(sizes) // 2
    return Bound(epsilon, event.pair.name, event.statistic, event.description, first, second, draws, confidence)


def _curve(candidate: Candidate, threshold: Threshold, scores: tuple[np.ndarray, np.ndarray], error: float) -> TradeOff:
    """Return the trade-off curve of fresh scores; its thresholds are fixed on the scores before."""
    sign = 1 if threshold.above else -1
    return candidate.curve(threshold).bound(sign * scores[0], sign * scores[1], error)
