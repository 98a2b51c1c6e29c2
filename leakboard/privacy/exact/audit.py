"""Audit a channel exactly: one pass over its matrix, and a comparison of close pairs with its claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import DIFFERENT, ROWS, ChannelClaim, FittedChannel, Precision
from leakboard.privacy.channels.words import Numbers
from leakboard.privacy.exact.bayes import BestGuess
from leakboard.privacy.exact.claims import ClaimCheck, check_claim, is_violation, share_used
from leakboard.privacy.exact.deniability import Deniability
from leakboard.privacy.exact.extremes import ColumnExtremes, Witness
from leakboard.privacy.exact.scan import scan
from leakboard.privacy.exact.supports import InfiniteShare, Supports


@dataclass(frozen=True)
class ExactAudit:
    """What a channel hides."""

    claim: ChannelClaim
    precision: Precision
    worst: Witness
    """The largest log-ratio over all pairs and outputs; it may be infinite."""
    worst_finite: Witness
    """The largest finite one."""
    claimed: Witness
    """Of the largest ratio of each claimed output, the one that uses the largest share of the claim."""
    claimed_distance: float
    """The claim's distance of this pair."""
    infinite: InfiniteShare
    """Over all outputs."""
    check: ClaimCheck
    kept: Numbers
    """P(w | w), float64 (V,)."""
    outputs: Numbers
    """S_w for ``runs`` runs, float64 (V,)."""
    runs: int
    success: Numbers
    """Success of the best attacker on each word, float64 (V,)."""
    context_free_bound: float
    """The same on average over the words' frequencies."""

    @property
    def true_epsilon(self) -> float:
        """Epsilon of local differential privacy, whatever the channel claims: the largest log-ratio over all outputs.

        With the precision ``lower bound`` it is at least this large; with ``approximate`` it is near.
        """
        return self.worst.log_ratio

    @property
    def used(self) -> float:
        """Largest share of the claim that a pair uses. Exact if the matrix is and d is that of different words."""
        return max(self.check.used, self._used_by_claimed)

    @property
    def verdict(self) -> Literal["violated", "holds", "not refuted"]:
        """``violated`` by the witness; ``holds`` if it is proved or all pairs were compared; else ``not refuted``.

        An ``approximate`` matrix violates no claim, and pairs show that a claim holds in an ``exact`` one alone.
        """
        gap, distance = np.array([self.claimed.log_ratio]), np.array([self.claimed_distance])
        is_violated = self.check.violated or is_violation(gap, self.claim, distance).any()
        if is_violated and self.precision != "approximate":
            return "violated"
        return "holds" if self.claim.is_proved or self.is_exact else "not refuted"

    @property
    def is_exact(self) -> bool:
        """Whether ``used`` is exact: all pairs with a claim were compared in an exact matrix."""
        compares_all_pairs = self.check.is_complete or (self.claim.distance == DIFFERENT and not self.claim.scope)
        return compares_all_pairs and self.precision == "exact"

    @property
    def witness(self) -> Witness:
        """The pair that uses the largest share of the claim."""
        checked = self.check.worst
        return checked if checked is not None and self.check.used >= self._used_by_claimed else self.claimed

    @property
    def _used_by_claimed(self) -> float:
        return float(share_used(np.array([self.claimed.log_ratio]), self.claim, np.array([self.claimed_distance]))[0])


def audit_channel(
    channel: FittedChannel, rng: np.random.Generator, inputs: int | Integers = 2_000, nearest: int = 50, runs: int = 100
) -> ExactAudit:
    """Compute what a channel hides.

    Args:
        channel: the mechanism.
        rng: chooses the inputs whose neighbours are compared with the claim.
        inputs: see `check_claim`.
        nearest: see `check_claim`.
        runs: number n of runs in S_w.
    """
    size = len(channel)
    extremes, supports, deniability = ColumnExtremes(size), Supports(), Deniability(size, runs)
    frequencies = np.ones(size) if channel.space.frequencies is None else channel.space.frequencies
    guess = BestGuess(frequencies)
    scan(channel, [extremes, supports, guess, deniability])
    output, distance = _worst_claimed(channel, extremes)
    return ExactAudit(
        claim=channel.claim,
        precision=channel.precision,
        worst=extremes.worst(),
        worst_finite=extremes.worst_finite(),
        claimed=extremes.witness(output),
        claimed_distance=distance,
        infinite=supports.infinite_share(),
        check=check_claim(channel, rng, inputs, nearest),
        kept=deniability.kept,
        outputs=deniability.outputs,
        runs=runs,
        success=guess.success(),
        context_free_bound=guess.success_over(frequencies),
    )


def _worst_claimed(channel: FittedChannel, extremes: ColumnExtremes) -> tuple[int, float]:
    """Return the claimed output whose largest ratio uses the most of the claim, and the distance of its pair."""
    outputs, likelier, other = channel.claimed_outputs, extremes.largest_row, extremes.smallest_rows
    distances = np.concatenate(
        [
            np.diagonal(channel.distances(likelier[block], other[block]))
            for block in (outputs[start : start + ROWS] for start in range(0, len(outputs), ROWS))
        ]
    )
    at = int(share_used(extremes.gaps[outputs], channel.claim, distances).argmax())
    return int(outputs[at]), float(distances[at])
