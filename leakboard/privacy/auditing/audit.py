"""Prove a lower bound on a mechanism's epsilon by attacking the running mechanism.

The draws of earlier rounds choose an event. The fresh draws of a round test this event
(`leakboard.privacy.auditing.bound`).

Theorem (union bound). The bound of a round is wrong with probability at most the round's share of the error, however
many events were compared. The probability that any round is wrong is at most the whole error. So the audit may stop
after any round.

The audits of the first rows (`leakboard.privacy.auditing.first_rows`) and of whole calls
(`leakboard.privacy.auditing.calls`) have shares of the error, set aside before any draw.

If epsilon is claimed for each unit of a distance (metric privacy), the bound of a pair is divided by its distance. This
takes no further share of the error, since each round tests one event of one pair.

With delta = 0, all rows may depend on each other. With delta above 0, the bound of single rows assumes independent
calls. The trade-off curve always assumes independent rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import Finding, bound_from_counts
from leakboard.privacy.auditing.calls import audit_calls
from leakboard.privacy.auditing.choosing import Choice, best_choice, choose_candidates, draw_scores, pairs_of
from leakboard.privacy.auditing.curve import TradeOff
from leakboard.privacy.auditing.events import Array, Pair
from leakboard.privacy.auditing.scores import DIGITS

BUDGET = 100_000_000
"""Largest number of coordinates drawn to choose and test an event.

Draws that train scores, and draws of the audit of whole calls, are not counted.
"""
MAX_DRAWS = 5_000_000
"""Largest number of releases of each input, if the number of draws is not given."""
FIRST_DRAWS = 50_000
"""Largest number of releases of each input in the first round, if the number of draws is not given."""
GROWTH = 3
"""A round between the first and the last has this many times the releases of all earlier rounds together.

The last round has all releases that are left.
"""
CALLS_ERROR = 0.2
"""Share of the error for the audit of whole calls."""


@dataclass(frozen=True)
class AuditResult(Finding):
    """The result of an audit: the bound, and the trade-off curve."""

    confidence: float = field(kw_only=True)
    """Probability that the bound on epsilon holds."""
    trade_off: TradeOff | None = field(default=None, kw_only=True)
    """Trade-off curve, with mu and Renyi divergences. It assumes independent rows.

    None if calls refuted the claim and single rows did not, or if its pair has another distance than the bound's.
    The curve and the bound on epsilon each hold with ``confidence``. That both hold is less certain.
    """


def audit(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    generator: np.random.Generator,
    draws_per_input: int | None = None,
    confidence: float = 0.95,
    digits: int | None = DIGITS,
    *,
    budget: int = BUDGET,
    calls: int = 0,
    spent: float = 0.0,
    more_pairs: Sequence[Pair] = (),
    public: Array | None = None,
) -> AuditResult:
    """Return a lower bound on a mechanism's epsilon.

    Neither ``draws_per_input`` nor ``budget`` includes the draws that train scores, or ``calls``.

    Args:
        mechanism: to audit.
        pairs: pairs of neighbours.
        generator: of coins and noise.
        draws_per_input: releases of each input, half to choose and half to test; None: as ``budget`` allows.
        confidence: probability that the bound holds.
        digits: digits to which scores are rounded; None: no rounding.
        budget: largest number of coordinates drawn, if ``draws_per_input`` is None. A text counts as one coordinate.
        calls: number of tested calls, if single rows do not refute the claim; 0 for none. Pairs of texts allow only 0.
        spent: error that another audit of this claim has, such as the audit of its first rows.
        more_pairs: further pairs, for which no densities are learned and no calls are made.
        public: a further input, float (d,), for the other rows of calls of many rows; None: the first of the pair.

    Raises:
        ValueError: fewer than 100 releases of each input for each pair, no pair, calls with pairs of texts, or releases
            that are not finite.
    """
    if calls and any(pair.first.dtype == object for pair in pairs):
        raise ValueError(f"calls={calls} is not allowed with pairs of texts (allowed: 0)")
    error = 1 - confidence
    calls_error = CALLS_ERROR * error if calls else 0.0
    sizes = rounds(draws_per_input, budget, len(pairs[0].first) if pairs else 1)
    rows_error = error - calls_error - spent
    best, curve, curve_distance = _audit_rows(mechanism, pairs, more_pairs, generator, sizes, rows_error, error, digits)
    trade_off: TradeOff | None = replace(curve, joint_confidence=confidence)
    if calls and best.epsilon <= mechanism.epsilon:
        of_calls = audit_calls(mechanism, pairs, generator, calls, calls_error, digits, public)
        if of_calls.epsilon > best.epsilon:
            best = of_calls
            trade_off = trade_off if best.epsilon <= mechanism.epsilon else None
    if curve_distance != best.distance:
        trade_off = None
    return AuditResult(**vars(best), confidence=confidence, trade_off=trade_off)


def rounds(draws_per_input: int | None, budget: int, dimension: int) -> list[int]:
    """Return the number of releases of each input in each round; the first round only chooses."""
    if draws_per_input is not None:
        return [draws_per_input // 2, draws_per_input - draws_per_input // 2]
    total = min(budget // (2 * dimension), MAX_DRAWS)
    sizes = [min(FIRST_DRAWS, total // 2)]
    while (left := total - sum(sizes)) > 0:
        size = GROWTH * max(1, sum(sizes))
        sizes.append(size if left >= GROWTH * size else left)
    return sizes


def _errors(tested_rounds: int, error: float) -> list[float]:
    """Return each round's share of the error: half for the last round, equal parts of the rest for the others."""
    return [error] if tested_rounds == 1 else [error / 2 / (tested_rounds - 1)] * (tested_rounds - 1) + [error / 2]


def _audit_rows(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    more_pairs: Sequence[Pair],
    generator: np.random.Generator,
    sizes: Sequence[int],
    error: float,
    curve_error: float,
    digits: int | None,
) -> tuple[Finding, TradeOff, float]:
    """Return the largest bound of all rounds, the trade-off curve of the last round that ran, and its distance."""
    errors, delta = _errors(len(sizes) - 1, error), mechanism.delta
    # the draws decide which round is the last, so the curve of each round has a share of the error
    curve_errors = _errors(len(sizes) - 1, curve_error)
    candidates = choose_candidates(mechanism, pairs, generator, sizes[0], sizes[-1], errors[-1], digits, more_pairs)
    findings: list[Finding] = []
    for number, (size, share) in enumerate(zip(sizes[1:], errors, strict=True), 1):
        is_last = number == len(errors)
        # one pair has all releases of the last round
        tested = size if is_last else size // len(pairs_of(candidates))
        index, choice = best_choice(candidates, tested, delta, share)
        drawn = candidates[index : index + 1] if is_last else candidates
        fresh = draw_scores(drawn, mechanism, size, generator)
        scores = fresh[0 if is_last else index]
        findings.append(_bound_of_event(choice, scores, delta, share))
        if is_last or findings[-1].epsilon > mechanism.epsilon:
            break
        candidates = [c.with_scores(*more) for c, more in zip(candidates, fresh, strict=True)]
    # choice and scores are those of the last round
    first_scores, second_scores = map(choice.threshold.turned, choice.ordered(scores))
    curve = choice.thresholded.bound(first_scores, second_scores, curve_errors[number - 1])
    return max(findings, key=lambda finding: finding.epsilon), curve, choice.candidate.pair.distance


def _bound_of_event(choice: Choice, scores: tuple[Array, Array], delta: float, error: float) -> Finding:
    counts, rows = choice.counts(scores)
    event = choice.event
    return Finding(
        epsilon=event.pair.per_unit(bound_from_counts(*counts, rows, delta, error)),
        pair=event.pair.name,
        score_name=event.score_name,
        event=event.description,
        first_rate=counts[0] / max(1, rows[0]),
        second_rate=counts[1] / max(1, rows[1]),
        draws=sum(rows) // 2,
        distance=event.pair.distance,
        rows=rows,
    )
