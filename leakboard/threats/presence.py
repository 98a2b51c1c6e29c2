"""Infer presence: is this text in the vector store?

The attacker has candidate texts. Half of them are in the store: the victim's train texts. The other half come from
test. One rule draws both (`leakboard.threats.candidates`). The attacker answers with a score for each candidate. The
headline is the area under the ROC curve. The true positive rate at a low false positive rate is next to it.

| option | value | what the attacker has |
|---|---|---|
| ``access`` | ``vectors`` | the stored vectors, and as many known pairs as it asks for |
| | ``scores`` | a search that returns the similarities of the nearest stored vectors, and no vector |
| ``known_as`` | ``exact`` | the candidate texts as they were stored |
| | ``edited`` | copies in which a tenth of the words was replaced, at least one |
| | ``half`` | a random half of the words, in order |

Members and non-members may differ in topic or date. ``presence_without_store`` is the area that a classifier of the
exact texts alone reaches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.claims import PrivacyClaim
from leakboard.interfaces import Corpus, Texts
from leakboard.metrics.measures import Metric
from leakboard.metrics.member_scores import membership_metrics, text_only_area
from leakboard.metrics.retrieval import half_of
from leakboard.threats.candidates import draw_candidates, without_candidates
from leakboard.threats.oracle import Oracle
from leakboard.threats.stores import LEDGER, StolenStore, StoreThief, oracle_of, stolen_store
from leakboard.threats.threat import (
    AttackResult,
    Threat,
    VictimSide,
    attacker_corpus,
    expect,
    release_claim,
)
from leakboard.workspace import also_shared

KnownAs = Literal["exact", "edited", "half"]
CANDIDATES = 4_000
"""Default of the largest number of candidates."""
EDITED = 0.1
"""Share of the words of a text that are replaced in an edited copy."""
EDITED_WORD = "edited"
"""The new word if all other texts repeat the old one."""


@dataclass(frozen=True)
class PresenceView:
    """The view of an attacker that infers presence."""

    candidates: Texts
    """Texts in random order, as the attacker knows them."""
    auxiliary: Corpus
    """The attacker's own texts, train and dev, without the candidates."""
    claim: PrivacyClaim | None
    """The victim's claim; it is public, and so is the rule of the protection."""
    oracle: Oracle


PresenceScorer = Callable[[StolenStore | None], NDArray[Any]]
"""Scores the view's candidates, in order, float (n,): higher for a text that is likelier stored.

It is called with the stolen store; None if the attacker can only search.
"""


class PresenceThreat(Threat["PresenceAttack"]):
    """Presence in a store."""

    name: ClassVar = "presence"
    sees: ClassVar = "a vector store, or a search in it, and candidate texts; half of these are stored"
    title: ClassVar = "presence: is this text in the store?"
    headline: ClassVar = "auc"
    headline_title: ClassVar = "area under the curve"
    found: ClassVar = "asked which of two texts is stored, it is right in {score}, by chance in {constant}"
    guessed: ClassVar = "whether a text is stored"
    things: ClassVar = "candidates"
    needs: ClassVar = "documents"
    doubts_perfect_scores: ClassVar = False
    revision: ClassVar = 2
    columns: ClassVar = LEDGER

    def evaluate(self, attack: PresenceAttack, side: VictimSide) -> AttackResult:
        """Draw candidates, hide them from the attacker's own texts, and score the answer."""
        rng = side.streams.stream("candidates")
        most = min(attack.candidates, len(side.corpus.splits["train"]))  # half of the store is left for known pairs
        drawn = draw_candidates(side.corpus, "document", most, rng, side.victim_share)
        exact = Texts([text for unit in drawn.units for text in unit])
        known = Texts([changed(text, attack.known_as, exact, rng) for text in exact])
        auxiliary = without_candidates(attacker_corpus(side), drawn, side.external_auxiliary)
        oracle = oracle_of(side, attack, auxiliary)
        store = stolen_store(side, attack, exact) if attack.access == "vectors" else None
        view = PresenceView(known, auxiliary, side.published.claim, oracle)
        with also_shared(known):  # the candidates of all stores of a dataset are the same
            scores = attack.fit(view, side.streams.seed_for("attack"))(store)
        oracle.require_own_questions([*known, *(store.pairs.texts if store else ())])
        expect(scores, np.ndarray, "presence")
        pairs = len(store.pairs.texts) if store else 0
        return AttackResult(
            secrets=("presence",),
            test_size=len(exact),
            metrics=[
                *membership_metrics(scores, drawn.members, drawn.owners),
                text_only_area(exact, drawn.members, drawn.owners),
                *oracle.ledger(pairs),
                *(store.ledger() if store else ()),
                Metric("candidate_texts", float(len(exact))),
            ],
            claim=release_claim(side, 1),
        )


def changed(text: str, known_as: KnownAs, others: Sequence[str], rng: np.random.Generator) -> str:
    """Return a text as the attacker knows it; words that replace others are drawn from ``others``."""
    words = text.split()
    if known_as == "exact" or not words:
        return text
    if known_as == "half":
        return half_of(text, rng)
    for place in rng.permutation(len(words))[: max(1, round(EDITED * len(words)))]:
        drawn = [word for i in rng.integers(len(others), size=10) for word in others[int(i)].split()]
        new_words = [word for word in drawn if word != words[place]] or [EDITED_WORD]
        words[place] = new_words[int(rng.integers(len(new_words)))]
    return " ".join(words)


class PresenceAttack(StoreThief):
    """An attack that infers whether texts are in a store."""

    threat: ClassVar = PresenceThreat()
    access: Literal["vectors", "scores"] = "vectors"
    known_as: KnownAs = "exact"
    candidates: int = CANDIDATES

    @abstractmethod
    def fit(self, view: PresenceView, seed: int) -> PresenceScorer:
        """Learn to score candidates."""
