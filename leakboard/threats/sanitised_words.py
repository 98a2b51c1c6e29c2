"""Read the words of published texts whose words were replaced.

The attacker sees the published words of the test texts, in order within a text, with the texts in random order. It
knows the channel: the vocabulary and the probability of each replacement. It has texts of its own. It answers with one
word for each published word. The headline is the share of words that are right.

Next to it are the share of words that were published unchanged, and the context-free bound: what the best attacker gets
right that knows all word frequencies of the test texts, and looks at one word at a time. Attackers who read the whole
text, or several publications, may exceed it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakboard.claims import PrivacyClaim, ReleaseClaim
from leakboard.column import LOWER, Column
from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Attack, Corpus
from leakboard.metrics.measures import Metric, authors
from leakboard.metrics.sanitised_scores import WordReadings, read_sentences, sanitised_metrics, sensitive_kinds
from leakboard.privacy.channels.texts import TextChannel
from leakboard.privacy.exact.corpus_bound import corpus_bound
from leakboard.threats.oracle import Oracle
from leakboard.threats.published_texts import Releases, releases
from leakboard.threats.threat import AttackResult, Threat, VictimSide, attacker_corpus, expect, release_claim

__all__ = ["Reader", "Releases", "SanitisedWordsAttack", "SanitisedWordsThreat", "SanitisedWordsView", "WordReadings"]

TABLES = ("leaderboard.csv", "best_known.csv", "report", "page: attacks")


@dataclass(frozen=True)
class SanitisedWordsView:
    """The view of an attacker of sanitised texts before it sees them."""

    auxiliary: Corpus
    """Texts that the attacker collected: train and dev."""
    channel: TextChannel
    """The public rule that replaces words."""
    claim: PrivacyClaim | None
    oracle: Oracle


Reader = Callable[[Sequence[Releases]], WordReadings]
"""Reads texts from their publications."""


class SanitisedWordsThreat(Threat["SanitisedWordsAttack"]):
    """Sanitised words: what were the words before they were replaced?"""

    name: ClassVar = "sanitised_words"
    sees: ClassVar = "the published words of the test texts, the rule that replaced them, and texts of its own"
    title: ClassVar = "sanitised words: which words were replaced by these?"
    headline: ClassVar = "words_right"
    headline_title: ClassVar = "share of words right"
    found: ClassVar = "names {score} of the words, {constant} by taking the published or the most frequent word"
    needs: ClassVar = "texts"
    revision: ClassVar = 1
    columns: ClassVar = (
        Column(
            "words_kept",
            "Share of words that are published unchanged: the attacker who takes each published word for the true one.",
            TABLES,
            title="kept",
            kind="number",
            better=LOWER,
            metric="words_kept",
            since="0.2.0",
        ),
        Column(
            "context_free_bound",
            "Share of words that the best attacker gets right on average, if it knows the word frequencies and looks "
            "at one published word at a time.",
            TABLES,
            title="bound, one word",
            kind="number",
            better=LOWER,
            metric="context_free_bound",
            since="0.2.0",
        ),
        Column(
            "sensitive_right",
            "Share of names, numbers and rare words that the attack gets right.",
            TABLES,
            title="sensitive words",
            kind="number",
            better=LOWER,
            metric="sensitive_right",
            gate="attack",
            since="0.2.0",
        ),
        Column(
            "true_epsilon",
            "Largest log-ratio between any two words over all outputs, computed from the channel; `inf` if an output "
            "excludes a word. Empty if the channel's probabilities are approximate.",
            TABLES,
            title="true epsilon",
            kind="epsilon",
            better=LOWER,
            metric="true_epsilon",
            since="0.2.0",
        ),
        Column(
            "unused_budget",
            "Share of the claimed epsilon that no compared pair of words needs; below 0 if the claim is violated. "
            "Empty if the computed epsilon is infinite.",
            TABLES,
            title="unused",
            kind="number",
            metric="unused_budget",
            since="0.2.0",
        ),
    )

    def evaluate(self, attack: SanitisedWordsAttack, side: VictimSide) -> AttackResult:
        """Show the published texts in random order, and compare the attacker's words with the private ones.

        Raises:
            RequestError: the answer has another number of texts or words, or a text was published with another number
                of words.
        """
        texts, auxiliary = side.corpus.texts("test"), attacker_corpus(side)
        truth, published = [words(text) for text in texts], releases(side, attack.observations)
        for plain, given in zip(truth, published, strict=True):
            if {*map(len, given)} != {len(plain)}:
                raise RequestError(f"a text of {len(plain)} words was published with another number of words")
        view = SanitisedWordsView(auxiliary, side.fitted().text_channel, side.published.claim, Oracle(side, auxiliary))
        reader = attack.fit(view, side.streams.seed_for("attack"))
        order = side.streams.stream("shuffle").permutation(len(texts))
        readings = reader([published[row] for row in order])
        expect(readings, WordReadings, "sanitised words")
        back = np.argsort(order)
        read = [readings.texts[place] for place in back] if len(readings.texts) == len(order) else readings.texts
        own = Counter(word for split in ("train", "dev") for text in auxiliary.texts(split) for word in words(text))
        people = [word for secret in side.corpus.secrets if secret.kind == "entity" for word in words(secret.name)]
        counts = Counter(word for text in side.corpus.texts("train") for word in words(text))
        frequent = counts.most_common(1)[0][0] if counts else ""
        metrics = sanitised_metrics(
            read,
            truth,
            [one[0] for one in published],
            frequent,
            sensitive_kinds(people, own),
            authors(side.corpus, "test"),
        )
        return AttackResult(
            secrets=("words",),
            test_size=len(texts),
            metrics=[*metrics, *_of_channel(side, view.channel, truth), *view.oracle.ledger()],
            details=readings.details,
            sentences=read_sentences(read, truth, texts),
            claim=release_claim(side, attack.observations),
        )


class SanitisedWordsAttack(Attack):
    """An attack that reads sanitised texts."""

    threat: ClassVar = SanitisedWordsThreat()
    observations: int = 1
    """Number of publications of each test text that the attack sees."""

    @abstractmethod
    def fit(self, view: SanitisedWordsView, seed: int) -> Reader:
        """Learn to read."""


def _of_channel(side: VictimSide, channel: TextChannel, truth: Sequence[Sequence[str]]) -> list[Metric]:
    """Return the context-free bound of the test texts, and how much of the claim the channel uses."""
    bound = corpus_bound(channel, [word for text in truth for word in text])
    claim = side.published.claim
    unused = None
    if isinstance(claim, ReleaseClaim) and claim.exact is not None and math.isfinite(claim.exact):
        unused = 1 - claim.exact / claim.epsilon
    approximate = "the channel's matrix is approximate"
    if bound is None:
        of_bound = Metric("context_free_bound", None, n=len(truth), status="the channel's matrix is not known")
    elif channel.known.precision == "approximate":
        names = ("true_epsilon", "unused_budget")
        of_bound = Metric("context_free_bound", bound, n=len(truth), status=approximate)
        return [of_bound, *(Metric(name, None, status=approximate) for name in names)]
    else:
        of_bound = Metric("context_free_bound", bound, n=len(truth))
    return [of_bound, Metric("true_epsilon", channel.true_epsilon), Metric("unused_budget", unused)]
