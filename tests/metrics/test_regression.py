"""Test the regression of numeric targets of texts and users on published vectors."""

import math

import numpy as np
import pandas as pd
import pytest

from leakboard.data.corpora import build_corpus
from leakboard.metrics.regression import NO_INTERVAL, means_of_authors, regression_metrics, root_mean_square

SPLITS = ("train", "dev", "test")


def corpus_of(targets, authors=None, column="user"):
    """Return a corpus with the targets (split -> name -> values) and, if given, users or documents of each split."""
    frames, row = {}, 0
    for split in SPLITS:
        frame = pd.DataFrame(targets[split])
        rows = np.arange(row, row + len(frame))
        frame = frame.assign(text=[f"text {i}" for i in rows], row=rows)
        frames[split] = frame.assign(**{column: authors[split]}) if authors else frame
        row += len(frame)
    return build_corpus("made", frames, [], None, numeric_targets=list(targets["train"]))


def made(seed, sizes=(150, 10, 80), width=5, noise=0.1):
    """Return a corpus with a target that is linear in the vectors and a target that is independent of them."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=width)
    documents = {s: rng.normal(3, 2, (n, width)).astype(np.float32) for s, n in zip(SPLITS, sizes, strict=True)}
    targets = {
        split: {
            "planted": x @ slopes + 7 + rng.normal(0, noise, len(x)),
            "independent": rng.normal(3.3, 0.9, len(x)),
        }
        for split, x in documents.items()
    }
    return corpus_of(targets), documents


def by_name(metrics):
    return {(metric.name, metric.variable): metric for metric in metrics}


def values(metrics):
    return np.array([metric.value for metric in metrics])


def without_interval(metric):
    return math.isnan(metric.low) and math.isnan(metric.high)


class TestModels:
    """Errors of linear regression, support vector regression and the mean."""

    def test_a_planted_linear_target_is_recovered(self):
        metrics = by_name(regression_metrics(*made(0)))
        assert len(metrics) == 6
        mean = metrics["rmse_mean", "planted"]
        for name in ("rmse_linear", "rmse_svr"):
            metric = metrics[name, "planted"]
            assert metric.low < metric.value < metric.high < 0.2 < mean.low
            assert metric.n == 80
        assert metrics["rmse_linear", "planted"].value == pytest.approx(0.1, rel=0.3)

    def test_no_model_beats_the_mean_on_an_independent_target(self):
        metrics = by_name(regression_metrics(*made(1)))
        mean = metrics["rmse_mean", "independent"]
        assert mean.value == pytest.approx(0.9, rel=0.3)
        for name in ("rmse_linear", "rmse_svr"):
            assert metrics[name, "independent"].high > mean.value
            assert metrics[name, "independent"].value > 0.95 * mean.value

    @pytest.mark.parametrize("seed", range(3))
    def test_errors_equal_those_of_least_squares_in_numpy(self, seed):
        corpus, documents = made(seed, noise=1)
        metrics = by_name(regression_metrics(corpus, documents))
        x, x_test = (np.column_stack([np.ones(len(documents[s])), documents[s]]) for s in ("train", "test"))
        for target in corpus.numeric_targets:
            y, y_test = (np.array(corpus.splits[s][target]) for s in ("train", "test"))
            weights = np.linalg.lstsq(x.astype(np.float64), y, rcond=None)[0]
            linear, mean = (np.sqrt(np.mean((guess - y_test) ** 2)) for guess in (x_test @ weights, y.mean()))
            assert metrics["rmse_linear", target].value == pytest.approx(linear, rel=1e-9)
            assert metrics["rmse_mean", target].value == pytest.approx(mean, rel=1e-12)

    def test_the_units_of_columns_do_not_matter(self):
        corpus, documents = made(2, noise=1)
        units = np.array([1e-3, 1, 1e4, 10, 0.1], np.float32)
        scaled = {split: x * units + 5 * units for split, x in documents.items()}
        for first, second in zip(*(regression_metrics(corpus, x) for x in (documents, scaled)), strict=True):
            assert first.value == pytest.approx(second.value, rel=1e-3)

    def test_dev_is_not_used(self):
        corpus, documents = made(3)
        expected = regression_metrics(corpus, documents)
        assert regression_metrics(corpus, documents | {"dev": documents["dev"] * 100}) == expected
        assert regression_metrics(corpus.only("train", "test"), documents) == expected

    def test_test_rows_are_scored_separately(self):
        corpus, documents = made(3)
        documents["test"][40:] += 50  # would matter if features were standardised on test
        squares = []
        for rows in (range(80), range(40), range(40, 80)):
            part = corpus.only("train", "test")
            part.splits["test"] = part.splits["test"].select(rows)
            metrics = regression_metrics(part, documents | {"test": documents["test"][rows]})
            squares.append(len(rows) * values(metrics) ** 2)
        assert squares[0] == pytest.approx(squares[1] + squares[2])

    def test_without_vectors_or_targets_there_are_no_metrics(self, reviews):
        assert regression_metrics(made(0)[0], {}) == []
        some = {split: np.ones((len(reviews.splits[split]), 2), np.float32) for split in SPLITS}
        assert regression_metrics(reviews, some) == []


class TestUsers:
    """A user is one row, whatever the number of texts."""

    def corpus(self):
        users = {"train": list("baac"), "dev": ["d"], "test": list("fef")}
        scores = {"a": 1.0, "b": 2.0, "c": 4.0, "d": 1.0, "e": 3.0, "f": 0.5}
        return corpus_of({s: {"score": [scores[name] for name in names]} for s, names in users.items()}, users)

    def test_rows_are_averaged_by_user_in_the_order_of_names(self):
        vectors = np.array([[1.0, 10], [2, 20], [4, 40], [8, 80]])
        assert means_of_authors(self.corpus(), "train", vectors).tolist() == [[3, 30], [1, 10], [8, 80]]

    def test_without_users_each_document_is_a_row(self):
        documents = {"train": list("baac"), "dev": ["d"], "test": list("fef")}
        targets = {split: {"score": [1.0] * len(names)} for split, names in documents.items()}
        corpus = corpus_of(targets, documents, "document")
        vectors = np.array([[1.0, 10], [2, 20], [4, 40], [8, 80]])
        assert means_of_authors(corpus, "train", vectors).tolist() == [[3, 30], [1, 10], [8, 80]]

    def test_without_users_and_documents_each_text_is_a_row(self):
        corpus, documents = made(0)
        assert means_of_authors(corpus, "test", documents["test"]) is documents["test"]

    def test_scores_equal_those_of_averaged_vectors(self):
        rng = np.random.default_rng(0)
        sizes = {"train": 30, "dev": 2, "test": 12}
        users, targets, documents, means, scores = {}, {}, {}, {}, {}
        for split, size in sizes.items():
            owner = np.concatenate([np.arange(size), rng.integers(0, size, 4 * size)])
            scores[split] = rng.normal(size=size)
            documents[split] = rng.normal(size=(len(owner), 3)).astype(np.float32)
            means[split] = np.stack([documents[split][owner == user].mean(0) for user in range(size)])
            users[split] = [f"{split} {user:03}" for user in owner]
            targets[split] = {"score": scores[split][owner]}
        metrics = regression_metrics(corpus_of(targets, users), documents)
        averaged = regression_metrics(corpus_of({s: {"score": scores[s]} for s in SPLITS}), means)
        assert [metric.n for metric in metrics] == [12, 12, 12]
        for first, second in zip(metrics, averaged, strict=True):
            tolerance = 2e-3 if first.name == "rmse_svr" else 1e-5  # the SVR stops within 1e-3 of the optimum
            expected = pytest.approx((second.value, second.low, second.high), rel=tolerance)
            assert (first.value, first.low, first.high) == expected

    def test_users_with_more_texts_have_no_more_weight(self):
        corpus = self.corpus()
        documents = {split: np.ones((len(corpus.splits[split]), 2), np.float32) for split in SPLITS}
        metrics = by_name(regression_metrics(corpus, documents))
        mean = (1 + 2 + 4) / 3
        expected = math.sqrt(((mean - 3) ** 2 + (mean - 0.5) ** 2) / 2)
        assert metrics["rmse_mean", "score"].value == pytest.approx(expected)
        assert metrics["rmse_mean", "score"].n == 2
        assert metrics["rmse_linear", "score"].value == pytest.approx(expected)  # all vectors are equal


class TestSmall:
    """Tiny corpora and equal errors."""

    @pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 1, 1), (20, 1, 1), (1, 1, 5)])
    def test_tiny_corpora(self, sizes):
        metrics = regression_metrics(*made(4, sizes))
        assert len(metrics) == 6
        assert np.isfinite(values(metrics)).all()
        assert {metric.n for metric in metrics} == {sizes[2]}
        for metric in metrics:
            assert without_interval(metric) == (metric.n == 1) == (metric.status == NO_INTERVAL)

    def test_equal_errors_have_no_interval(self):
        metric = root_mean_square(np.array([0.5, -0.5, 0.5]), "rmse_mean", "score")
        assert metric.value == 0.5
        assert without_interval(metric)
        assert metric.status == NO_INTERVAL

    def test_root_mean_square_by_hand(self):
        """The squares are 9, 16, 9 and 16: their mean is 12.5, its standard error 7 / (2 sqrt(3))."""
        metric = root_mean_square(np.array([3.0, -4.0, -3.0, 4.0]), "rmse_mean", "score")
        assert metric.value == pytest.approx(math.sqrt(12.5))
        half_width = 3.182446 * 7 / (2 * math.sqrt(3))  # Student's t, three degrees of freedom
        assert metric.low**2 == pytest.approx(12.5 - half_width)
        assert metric.high**2 == pytest.approx(12.5 + half_width)
        assert metric.status == ""
