"""Read texts from their vectors, in order or as sets of words.

The attacker sees texts of train and dev with their published vectors. The vectors of the test texts come in random
order. The attacker answers with one text for each vector. The headline is token F1, pooled over texts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leakboard.column import LOWER, Column
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Attack, Floats, Texts
from leakboard.metrics.agreement import agreement_metrics, cosine_metrics
from leakboard.metrics.measures import Metric, authors
from leakboard.metrics.sensitive_words import word_classes
from leakboard.metrics.text_scores import recovered_texts, text_metrics
from leakboard.metrics.word_scores import SENTENCES
from leakboard.threats.oracle import Oracle
from leakboard.threats.secrets import KnownTexts, known_texts, pairs_of
from leakboard.threats.sentence_parts import beats_constant, is_number, percent
from leakboard.threats.stores import StolenStore, oracle_of, stolen_store
from leakboard.threats.threat import (
    AttackResult,
    Threat,
    VictimSide,
    attacker_corpus,
    expect,
    observe,
    release_claim,
    shuffled,
)

CLASSES = {"numbers": "distinctive", "capitalised_words": "distinctive", "rare_words": "sensitive"}
"""Columns of the classes of words that matter, without their ending, and the metrics (`sensitive_words`) they show."""
LEAST_KNOWN = 0.1
"""Smallest share of the words of the test texts that the attacker's texts hold. Else the F1 over words is 0 anyway."""


@dataclass(frozen=True)
class TextsView:
    """The view of an attacker of texts before it sees the test vectors."""

    train: KnownTexts
    dev: KnownTexts
    """Texts to choose options on."""
    oracle: Oracle
    store: StolenStore | None = None
    """The stolen store. If there is one, the known texts are the attacker's own, with vectors of the public encoder, or
    of the attacker's own one."""
    known_encoder: bool = False
    """Whether the known vectors are in the public encoder's space, exactly or mapped to it."""


@dataclass(frozen=True)
class TextGuesses:
    """The texts that the attacker reads, one for each vector."""

    texts: Sequence[str]
    ordered: bool = True
    """Whether the words have an order; otherwise each text is a set of words, without counts."""
    details: str = ""


Reader = Callable[[Floats], TextGuesses]
"""Reads texts from test vectors, float32 (n, d)."""


def _title(name: str) -> str:
    return f"{name.replace('_', ' ')}{' that few texts have' if CLASSES[name] == 'distinctive' else ''}"


def _shares(row: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    """Return which share of a class comes back, and which by guesses about other texts."""
    return row.get(f"{name}_found"), row.get(f"{name}_floor")


class TextsThreat(Threat["TextsAttack"]):
    """Inversion: what did the text say?"""

    name: ClassVar = "texts"
    sees: ClassVar = "the published vectors of the test texts; and of other texts the vectors and the texts"
    title: ClassVar = "texts: which words are in the text?"
    headline: ClassVar = "token_f1"
    headline_title: ClassVar = "F1 over words"
    found: ClassVar = "recovers words with an F1 of {score}, {constant} without the vectors"
    needs: ClassVar = "documents"
    revision: ClassVar = 5
    columns: ClassVar = tuple(
        Column(
            f"{name}_{ending}",
            f"Share of the test texts' {_title(name)} that comes back{by}: `{metrics}_{metric}`.",
            ("leaderboard.csv", "page: attacks"),
            kind="number",
            better=LOWER,
            metric=f"{metrics}_{metric}",
            variable=name.replace("_", " "),
            gate="attack",
            since="0.2.0",
        )
        for name, metrics in CLASSES.items()
        for ending, metric, by in (
            ("found", "recall", ""),
            ("floor", "recall_floor", " by the same guesses about other texts"),
        )
    )

    @classmethod
    def of_competing(cls, competing: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return which numbers and capitalised words come back.

        For each class the attack counts that finds most above its floor on test.
        """
        found = []
        for name, title in (("capitalised_words", "capitalised ones"), ("numbers", "numbers")):
            known = [row for row in competing if all(map(is_number, _shares(row, name)))]
            if known:
                best = max(known, key=lambda row: _shares(row, name)[0] - _shares(row, name)[1])
                share, by_others = map(percent, _shares(best, name))
                found.append(f"{share} of the {title} ({best['attack']}; guesses about other texts: {by_others})")
        words_found = f"of words that few texts have, {' and '.join(found)} come back" if found else ""
        return {"words_found": words_found}

    @classmethod
    def sentence(cls, row: Mapping[str, Any]) -> str:
        """Return the sentence about the strongest attack, with the words that matter that come back."""
        sentence, found = super().sentence(row), row.get("words_found")
        return f"{sentence}; {found}" if found and beats_constant(row) else sentence

    def evaluate(self, attack: TextsAttack, side: VictimSide) -> AttackResult:
        """Show the test vectors in random order, and compare the attacker's texts with the true texts.

        Raises:
            NotApplicable: the attacker knows hardly any word of the test texts.
        """
        oracle = oracle_of(side, attack, attacker_corpus(side))
        store = stolen_store(side, attack) if attack.steals_store else None
        train, dev = (known_texts(side, split, (), oracle if store else None) for split in ("train", "dev"))
        view = TextsView(train, dev, oracle, store, known_encoder=store is not None and oracle.knows_encoder)
        _require_known_words(view.train.texts, side.corpus.texts("test"))
        reader = attack.fit(view, side.streams.seed_for("attack"))
        vectors, order = shuffled(observe(side, 1), side.streams.stream("shuffle"))
        guesses = reader(vectors)
        expect(guesses, TextGuesses, "texts")
        if len(guesses.texts) != len(order):
            raise RequestError(f"the attack wrote {len(guesses.texts)} texts for {len(order)} vectors")
        texts = [guesses.texts[place] for place in np.argsort(order)]
        return AttackResult(
            secrets=("text",),
            test_size=len(texts),
            metrics=[
                *text_metrics(texts, guesses.ordered, side.corpus),
                *_agreement(side, view, texts, guesses.ordered),
                *_reencoded(side, Texts(texts)),
                *oracle.ledger(*pairs_of(view)),
                *(store.ledger(attacked=len(vectors)) if store else ()),
            ],
            details=guesses.details,
            sentences=recovered_texts(texts, guesses.ordered, Texts(side.corpus.texts("test")[:SENTENCES])),
            claim=release_claim(side, 1),
        )


def _agreement(side: VictimSide, view: TextsView, texts: Sequence[str], ordered: bool) -> list[Metric]:
    test, rng = side.corpus.texts("test"), side.streams.stream("floor")
    classes = word_classes([*side.corpus.texts("train"), *test], view.train.texts)
    return agreement_metrics(texts, test, ordered, authors(side.corpus, "test"), classes, rng)


def _reencoded(side: VictimSide, texts: Texts) -> list[Metric]:
    """Compare the guesses' vectors with those of the test texts: before the protection, if the encoder is public."""
    victim, test, rng = side.victim, side.corpus.texts("test"), side.streams.stream("re-encoding")
    if victim.encodes_parts and victim.encoder_reads_texts:
        guessed, true = (side.fitted().unprotected(of) for of in (texts, test))
        if guessed is not None and true is not None:
            return cosine_metrics(guessed, true, rng)
    if victim.encodes_parts and victim.encodes_texts:
        return cosine_metrics(side.new_publisher()(texts, rng), observe(side, 1), rng)
    status = "the victim encodes no other texts"
    return [Metric(name, None, n=len(texts), status=status) for name in ("reencoded_cosine", "reencoded_cosine_floor")]


def _require_known_words(train: Texts, test: Texts) -> None:
    known = {word for text in train for word in words(text)}
    is_known = [word in known for text in test for word in words(text)]
    if sum(is_known) < LEAST_KNOWN * len(is_known):
        raise NotApplicable(
            f"{100 * sum(is_known) / len(is_known):.1f} % of the words of the test texts are in the attacker's texts, "
            f"needed: {100 * LEAST_KNOWN:.0f} %; words are split on white space: put spaces between them"
        )


class TextsAttack(Attack):
    """An attack that reads texts from their vectors."""

    threat: ClassVar = TextsThreat()

    @abstractmethod
    def fit(self, view: TextsView, seed: int) -> Reader:
        """Learn to read."""
