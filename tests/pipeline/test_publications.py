"""Publications have task labels, are refused if they are malformed, and are read as they were written."""

import dataclasses

import numpy as np
import pytest

from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.datasets.zeros_and_ones import ZerosAndOnes
from leakboard.interfaces import Coverage, FittedVictim, PublishedWords, Victim
from leakboard.models.classifier import LinearClassifier
from leakboard.pipeline.publications import _predicted, load_publications, publish, save_publications
from leakboard.randomness import Streams
from leakboard.threats.published import Publications
from leakboard.victims.mechanism import Mechanism
from leakboard.workspace import Sharing, digest_of_texts, shared_rows, sharing


class Lengths(Victim):
    """Publishes the number of letters of each text."""

    def fit(self, corpus, seed):
        return FittedLengths()


class FittedLengths(FittedVictim):
    def publish_documents(self, texts, rng):
        return np.array([[len(text), 1.0] for text in texts], np.float32)


class WithHead(FittedLengths):
    """Predicts one label for all texts, and overwrites its input."""

    def __init__(self, labels=lambda n: np.ones(n, np.int64)):
        self.labels = labels

    def predict(self, vectors):
        vectors[:] = 7.0
        return self.labels(len(vectors))


@pytest.fixture
def corpus(make_corpus):
    """Return texts, long ones with the label yes."""
    labels = [0, 1] * 10
    splits = {"text": [("long " * 9 if label else "short") + str(i) for i, label in enumerate(labels)], "label": labels}
    return make_corpus(dict.fromkeys(("train", "dev", "test"), splits), [])


STREAMS = Streams(0, "made", "lengths")


def test_without_a_head_a_classifier_predicts_the_task_from_published_vectors(corpus):
    published = publish(Lengths(), FittedLengths, corpus, STREAMS)
    classifier = LinearClassifier.fit(published.documents["train"], corpus.column("train", "label"))
    assert np.array_equal(published.predicted, classifier.predict(published.documents["test"]))
    assert np.array_equal(published.predicted, corpus.column("test", "label"))


def test_a_victims_head_predicts_and_changes_no_published_vector(corpus):
    published = publish(Lengths(), WithHead, corpus, STREAMS)
    assert published.predicted.tolist() == [1] * 20
    assert published.probabilities.argmax(1).tolist() == corpus.column("test", "label").tolist()  # retrained
    assert (published.documents["test"][:, 1] == 1.0).all()


class Words(FittedVictim):
    """Publishes which of 200 words a text has, and notes the texts."""

    def __init__(self):
        self.asked = []

    def publish_documents(self, texts, rng):
        self.asked.append(list(texts))
        if not len(texts):
            raise StopIteration
        return np.array([[word in text.split() for word in map(str, range(200))] for text in texts], np.float32)


@pytest.fixture
def pairs_of_words(make_corpus):
    """Return a corpus of 100 texts in each split, of two words each."""
    texts = [f"{2 * row} {2 * row + 1}" for row in range(100)]
    corpus = make_corpus({name: {"label": [0, 1] * 50} for name in ("train", "dev", "test")}, [])
    parts = {name: part.remove_columns("text").add_column("text", texts) for name, part in corpus.splits.items()}
    return dataclasses.replace(corpus, splits=type(corpus.splits)(parts))


def test_half_texts_are_published_and_find_their_texts(pairs_of_words):
    fitted = Words()
    assert publish(Lengths(), lambda: fitted, pairs_of_words, STREAMS).ranks.tolist() == [
        [row, 1] for row in range(100)
    ]
    halves = next(asked for asked in fitted.asked if all(len(text.split()) == 1 for text in asked))
    assert [int(half) // 2 for half in halves] == list(range(100))


class Turned(Words):
    """Stores and searches with the signs turned, or with those of the stored vectors alone."""

    def publish_documents(self, texts, rng):
        return -super().publish_documents(texts, rng)


class Matched(Turned):
    def publish_queries(self, texts, rng):
        return self.publish_documents(texts, rng)


class Mismatched(Turned):
    def publish_queries(self, texts, rng):
        return -self.publish_documents(texts, rng)


def test_searches_send_queries(pairs_of_words):
    ranks = [
        publish(Lengths(), lambda fitted=fitted: fitted, pairs_of_words, STREAMS).ranks[:, 1]
        for fitted in (Words(), Turned(), Matched(), Mismatched())
    ]
    assert np.array_equal(ranks[0], ranks[1])
    assert np.array_equal(ranks[0], ranks[2])
    assert (ranks[3] > ranks[0]).all()


def test_few_texts_are_not_searched_and_nothing_is_published_for_them(pairs_of_words):
    fitted, few = Words(), pairs_of_words.with_rows("test", range(99))
    assert publish(Lengths(), lambda: fitted, few, STREAMS).ranks.tolist() == []
    assert all(fitted.asked)


def test_half_texts_of_another_width_are_refused(pairs_of_words):
    class Wide(Words):
        def publish_documents(self, texts, rng):
            vectors = super().publish_documents(texts, rng)
            return vectors if " " in texts[0] else vectors[:, 1:].copy()

    with pytest.raises(ValueError, match="half texts: 199 coordinates, expected 200 as of whole texts"):
        publish(Lengths(), Wide, pairs_of_words, STREAMS)


def test_a_head_predicts_although_logistic_regression_refuses_the_numbers(corpus):
    class Huge(WithHead):
        def publish_documents(self, texts, rng):
            return super().publish_documents(texts, rng) * np.float32(1e36)

    published = publish(Lengths(), Huge, corpus, STREAMS)
    assert published.predicted.tolist() == [1] * 20
    assert published.probabilities is None


@pytest.mark.parametrize("dimension", [1, 2])
def test_texts_of_a_fixed_form_are_not_searched(dimension):
    corpus = ZerosAndOnes(dimension=dimension).load()
    victim = Mechanism(name="laplace", epsilon=1.0)
    published = publish(victim, lambda: victim.fit(corpus, 0), corpus, STREAMS)
    assert published.ranks is None


def test_vectors_of_a_file_are_not_searched(corpus):
    victim = Lengths()
    victim.encodes_texts = False
    assert publish(victim, FittedLengths, corpus, STREAMS).ranks is None


def test_a_corpus_without_labels_has_no_task(corpus):
    bare = dataclasses.replace(corpus, splits=corpus.splits.remove_columns("label"))
    for fitted in (FittedLengths(), WithHead()):
        assert publish(Lengths(), lambda fitted=fitted: fitted, bare, STREAMS).predicted is None


def test_a_head_that_predicts_another_number_of_labels_is_refused(corpus):
    with pytest.raises(ValueError, match=r"task labels: shape \(19,\), expected \(20,\)"):
        publish(Lengths(), lambda: WithHead(lambda n: np.ones(n - 1)), corpus, STREAMS)


def test_word_vectors_that_are_not_finite_are_refused_by_name(corpus):
    class Words(FittedVictim):
        def publish_words(self, texts, rng):
            return PublishedWords(["a"], np.full((1, 2), np.nan, np.float32))

    victim = Lengths()
    victim.publishes = ("words",)
    with pytest.raises(ValueError, match=r"^word vectors: 1 of 1 hold NaN"):
        publish(victim, Words, corpus, STREAMS)


TABLE = PublishedWords(["a", "b"], np.eye(2, dtype=np.float32))
PUBLISHED = [
    Publications({}, None, TABLE, ReleaseClaim(1.0, 0.0, "word", "noise", "1 in L1"), Coverage(unknown=0.5)),
    Publications({}, None, dataclasses.replace(TABLE, text_index=np.array([0, 3])), None, Coverage(cut=0.25)),
    Publications(
        {split: np.full((3, 2), n, np.float32) for n, split in enumerate(("train", "dev", "test"))},
        np.array([0, 1, 1]),
        None,
        TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public"),
        probabilities=np.eye(3, dtype=np.float32),
        ranks=np.array([[2, 1], [0, 7]]),
    ),
]


@pytest.mark.parametrize("published", PUBLISHED)
def test_publications_are_read_as_they_were_written(published, tmp_path):
    save_publications(published, tmp_path)
    loaded = load_publications(tmp_path)
    assert (loaded.claim, loaded.coverage) == (published.claim, published.coverage)
    assert loaded.documents.keys() == published.documents.keys()
    for split, vectors in published.documents.items():
        assert np.array_equal(loaded.documents[split], vectors)
    for name in ("predicted", "probabilities", "ranks"):
        assert np.array_equal(getattr(loaded, name), getattr(published, name))
    assert (loaded.words is None) == (published.words is None)
    if published.words:
        assert loaded.words.words == published.words.words
        assert np.array_equal(loaded.words.vectors, published.words.vectors)
        assert np.array_equal(loaded.words.text_index, published.words.text_index)


class Noisy(Victim):
    """Publishes the number of letters with noise, and claims privacy."""

    def fit(self, corpus, seed):
        return FittedNoisy()


class FittedNoisy(FittedLengths):
    claim = ReleaseClaim(1.0, 0.0, "vector", "Laplace", "1-norm")

    def publish_documents(self, texts, rng):
        return super().publish_documents(texts, rng) + self.noise(len(texts), rng)

    def noise(self, n, rng):
        return rng.laplace(size=(n, 2)).astype(np.float32)


class Remembers(FittedNoisy):
    """A head that remembers the lengths that it published, and needs no vectors."""

    def publish_documents(self, texts, rng):
        self.lengths = np.array([len(text) for text in texts])
        return super().publish_documents(texts, rng)

    def predict(self, vectors):
        seen = getattr(self, "lengths", np.zeros(len(vectors)))
        return (seen > 20).astype(np.int64)


def test_a_head_knows_only_the_vectors(corpus):
    published = publish(Noisy(), Remembers, corpus, STREAMS)
    assert np.mean(published.predicted == corpus.column("test", "label")) == 0.5


def test_a_head_that_remembers_the_texts_does_not_know_which_vector_is_whose(corpus):
    """A variable of the module outlives the victim that is loaded anew, as one victim for all calls does."""
    one, labels = Remembers(), corpus.column("test", "label")
    published = publish(Noisy(), lambda: one, corpus, STREAMS)
    assert np.mean(published.predicted == labels) < 0.75
    one.publish_documents(corpus.texts("test"), np.random.default_rng(0))
    in_order = _predicted(one, published.documents["test"], np.arange(len(labels)))
    assert (in_order == labels).all()


class FromSeed(FittedNoisy):
    """Makes its generator anew from a seed."""

    def noise(self, n, rng):
        return super().noise(n, np.random.default_rng(7))


class FromTheLibrary(FittedNoisy):
    def noise(self, n, rng):
        return np.random.laplace(size=(n, 2)).astype(np.float32)


class Constant(FittedNoisy):
    """With epsilon 0 nothing depends on the text."""

    def publish_documents(self, texts, rng):
        return np.zeros((len(texts), 2), np.float32)


@pytest.mark.parametrize(
    ("fitted", "repeats"),
    [(FittedNoisy, False), (FromSeed, True), (FromTheLibrary, False), (Constant, False), (FittedLengths, False)],
)
def test_noise_that_is_not_fresh_is_noted_where_noise_is_claimed(corpus, fitted, repeats, tmp_path):
    published = publish(Noisy(), fitted, corpus, STREAMS)
    assert published.faults == (("fresh_noise",) if repeats else ())
    save_publications(published, tmp_path)
    assert load_publications(tmp_path).faults == published.faults


def test_a_victim_that_only_releases_publishes_nothing_else(corpus):
    victim = Noisy()
    victim.publishes = ("releases",)
    published = publish(victim, FittedNoisy, corpus, STREAMS)
    assert (published.documents, published.words, published.faults) == ({}, None, ())
    assert published.claim == FittedNoisy.claim


def test_noise_from_the_library_is_seeded(corpus):
    first, second = (publish(Noisy(), FromTheLibrary, corpus, STREAMS).documents["test"] for _ in range(2))
    assert np.array_equal(first, second)
    other = publish(Noisy(), FromTheLibrary, corpus, dataclasses.replace(STREAMS, seed=1)).documents["test"]
    assert not np.array_equal(first, other)


def test_a_salt_changes_the_noise_and_not_the_fit(corpus):
    salted = dataclasses.replace(STREAMS, salt="unknown")
    first, second = (publish(Noisy(), FittedNoisy, corpus, streams).documents["test"] for streams in (STREAMS, salted))
    assert not np.array_equal(first, second)
    assert salted.seed_for("fit") == STREAMS.seed_for("fit")


class Sorted(FittedLengths):
    """Encodes texts by length and forgets to restore their order; rows of a split are shared."""

    def publish_documents(self, texts, rng):
        def make(part):
            return np.array([[len(text), hash_of(text)] for text in sorted(part, key=len)], np.float32)

        distinct, places = texts.coded()
        return shared_rows("documents", {}, distinct, make)[places]


def hash_of(text):
    return int(text.split()[-1][-1])


def test_shared_rows_do_not_hide_a_victim_that_mixes_up_texts(make_corpus):
    texts = [" ".join(["word"] * (1 + i % 7)) + f" {i}" for i in range(20)]
    corpus, kept = make_corpus({split: {"text": texts} for split in ("train", "dev", "test")}, []), {}

    def keep(kind, identity, make):
        return kept[identity["texts"]] if identity["texts"] in kept else kept.setdefault(identity["texts"], make())

    splits = {digest_of_texts(texts): tuple(texts)}
    with sharing(Sharing(keep, lambda: splits)):
        published = publish(Lengths(), Sorted, corpus, STREAMS)
    assert kept
    assert published.faults == ("order_kept",)
