"""Describe privacy claims: the epsilon that a victim's author states, and the epsilon that is proved for the code."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from leakboard.store import finite, numbers

TrainingUnit = Literal["pair", "document", "user"]
"""One unit of training data: a (centre, context) pair of words, a text, or all texts of a user."""
ReleaseUnit = Literal["word", "document", "vector", "coordinate"]
"""The unit in which two neighbouring inputs of a release differ."""
TRAINING_UNITS, RELEASE_UNITS = get_args(TrainingUnit), get_args(ReleaseUnit)


@dataclass(frozen=True)
class ReleaseClaim:
    """A claim about publications: published vectors of neighbouring inputs are hard to tell apart."""

    epsilon: float
    """Epsilon that the author claims, with ``delta``."""
    delta: float
    unit: ReleaseUnit
    mechanism: str
    """The noise, in words."""
    sensitivity: str
    """The sensitivity that the claim assumes, in words: norm and bound."""
    proved: float = math.inf
    """Epsilon that is proved for the code with its true sensitivity, at the same ``delta``; infinite: no proof."""
    observations: int = 1
    """Number of publications of the same input that the claim covers."""
    caveat: str = ""
    """A warning about the claim, in one line; every row of the victim shows it in ``status``."""

    def __post_init__(self) -> None:
        _check(self, RELEASE_UNITS, "mechanism", "sensitivity")
        if not self.observations >= 1:
            raise ValueError(f"claim: observations={self.observations!r} is not allowed: a whole number from 1")


@dataclass(frozen=True)
class TrainingClaim:
    """A claim about the training data of a word table: neighbouring data are hard to tell apart."""

    epsilon: float
    """Epsilon that the author claims, with ``delta``."""
    delta: float
    unit: TrainingUnit
    steps: int
    """Number of gradient steps."""
    sampling: Literal["poisson", "sequential"]
    expected_batch_size: int
    """Number of units in a batch, on average."""
    units: int
    """Number of units in the training data; it is public."""
    noise_multiplier: float
    """Standard deviation of the noise, divided by the clipping norm."""
    clipping_norm: float
    """Largest 2-norm of one unit's contribution to a step."""
    vocabulary: str
    """Where the vocabulary comes from and how much epsilon it costs, in words."""
    proved: float = math.inf
    """Epsilon that is proved for the training, at the same ``delta``; infinite: no proof."""
    details: str = ""
    """More facts about the training, in words."""
    caveat: str = ""
    """A warning about the claim, in one line; every row of the victim shows it in ``status``."""

    def __post_init__(self) -> None:
        _check(self, TRAINING_UNITS, "vocabulary")

    def __str__(self) -> str:
        batches = f"{self.sampling} batches of {self.expected_batch_size} of {self.units} {self.unit}s"
        noise = f"Gaussian noise of {self.noise_multiplier:.4g} times the clipping norm {self.clipping_norm:g}"
        parts = (f"{self.steps} steps on {batches}, {noise}", f"vocabulary {self.vocabulary}", self.details)
        return "; ".join(filter(None, parts))


PrivacyClaim = ReleaseClaim | TrainingClaim
CLAIM_TYPES: Mapping[str, type[PrivacyClaim]] = {"release": ReleaseClaim, "training": TrainingClaim}


def _check(claim: PrivacyClaim, units: tuple[str, ...], *required: str) -> None:
    if not 0 <= claim.epsilon < math.inf:
        raise ValueError(f"claim: epsilon={claim.epsilon!r} is not allowed: a number from 0, not infinite")
    if not 0 <= claim.delta < 1:
        raise ValueError(f"claim: delta={claim.delta!r} is not allowed: a number from 0, below 1")
    if not claim.proved >= 0:
        raise ValueError(f"claim: proved={claim.proved!r} is not allowed: a number from 0, or infinity")
    if claim.unit not in units:
        raise ValueError(f"claim: unit={claim.unit!r} is not allowed: one of {', '.join(units)}")
    for name in required:
        if not getattr(claim, name).strip():
            raise ValueError(f"claim: {name} is empty: describe it in words")


def claim_as_json(claim: PrivacyClaim | None) -> dict[str, Any] | None:
    """Return a claim as strict JSON; ``about`` is ``release`` or ``training``."""
    if claim is None:
        return None
    about = next(name for name, claim_type in CLAIM_TYPES.items() if isinstance(claim, claim_type))
    return {"about": about, **finite(dataclasses.asdict(claim))}


def claim_from_json(content: Mapping[str, Any] | None) -> PrivacyClaim | None:
    """Return the claim that `claim_as_json` was given."""
    if content is None:
        return None
    claim_type = CLAIM_TYPES[content["about"]]
    return claim_type(**numbers({name: value for name, value in content.items() if name != "about"}, claim_type))
