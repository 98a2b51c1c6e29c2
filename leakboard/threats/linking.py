"""Link each stored vector to a candidate text, or to none.

The attacker stole a store of sentence vectors (`leakboard.threats.stores`). It answers with ranked candidate texts for
vectors of test texts that have no copy in train and dev. Half of these texts are among the candidates. Case and
punctuation do not make another text.

| the attacker has | where it comes from |
|---|---|
| stored vectors and known pairs | the victim's train texts |
| its own texts | train and dev of the attacker's corpus |
| candidate texts, in random order | half of these test texts; train and dev of both corpora |
| the vectors to be linked, all at once | these test texts |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leakboard.claims import PrivacyClaim
from leakboard.column import LOWER, Column
from leakboard.errors import NotApplicable
from leakboard.interfaces import Corpus, Floats, Integers, Texts
from leakboard.metrics.link_scores import ABSENT, HEADLINE, Links, link_metrics
from leakboard.threats.oracle import Oracle, plain
from leakboard.threats.sentence_parts import beats_constant, is_number, why_chance
from leakboard.threats.stores import LEDGER, StolenStore, StoreThief, oracle_of, stolen_store
from leakboard.threats.threat import (
    AttackResult,
    Doubt,
    Threat,
    VictimSide,
    attacker_corpus,
    expect,
    release_claim,
    shuffled,
)

__all__ = ["Linker", "LinkingAttack", "LinkingThreat", "LinkingView", "Links"]

TOO_FEW_LINKS = "too few vectors to tell how many at 1 % false links"
"""Said if the interval of the share at 1 % false links contains 0, though first candidates are right."""
TABLES = ("leaderboard.csv", "best_known.csv", "report", "page: attacks")


@dataclass(frozen=True)
class LinkingView:
    """The view of an attacker that links, before it sees the test vectors."""

    candidates: Texts
    """Distinct texts, in random order."""
    auxiliary: Corpus
    """The attacker's own texts: train and dev."""
    store: StolenStore
    claim: PrivacyClaim | None
    """The victim's claim; it is public, and so is the rule of the protection."""
    oracle: Oracle


Linker = Callable[[Floats], Links]
"""Ranks the view's candidates for stored vectors, float32 (n, d)."""


class LinkingThreat(Threat["LinkingAttack"]):
    """Linking."""

    name: ClassVar = "linking"
    sees: ClassVar = "the stored vectors, and candidate texts; some of these are stored"
    title: ClassVar = "linking: which text is this vector?"
    headline: ClassVar = HEADLINE
    headline_title: ClassVar = "linked at 1 % false links"
    found: ClassVar = "links {score} of the vectors to their texts at 1 % false links"
    nothing_found: ClassVar = "the strongest attack links no more vectors to their texts than chance would"
    guessed: ClassVar = "which text a vector is of"
    things: ClassVar = "vectors"
    needs: ClassVar = "documents"
    doubts_perfect_scores: ClassVar = False
    revision: ClassVar = 2
    columns: ClassVar = (
        Column(
            HEADLINE,
            "Share of the vectors that are linked to their texts if 1 % of the vectors without a text are linked, too.",
            TABLES,
            kind="number",
            better=LOWER,
            metric=HEADLINE,
            gate="attack",
            since="0.2.0",
        ),
        Column(
            "linked_first",
            "Share of the vectors whose first candidate is right.",
            (*TABLES, "page: victims"),
            title="first is right",
            kind="number",
            group="Privacy",
            better=LOWER,
            metric="linked_first",
            gate="attack",
            since="0.2.0",
        ),
        *LEDGER,
    )

    @classmethod
    def doubt(cls, row: Mapping[str, Any]) -> Doubt:
        """Add rows that do not tell how many vectors are linked at 1 % false links."""
        known, low = super().doubt(row), row.get("attack_advantage_low")
        is_vague = beats_constant(row) and is_number(low) and low <= 0 and is_number(row.get("linked_first"))
        return Doubt(TOO_FEW_LINKS, is_too_few=True) if is_vague and not known.why else known

    @classmethod
    def sentence(cls, row: Mapping[str, Any]) -> str:
        """Return the share of the stored vectors that were linked."""
        candidates = row.get("candidate_texts")
        if not beats_constant(row) or not is_number(candidates):
            return super().sentence(row)
        ends = [row.get(f"attack_advantage_{end}") for end in ("low", "high")]  # chance is below 1 %
        tried = [f"{row['test_size']:,.0f} {cls.things} tried"] if is_number(row.get("test_size")) else []
        if cls.doubt(row).why == TOO_FEW_LINKS:
            reasons = "; ".join([TOO_FEW_LINKS, *tried])
            found = f"{_percent(row['linked_first'])} of the stored vectors have their text as first"
            return f"{found} of {candidates:,.0f} candidates ({reasons})"
        parts = [f"{_percent(ends[0])} to {_percent(ends[1])}" if all(map(is_number, ends)) else "no interval"]
        parts += tried
        parts += [reason] if (reason := why_chance(row)) else []
        linked = f"{_percent(row['attack_score'])} of the stored vectors were linked to their text"
        return f"{linked} among {candidates:,.0f} candidates at 1 % false links ({'; '.join(parts)})"

    def evaluate(self, attack: LinkingAttack, side: VictimSide) -> AttackResult:
        """Show the test vectors in random order, and compare the links with the true texts.

        Raises:
            NotApplicable: the test split has too few distinct texts.
        """
        rows, truth, candidates = draw_candidates(side, attack.candidates)
        auxiliary = attacker_corpus(side)
        oracle = oracle_of(side, attack, auxiliary)
        store = stolen_store(side, attack)
        view = LinkingView(candidates, auxiliary, store, side.published.claim, oracle)
        linker = attack.fit(view, side.streams.seed_for("attack"))
        vectors, order = shuffled(side.published.documents["test"][rows], side.streams.stream("shuffle"))
        links = linker(vectors)
        oracle.require_own_questions([*candidates, *store.pairs.texts])
        expect(links, Links, "links")
        return AttackResult(
            secrets=("text",),
            test_size=len(rows),
            metrics=[
                *link_metrics(links, truth[order], len(candidates)),
                *oracle.ledger(known_pairs=len(store.pairs.texts)),
                *store.ledger(attacked=len(rows)),
            ],
            details=links.details,
            claim=release_claim(side, 1),
        )


def _percent(share: Any) -> str:
    return f"{100 * max(share, 0):.0f} %"


def draw_candidates(side: VictimSide, most: int | None) -> tuple[Integers, Integers, Texts]:
    """Draw the texts that stored vectors may belong to.

    Args:
        side: the victim's side.
        most: largest number of candidates; None: all texts. Half of the test texts are always candidates.

    Returns:
        The rows of the attacked test vectors, int64 (n,), one for each distinct text; the index of each one's right
        candidate, int64 (n,), -1 for vectors without one; and the candidates.

    Raises:
        NotApplicable: fewer than two texts of test are in neither train nor dev.
    """
    rng = side.streams.stream("candidates")
    texts = side.corpus.texts("test")
    others = [text for corpus in (side.corpus, side.auxiliary) for s in ("train", "dev") for text in corpus.texts(s)]
    known = {plain(text) for text in others}
    rows = {plain(text): row for row, text in enumerate(texts)}
    new = rng.permutation(np.array([row for text, row in rows.items() if text not in known], np.int64))
    absent, present = new[: len(new) // 2], new[len(new) // 2 :]
    if not len(absent):
        raise NotApplicable(f"{len(new)} texts of test are in no other split, needed: 2")
    distractors = rng.permutation(np.array([*dict.fromkeys(others)], dtype=object))
    kept = distractors if most is None else distractors[: max(0, most - len(present))]
    drawn = rng.permutation(np.array([*(texts[row] for row in present), *kept], dtype=object))
    place = {text: index for index, text in enumerate(drawn)}
    chosen = np.sort(np.concatenate([absent, present]))
    truth = np.array([place.get(texts[row], ABSENT) for row in chosen], np.int64)
    return chosen, truth, Texts(drawn.tolist())


class LinkingAttack(StoreThief):
    """An attack that links stored vectors to texts."""

    threat: ClassVar = LinkingThreat()
    candidates: int | None = None
    """Largest number of candidate texts, never fewer than the right ones; None: no limit."""

    @abstractmethod
    def fit(self, view: LinkingView, seed: int) -> Linker:
        """Learn to link."""
