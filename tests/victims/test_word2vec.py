"""gensim's Word2Vec, made deterministic."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from leakboard.data.auxiliary import divide
from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Coverage, Texts
from leakboard.models.classifier import LinearClassifier
from leakboard.victims.word2vec import Word2Vec, _start_vector

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def fitted(corpus):
    return Word2Vec(vector_size=16).fit(corpus, 1)


def test_same_seed_same_vectors_another_seed_others(corpus, fitted):
    again, other = (Word2Vec(vector_size=16).fit(corpus, seed) for seed in (1, 2))
    assert again.vocabulary == fitted.vocabulary == other.vocabulary
    assert np.array_equal(again.vectors, fitted.vectors)
    assert not np.allclose(other.vectors, fitted.vectors)


@pytest.mark.slow
def test_does_not_depend_on_the_hash_seed():
    code = (
        "import hashlib;"
        "from leakboard.datasets.generated_reviews import GeneratedReviews as G;"
        "from leakboard.victims.word2vec import Word2Vec as W;"
        "c = G(users=20, texts_per_user=3).load().only('train', 'dev');"
        "f = [W(vector_size=8, min_count=2, initialisation=i).fit(c, 0) for i in ('gensim', 'word')];"
        "print([(hashlib.sha256(x.vectors.tobytes()).hexdigest(), x.vocabulary) for x in f])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_texts_without_a_known_word_are_zero_and_counted(fitted):
    texts = Texts(["zzz qqq", fitted.vocabulary[0], "", f"zzz {fitted.vocabulary[1]}"])
    vectors = fitted.publish_documents(texts, RNG)
    assert (vectors == 0).all(1).tolist() == [True, False, True, False]
    assert vectors.dtype == np.float32
    assert fitted.coverage(texts) == Coverage(unknown=0.5)


def test_the_vocabulary_has_the_words_that_occur_often_enough(reviews, fitted):
    counts = Counter(word for text in reviews.texts("train") for word in words(text))
    assert set(fitted.vocabulary) == {word for word, count in counts.items() if count >= 5}


def test_documents_are_the_mean_of_the_published_words(reviews, fitted):
    texts = reviews.texts("test")
    published = fitted.publish_words(texts, RNG)
    table = dict(zip(published.words, published.vectors, strict=True))
    expected = [np.mean([table[w] for w in words(text) if w in table], axis=0) for text in texts]
    np.testing.assert_allclose(fitted.publish_documents(texts, RNG), expected, atol=1e-6)
    assert published.text_index is None


def test_exact_words_are_the_scaled_table_without_noise(corpus, fitted):
    noisy = Word2Vec(vector_size=16, epsilon=10.0).fit(corpus, 1)
    low, high = fitted.vectors.min(1, keepdims=True), fitted.vectors.max(1, keepdims=True)
    exact, published = noisy.exact_words(Texts([])), noisy.publish_words(Texts([]), RNG)
    assert exact.words == published.words == fitted.vocabulary
    np.testing.assert_allclose(exact.vectors, (fitted.vectors - low) / (high - low), rtol=1e-5)
    assert 0.08 < np.abs(published.vectors - exact.vectors).mean() < 0.12  # Laplace noise of mean size 1 / epsilon


@pytest.mark.parametrize(("initialisation", "is_shared"), [("word", True), ("gensim", False)])
def test_start_vectors_by_word_are_the_same_in_all_models(reviews, initialisation, is_shared):
    """A negligible learning rate leaves the start vectors, of two halves and two seeds."""
    options = {"vector_size": 16, "epochs": 1, "alpha": 1e-9, "min_alpha": 1e-9, "min_count": 2}
    recipe = Word2Vec(**options, initialisation=initialisation)
    halves = divide(reviews, "overlap", np.random.default_rng(0))
    models = [recipe.fit(half.only("train", "dev"), seed) for seed, half in enumerate(halves)]
    tables = [dict(zip(model.vocabulary, model.vectors, strict=True)) for model in models]
    common = sorted(set(tables[0]) & set(tables[1]))
    assert len(common) > 50
    distances = np.abs(np.subtract(*([table[word] for word in common] for table in tables)))
    assert distances.max() < 1e-7 if is_shared else np.median(distances) > 0.1 / 16


def test_start_vectors_have_gensims_range_and_differ_by_word():
    a, b = _start_vector("apple", 50), _start_vector("pear", 50)
    assert np.abs(a).max() <= 0.5 / 50
    assert not np.allclose(a, b)


def test_no_word_occurs_often_enough(corpus):
    with pytest.raises(RequestError, match="no word of generated_reviews occurs min_count=100000 times"):
        Word2Vec(min_count=100_000).fit(corpus, 0)


def test_the_vectors_show_the_task(corpus):
    fitted = Word2Vec(vector_size=32, epochs=40).fit(corpus, 0)
    vectors, labels = fitted.publish_documents(corpus.texts("train"), RNG), corpus.column("train", "label")
    assert fitted.predict(vectors) is None
    assert np.mean(LinearClassifier.fit(vectors, labels).predict(vectors) == labels) > 0.6
