"""Guess secrets of documents from their vectors: attributes of a text, or the entities that it mentions.

The attacker sees published vectors of texts with known secrets, and may encode texts of its own. The vectors of the
test texts come in random order. The attacker answers with a score for every value of every secret. The headline is the
accuracy averaged over attributes, or micro F1 over (text, entity) pairs (Coavoux et al. 2018). This is not membership
inference: the answer says nothing about the training data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from leakboard.claims import PrivacyClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Attack, Corpus, Floats, Integers, Secret, SecretKind, Texts
from leakboard.metrics.row_guesses import RowGuesses
from leakboard.metrics.secret_scores import SCORES, dev_metrics, secret_metrics
from leakboard.privacy.channels.texts import TextChannel
from leakboard.threats.oracle import Oracle
from leakboard.threats.published import Publications
from leakboard.threats.published_texts import releases
from leakboard.threats.sentence_parts import is_number, percent, why_chance
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

MAX_COPIED = 1 << 28
RARE = 0.2
"""Accuracy says little if one value is right in all texts but this share."""


@dataclass(frozen=True)
class KnownTexts:
    """Texts of a split whose secrets the attacker knows, with their published vectors."""

    texts: Texts
    vectors: Floats
    """float32 (n, d)."""
    values: Mapping[str, Integers]
    """Indices of values for each secret, int64 (n,)."""
    inputs: Floats | None = None
    """Vectors before the victim's noise, float32 (n, d), as far as the attacker knows them; None: unknown."""

    def rows(self, chosen: Integers) -> KnownTexts:
        """Return some of the texts; itself if all are chosen in their order."""
        if np.array_equal(chosen, np.arange(len(self.vectors))):
            return self
        codes = {name: values[chosen] for name, values in self.values.items()}
        inputs = None if self.inputs is None else self.inputs[chosen]
        return KnownTexts(Texts([self.texts[row] for row in chosen]), self.vectors[chosen], codes, inputs)

    @classmethod
    def joined(cls, parts: Sequence[KnownTexts]) -> KnownTexts:
        """Return the texts of all parts, one after the other."""
        values = {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
        texts = Texts([text for part in parts for text in part.texts])
        inputs = [part.inputs for part in parts if part.inputs is not None]
        known = np.concatenate(inputs) if len(inputs) == len(parts) else None
        return cls(texts, np.concatenate([part.vectors for part in parts]), values, known)


@dataclass(frozen=True)
class SecretsView:
    """The view of an attacker of secrets before it sees the test vectors."""

    secrets: tuple[Secret, ...]
    """The secrets to guess."""
    train: KnownTexts
    dev: KnownTexts
    """Texts to choose options on, and to learn from at the end."""
    claim: PrivacyClaim | None
    """The victim's claim; it is public, and so is the mechanism."""
    oracle: Oracle
    store: StolenStore | None = None
    """The stolen store. If there is one, the known texts are the attacker's own, with vectors of the public encoder, or
    of the attacker's own one."""
    channel: TextChannel | None = None
    """The public rule that replaces words, for attackers who read the published texts; None: texts are rewritten."""

    @property
    def vectors(self) -> Floats:
        """Published vectors of train, float32 (n, d)."""
        return self.train.vectors

    @property
    def values(self) -> Mapping[str, Integers]:
        """Indices of values for each secret in train, int64 (n,)."""
        return self.train.values


@dataclass(frozen=True)
class SecretGuesses:
    """Scores of every value of every secret."""

    scores: Mapping[str, Floats]
    """For each secret, float32 (n, values). The guess is the value with the highest score."""
    details: str = ""
    on_dev: Mapping[str, Floats] = field(default_factory=dict)
    """Scores of the view's dev texts, in order, computed before the attack learned from dev; empty: none.

    The score on dev selects the strongest of several attacks.
    """


Guesser = Callable[[Any], Mapping[str, Floats] | SecretGuesses]
"""Guesses from test vectors, float32 (n, d), or (n, m, d) if the attack asked for m observations of each text.

An attack that reads published texts guesses from a list of `leakboard.threats.published_texts.Releases`.
"""


class SecretsThreat(Threat["SecretsAttack"]):
    """The common part of attribute inference and entity presence."""

    identity: ClassVar = "secrets"
    needs: ClassVar = "documents"
    revision: ClassVar = 4
    sees: ClassVar = (
        "the published vectors of the test texts; and of other texts the vectors, the texts and the secrets. "
        "It knows the victim's claim and the law of its noise"
    )
    beside_text_classifiers: ClassVar = True
    reads_texts: ClassVar = False

    def why_not_applicable(self, attack: SecretsAttack, corpus: Corpus, published: Publications | None) -> str:
        """Return a reason if the corpus has no secrets of the attacked kind, or no texts are published to be read."""
        if attack.reads_published_texts and published is not None and published.texts is None:
            return "the victim publishes no texts"
        return "" if targets(attack, corpus) else f"{corpus.name} has no {attack.kind} secrets"

    def evaluate(self, attack: SecretsAttack, side: VictimSide) -> AttackResult:
        """Show the test vectors in random order, and score the guesses next to every baseline."""
        secrets = targets(attack, side.corpus)
        oracle = oracle_of(side, attack, attacker_corpus(side))
        store = stolen_store(side, attack) if attack.steals_store else None
        train, dev = (known_texts(side, split, secrets, oracle if store else None) for split in ("train", "dev"))
        channel = side.fitted().text_channel if attack.reads_published_texts else None
        view = SecretsView(secrets, train, dev, side.published.claim, oracle, store, channel)
        guesser = attack.fit(view, side.streams.seed_for("attack"))
        observed, order = _shuffled(attack, side)
        answer = guesser(observed)
        paired = store.pairs.texts if store else ()
        view.oracle.require_own_questions([*view.train.texts, *view.dev.texts, *paired])
        guesses = SecretGuesses(answer) if isinstance(answer, Mapping) else answer
        expect(guesses, SecretGuesses, "secrets")
        if masked := [name for name, values in guesses.scores.items() if np.ma.is_masked(values)]:
            raise RequestError(f"guesses of {masked[0]!r} are masked")
        back = np.argsort(order)
        arrays = {name: np.asarray(values) for name, values in guesses.scores.items()}
        scores = {name: array[back] if array.shape[:1] == back.shape else array for name, array in arrays.items()}
        text_guesses = side.text_guesses(attack.kind) if side.text_guesses else None
        known = side.auxiliary if store else side.corpus
        return AttackResult(
            secrets=tuple(secret.name for secret in secrets),
            test_size=len(order),
            metrics=[
                *secret_metrics(side.corpus, secrets, scores, text_guesses),
                *dev_metrics(known, secrets, guesses.on_dev),
                *oracle.ledger(*pairs_of(view)),
                *(store.ledger(attacked=len(order)) if store else ()),
            ],
            details=guesses.details,
            claim=release_claim(side, attack.observations),
            guesses=RowGuesses.of(side.corpus, secrets, scores, known, guesses.on_dev),
        )


class AttributesThreat(SecretsThreat):
    """Attribute inference."""

    name: ClassVar = "attributes"
    headline: ClassVar = SCORES["attribute"][0]
    found: ClassVar = "right in {score}, {constant} without the vectors"
    nothing_found: ClassVar = (
        "{what}: the strongest attack gains nothing; guessing the most frequent value is right in {constant}"
    )

    @classmethod
    def sentence(cls, row: Mapping[str, Any]) -> str:
        """Return the sentence; if nearly all texts have one value, with the texts of another one that are found."""
        sentence = super().sentence(row)
        constant, found, lift = (row.get(name) for name in ("privacy_best_constant", "exposed_found", "exposed_lift"))
        if not (is_number(constant) and is_number(found) and is_number(lift)) or constant > RARE or why_chance(row):
            return sentence
        return (
            f"{sentence}; at 1 % false alarms {percent(found)} of the texts with {row['exposed_value']!r} are found, "
            f"which are {lift:.1f} times as frequent among the most suspected texts"
        )


class EntitiesThreat(SecretsThreat):
    """Entity presence."""

    name: ClassVar = "entities"
    headline: ClassVar = SCORES["entity"][0]
    headline_title: ClassVar = "F1"
    found: ClassVar = "finds who is mentioned with an F1 of {score}, {constant} without the vectors"


THREAT_OF_KIND: Mapping[SecretKind, SecretsThreat] = {"attribute": AttributesThreat(), "entity": EntitiesThreat()}
"""The threat by the kind of the secrets."""


class SecretsAttack(Attack):
    """An attack on secrets of documents."""

    threat: ClassVar[SecretsThreat] = THREAT_OF_KIND["attribute"]
    """By default the threat of ``kind``."""
    kind: ClassVar[SecretKind] = "attribute"
    """The kind of the attacked secrets."""
    observations: int = 1
    """Number of publications of each test text that the attack sees."""

    @property
    def reads_published_texts(self) -> bool:
        """Whether the attack sees the published words of the test texts, not their vectors."""
        return False

    def __init_subclass__(cls, **options: Any) -> None:
        """Set the threat of the attack's kind, unless the attack names another."""
        super().__init_subclass__(**options)
        if "threat" not in vars(cls) and cls.threat in THREAT_OF_KIND.values():
            cls.threat = THREAT_OF_KIND[cls.kind]

    @abstractmethod
    def fit(self, view: SecretsView, seed: int) -> Guesser:
        """Learn to guess."""


def _shuffled(attack: SecretsAttack, side: VictimSide) -> tuple[Any, Integers]:
    """Return what the attack sees of the test texts in random order, and their rows in this order, int64 (n,)."""
    rng = side.streams.stream("shuffle")
    if not attack.reads_published_texts:
        return shuffled(observe(side, attack.observations), rng)
    published = releases(side, attack.observations)
    order = rng.permutation(len(published))
    return [published[row] for row in order], order


def pairs_of(view: Any) -> tuple[int, bool]:
    """Return the number of known pairs of a view, and whether the attacker has texts of its own."""
    if view.store is not None:
        return len(view.store.pairs.texts), True
    return len(view.train.vectors) + len(view.dev.vectors), False


def targets(attack: SecretsAttack, corpus: Corpus) -> tuple[Secret, ...]:
    """Return the secrets of a corpus that an attack guesses."""
    return tuple(secret for secret in corpus.secrets if secret.kind == attack.kind)


def known_texts(side: VictimSide, split: str, secrets: tuple[Secret, ...], encoder: Oracle | None = None) -> KnownTexts:
    """Return the texts of train or dev with their published vectors and secrets.

    The vectors are a copy. If they have more than `MAX_COPIED` bytes, they are the mapped file, which is read-only.

    Args:
        side: the victim's side.
        split: ``train`` or ``dev``.
        secrets: the secrets that the attacker knows.
        encoder: for attackers with texts of their own: encodes them without protection. None: the texts are the
            victim's.

    Raises:
        NotApplicable: the attacker's own corpus lacks a secret, or the victim has no public encoder.
    """
    if encoder is not None:
        if missing := [secret.name for secret in secrets if secret not in side.auxiliary.secrets]:
            raise NotApplicable(f"the attacker's corpus {side.auxiliary.name} has no secret {missing[0]}")
        own = {secret.name: side.auxiliary.column(split, secret.name) for secret in secrets}
        return KnownTexts(side.auxiliary.texts(split), encoder.own_vectors(split), own)
    values = {secret.name: side.corpus.column(split, secret.name) for secret in secrets}
    vectors = side.published.documents[split]
    is_shared = vectors.nbytes > MAX_COPIED and not vectors.flags.writeable
    return KnownTexts(side.corpus.texts(split), vectors if is_shared else vectors.copy(), values)
