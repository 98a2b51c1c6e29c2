"""State a channel's claim about one published word as a `ReleaseClaim`, with what an exact audit found.

| epsilon | what it is |
|---|---|
| ``epsilon`` | of the paper, for each unit of its distance |
| ``proved`` | the exact epsilon if the audit compared all pairs; else the paper's if its proof holds for the code |
| ``exact`` | the largest log-ratio, for each unit of the distance, of the pairs that the audit compared |

A calibrated channel claims the exact epsilon between any two words, whatever its paper claims. Words that are kept
violate this claim. An approximate matrix has no ``exact`` epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from leakboard.claims import Distance, ReleaseClaim
from leakboard.privacy.channels.channel import DIFFERENT, ChannelClaim, FittedChannel
from leakboard.privacy.exact.audit import ExactAudit
from leakboard.privacy.exact.extremes import Witness

DISTANCES: Mapping[str, Distance | None] = {
    DIFFERENT: None,
    "Euclidean": "euclidean",
    "regularised Mahalanobis": "mahalanobis",
    "places in the list": "list",
}
"""The distance of a claim by its name in a channel."""
ROUNDING = 1e-9
"""Share of a claim by which rounding may exceed it."""


def release_claim(
    channel: FittedChannel, audit: ExactAudit | None, mechanism: str, calibrated: float | None = None
) -> ReleaseClaim:
    """Return the claim about one published word.

    Args:
        channel: the mechanism.
        audit: of its matrix; None: it has none.
        mechanism: its name, with its options.
        calibrated: the exact epsilon that it was calibrated to; None: it claims what its paper claims.
    """
    claim = channel.claim
    if calibrated is not None:
        assert audit is not None, "a channel without a matrix cannot be calibrated"
        claim, found = ChannelClaim(calibrated, DIFFERENT), audit.true_epsilon
        if audit.precision == "approximate":
            return _claim(claim, mechanism, math.inf, None, "")
        if found > calibrated * (1 + ROUNDING):
            return _claim(claim, mechanism, math.inf, found, witness_in_words(channel, audit.worst))
        found = min(found, calibrated)
        return _claim(claim, mechanism, found if audit.precision == "exact" else math.inf, found, "")
    if audit is None:
        return _claim(claim, mechanism, claim.epsilon if claim.is_proved else math.inf, None, "")
    found = audit.used * claim.epsilon
    if audit.verdict == "violated":
        return _claim(claim, mechanism, math.inf, found, witness_in_words(channel, audit.witness))
    found = min(found, claim.epsilon)  # rounding
    proved = found if audit.is_exact else claim.epsilon if claim.is_proved else math.inf
    return _claim(claim, mechanism, proved, None if audit.precision == "approximate" else found, "")


def _claim(claim: ChannelClaim, mechanism: str, proved: float, exact: float | None, witness: str) -> ReleaseClaim:
    parts = [f"about {claim.scope}" if claim.scope else ""]
    parts += [f"plus {claim.additive:.3g} at any distance" if claim.additive else ""]
    parts += [f"a witness against it: {witness}" if witness else ""]
    return ReleaseClaim(
        epsilon=claim.epsilon,
        delta=0.0,
        unit="word",
        mechanism=mechanism,
        sensitivity=f"the distance of {claim.distance}" if claim.distance == DIFFERENT else claim.distance,
        proved=proved,
        caveat="; ".join(filter(None, parts)),
        distance=DISTANCES[claim.distance],
        exact=exact,
    )


def witness_in_words(channel: FittedChannel, witness: Witness) -> str:
    """Return a pair of inputs and an output with both probabilities, so that a reader can check them."""
    words = channel.space.words
    likelier, other, output = (words[index] for index in (witness.likelier, witness.other, witness.output))
    chances = (math.exp(log) for log in (witness.log_likelier, witness.log_other))
    one, two = (f"{chance:.6g}" for chance in chances)
    return f"P({output} | {likelier}) = {one}, P({output} | {other}) = {two}"
