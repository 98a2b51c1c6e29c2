"""Audit training by canaries in its data, from one run (Steinke, Nasr and Jagielski 2023).

The attacker has the victim's recipe, the words of the published table and texts of its own. It chooses canaries: units
of text. LeakBoard flips a coin for each canary, and adds the canaries with heads to the victim's corpus. Then it trains
the victim, and shows the attacker the table. The attacker answers with a score for each canary. The headline is the
lower bound on epsilon at 95 % confidence (`leakboard.metrics.audits`). A low bound proves nothing: this attack failed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakboard.claims import TrainingClaim, TrainingUnit
from leakboard.data.corpora import with_texts
from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Attack, Corpus, PublishedWords, Texts
from leakboard.logs import log_progress
from leakboard.metrics.audits import canary_metrics
from leakboard.privacy.auditing.trials import noise_generator
from leakboard.threats.candidates import training_unit, why_no_candidates
from leakboard.threats.oracle import Oracle
from leakboard.threats.published import Publications
from leakboard.threats.threat import AttackResult, Audited, AuditThreat, VictimSide, attacker_corpus, expect
from leakboard.threats.words import published_words


@dataclass(frozen=True)
class CanariesView:
    """The view of an auditor of training before it chooses canaries."""

    auxiliary: Corpus
    """The auditor's own texts: train and dev."""
    unit: TrainingUnit
    """The kind of a canary."""
    words: Sequence[str]
    """The words of the published table, in its order."""
    oracle: Oracle


@dataclass(frozen=True)
class Canaries:
    """Canaries, and a function that guesses from a table which of them were planted."""

    units: Sequence[Texts]
    score: Callable[[PublishedWords], NDArray[Any]]
    """Maps a trained table to scores, float (m,), higher for canaries that were likelier planted."""
    delta: float
    """Delta of the bound, if the victim claims nothing."""


class CanariesThreat(AuditThreat["CanaryAttack"]):
    """Audit of training data."""

    name: ClassVar = "canaries"
    sees: ClassVar = "the recipe, the words of the published table, and a table that was trained with planted texts"
    things: ClassVar = "canaries"
    needs: ClassVar = "words"
    revision: ClassVar = 3

    def why_not_applicable(self, attack: CanaryAttack, corpus: Corpus, published: Publications | None) -> str:
        """Return the reason: no users in the corpus, contextual words, or a claim about something else; else empty."""
        if reason := why_no_candidates(attack.unit, corpus, published):
            return reason
        if published is None or published.claim is None:
            return ""
        if not isinstance(published.claim, TrainingClaim):
            return "the claim is about what is published, not about training data"
        if attack.unit not in (None, published.claim.unit):
            return f"unit: {attack.unit!r} is not allowed: the claim is about one {published.claim.unit}"
        return ""

    def evaluate(self, attack: CanaryAttack, side: VictimSide) -> AttackResult:
        """Flip the coins, train with the planted canaries, and return the bound that the scores prove.

        Raises:
            RequestError: there is no canary, or the scores are not one finite number for each canary.
        """
        claim, auxiliary = side.published.claim, attacker_corpus(side)
        unit = training_unit(attack.unit, claim, side.corpus)
        view = CanariesView(auxiliary, unit, tuple(published_words(side).words), Oracle(side, auxiliary))
        canaries = attack.fit(view, side.streams.seed_for("attack"))
        expect(canaries, Canaries, "canaries")
        if not canaries.units:
            raise RequestError("the attack chose no canaries")
        units = tuple(Texts(unit_texts) for unit_texts in canaries.units)
        group = max(privacy_units_in(canary, unit) for canary in units)
        rng = side.streams.stream(f"canaries {side.streams.label}")
        planted = rng.random(len(units)) < 0.5
        log_progress(f"training with {planted.sum()} of {len(planted)} canaries")
        corpus = with_texts(side.corpus.only("train", "dev"), units, planted)
        fitted = side.victim.fit(corpus, side.streams.seed_for("canaries"))
        scores = np.asarray(canaries.score(fitted.publish_words(Texts([]), noise_generator(rng))), np.float64)
        if scores.shape != planted.shape or not np.isfinite(scores).all():
            raise RequestError(
                f"scores of shape {scores.shape} are not one finite number for each of {len(planted)} canaries"
            )
        delta = claim.delta if claim else canaries.delta
        return AttackResult(
            secrets=("claim",),
            test_size=len(planted),
            metrics=[*canary_metrics(scores, planted, delta, group), *view.oracle.ledger()],
            claim=claim,
            audited=Audited(unit, delta),
        )


class CanaryAttack(Attack):
    """An audit of the training data of a word table."""

    threat: ClassVar = CanariesThreat()
    unit: TrainingUnit | None = None
    """The kind of a canary; None: the unit of the victim's claim, else users if there are any, else documents."""

    @abstractmethod
    def fit(self, view: CanariesView, seed: int) -> Canaries:
        """Choose canaries, and learn to guess which were planted.

        Raises:
            NotApplicable: too few words are published.
        """


def privacy_units_in(canary: Texts, unit: TrainingUnit) -> int:
    """Return an upper bound of the number of privacy units in one canary.

    For pairs: the number of ordered pairs in the canary's texts. For documents: the number of texts. For users: 1.
    """
    if unit == "pair":
        return sum(n * (n - 1) for n in (len(words(text)) for text in canary))
    return len(canary) if unit == "document" else 1
