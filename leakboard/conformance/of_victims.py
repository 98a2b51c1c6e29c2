"""Check the promises of victims."""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from leakboard.claims import PrivacyClaim
from leakboard.conformance.promises import NotChecked, expect, promise
from leakboard.conformance.stand_ins import corpus_without_labels, published
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import content, digest
from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import FittedVictim, Floats, Texts, Victim
from leakboard.pipeline.repetition import are_near, mixes_up
from leakboard.privacy.channels.texts import TextChannel
from leakboard.privacy.exact.sampling import sampling_p_value
from leakboard.randomness import stream
from leakboard.threats.published import why_no_releases

ALONE = 10
"""How many texts are published one by one."""
SAMPLED = 2_000
"""Least number of published words that are compared with the channel."""
UNLIKELY = 1e-6
"""p-value below which the words are not the channel's. A right victim fails once in a million times."""
UNPICKLED = {".safetensors", ".npy", ".npz", ".json", ".txt"}
"""Suffixes of files that are read without pickle."""


@promise("victims", is_required=True)
def is_fitted(subject: Subject) -> None:
    """Its example can be fitted on its corpus, and does not change the corpus."""
    before, reason = digest(content(subject.corpus)), subject.plugin.why_not_applicable(subject.corpus)
    expect(reason == "", f"it does not apply to its example's corpus: {reason}", subject.cls.why_not_applicable)
    is_fitted_victim = isinstance(subject.fitted, FittedVictim)
    expect(is_fitted_victim, f"fit returns a {type(subject.fitted).__name__}, no FittedVictim", subject.cls.fit)
    expect(digest(content(subject.corpus)) == before, "it changes the corpus", subject.cls.fit)


@promise("victims")
def publishes_documents(subject: Subject) -> None:
    """Documents are float32 (n, d) and finite; a task head of its own gives each document a label of the corpus."""
    if "documents" not in subject.plugin.publishes:
        raise NotChecked("it publishes no documents")
    corpus, fitted = subject.corpus, subject.fitted
    texts = corpus.texts("test")
    vectors = fitted.publish_documents(texts, np.random.default_rng(0))
    _expect_floats(vectors, len(texts), type(fitted).publish_documents)
    predicted = fitted.predict(vectors) if corpus.has_labels else None
    if predicted is None:  # the engine trains a classifier
        return
    head = type(fitted).predict
    expect(predicted.shape == (len(texts),), f"{len(texts)} texts have labels of shape {predicted.shape}", head)
    expect(predicted.dtype.kind == "i", f"labels are {predicted.dtype}, not integers", head)
    inside = 0 <= predicted.min() <= predicted.max() < len(corpus.values("label"))
    expect(inside, f"labels are from {predicted.min()} to {predicted.max()}", head)


@promise("victims")
def gives_each_text_its_own_vector(subject: Subject) -> None:
    """The texts in another order have the same vectors, and without randomness a text alone has the same, too."""
    fitted, part = subject.fitted, type(subject.fitted).publish_documents
    if "documents" not in subject.plugin.publishes or not subject.plugin.encodes_texts:
        raise NotChecked("it publishes no documents that depend on texts")

    def publish(texts: Texts, name: str) -> Floats:
        return fitted.publish_documents(texts, stream(0, name))

    distinct = subject.corpus.texts("test").distinct()
    is_mixed = mixes_up(publish, distinct, np.random.default_rng(0))
    expect(not is_mixed, "the same texts in another order have other vectors: does it restore their order?", part)
    together, again = publish(distinct, "together"), publish(distinct, "again")
    if not np.array_equal(together, again):
        return
    few = range(min(ALONE, len(distinct)))
    alone = np.vstack([publish(distinct.take([place]), "alone") for place in few])
    expect(are_near(together[: len(few)], alone), "a text alone has another vector than among others", part)


@promise("victims")
def releases_come_from_its_mechanism(subject: Subject) -> None:
    """The mechanism has the claim's epsilon and delta and uses the generator; documents are releases of the inputs."""
    fitted = subject.fitted
    if "releases" not in subject.plugin.publishes or not fitted.claim:
        raise NotChecked("it publishes no releases with a claim")
    mechanism, claim, part = fitted.mechanism, fitted.claim, type(fitted).mechanism
    expect(mechanism, "it claims privacy of releases, but has no mechanism", part)
    assert mechanism is not None
    claimed, actual = (claim.epsilon, claim.delta), (mechanism.epsilon, mechanism.delta)
    expect(claimed == actual, f"epsilon and delta: it claims {claimed}, its mechanism has {actual}", part)
    values = np.random.default_rng(0).random((5, mechanism.dimension))
    first = mechanism.release(values.copy(), np.random.default_rng(1))
    expect(first.shape == values.shape, f"inputs of shape {values.shape} give releases of shape {first.shape}", part)
    second = mechanism.release(values, np.random.default_rng(2))
    expect(not np.array_equal(first, second), "different generators give the same release", part)
    reason = why_no_releases(fitted, subject.corpus.texts("test"), 0)
    expect(not reason, reason, type(fitted).inputs)


@promise("victims")
def publishes_words(subject: Subject) -> None:
    """Vectors of words are float32 (V, d) and finite. A table has each word once; contextual words are in order.

    Exact words, if the victim gives them, are those that it publishes.
    """
    if "words" not in subject.plugin.publishes:
        raise NotChecked("it publishes no words")
    texts, part = subject.corpus.texts("test"), type(subject.fitted).publish_words
    table = subject.fitted.publish_words(texts, np.random.default_rng(0))
    expect(table.words, "it publishes no word", part)
    _expect_floats(table.vectors, len(table.words), part)
    exact, exactly = subject.fitted.exact_words(texts), type(subject.fitted).exact_words
    expect(exact is None or exact.words == table.words, "it returns other words than publish_words", exactly)
    if (index := table.text_index) is None:
        expect(len(set(table.words)) == len(table.words), "a word occurs twice in the table", part)
        return
    expect(index.shape == (len(table.words),), f"text_index has shape {index.shape}", part)
    in_order = bool((np.diff(index) >= 0).all()) and 0 <= index[0] <= index[-1] < len(texts)
    expect(in_order, "text_index is not in the order of the texts", part)


@promise("victims")
def publishes_texts(subject: Subject) -> None:
    """Each text gives one text. If words are replaced, it has as many words, and the channel is public."""
    if {"texts", "rewritten_texts"}.isdisjoint(subject.plugin.publishes):
        raise NotChecked("it publishes no texts")
    texts, fitted = subject.corpus.texts("test"), subject.fitted
    part = type(fitted).publish_texts
    published = fitted.publish_texts(texts, np.random.default_rng(0))
    expect(len(published) == len(texts), f"{len(texts)} texts give {len(published)}", part)
    if "texts" not in subject.plugin.publishes:
        return
    for text, replaced in zip(texts, published, strict=True):
        counts = len(words(text)), len(replaced.split())
        expect(counts[0] == counts[1], f"a text of {counts[0]} words has {counts[1]} when published", part)
    expect(isinstance(fitted.text_channel, TextChannel), "it has no text_channel", type(fitted).text_channel)


@promise("victims")
def texts_come_from_its_channel(subject: Subject) -> None:
    """Published words have the probabilities of its channel."""
    channel = subject.fitted.text_channel if "texts" in subject.plugin.publishes else None
    if channel is None:
        raise NotChecked("it publishes no texts whose words were replaced")
    if channel.known.precision == "approximate":
        raise NotChecked("its channel's matrix is approximate")
    texts, part = subject.corpus.texts("test"), type(subject.fitted).publish_texts
    rng = np.random.default_rng(0)
    plain: list[str] = []
    replaced: list[str] = []
    while len(plain) < SAMPLED and any(map(words, texts)):
        for text, new in zip(texts, subject.fitted.publish_texts(texts, rng), strict=True):
            plain.extend(words(text))
            replaced.extend(new.split())
    expect(len(plain) == len(replaced), "texts have other numbers of words when published", part)
    try:
        p_value = sampling_p_value(channel, plain, replaced, np.random.default_rng(1))
    except RequestError as error:
        raise NotChecked(str(error)) from None
    expect(p_value >= UNLIKELY, f"its words are not those of its channel: p = {p_value:.2g}", part)


@promise("victims")
def claims_and_coverage_are_in_range(subject: Subject) -> None:
    """A claim is a PrivacyClaim or None; shares of texts are between 0 and 1."""
    fitted = subject.fitted
    is_claim = fitted.claim is None or isinstance(fitted.claim, PrivacyClaim)
    expect(is_claim, f"its claim is a {type(fitted.claim).__name__}", type(fitted).claim)
    for name, share in vars(fitted.coverage(subject.corpus.texts("test"))).items():
        expect(share is None or 0 <= share <= 1, f"coverage: {name} = {share}", type(fitted).coverage)


@promise("victims")
def publishes_the_same_each_time(subject: Subject) -> None:
    """The same seed and generator give the same vectors, also in another process. The corpus does not change."""
    before, fitted = digest(content(subject.corpus)), subject.fitted
    part = type(fitted).publish_documents
    first, second = (digest(published(subject.plugin, fitted, subject.corpus)) for _ in range(2))
    expect(first == second, "the same generator gives other vectors: the victim has another source of randomness", part)
    expect(digest(content(subject.corpus)) == before, "publishing changes the corpus", part)
    subject.expect_same_in_subprocess(first, subject.cls.fit)


@promise("victims")
def is_saved_and_loaded_without_pickle(subject: Subject) -> None:
    """Its saved files hold no pickle; the loaded victim publishes the same vectors and has the same claim."""
    fitted, corpus = subject.fitted, subject.corpus
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder))
        suffixes = {path.suffix for path in Path(folder).rglob("*") if path.is_file()}
        wrong = ", ".join(sorted(suffixes - UNPICKLED))
        expect(not wrong, f"it saves {wrong}; allowed are {', '.join(sorted(UNPICKLED))}", type(fitted).save)
        loaded = subject.example().load(Path(folder))
        before, after = (digest(published(subject.plugin, victim, corpus)) for victim in (fitted, loaded))
    expect(before == after, "the loaded victim publishes other vectors than the saved one", subject.cls)
    expect(loaded.claim == fitted.claim, f"the loaded victim claims {loaded.claim}", subject.cls.load)


@promise("victims")
def changes_nothing_when_its_recipe_is_asked_for_again(subject: Subject) -> None:
    """``training_config`` and ``non_private`` return a victim; calling them again on this victim changes nothing."""
    trained, unprotected = subject.plugin.training_config(), subject.plugin.non_private()
    expect(type(trained) is type(subject.plugin), f"it returns a {type(trained).__name__}", subject.cls.training_config)
    expect(trained.training_config() == trained, "a call on its result changes the result", subject.cls.training_config)
    expect(isinstance(unprotected, Victim), "it returns no victim", subject.cls.non_private)
    expect(unprotected.non_private() == unprotected, "a call on its result changes the result", subject.cls.non_private)


@promise("victims")
def learns_the_same_as_its_training_recipe(subject: Subject) -> None:
    """Options that ``training_config`` leaves out do not act in training: other numbers there change nothing."""
    if (changed := _with_other_dropped_numbers(subject.plugin)) == subject.plugin:
        raise NotChecked("training_config leaves out no numeric option, so there is nothing to compare")
    corpus = subject.corpus
    known = corpus.only("train", "dev")
    with tempfile.TemporaryDirectory() as folder:
        changed.training_config().fit(known, 0).save(Path(folder))
        shared = digest(published(changed, changed.load(Path(folder)), corpus))
    own = digest(published(changed, changed.fit(known, 0), corpus))
    expect(shared == own, f"{changed} learns something else than its training_config", subject.cls.training_config)


def _with_other_dropped_numbers(victim: Victim) -> Victim:
    """Return the victim with other numbers in the options that ``training_config`` drops."""
    trained, changed = victim.training_config(), victim
    for option in dataclasses.fields(victim):  # type: ignore[arg-type]
        value = getattr(victim, option.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        with suppress(RequestError, ValueError):
            other = dataclasses.replace(changed, **{option.name: value + 1 if isinstance(value, int) else 2 * value})  # type: ignore[type-var]
            changed = other if other.training_config() == trained else changed
    return changed


@promise("victims")
def works_without_task_labels(subject: Subject) -> None:
    """It can be fitted on texts without a task label, or raises a RequestError with the reason."""
    if subject.plugin.example_corpus():
        raise NotChecked("its example has a corpus of its own")
    corpus = corpus_without_labels()
    if reason := subject.plugin.why_not_applicable(corpus):
        raise NotChecked(f"it does not apply: {reason}")
    try:
        fitted = subject.example().fit(corpus.only("train", "dev"), 0)
    except RequestError as error:
        raise NotChecked(f"it does not apply: {error}") from None
    if "documents" in subject.plugin.publishes:
        texts = corpus.texts("test")
        vectors = fitted.publish_documents(texts, np.random.default_rng(0))
        _expect_floats(vectors, len(texts), type(fitted).publish_documents)


def _expect_floats(vectors: Any, count: int, part: Any) -> None:
    """Raise `Broken` unless the vectors are float32 (count, d) and finite."""
    shape, dtype = getattr(vectors, "shape", None), getattr(vectors, "dtype", type(vectors).__name__)
    expect(shape is not None and len(shape) == 2 and shape[0] == count, f"shape {shape}, expected ({count}, d)", part)
    expect(dtype == np.float32, f"vectors are {dtype}, expected float32", part)
    expect(np.isfinite(vectors).all(), "vectors hold NaN or infinity", part)
