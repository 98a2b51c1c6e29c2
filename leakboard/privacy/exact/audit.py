"""Audit a channel exactly: one pass over its matrix, and a comparison of close pairs with its claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.channels.channel import DIFFERENT, ChannelClaim, FittedChannel
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
    worst: Witness
    """The largest log-ratio over all pairs and claimed outputs; it may be infinite."""
    worst_finite: Witness
    """The largest finite one."""
    worst_distance: float
    """The claim's distance of the pair of ``worst``."""
    infinite: InfiniteShare
    check: ClaimCheck
    kept: Numbers
    """P(w | w), float64 (V,)."""
    outputs: Numbers
    """S_w for 100 runs, float64 (V,)."""
    success: Numbers
    """Success of the best attacker on each word, float64 (V,)."""
    context_free_bound: float
    """The same on average over the words' frequencies."""

    @property
    def true_epsilon(self) -> float:
        """Epsilon of local differential privacy that the channel has, whatever it claims: the largest log-ratio."""
        return self.worst.log_ratio

    @property
    def used(self) -> float:
        """Largest share of the claim that a pair uses. Exact if the distance is that of different words."""
        return max(self.check.used, self._used_by_worst)

    @property
    def verdict(self) -> Literal["violated", "holds", "not refuted"]:
        """``violated`` by the witness; ``holds`` if it is proved or all pairs were compared; else ``not refuted``."""
        gap, distance = np.array([self.worst.log_ratio]), np.array([self.worst_distance])
        if self.check.violated or is_violation(gap, self.claim, distance).any():
            return "violated"
        compares_all_pairs = self.claim.distance == DIFFERENT and not self.claim.scope
        return "holds" if self.claim.is_proved or self.check.is_complete or compares_all_pairs else "not refuted"

    @property
    def witness(self) -> Witness:
        """The pair that uses the largest share of the claim."""
        return (
            self.check.worst if self.check.worst is not None and self.check.used >= self._used_by_worst else self.worst
        )

    @property
    def _used_by_worst(self) -> float:
        return float(share_used(np.array([self.worst.log_ratio]), self.claim, np.array([self.worst_distance]))[0])


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
    size, outputs = len(channel), channel.claimed_outputs
    extremes, supports, deniability = ColumnExtremes(size), Supports(outputs), Deniability(size, runs)
    frequencies = np.ones(size) if channel.space.frequencies is None else channel.space.frequencies
    guess = BestGuess(frequencies)
    scan(channel, [extremes, supports, guess, deniability])
    worst = extremes.worst(outputs)
    return ExactAudit(
        claim=channel.claim,
        worst=worst,
        worst_finite=extremes.worst_finite(outputs),
        worst_distance=float(channel.distances(np.array([worst.likelier]), np.array([worst.other]))[0, 0]),
        infinite=supports.infinite_share(),
        check=check_claim(channel, rng, inputs, nearest),
        kept=deniability.kept,
        outputs=deniability.outputs,
        success=guess.success(),
        context_free_bound=guess.success_over(frequencies),
    )
