"""Test row matching: matching vectors pass, and vectors in random order fail with a stated probability."""

import dataclasses

import numpy as np
import pytest
import scipy
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from leakboard.metrics.row_match import LEVEL, _share_as_good, _taken, _task, row_match_metrics
from leakboard.models.classifier import LinearClassifier

SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def embedded(reviews):
    """Return latent semantic vectors of the texts of every split, with the task label as an extra dimension."""
    texts = {split: reviews.texts(split) for split in SPLITS}
    tfidf = TfidfVectorizer(min_df=2).fit(texts["train"])
    svd = TruncatedSVD(16, random_state=0).fit(tfidf.transform(texts["train"]))
    vectors = {split: svd.transform(tfidf.transform(part)) for split, part in texts.items()}
    return {split: np.c_[part, reviews.column(split, "label")].astype(np.float32) for split, part in vectors.items()}


def in_random_order(vectors, seed):
    """Return the vectors of all splits together in random order."""
    shuffled = np.random.default_rng(seed).permutation(np.concatenate([vectors[split] for split in SPLITS]))
    ends = np.cumsum([len(vectors[split]) for split in SPLITS])
    return dict(zip(SPLITS, np.split(shuffled, ends[:-1]), strict=True))


def judged(corpus, vectors):
    """Return the verdict, its status, and the p-values by test."""
    predicted = None
    if corpus.has_labels:
        classifier = LinearClassifier.fit(vectors["train"], corpus.column("train", "label"))
        predicted = classifier.predict(vectors["test"])
    *tests, verdict = row_match_metrics(corpus, vectors, predicted)
    assert {m.name for m in tests} <= {"row_match_p"}
    assert verdict.name == "rows_match"
    return verdict.value, verdict.status, {m.variable: m.value for m in tests}


def without(corpus, *columns):
    return dataclasses.replace(corpus, splits=corpus.splits.remove_columns(list(columns)))


def test_matching_vectors_pass_every_test(reviews, embedded):
    value, status, p_values = judged(reviews, embedded)
    assert (value, status) == (1.0, "")
    assert set(p_values) == {"task", "classes", "neighbours", "words"}
    assert max(p_values.values()) < LEVEL / 4


def test_vectors_in_random_order_fail(reviews, embedded):
    """Each of 20 orders passes with probability 1 % at most, so more than 3 pass with probability below 1e-4."""
    verdicts = [judged(reviews, in_random_order(embedded, seed)) for seed in range(20)]
    passed = sum(value == 1 for value, _, _ in verdicts)
    assert scipy.stats.binom.sf(3, 20, LEVEL) < 1e-4
    assert passed <= 3
    for name in ("task", "classes", "neighbours", "words"):  # an exact test has a tenth of its p-values below 0.1
        p_values = np.array([by_test[name] for _, _, by_test in verdicts])
        assert np.sum(p_values <= 0.1) <= scipy.stats.binom.isf(1e-4, 20, 0.1)
        assert np.median(p_values) > 0.2
    status = next(status for value, status, _ in verdicts if value == 0)
    start = "the vectors and the rows of the table may not belong together, or the vectors hold no inf"
    assert status.startswith(start)
    assert status.endswith("do the rows match?")
    for words in ("no better than in random order", "nearly the same words are not nearer", "p = 0."):
        assert words in status


@pytest.mark.parametrize("hidden", [["label"], ["text"]])
def test_labels_or_texts_alone_are_enough(reviews, embedded, hidden):
    corpus = without(reviews, *hidden)
    assert judged(corpus, embedded)[0] == 1
    assert judged(corpus, in_random_order(embedded, 1))[0] == 0


def test_vectors_of_the_right_words_match_despite_wrong_task_guesses(reviews, embedded):
    rng = np.random.default_rng(0)
    guesses = rng.integers(0, 2, len(reviews.splits["test"]))
    *_, verdict = row_match_metrics(reviews, embedded, guesses)
    assert verdict.value == 1


def test_noise_that_hides_everything_fails_too(reviews, embedded):
    rng = np.random.default_rng(0)
    noisy = {split: rng.standard_normal(part.shape, np.float32) * 1e6 + part for split, part in embedded.items()}
    value, status, _ = judged(reviews, noisy)
    assert value == 0
    assert "or the vectors hold no information" in status


def test_a_secret_alone_is_enough(reviews, embedded):
    (gender,) = (secret for secret in reviews.secrets if secret.name == "gender")
    corpus = dataclasses.replace(without(reviews, "label", "text"), secrets=(gender,))
    rng = np.random.default_rng(0)
    vectors = {split: np.c_[corpus.column(split, "gender"), rng.random(len(embedded[split]))] for split in SPLITS}
    value, _, p_values = judged(corpus, vectors)
    assert (value, set(p_values)) == (1, {"classes"})
    value, status, _ = judged(corpus, in_random_order(vectors, 1))
    assert value == 0
    assert "vectors of the same label or secret are no more alike than others" in status


def test_a_corpus_without_labels_secrets_and_texts_is_not_checked(reviews, embedded):
    empty = dataclasses.replace(without(reviews, "label", "text"), secrets=())
    value, status, p_values = judged(empty, embedded)
    assert (value, p_values) == (None, {})
    assert status.startswith("not checked")


@pytest.mark.parametrize("size", [6, 10, 40])
def test_random_guesses_of_a_small_balanced_set_pass_as_rarely_as_stated(size):
    """Balanced guesses of balanced labels vary more than a binomial count, so a binomial test would not be exact."""
    labels, rng = np.arange(size) % 2, np.random.default_rng(0)
    p_values = np.array([_task(rng.permutation(labels), labels) for _ in range(400)])
    for level in (0.01, 0.05, 0.2):
        assert (p_values <= level).sum() <= scipy.stats.binom.isf(1e-4, 400, level)
    assert _task(labels, labels) < 0.2
    assert _task(1 - labels, labels) == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_equal_statistics_of_either_sign_count_as_equally_good(sign):
    observed = sign * 0.3
    shuffled = np.array([observed * (1 + 1e-14), observed * (1 - 1e-14), observed - 0.1, observed + 0.1])
    assert _share_as_good(observed, shuffled) == 4 / 5


def test_chosen_rows_count_through_all_splits(embedded):
    together = np.concatenate(list(embedded.values()))
    chosen = np.random.default_rng(0).permutation(len(together))[:50]
    np.testing.assert_array_equal(_taken(embedded, chosen), together[chosen])
