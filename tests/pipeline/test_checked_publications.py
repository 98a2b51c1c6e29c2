"""Published vectors are checked, and a victim is fitted without the test split."""

from types import SimpleNamespace

import numpy as np
import pytest

from leakboard.interfaces import FittedVictim, PublishedWords
from leakboard.pipeline import publications
from leakboard.randomness import Streams


class FakeVictim(FittedVictim):
    """A victim that publishes given vectors."""

    publishes = ("documents", "words")
    encodes_texts = True
    encodes_parts = False

    def __init__(self, documents=None, words=None, predicted=None):
        self.documents = documents or (lambda n: np.zeros((n, 3), np.float32))
        self.words = np.zeros((2, 3), np.float32) if words is None else words
        self.predicted = predicted or (lambda n: np.zeros(n, np.int64))

    def publish_documents(self, texts, rng):
        return self.documents(len(texts))

    def publish_words(self, texts, rng):
        return PublishedWords(["a", "b"], self.words)

    def predict(self, vectors):
        return self.predicted(len(vectors))


def filled(value, dtype=np.float32):
    def make(n):
        vectors = np.zeros((n, 3), dtype)
        vectors[-1, 1] = value
        return vectors

    return make


class TestPublish:
    """LeakBoard checks every published vector."""

    @pytest.fixture
    def labelled(self, make_corpus):
        splits = {name: {"label": [0, 1], "s": [0, 1]} for name in ("train", "dev", "test")}
        return make_corpus(splits, [("s", ("a", "b"), "attribute")])

    @staticmethod
    def publish(fake, corpus):
        return publications.publish(fake, lambda: fake, corpus, Streams(0, "made", "fake"))

    def test_good_vectors_pass(self, labelled):
        published = self.publish(FakeVictim(), labelled)
        assert {split: v.shape for split, v in published.documents.items()} == dict.fromkeys(
            ("train", "dev", "test"), (2, 3)
        )
        assert published.predicted.tolist() == [0, 0]

    @pytest.mark.parametrize(
        ("documents", "message"),
        [
            (filled(np.nan), "document vectors of train: 1 of 2 hold NaN or infinity; first in row 1"),
            (filled(np.inf), "1 of 2 hold NaN or infinity"),
            (filled(0, np.float64), "float64, expected float32"),
            (filled(0, np.int64), "int64, expected float32"),
            (lambda n: [[0.0, 1.0]] * n, "document vectors of train: list, expected a NumPy array"),
            (lambda n: np.zeros((n + 1, 3), np.float32), r"shape \(3, 3\), expected \(2, d\)"),
            (lambda n: np.zeros(n, np.float32), r"shape \(2,\), expected \(2, d\)"),
        ],
    )
    def test_bad_documents_are_refused(self, labelled, documents, message):
        with pytest.raises(ValueError, match=message):
            self.publish(FakeVictim(documents), labelled)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (np.full((2, 3), np.nan, np.float32), "word vectors: 2 of 2 hold NaN"),
            (np.zeros((3, 3), np.float32), r"word vectors: shape \(3, 3\), expected \(2, d\)"),
            (np.zeros((2, 3)), "word vectors: float64"),
        ],
    )
    def test_bad_words_are_refused(self, labelled, words, message):
        with pytest.raises(ValueError, match=message):
            self.publish(FakeVictim(words=words), labelled)

    def test_labels_of_a_wrong_shape_are_refused(self, labelled):
        with pytest.raises(ValueError, match=r"task labels: shape \(2, 1\), expected \(2,\)"):
            self.publish(FakeVictim(predicted=lambda n: np.zeros((n, 1))), labelled)

    def test_without_a_head_the_task_is_classified_on_the_published_vectors(self, make_corpus):
        labels = {"train": [0, 1] * 20, "dev": [0, 1], "test": [1, 1, 0]}
        splits = {name: {"label": values, "s": [0] * len(values)} for name, values in labels.items()}
        corpus = make_corpus(splits, [("s", ("a",), "attribute")])
        of_length = {len(values): np.array(values) for values in labels.values()}

        class Headless(FakeVictim):
            predict = FittedVictim.predict

        labelled_vectors = Headless(lambda n: np.repeat(of_length[n][:, None], 3, axis=1).astype(np.float32))
        assert self.publish(labelled_vectors, corpus).predicted.tolist() == labels["test"]
        assert self.publish(Headless(), corpus).predicted.tolist() in ([0, 0, 0], [1, 1, 1])

    def test_publications_are_loaded_as_saved(self, labelled, tmp_path):
        published = self.publish(FakeVictim(), labelled)
        publications.save_publications(published, tmp_path)
        loaded = publications.load_publications(tmp_path)
        assert loaded.words.words == ["a", "b"]
        assert np.array_equal(loaded.documents["dev"], published.documents["dev"])
        assert np.array_equal(loaded.predicted, published.predicted)

    def test_every_split_has_its_own_stream(self, labelled):
        seen = []
        fake = FakeVictim()
        fake.publish_documents = lambda texts, rng: (seen.append(rng.random()), filled(0)(len(texts)))[1]
        first = self.publish(fake, labelled)
        assert len(set(seen[:3])) == 3
        assert len(set(seen)) == len(seen)  # so have the few texts that are published again
        again = list(seen)
        seen.clear()
        assert self.publish(fake, labelled).documents.keys() == first.documents.keys()
        assert seen == again


def test_fit_shows_no_test_split(make_corpus):
    splits = {name: {"s": [0, 1]} for name in ("train", "dev", "test")}
    corpus = make_corpus(splits, [("s", ("a", "b"), "attribute")])
    seen = []
    publications.fit(
        SimpleNamespace(fit=lambda corpus, seed: seen.append(set(corpus.splits))), corpus, Streams(0, "made", "x")
    )
    assert seen == [{"train", "dev"}]
