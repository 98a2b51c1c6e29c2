"""Describe privacy claims: the epsilon that a victim's author states, and the epsilon that is proved for the code."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from leakboard.store import LATER, fields_of, finite, numbers

TrainingUnit = Literal["pair", "document", "user"]
"""One unit of training data: a (centre, context) pair of words, a text, or all texts of a user."""
ReleaseUnit = Literal["word", "document", "vector", "coordinate"]
"""The unit in which two neighbouring inputs of a release differ."""
Distance = Literal["euclidean", "l1", "angular", "mahalanobis", "list"]
"""Distances of inputs for metric privacy; ``angular`` is the angle of two vectors (radians).

Two are for words alone: ``mahalanobis`` is that of their vectors, and ``list`` counts places in a list of all words.
"""
TRAINING_UNITS, RELEASE_UNITS, DISTANCE_NAMES = map(get_args, (TrainingUnit, ReleaseUnit, Distance))
PER_DISTANCE = "unit of "
"""How the unit of a claim begins in words if epsilon is for each unit of a distance."""


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
    distance: Distance | None = field(default=None, metadata=LATER)
    """Distance of the mechanism's inputs; ``epsilon`` and ``proved`` are for each unit of it (metric privacy).

    None: they are for all neighbours. ``delta`` is the same at all distances.
    """
    words: int | None = field(default=None, metadata=LATER)
    """Number of words of the document that ``epsilon`` is for, if it is the sum over words; None: no sum."""
    exact: float | None = field(default=None, metadata=LATER)
    """Epsilon that two inputs and an output were computed to need, for one publication; None: nothing was computed.

    Unlike the bound of an audit it is not estimated, so it has no confidence.
    """

    def __post_init__(self) -> None:
        _check(self, RELEASE_UNITS, "mechanism", "sensitivity")
        if self.distance is not None and self.distance not in DISTANCE_NAMES:
            allowed = f"one of {', '.join(DISTANCE_NAMES)}, or None"
            raise ValueError(f"claim: distance={self.distance!r} is not allowed: {allowed}")
        if self.distance and self.unit == "coordinate":
            raise ValueError("claim: unit='coordinate' is not allowed with a distance")
        if self.words is not None and (self.unit != "document" or self.distance or not self.words >= 1):
            allowed = "a whole number from 1, with the unit 'document' and without a distance"
            raise ValueError(f"claim: words={self.words!r} is not allowed: {allowed}")
        if self.exact is not None and not self.exact >= 0:
            raise ValueError(f"claim: exact={self.exact!r} is not allowed: a number from 0, infinity, or None")
        if not self.observations >= 1:
            raise ValueError(f"claim: observations={self.observations!r} is not allowed: a whole number from 1")

    def of_text(self, words: int) -> ReleaseClaim:
        """Return the claim about a text of some words that follows from this claim about one word.

        Words with noise of their own compose: epsilons and deltas add up (Dwork and Roth 2014, theorem 3.16).

        Raises:
            ValueError: ``words`` is below 1, this claim is not about one word, or deltas add up to 1 or more.
        """
        if not words >= 1:
            raise ValueError(f"claim: words={words!r} is not allowed: a whole number from 1")
        if self.unit != "word" or self.distance:
            raise ValueError(f"claim: one {unit_of(vars(self))} does not add up over words; allowed: one word")
        if not (delta := words * self.delta) < 1:
            raise ValueError(f"claim: delta={self.delta!r} adds up to {delta:g} over {words} words; allowed: below 1")
        return dataclasses.replace(
            self,
            epsilon=words * self.epsilon,
            proved=words * self.proved,
            delta=delta,
            unit="document",
            words=words,
            exact=None,
        )


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
    return {"about": about, **finite(fields_of(claim))}


def unit_of(claim: Mapping[str, Any]) -> str:
    """Return what epsilon is claimed for, in words, from a claim as JSON.

    For example ``word``, ``document of 20 words``, or ``unit of euclidean distance between vectors``.
    """
    unit = str(claim["unit"])
    if distance := claim.get("distance"):
        return f"{PER_DISTANCE}{distance} distance between {unit}s"
    return f"{unit} of {words} words" if (words := claim.get("words")) else unit


def claim_from_json(content: Mapping[str, Any] | None) -> PrivacyClaim | None:
    """Return the claim that `claim_as_json` was given."""
    if content is None:
        return None
    claim_type = CLAIM_TYPES[content["about"]]
    return claim_type(**numbers({name: value for name, value in content.items() if name != "about"}, claim_type))
