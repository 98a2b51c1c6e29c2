"""Write the sentence about an audit, and parts of the sentences that threats define (`Threat.found`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from leakboard.metrics.audits import rounded_down

ROUNDING = 1e-9
"""Tolerance of rounding: an attack that equals the constant guess is not better."""
NO_PROOF = "this does not show that there is nothing to find"
CHANCE = "the difference may be chance"
VERDICTS = {
    "violated": "more than the claimed {claimed}: the claim is violated",
    "unproven": "the claimed {claimed} is not proved for what the code does",
    "holds": "no more than the claimed {claimed}: the claim holds as far as this audit sees",
    "": "nothing is claimed",
    "doubtful": "more than the claimed {claimed}, but not at the confidence of a verdict: the claim is not refuted",
}
"""How an audited bound compares with the claimed epsilon, in words, by verdict."""


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a cell of a row holds a number."""
    return isinstance(value, int | float) and not math.isnan(value)


def percent(share: float) -> str:
    """Return a share in whole percent; below 1 %, with one significant digit."""
    return f"{100 * share:.1g} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def beats_constant(row: Mapping[str, Any]) -> bool:
    """Return whether an attack scores better than the best constant guess; True if that guess is unknown."""
    constant_privacy = row.get("privacy_best_constant")
    return not is_number(constant_privacy) or row["attack_score"] > 1 - constant_privacy + ROUNDING


def secrets_of(row: Mapping[str, Any]) -> str:
    """Return the secret, or the secrets, that a row is about."""
    names = str(row["secrets"]).split("; ")
    return row.get("secret") or ", ".join(names) + (" (on average)" if len(names) > 1 else "")


def audited(epsilon: float, confidence: float, verdict: str) -> str:
    """Return the sentence about a lower bound on epsilon."""
    return f"epsilon is at least {rounded_down(epsilon)} ({100 * confidence:.0f} % confidence), {verdict}"


def audit_sentence(row: Mapping[str, Any]) -> str:
    """Return the sentence about an audit of one release, or of one training run."""
    claimed, observations = row.get("epsilon_claimed"), row.get("observations")
    of_one = claimed / (observations if is_number(observations) else 1) if is_number(claimed) else None
    verdict = str(row.get("verdict") or "")
    if verdict == "holds" and of_one is not None and row["epsilon_audited"] > of_one:
        verdict = "doubtful"
    shown = "" if of_one is None else f"{of_one:.3g}"
    return audited(row["epsilon_audited"], 0.95, VERDICTS[verdict].format(claimed=shown))
