"""What a fitted victim promises."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from leakboard.claims import PrivacyClaim
from leakboard.conformance.expect import NotChecked, expect
from leakboard.conformance.presentation import same_elsewhere
from leakboard.conformance.promises import promise
from leakboard.conformance.stand_ins import corpus_without_labels, published
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import content, digest
from leakboard.errors import RequestError
from leakboard.interfaces import FittedVictim, Victim

UNPICKLED = {".safetensors", ".npy", ".npz", ".json", ".txt"}


@promise("victims", opens=True)
def is_fitted(subject: Subject) -> None:
    """Its example is fitted on its corpus, which it leaves as it is."""
    before, reason = digest(content(subject.corpus)), subject.plugin.why_not_applicable(subject.corpus)
    expect(reason == "", f"it does not apply to its example's corpus: {reason}", subject.cls.why_not_applicable)
    is_one = isinstance(subject.fitted, FittedVictim)
    expect(is_one, f"fit returns a {type(subject.fitted).__name__}, no FittedVictim", subject.cls.fit)
    expect(digest(content(subject.corpus)) == before, "it changes the corpus", subject.cls.fit)


@promise("victims")
def publishes_documents(subject: Subject) -> None:
    """Documents are float32 (n, d), finite, and its own head gives each a label of the corpus."""
    if "documents" not in subject.plugin.publishes:
        raise NotChecked("it publishes no documents")
    corpus, fitted = subject.corpus, subject.fitted
    texts, place = corpus.texts("test"), type(fitted).publish_documents
    vectors = fitted.publish_documents(texts, np.random.default_rng(0))
    _expect_floats(vectors, len(texts), place)
    predicted = fitted.predict(vectors) if corpus.has_labels else None
    if predicted is None:  # the engine classifies
        return
    head = type(fitted).predict
    expect(predicted.shape == (len(texts),), f"{len(texts)} texts have labels of shape {predicted.shape}", head)
    expect(predicted.dtype.kind == "i", f"labels are {predicted.dtype}, not integers", head)
    inside = 0 <= predicted.min() <= predicted.max() < len(corpus.values("label"))
    expect(inside, f"labels are from {predicted.min()} to {predicted.max()}", head)


@promise("victims")
def releases_are_its_mechanisms(subject: Subject) -> None:
    """Its mechanism has the claim's epsilon and delta and draws anew each time; what it publishes is its release."""
    fitted = subject.fitted
    if "releases" not in subject.plugin.publishes or not fitted.claim:
        raise NotChecked("it publishes no releases with a claim")
    mechanism, claim, place = fitted.mechanism, fitted.claim, type(fitted).mechanism
    expect(mechanism, "it claims privacy of releases, and has no mechanism", place)
    assert mechanism is not None
    stated, real = ((one.epsilon, one.delta) for one in (claim, mechanism))
    expect(stated == real, f"epsilon and delta: it claims {stated}, its mechanism has {real}", place)
    given = np.random.default_rng(0).random((5, mechanism.dimension))
    released = mechanism.release(given.copy(), np.random.default_rng(1))
    expect(released.shape == given.shape, f"released are {released.shape} of {given.shape}", place)
    again = mechanism.release(given, np.random.default_rng(2))
    expect(not np.array_equal(released, again), "it releases the same whatever the generator", place)
    texts = subject.corpus.texts("test")
    if (inputs := fitted.inputs(texts)) is None:
        return
    expect(0 <= inputs.min() <= inputs.max() <= 1, "inputs lie outside [0, 1]", type(fitted).inputs)
    made = mechanism.release(inputs, np.random.default_rng(0)).astype(np.float32)
    same = np.array_equal(made, fitted.publish_documents(texts, np.random.default_rng(0)))
    expect(same, "what it publishes is no release of its inputs, bit for bit", type(fitted).inputs)


@promise("victims")
def publishes_words(subject: Subject) -> None:
    """Words are float32 (V, d), finite, each named; of a table once, else in the order of the texts."""
    if "words" not in subject.plugin.publishes:
        raise NotChecked("it publishes no words")
    texts, place = subject.corpus.texts("test"), type(subject.fitted).publish_words
    words = subject.fitted.publish_words(texts, np.random.default_rng(0))
    expect(words.words, "it publishes no word", place)
    _expect_floats(words.vectors, len(words.words), place)
    if (index := words.text_index) is None:
        expect(len(set(words.words)) == len(words.words), "a word stands twice in the table", place)
        return
    expect(index.shape == (len(words.words),), f"text_index has shape {index.shape}", place)
    in_order = bool((np.diff(index) >= 0).all()) and 0 <= index[0] <= index[-1] < len(texts)
    expect(in_order, "text_index is not in the order of the texts", place)


@promise("victims")
def claims_and_coverage_are_in_range(subject: Subject) -> None:
    """A claim is a PrivacyClaim or None; shares of texts lie between 0 and 1."""
    fitted = subject.fitted
    is_claim = fitted.claim is None or isinstance(fitted.claim, PrivacyClaim)
    expect(is_claim, f"its claim is a {type(fitted.claim).__name__}", type(fitted).claim)
    for name, share in vars(fitted.coverage(subject.corpus.texts("test"))).items():
        expect(share is None or 0 <= share <= 1, f"coverage: {name} = {share}", type(fitted).coverage)


@promise("victims")
def publishes_the_same_each_time(subject: Subject) -> None:
    """The same seed and generator give the same vectors, here and in another process; the corpus stays as it is."""
    before, fitted = digest(content(subject.corpus)), subject.fitted
    place = type(fitted).publish_documents
    first, again = (digest(published(subject.plugin, fitted, subject.corpus)) for _ in range(2))
    expect(first == again, "the same generator gives other vectors: its randomness comes from elsewhere", place)
    expect(digest(content(subject.corpus)) == before, "publishing changes the corpus", place)
    same_elsewhere(subject, first, subject.cls.fit)


@promise("victims")
def is_saved_and_loaded_without_pickle(subject: Subject) -> None:
    """What save writes holds no pickle, and what load reads publishes the same vectors under the same claim."""
    fitted, corpus = subject.fitted, subject.corpus
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder))
        suffixes = {path.suffix for path in Path(folder).rglob("*") if path.is_file()}
        wrong = ", ".join(sorted(suffixes - UNPICKLED))
        expect(not wrong, f"it saves {wrong}; allowed are {', '.join(sorted(UNPICKLED))}", type(fitted).save)
        loaded = subject.example().load(Path(folder))
        first, again = (digest(published(subject.plugin, one, corpus)) for one in (fitted, loaded))
    expect(first == again, "what is loaded publishes other vectors than what was saved", subject.cls.load)
    expect(loaded.claim == fitted.claim, f"what is loaded claims {loaded.claim}", subject.cls.load)


@promise("victims")
def its_recipes_lead_no_further(subject: Subject) -> None:
    """The recipe without publication, or without protection, is a victim whose own such recipe is itself."""
    trained, unprotected = subject.plugin.training_config(), subject.plugin.non_private()
    expect(type(trained) is type(subject.plugin), "it is of another class", subject.cls.training_config)
    expect(trained.training_config() == trained, "it leads further", subject.cls.training_config)
    expect(isinstance(unprotected, Victim), "it is no victim", subject.cls.non_private)
    expect(unprotected.non_private() == unprotected, "it leads further", subject.cls.non_private)


@promise("victims")
def works_without_task_labels(subject: Subject) -> None:
    """It is fitted on texts without a task label, or says in a RequestError why it cannot be."""
    if subject.plugin.example_corpus():
        raise NotChecked("it is fitted on a corpus of its own")
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


def _expect_floats(vectors: Any, count: int, place: Any) -> None:
    """Refuse what is no float32 (count, d) of finite numbers."""
    shape, dtype = getattr(vectors, "shape", None), getattr(vectors, "dtype", type(vectors).__name__)
    expect(shape is not None and len(shape) == 2 and shape[0] == count, f"shape {shape}, expected ({count}, d)", place)
    expect(dtype == np.float32, f"vectors are {dtype}, expected float32", place)
    expect(np.isfinite(vectors).all(), "vectors hold NaN or infinity", place)
