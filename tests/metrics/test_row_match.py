"""Test row matching: matching vectors pass, and vectors in random order fail with a stated probability."""

import dataclasses
import re
from typing import ClassVar

import numpy as np
import pytest
import scipy
from datasets import ClassLabel, Dataset, DatasetDict
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from leakboard.board.summary import corpus_warnings
from leakboard.interfaces import Corpus, Secret
from leakboard.metrics.measures import Metric
from leakboard.metrics.row_match import LEVEL, _share_as_good, row_match_metrics
from leakboard.pipeline.records import Record
from leakboard.suite.names import Names

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
    metrics = {(m.name, m.variable): m for m in row_match_metrics(corpus, vectors)}
    verdict = metrics["rows_match", ""]
    return (
        verdict.value,
        verdict.status,
        {name: m.value for (kind, name), m in metrics.items() if kind == "row_match_p"},
    )


def without(corpus, *columns):
    return dataclasses.replace(corpus, splits=corpus.splits.remove_columns(list(columns)))


def test_matching_vectors_pass_every_test(reviews, embedded):
    value, status, p_values = judged(reviews, embedded)
    assert (value, status) == (1.0, "")
    assert set(p_values) == {"classes", "words"}
    assert max(p_values.values()) < LEVEL / 2


def test_vectors_in_random_order_fail(reviews, embedded):
    """Each of 20 orders passes with probability 1 % at most, so more than 3 pass with probability below 1e-4."""
    verdicts = [judged(reviews, in_random_order(embedded, seed)) for seed in range(20)]
    passed = sum(value == 1 for value, _, _ in verdicts)
    assert scipy.stats.binom.sf(3, 20, LEVEL) < 1e-4
    assert passed <= 3
    for name in ("classes", "words"):  # an exact test has a tenth of its p-values below 0.1
        p_values = np.array([by_test[name] for _, _, by_test in verdicts])
        assert np.sum(p_values <= 0.1) <= scipy.stats.binom.isf(1e-4, 20, 0.1)
        assert np.median(p_values) > 0.2
    status = next(status for value, status, _ in verdicts if value == 0)
    assert status.startswith(
        "do the rows match? Either the vectors and the rows of the table do not belong together, or"
    )
    for words in ("label and secrets cannot be guessed", "say nothing of its vector", "p = 0."):
        assert words in status


@pytest.mark.parametrize("hidden", [["label"], ["text"]])
def test_labels_or_texts_alone_are_enough(reviews, embedded, hidden):
    corpus = without(reviews, *hidden)
    assert judged(corpus, embedded)[0] == 1
    assert judged(corpus, in_random_order(embedded, 1))[0] == 0


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
    assert "label and secrets cannot be guessed from the vectors" in status


def test_a_corpus_without_labels_secrets_and_texts_is_not_checked(reviews, embedded):
    empty = dataclasses.replace(without(reviews, "label", "text"), secrets=())
    value, status, p_values = judged(empty, embedded)
    assert (value, p_values) == (None, {})
    assert status == "there is no label, secret or text to compare with"


def test_a_secret_whose_classes_differ_between_train_and_test_is_no_evidence(reviews, embedded):
    """If the secret is the author, no class of test is in train."""
    (gender,) = (secret for secret in reviews.secrets if secret.name == "gender")
    splits = reviews.splits
    feature = ClassLabel(names=["a", "b", "c", "d"])
    for split, shift in (("train", 0), ("dev", 0), ("test", 2)):
        codes = [code + shift for code in reviews.column(split, "gender")]
        part = splits[split].remove_columns("gender").add_column("gender", codes).cast_column("gender", feature)
        splits = type(splits)({**splits, split: part})
    secret = dataclasses.replace(gender, values=("a", "b", "c", "d"))
    corpus = dataclasses.replace(reviews, splits=splits, secrets=(secret,))
    assert judged(without(corpus, "label"), embedded)[2].keys() == {"words"}
    value, status, p_values = judged(without(corpus, "label", "text"), embedded)
    assert (value, status, p_values) == (None, "there is no label, secret or text to compare with", {})


def test_few_rows_are_not_checked_and_the_report_says_so(reviews, embedded):
    few = {split: vectors[:19] if split == "test" else vectors for split, vectors in embedded.items()}
    value, status, _ = judged(reviews, few)
    assert (value, status) == (None, "a test needs 20 rows of train and of test, not 19")
    made = Record("a", "b", "c", 0, "ok", metrics=[Metric("rows_match", None, status=status)], threat="attributes")
    (warning,) = corpus_warnings([made], Names())
    assert warning == f"whether vectors and rows belong together was not checked: {status}"


class TestPartOfTheTable:
    """Of 3,000 rows every fifth is in test. The first number of a vector shows the gender."""

    ROWS: ClassVar = {"train": np.array([row for row in range(3000) if row % 5]), "test": np.arange(0, 3000, 5)}

    def verdicts(self, order, seed=0):
        """Return the metrics by name, with vectors in another order."""
        rng = np.random.default_rng(seed)
        gender = rng.integers(0, 2, 3000)
        vectors = rng.normal(size=(3000, 8)) + 2.0 * np.outer(gender, np.eye(8)[0])
        parts = {
            split: Dataset.from_dict({"row": rows, "gender": gender[rows]}).cast_column("gender", ClassLabel(2))
            for split, rows in self.ROWS.items()
        }
        corpus = Corpus("made", (Secret("gender", ("0", "1"), "attribute"),), DatasetDict(parts))
        moved = vectors[order].astype(np.float32)
        metrics = row_match_metrics(corpus, {split: moved[rows] for split, rows in self.ROWS.items()})
        return {metric.name: metric for metric in metrics}

    @pytest.mark.slow
    def test_the_right_order_passes(self):
        """A run warns wrongly with probability 1 % at most. So the number of wrong warnings in 20 runs is binomial."""
        found = [self.verdicts(np.arange(3000), seed)["rows_match_throughout"].value for seed in range(20)]
        assert found.count(0.0) <= scipy.stats.binom.isf(1e-4, 20, LEVEL)

    @pytest.mark.parametrize(("lost", "rows"), [(1500, "from about row 1[45]"), (2400, "from about row 2[345]")])
    def test_a_lost_row_shifts_all_rows_after_it(self, lost, rows):
        metrics = self.verdicts(np.r_[0:lost, lost + 1 : 3000, 0])
        assert metrics["rows_match"].value == 1
        assert metrics["rows_match_throughout"].value == 0
        assert re.match(rf"do the rows match\? .* but not {rows}\d\d on$", metrics["rows_match_throughout"].status)

    def test_rows_at_the_beginning_in_random_order(self):
        order = np.r_[np.random.default_rng(1).permutation(1500), 1500:3000]
        assert re.search(r"but not up to about row 1[45]\d\d$", self.verdicts(order)["rows_match_throughout"].status)

    def test_rows_out_of_place_that_are_spread_over_the_table_are_not_seen(self):
        """As the module's docstring says."""
        order, rng = np.arange(3000), np.random.default_rng(1)
        spread = rng.permutation(3000)[:1500]
        order[spread] = rng.permutation(spread)
        assert self.verdicts(order)["rows_match_throughout"].value == 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_equal_statistics_of_either_sign_count_as_equally_good(sign):
    observed = sign * 0.3
    shuffled = np.array([observed * (1 + 1e-14), observed * (1 - 1e-14), observed - 0.1, observed + 0.1])
    assert _share_as_good(observed, shuffled) == 4 / 5


@pytest.mark.slow
def test_authors_whose_rows_lie_side_by_side_are_no_change():
    """Each author's rows fit alike, so a run warns wrongly with probability 1 % at most."""
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        users = np.repeat(np.arange(100), 10)
        gender = rng.integers(0, 2, 100)[users]
        centres = rng.normal(size=(100, 8)) + 2 * np.outer(gender[::10], np.eye(8)[0])
        vectors = (centres[users] + 0.05 * rng.normal(size=(1000, 8))).astype(np.float32)
        is_test = np.isin(users, rng.permutation(100)[:40])
        parts = {
            split: Dataset.from_dict(
                {"row": np.flatnonzero(chosen), "user": users[chosen].astype(str), "gender": gender[chosen]}
            ).cast_column("gender", ClassLabel(2))
            for split, chosen in (("train", ~is_test), ("test", is_test))
        }
        corpus = Corpus("made", (Secret("gender", ("0", "1"), "attribute"),), DatasetDict(parts))
        metrics = row_match_metrics(corpus, {"train": vectors[~is_test], "test": vectors[is_test]})
        wrong += any(metric.name == "rows_match_throughout" and metric.value == 0 for metric in metrics)
    assert wrong <= scipy.stats.binom.isf(1e-4, 20, LEVEL)
