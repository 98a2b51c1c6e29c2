"""Attacks on training data: who is asked about, which canaries are planted, and how the referee judges."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.corpora import with_texts
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, FittedCanaryAudit, PrivacyClaim, Texts, TrainingUnit, Victim
from leakboard.notes import note
from leakboard.referee.claims import canary_metrics
from leakboard.referee.measures import Metric
from leakboard.stages.fitting import Names
from leakboard.tokens import words


@dataclass(frozen=True)
class Candidates:
    """Units that an attacker asks about, in random order."""

    units: Sequence[Texts]
    members: NDArray[np.bool_]
    """bool (n,): in train, or in test, which the victim never saw."""


def training_unit(attack: Any, claim: PrivacyClaim | None, corpus: Corpus) -> TrainingUnit:
    """Return what an attack on training data is about: as its option says, what the claim protects, or whoever wrote.

    Raises:
        RequestError: the attack asks for users where there are none, or audits a claim about another unit.
    """
    claimed: Any = claim.unit if claim and claim.protects == "training" else None
    users = has_users(corpus)
    unit: TrainingUnit = getattr(attack, "unit", None) or claimed or ("user" if users else "document")
    if unit == "user" and not users:
        raise RequestError(f"unit: 'user' is not allowed (pair, document): {corpus.name} names no users")
    if attack.target == "claim" and claimed and unit != claimed:
        raise RequestError(f"unit: {unit!r} is not allowed: the claim is about one {claimed}")
    return unit


def has_users(corpus: Corpus) -> bool:
    """Return whether a corpus says who wrote each text."""
    return "user" in corpus.splits["train"].features


def draw_candidates(corpus: Corpus, unit: TrainingUnit, most: int, rng: np.random.Generator) -> Candidates:
    """Draw as many units of train as of test.

    Units of test whose texts all stand in train are left out. Pairs are two words in a row that do so once in train,
    and such of test that never do in train.

    Raises:
        RequestError: no unit of test is left.
    """
    if unit == "pair":
        inside, outside = (
            Counter(pair for text in corpus.texts(s) for pair in _pairs(text)) for s in ("train", "test")
        )
        members = [Texts([pair]) for pair, count in inside.items() if count == 1]
        others = [Texts([pair]) for pair in outside if pair not in inside]
    else:
        members, others = (_units(corpus, split, unit) for split in ("train", "test"))
        known = set(corpus.texts("train"))
        others = [texts for texts in others if not known.issuperset(texts)]
    if not (half := min(len(members), len(others), most // 2)):
        raise RequestError(f"{corpus.name} has no {unit} in test that is not in train too")
    chosen = [units[i] for units in (members, others) for i in rng.choice(len(units), half, replace=False)]
    order = rng.permutation(2 * half)
    return Candidates([chosen[i] for i in order], order < half)


def _pairs(text: str) -> list[str]:
    found = words(text)
    return [" ".join(sorted(pair)) for pair in itertools.pairwise(found)]


def _units(corpus: Corpus, split: str, unit: TrainingUnit) -> list[Texts]:
    texts = corpus.texts(split)
    if unit == "document":
        return [Texts([text]) for text in texts]
    of_user: dict[str, list[str]] = {}
    for user, text in zip(corpus.splits[split]["user"][:], texts, strict=True):
        of_user.setdefault(user, []).append(text)
    return [Texts(own) for own in of_user.values()]


def without(corpus: Corpus, candidates: Candidates) -> Corpus:
    """Return an attacker's corpus without the texts that it asks about."""
    asked = {text for unit in candidates.units for text in unit}
    texts = corpus.texts("train")
    return corpus.with_train([row for row, text in enumerate(texts) if text not in asked])


def judge_canaries(
    audit: FittedCanaryAudit, victim: Victim, corpus: Corpus, claim: PrivacyClaim | None, names: Names
) -> list[Metric]:
    """Toss the coins, train the victim with the canaries that came up, and return what the scores prove.

    Raises:
        ValueError: the scores are not one finite number a canary.
    """
    rng = names.stream(f"canaries {names.label}")
    planted = rng.random(len(audit.canaries)) < 0.5
    note(f"training with {planted.sum()} of {len(planted)} canaries")
    fitted = victim.fit(with_texts(corpus, audit.canaries, planted), names.seed_for("canaries"))
    scores = np.asarray(audit.score(fitted.publish_words(Texts([]), rng)), np.float64)
    if scores.shape != planted.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"scores of shape {scores.shape} are not one finite number for each of {len(planted)} canaries"
        )
    return canary_metrics(scores, planted, claim.delta if claim else audit.delta, audit.group)
