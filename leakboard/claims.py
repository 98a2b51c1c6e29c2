"""Privacy claims: what a victim's author states, and what is proved for what the code does."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from leakboard.store import finite, numbers

TrainingUnit = Literal["pair", "document", "user"]
"""What is protected as one in training data: a (centre, context) pair of words, a text, or all texts of a user."""
ReleaseUnit = Literal["word", "document", "vector", "coordinate"]
"""What two neighbouring inputs of a release differ in."""
TRAINING_UNITS, RELEASE_UNITS = get_args(TrainingUnit), get_args(ReleaseUnit)


@dataclass(frozen=True)
class ReleaseClaim:
    """What a victim's author states about one publication, beside what is proved for what its code does."""

    epsilon: float
    delta: float
    unit: ReleaseUnit
    mechanism: str
    """The noise, in words."""
    sensitivity: str
    """What the claim takes the sensitivity to be, in words: norm and bound."""
    proved: float = math.inf
    """The epsilon that is proved for the code, with its true sensitivity, at ``delta``; infinite where none is."""
    observations: int = 1
    """How many publications of the same input the numbers are for."""
    caveat: str = ""
    """What a reader must know before believing the claim, in one line; it stands in the ``status`` of every row."""

    def __post_init__(self) -> None:
        _check(self, RELEASE_UNITS, "mechanism", "sensitivity")


@dataclass(frozen=True)
class TrainingClaim:
    """What a victim's author states about the training data of a word table, beside what is proved for the training."""

    epsilon: float
    delta: float
    unit: TrainingUnit
    steps: int
    sampling: Literal["poisson", "sequential"]
    expected_batch_size: int
    units: int
    """How many units the training data have; a public number."""
    noise_multiplier: float
    """Standard deviation of the noise, over the clipping norm."""
    clipping_norm: float
    """Largest 2-norm of what one unit adds to a step."""
    vocabulary: str
    """Where the vocabulary comes from and what it costs, in words."""
    proved: float = math.inf
    details: str = ""
    """What else the training does that a privacy accountant must know: personal budgets, another clipping."""
    caveat: str = ""

    def __post_init__(self) -> None:
        _check(self, TRAINING_UNITS, "vocabulary")

    def __str__(self) -> str:
        batches = f"{self.sampling} batches of {self.expected_batch_size} of {self.units} {self.unit}s"
        noise = f"Gaussian noise of {self.noise_multiplier:.4g} times the clipping norm {self.clipping_norm:g}"
        parts = (f"{self.steps} steps on {batches}, {noise}", f"vocabulary {self.vocabulary}", self.details)
        return "; ".join(filter(None, parts))


PrivacyClaim = ReleaseClaim | TrainingClaim
KINDS: Mapping[str, type[PrivacyClaim]] = {"release": ReleaseClaim, "training": TrainingClaim}


def _check(claim: PrivacyClaim, units: tuple[str, ...], *said: str) -> None:
    """Raise ValueError where a number or the unit of a claim is not allowed, or what must be said is empty."""
    if not 0 <= claim.epsilon < math.inf:
        raise ValueError(f"claim: epsilon={claim.epsilon!r} is not allowed: a number from 0, not infinite")
    if not 0 <= claim.delta < 1:
        raise ValueError(f"claim: delta={claim.delta!r} is not allowed: a number from 0, below 1")
    if not claim.proved >= 0:
        raise ValueError(f"claim: proved={claim.proved!r} is not allowed: a number from 0, or infinity")
    if claim.unit not in units:
        raise ValueError(f"claim: unit={claim.unit!r} is not allowed: one of {', '.join(units)}")
    for name in said:
        if not getattr(claim, name).strip():
            raise ValueError(f"claim: {name} is empty: a claim says what its numbers rest on")


def claim_as_json(claim: PrivacyClaim | None) -> dict[str, Any] | None:
    """Return a claim as strict JSON; ``about`` says which of the two kinds it is."""
    if claim is None:
        return None
    about = next(name for name, kind in KINDS.items() if isinstance(claim, kind))
    return {"about": about, **finite(dataclasses.asdict(claim))}


def claim_from_json(content: Mapping[str, Any] | None) -> PrivacyClaim | None:
    """Return what `claim_as_json` was given."""
    if content is None:
        return None
    return KINDS[content["about"]](**{key: value for key, value in numbers(content).items() if key != "about"})
