"""Audit the first rows that a mechanism ever releases: do they have noise?

A mechanism may start without noise, for example because a generator is not ready. The rounds of an audit would draw
these rows to choose an event, and never test them. So the first call of an audit is a test: a fair coin decides each
row, and the attacker guesses the input that is nearer to the release. This event is fixed before any draw.

Theorem. The rows of a call are one mechanism on all their rows. If the claim holds, it is private for changing one of
them. So `leakboard.privacy.auditing.one_run` bounds the number of right guesses, with rows in place of canaries. The
numbers of guessed rows are fixed, and each has an equal share of the error (Bonferroni).

The bound is about the process that ran. At a claim with delta 0, 50 rows without noise prove no more than 2.1.
"""

from __future__ import annotations

import numpy as np

from leakboard.mechanism import Mechanism
from leakboard.privacy.auditing.bound import Finding
from leakboard.privacy.auditing.events import Pair
from leakboard.privacy.auditing.one_run import one_run_bound
from leakboard.privacy.auditing.trials import VALUES_AT_ONCE, finite, noise_generator

FEW_ROWS, MAX_ROWS = 50, 1_000
"""Numbers of first rows that are guessed. In many dimensions, fewer than `MAX_ROWS` fit into one call."""
TIE = 1e-5
"""Rows whose two distances differ by a smaller share of their sum are guessed to be of the second input."""
FIRST_ROWS_ERROR = 0.1
"""Share of an audit's error for the first rows."""


def audit_first_rows(mechanism: Mechanism, pair: Pair, generator: np.random.Generator, error: float) -> Finding:
    """Release rows of a mechanism that has released none before, and return the bound that guesses prove.

    Args:
        mechanism: to audit.
        pair: two vectors.
        generator: of coins and noise.
        error: probability that the bound may be wrong.

    Raises:
        ValueError: a release is not finite.
    """
    rows = int(np.clip(VALUES_AT_ONCE // len(pair.first), FEW_ROWS, MAX_ROWS))
    coins = generator.random(rows) < 0.5
    inputs = np.where(coins[:, None], pair.first, pair.second)
    released = finite(mechanism.release(inputs, noise_generator(generator)))
    to_first, to_second = (np.abs(released - values).sum(1) for values in pair.inputs)
    guessed_first = to_second - to_first > TIE * (to_first + to_second)
    findings = []
    counts = sorted({FEW_ROWS, rows})
    for count in counts:
        guesses, truth = guessed_first[:count], coins[:count]
        right = int(np.count_nonzero(guesses == truth))
        rates = (float(guesses[side].mean()) if side.any() else 0.0 for side in (truth, ~truth))
        findings.append(
            Finding(
                epsilon=pair.per_unit(one_run_bound(count, count, right, mechanism.delta, error / len(counts))),
                pair=f"{pair.name} (the first {count} rows that the mechanism released)",
                score_name="nearer input",
                event=f"first input guessed where it is nearer ({right} of {count} guesses right)",
                first_rate=next(rates),
                second_rate=next(rates),
                draws=count // 2,
                distance=pair.distance,
            )
        )
    return max(findings, key=lambda finding: finding.epsilon)
