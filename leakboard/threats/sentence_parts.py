"""Write the sentence about an audit, and parts of the sentences that threats define (`Threat.found`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from leakboard.claims import PER_DISTANCE
from leakboard.metrics.audits import rounded_down

ROUNDING = 1e-9
"""Tolerance of rounding: an attack that equals the constant guess is not better."""
NO_PROOF = "this does not show that there is nothing to find"
MAY_BE_CHANCE = "this may be chance"
LARGEST_P_VALUE = 0.025
"""Largest p-value of a finding."""
LEAST_TEXTS = 30
"""Least number of test texts for a finding."""
TOO_FEW = f"fewer than {LEAST_TEXTS} are too few for a claim"
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
    """Return whether an attack gains something over the best constant guess; True if that is unknown.

    On boards older than the advantage, its score is compared with that of the constant guess.
    """
    if is_number(gained := row.get("attack_advantage")):
        return gained > ROUNDING
    constant_privacy = row.get("privacy_best_constant")
    return not is_number(constant_privacy) or row["attack_score"] > 1 - constant_privacy + ROUNDING


def has_too_few(row: Mapping[str, Any]) -> bool:
    """Return whether the test is too small for a claim."""
    return is_number(size := row.get("test_size")) and size < LEAST_TEXTS


def why_chance(row: Mapping[str, Any]) -> str:
    """Return why a gain may be chance; empty if it is a finding.

    The p-value is multiplied by the number of attacks, unless the strongest was chosen on dev (Bonferroni). Since test
    may overrule dev, chance is called a finding with a probability of at most 2 `LARGEST_P_VALUE`.
    """
    if has_too_few(row):
        return TOO_FEW
    p_value = row.get("attack_advantage_p")
    attacks = row.get("attacks") if row.get("chosen_on") == "test" else 1
    return "" if is_number(p_value) and p_value * (attacks or 1) <= LARGEST_P_VALUE else MAY_BE_CHANCE


def tested(row: Mapping[str, Any], things: str) -> str:
    """Return the number of test texts (or other things), as in ``1,200 texts``; empty if the row has none."""
    size = row.get("test_size")
    return f"{size:,.0f} {things}" if is_number(size) else ""


def gain_in_words(row: Mapping[str, Any], things: str) -> str:
    """Return the advantage in words, with its interval and number of test texts (or other things)."""
    low, high = row.get("attack_advantage_low"), row.get("attack_advantage_high")
    known = is_number(low) and is_number(high)
    parts = [f"{low:.2f} to {high:.2f}" if known else "no interval", tested(row, things), why_chance(row)]
    return f"{row['attack_advantage']:.2f} of what there is to gain ({'; '.join(filter(None, parts))})"


def secrets_of(row: Mapping[str, Any]) -> str:
    """Return the secret, or the secrets, that a row is about."""
    names = str(row["secrets"]).split("; ")
    return row.get("secret") or ", ".join(names) + (" (on average)" if len(names) > 1 else "")


def audited(epsilon: float, confidence: float, verdict: str, per: str = "") -> str:
    """Return the sentence about a lower bound on epsilon, for each unit of a distance if ``per`` names one."""
    unit = f" for each unit of {per}" if per else ""
    return f"epsilon{unit} is at least {rounded_down(epsilon)} ({100 * confidence:.4g} % confidence), {verdict}"


def audit_sentence(row: Mapping[str, Any]) -> str:
    """Return the sentence about an audit of one release, or of one training run."""
    claimed, observations = row.get("epsilon_claimed"), row.get("observations")
    of_one = claimed / (observations if is_number(observations) else 1) if is_number(claimed) else None
    verdict = str(row.get("verdict") or "")
    if verdict == "holds" and of_one is not None and row["epsilon_audited"] > of_one:
        verdict = "doubtful"
    shown = "" if of_one is None else f"{of_one:.3g}"
    unit = str(row.get("privacy_unit") or "")
    per = unit.removeprefix(PER_DISTANCE) if unit.startswith(PER_DISTANCE) else ""
    return audited(row["epsilon_audited"], 0.95, VERDICTS[verdict].format(claimed=shown), per)
