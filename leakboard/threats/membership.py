"""Infer membership in training data: was a word table trained on the text of this user (document, pair)?

The attacker has the published table, candidates, texts of its own without the candidates, and the victim's recipe. It
answers with a score for each candidate. The headline is the area under the ROC curve; the true positive rate at a low
false positive rate is next to it (Carlini et al. 2022). Half of the candidates are members. The others come from test:
the victim never saw them. One rule draws both halves (`leakboard.threats.candidates`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakboard.claims import TrainingUnit
from leakboard.interfaces import Attack, Corpus, PublishedWords, Texts
from leakboard.metrics.member_scores import membership_metrics
from leakboard.threats.candidates import draw_candidates, training_unit, why_no_candidates, without_candidates
from leakboard.threats.oracle import Oracle
from leakboard.threats.published import Publications
from leakboard.threats.threat import AttackResult, Threat, VictimSide, attacker_corpus, expect
from leakboard.threats.words import published_words

CANDIDATES = 4_000
"""Default of the largest number of candidates."""


@dataclass(frozen=True)
class MembershipView:
    """The view of an attacker of training data before it sees the published table."""

    auxiliary: Corpus
    """The attacker's own texts, train and dev, without the texts of the candidates."""
    unit: TrainingUnit
    """The kind of a candidate."""
    candidates: Sequence[Texts]
    """Units that may have been in the training data, in random order."""
    oracle: Oracle


MembershipScorer = Callable[[PublishedWords], NDArray[Any]]
"""Scores the view's candidates, in order, by the published table, float (n,); higher for likelier members."""


class MembershipThreat(Threat["MembershipAttack"]):
    """Membership inference."""

    name: ClassVar = "membership"
    sees: ClassVar = "the published table of word vectors, and candidates; half of these were in the training data"
    title: ClassVar = "membership: was this in the training data?"
    headline: ClassVar = "auc"
    headline_title: ClassVar = "area under the curve"
    found: ClassVar = "the area under the curve is {score}, {constant} by chance"
    things: ClassVar = "candidates"
    needs: ClassVar = "words"
    revision: ClassVar = 3

    def why_not_applicable(self, attack: MembershipAttack, corpus: Corpus, published: Publications | None) -> str:
        """Return the reason: no users in the corpus, or words that depend on their context; else empty."""
        return why_no_candidates(attack.unit, corpus, published)

    def evaluate(self, attack: MembershipAttack, side: VictimSide) -> AttackResult:
        """Draw candidates, hide them from the attacker's own texts, and score the answer."""
        published = published_words(side)
        unit = training_unit(attack.unit, side.published.claim, side.corpus)
        drawn = draw_candidates(
            side.corpus, unit, attack.candidates, side.streams.stream("candidates"), side.victim_share
        )
        collected = attacker_corpus(side)
        auxiliary = without_candidates(collected, drawn, side.external_auxiliary)
        view = MembershipView(auxiliary, unit, drawn.units, Oracle(side, auxiliary))
        scorer = attack.fit(view, side.streams.seed_for("attack"))
        scores = scorer(PublishedWords(list(published.words), published.vectors.copy()))
        expect(scores, np.ndarray, "membership")
        left, all_texts = len(auxiliary.splits["train"]), len(collected.splits["train"])
        return AttackResult(
            secrets=("membership",),
            test_size=len(drawn.members),
            metrics=[*membership_metrics(scores, drawn.members, drawn.owners), *view.oracle.ledger()],
            details=f"the attacker has {left} of {all_texts} texts of its own left",
            claim=side.published.claim,
        )


class MembershipAttack(Attack):
    """An attack that scores candidates for membership in the training data."""

    threat: ClassVar = MembershipThreat()
    unit: TrainingUnit | None = None
    """The kind of a candidate; None: the unit of the victim's claim, else users if there are any, else documents."""
    candidates: int = CANDIDATES
    """Largest number of candidates, half of them members."""

    @abstractmethod
    def fit(self, view: MembershipView, seed: int) -> MembershipScorer:
        """Learn to score candidates."""
