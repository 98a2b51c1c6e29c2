"""How the attacker's texts overlap with the victim's, and what a victim may publish."""

from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

from leakboard.data.auxiliary import divide
from leakboard.interfaces import AuxiliaryRegime, FittedVictim, PublishedWords
from leakboard.pipeline import publications as fitting
from leakboard.pipeline import publications as stage
from leakboard.randomness import Streams


@pytest.fixture(scope="module")
def corpus(make_corpus):
    """Train holds 400 distinct texts, every tenth of them three times."""
    texts = [f"text number {i}" for i in range(400) for _ in range(1 if i % 10 else 3)]
    splits = {name: {"text": part} for name, part in (("train", texts), ("dev", ["a", "b"]), ("test", ["c"]))}
    return make_corpus({k: {**v, "s": [0] * len(v["text"])} for k, v in splits.items()}, [("s", ("a",), "attribute")])


def parts(corpus, regime, seed=0):
    victim, attacker = divide(corpus, regime, np.random.default_rng(seed))
    return list(victim.texts("train")), list(attacker.texts("train"))


def test_within_leaves_the_victim_everything(corpus):
    victim, attacker = parts(corpus, "within")
    assert victim == list(corpus.texts("train"))
    assert len(set(attacker)) == 200


def test_overlap_has_half_in_common(corpus):
    victim, attacker = (set(texts) for texts in parts(corpus, "overlap"))
    assert len(victim) == len(attacker) == 200
    # Hypergeometric: 200 of 400 drawn twice have 100 in common, standard deviation 5.
    assert abs(len(victim & attacker) - 100) <= 20


def test_disjoint_has_nothing_in_common(corpus):
    victim, attacker = (set(texts) for texts in parts(corpus, "disjoint"))
    assert not victim & attacker
    assert victim | attacker == set(corpus.texts("train"))
    assert len(victim) == len(attacker) == 200


@pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
def test_copies_stay_together_and_order_is_kept(corpus, regime):
    order = {text: place for place, text in enumerate(corpus.texts("train"))}
    for texts in parts(corpus, regime):
        assert all(texts.count(text) == (1 if int(text.split()[-1]) % 10 else 3) for text in set(texts))
        assert texts == sorted(texts, key=order.__getitem__)


@pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
def test_the_same_generator_divides_alike(corpus, regime):
    assert parts(corpus, regime) == parts(corpus, regime)
    assert parts(corpus, regime)[1] != parts(corpus, regime, seed=1)[1]


@pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
def test_dev_and_test_are_shared(corpus, regime):
    for part in divide(corpus, regime, np.random.default_rng(0)):
        assert list(part.texts("dev")) == ["a", "b"]
        assert list(part.texts("test")) == ["c"]


class Fake(FittedVictim):
    """A victim that publishes what it is told to."""

    publishes = ("documents", "words")

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
        return stage.publish(fake, fake, corpus, Streams(0, "made", "fake"))

    def test_good_vectors_pass(self, labelled):
        published = self.publish(Fake(), labelled)
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
            (lambda n: np.zeros((n + 1, 3), np.float32), r"shape \(3, 3\), expected \(2, d\)"),
            (lambda n: np.zeros(n, np.float32), r"shape \(2,\), expected \(2, d\)"),
        ],
    )
    def test_bad_documents_are_refused(self, labelled, documents, message):
        with pytest.raises(ValueError, match=message):
            self.publish(Fake(documents), labelled)

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
            self.publish(Fake(words=words), labelled)

    def test_labels_of_a_wrong_shape_are_refused(self, labelled):
        with pytest.raises(ValueError, match=r"task labels: shape \(2, 1\), expected \(2,\)"):
            self.publish(Fake(predicted=lambda n: np.zeros((n, 1))), labelled)

    def test_without_a_head_the_task_is_classified_on_the_published_vectors(self, make_corpus):
        labels = {"train": [0, 1] * 20, "dev": [0, 1], "test": [1, 1, 0]}
        splits = {name: {"label": values, "s": [0] * len(values)} for name, values in labels.items()}
        corpus = make_corpus(splits, [("s", ("a",), "attribute")])
        of_length = {len(values): np.array(values) for values in labels.values()}

        class Headless(Fake):
            predict = FittedVictim.predict

        shown = Headless(lambda n: np.repeat(of_length[n][:, None], 3, axis=1).astype(np.float32))
        assert self.publish(shown, corpus).predicted.tolist() == labels["test"]
        assert self.publish(Headless(), corpus).predicted.tolist() in ([0, 0, 0], [1, 1, 1])

    def test_what_is_published_is_what_is_loaded(self, labelled, tmp_path):
        published = self.publish(Fake(), labelled)
        stage.save_publications(published, tmp_path)
        loaded = stage.load_publications(tmp_path)
        assert loaded.words.words == ["a", "b"]
        assert np.array_equal(loaded.documents["dev"], published.documents["dev"])
        assert np.array_equal(loaded.predicted, published.predicted)

    def test_every_split_has_a_stream_of_its_own(self, labelled):
        seen = []
        fake = Fake()
        fake.publish_documents = lambda texts, rng: (seen.append(rng.random()), filled(0)(len(texts)))[1]
        first = self.publish(fake, labelled)
        assert len(set(seen)) == 3
        again = list(seen)
        seen.clear()
        assert self.publish(fake, labelled).documents.keys() == first.documents.keys()
        assert seen == again


def test_fit_shows_no_test_split(make_corpus):
    splits = {name: {"s": [0, 1]} for name in ("train", "dev", "test")}
    corpus = make_corpus(splits, [("s", ("a", "b"), "attribute")])
    seen = []
    fitting.fit(
        SimpleNamespace(fit=lambda corpus, seed: seen.append(set(corpus.splits))), corpus, Streams(0, "made", "x")
    )
    assert seen == [{"train", "dev"}]
