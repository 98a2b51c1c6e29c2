"""Mounting one attack on published vectors and having it judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakboard.data.words import words
from leakboard.errors import RequestError
from leakboard.interfaces import (
    Attack,
    Corpus,
    Floats,
    Integers,
    MembershipGuesses,
    PrivacyClaim,
    PublishedWords,
    SecretGuesses,
    TextGuesses,
    WordGuesses,
)
from leakboard.metrics import SCORES, judge, judge_task
from leakboard.metrics.claims import AUDITED, composed, judge_claim
from leakboard.metrics.measures import Metric
from leakboard.metrics.membership import membership_metrics
from leakboard.metrics.neighbours import QUERIES, neighbour_metrics
from leakboard.metrics.regression import judge_regression
from leakboard.metrics.texts import recovered_texts, text_metrics
from leakboard.metrics.words import (
    ASKED,
    HEADLINE,
    SENTENCES,
    UNPUBLISHED,
    RecoveredSentence,
    recovered_sentences,
    word_metrics,
)
from leakboard.pipeline.fitting import Names
from leakboard.pipeline.publications import Publications, publisher
from leakboard.pipeline.scene import Scene, candidates, observations, on_training, releasing, targets, view
from leakboard.pipeline.training_data import Candidates, has_users, judge_canaries, training_unit
from leakboard.randomness import seed_libraries

Guess = Callable[[Floats], SecretGuesses | WordGuesses | TextGuesses]


@dataclass(frozen=True)
class Judged:
    """What the referee found in a cell."""

    secrets: tuple[str, ...]
    attack_metric: str
    test_size: int
    metrics: list[Metric]
    note: str
    sentences: list[RecoveredSentence]
    claim: PrivacyClaim | None
    """The victim's, for as many publications of a text as the attack saw."""


def mismatch(attack: Attack, corpus: Corpus) -> str:
    """Return why attack and corpus cannot meet, or an empty string."""
    if attack.target in ("attribute", "entity") and not targets(attack, corpus):
        return f"{corpus.name} has no {attack.target} secrets"
    if getattr(attack, "unit", None) == "user" and not has_users(corpus):
        return f"{corpus.name} names no users"
    return ""


def unclaimed(attack: Attack, published: Publications) -> str:
    """Return why there is nothing to audit or to infer from, or an empty string."""
    if on_training(attack):
        if published.words is not None and published.words.text_index is not None:
            return "it reads static word tables; this victim's words depend on their context"
        protected = published.claim.protects if published.claim else "training"
        audits = attack.target == "claim" and protected != "training"
        return "the claim is about what is published, not about training data" if audits else ""
    if attack.target != "claim":
        return ""
    if published.claim is None:
        return "the victim claims no privacy"
    if published.claim.protects == "training":
        return "the claim is about training data, not about what is published"
    unit = published.claim.unit
    return "" if unit in AUDITED else f"the claim is about one {unit}; audited are {', '.join(AUDITED)}"


def mount(attack: Attack, scene: Scene, names: Names, floor: np.ndarray | None) -> Judged:
    """Fit an attack, let it guess, and judge the guesses.

    Args:
        attack: the attacker.
        scene: what it is mounted on.
        names: of the random streams.
        floor: guesses of classifiers trained on the text for the attacked secrets, or None.
    """
    asked: set[str] = set()
    seed = names.seed_for("attack")
    seed_libraries(seed)
    asked_about = candidates(attack, scene, names)
    seen = view(attack, scene, names, asked, asked_about)
    fitted: Any = attack.fit(seen, seed)
    n = len(scene.corpus.splits["test"])
    metrics = judge_task(scene.corpus, scene.published.predicted)
    metrics += judge_regression(scene.corpus, scene.published.documents)
    if scene.gold and scene.published.words:
        metrics += neighbour_metrics(scene.published.words, scene.gold.words, scene.gold.queries or QUERIES)
    for name, share in scene.published.coverage.items():
        if not (name.endswith("_texts") and 0 <= share <= 1):
            raise ValueError(f"coverage: {name}={share!r} is not allowed: a share of texts, named ..._texts")
        metrics.append(Metric(name, share, n=n))
    if attack.target == "claim":
        if on_training(attack):
            return _judge_training_audit(attack, fitted, scene, names, metrics)
        return _judge_audit(fitted, scene, names, metrics)
    if attack.target == "membership":
        return _judge_members(fitted, scene, asked_about, seen.auxiliary, metrics)
    if attack.needs == "words":
        return _judge_words(fitted.guess, scene, names, asked, metrics)
    guesses = _guess_shuffled(attack, fitted.guess, _observed(attack, scene, names), names)
    claim = scene.published.claim
    if claim and claim.protects == "training":
        claim = None  # it is not about the vectors of texts, which anybody may have encoded
    claim = claim and composed(claim, observations(attack))
    if isinstance(guesses, TextGuesses):
        metrics += text_metrics(guesses, scene.corpus)
        shown = recovered_texts(guesses, scene.corpus.texts("test")[:SENTENCES])
        return Judged(("text",), "token_f1", n, metrics, guesses.note, shown, claim)
    secrets = targets(attack, scene.corpus)
    metrics += judge(scene.corpus, secrets, guesses, floor)
    metric = SCORES[attack.target][0]
    return Judged(tuple(secret.name for secret in secrets), metric, n, metrics, guesses.note, [], claim)


def _judge_members(
    fitted: Any, scene: Scene, asked_about: Candidates | None, own: Corpus, metrics: list[Metric]
) -> Judged:
    """Let an attack score candidates by the published table, words included: it is published whole."""
    published = scene.published.words
    assert published is not None, "attacks on membership meet only victims that publish words"
    assert asked_about is not None, "they are asked about somebody"
    guesses = fitted.guess_members(published)
    if not isinstance(guesses, MembershipGuesses):
        raise RequestError(f"an attack on membership returns MembershipGuesses, not {type(guesses).__name__}")
    metrics += membership_metrics(guesses.scores, asked_about.members, asked_about.owners)
    n, left, all_texts = len(asked_about.members), len(own.splits["train"]), len(scene.auxiliary.splits["train"])
    remark = "; ".join(filter(None, [guesses.note, f"the attacker has {left} of {all_texts} texts of its own left"]))
    return Judged(("membership",), "auc", n, metrics, remark, [], scene.published.claim)


def _judge_training_audit(attack: Attack, fitted: Any, scene: Scene, names: Names, metrics: list[Metric]) -> Judged:
    """Train the victim with canaries and without, and count what the audit tells."""
    claim, corpus = scene.published.claim, scene.corpus.only("train", "dev")
    unit = training_unit(attack, claim, scene.corpus)
    metrics += judge_canaries(fitted, unit, scene.victim, corpus, claim, names)
    return Judged(("claim",), "epsilon", len(fitted.canaries), metrics, "", [], claim)


def _guess_shuffled(attack: Attack, guess: Guess, vectors: Floats, names: Names) -> SecretGuesses | TextGuesses:
    """Let an attack guess from vectors in random order, so that neighbours in the source tell nothing, and undo it.

    Raises:
        RequestError: it returns guesses of another kind than it says, or not one text a vector.
    """
    order = names.stream("shuffle").permutation(len(vectors))
    guesses, expected = guess(vectors[order]), TextGuesses if attack.target == "text" else SecretGuesses
    if not isinstance(guesses, expected):
        raise RequestError(f"an attack on {attack.target} returns {expected.__name__}, not {type(guesses).__name__}")
    back = np.argsort(order)
    if isinstance(guesses, TextGuesses):
        if len(guesses.texts) != len(back):
            raise RequestError(f"the attack wrote {len(guesses.texts)} texts of {len(back)} vectors")
        return replace(guesses, texts=[guesses.texts[place] for place in back])
    assert isinstance(guesses, SecretGuesses)
    scores = {name: np.asarray(s)[back] if len(s) == len(back) else s for name, s in guesses.scores.items()}
    return SecretGuesses(scores, guesses.note)


def _observed(attack: Attack, scene: Scene, names: Names) -> Floats:
    """Return what the attack sees of the test texts: float32 (n, d), or (n, m, d) for m > 1 observations of each."""
    first = scene.published.documents["test"]
    if (times := observations(attack)) == 1:
        return first
    texts, stream, publish = scene.corpus.texts("test"), names.stream("observe"), publisher(scene.victim, scene.fitted)
    return np.stack([first, *(publish(texts, stream) for _ in range(times - 1))], axis=1)


def _judge_audit(fitted: Any, scene: Scene, names: Names, metrics: list[Metric]) -> Judged:
    """Draw fresh releases and count what the audit's events tell."""
    claim = scene.published.claim
    assert claim is not None, "audits meet only victims with a claim"
    mechanism, rng = releasing(scene.fitted()).mechanism, names.stream(f"audit {names.label}")
    metrics += judge_claim(fitted, claim, mechanism, publisher(scene.victim, scene.fitted), rng)
    event = fitted.distinguisher
    return Judged(("claim",), "epsilon", event.draws, metrics, event.note, [], claim)


def _judge_words(
    guess: Guess,
    scene: Scene,
    names: Names,
    asked: set[str],
    metrics: list[Metric],
) -> Judged:
    """Show the attack the vectors alone, shuffled (a row's place gives away its frequency), and judge its ranking.

    Words of a static table whose vectors the attacker asked the victim for are known to it and left out of the score.
    """
    published = scene.published.words
    assert published is not None, "attacks on words meet only victims that publish words"
    if published.text_index is not None:
        asked = set()
    kept = np.array([row for row, word in enumerate(published.words) if word not in asked], dtype=np.int64)
    order = names.stream("shuffle").permutation(kept)
    guesses = guess(published.vectors[order].copy())
    if not isinstance(guesses, WordGuesses):
        raise RequestError(f"an attack on words returns WordGuesses, not {type(guesses).__name__}")
    gold = [published.words[row] for row in order]
    counts = Counter(word for text in scene.corpus.texts("train") for word in words(text) if word not in asked)
    units = None if published.text_index is None else published.text_index[order]
    metrics += word_metrics(guesses, gold, [word for word, _ in counts.most_common(HEADLINE)], units)
    place = np.full(len(published.words), ASKED)
    place[order] = np.arange(len(order))
    sentences = recovered_sentences(guesses, gold, _sentences(scene, published, place))
    right, total = sum(s.words_right for s in sentences), sum(s.words for s in sentences)
    metrics.append(Metric("sentence_words_right", right / total if total else None, n=total))
    shown = sentences[:SENTENCES]
    return Judged(("words",), "recall@5", len(order), metrics, guesses.note, shown, scene.published.claim)


def _sentences(scene: Scene, published: PublishedWords, place: Integers) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return the test texts with their words and the shuffled row of each word's vector."""
    texts = scene.corpus.texts("test")
    if published.text_index is None:
        rows = {word: int(place[row]) for row, word in enumerate(published.words)}
        return [(text, [(word, rows.get(word, UNPUBLISHED)) for word in words(text)]) for text in texts]
    result: list[tuple[str, list[tuple[str, int]]]] = [(text, []) for text in texts]
    for row, (word, owner) in enumerate(zip(published.words, published.text_index, strict=True)):
        result[owner][1].append((word, int(place[row])))
    return result
