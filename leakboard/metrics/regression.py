"""Predict numeric targets of users from published document vectors (Vu, Tran and Jiang 2019, table 3).

A row is a user: the mean of the vectors of the user's texts. Without users, a row is a document. Without both, a row is
a text. Least squares and a linear support vector regression with the paper's settings are fitted on train; dev is not
used. The features are the published vectors alone, standardised by the training rows. The paper also uses TF-IDF and
public vectors.

Every number in the paper's table 3 is worse than guessing the training mean: the best RMSE is 1.25, that of the mean
is 0.92. The paper has about 2,000 features for 200 users, so its numbers say little about the vectors. That is why the
mean predictor is a metric here. The errors are those of ordinary models with fixed settings, not the least possible.
The models are meant for hundreds of users, as in the paper. A support vector regression of 2,000 users with 300
features can take 40 seconds for each target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy

from leakboard.interfaces import Corpus, Floats
from leakboard.metrics.intervals import CONFIDENCE, Array
from leakboard.metrics.measures import Metric, authors

SPLITS = ("train", "test")
NO_INTERVAL = "no interval: all errors are equally large"


def regression_metrics(corpus: Corpus, documents: Mapping[str, Floats]) -> list[Metric]:
    """Return ``rmse_linear``, ``rmse_svr`` and ``rmse_mean`` on test of every numeric target.

    The list is empty if the corpus has no numeric targets, or no document is published.

    Args:
        corpus: has train and test.
        documents: published vectors of each split, float32 (n, d), in the order of its texts.
    """
    if not corpus.numeric_targets or not documents:
        return []
    train, test = (means_of_authors(corpus, split, np.asarray(documents[split], np.float64)) for split in SPLITS)
    metrics = []
    for target in corpus.numeric_targets:
        values, wanted = (_targets(corpus, split, target) for split in SPLITS)
        for name, model in _models().items():
            errors = model.fit(train, values).predict(test) - wanted
            metrics.append(root_mean_square(errors, f"rmse_{name}", target))
    return metrics


def means_of_authors(corpus: Corpus, split: str, values: Array) -> Array:
    """Return the mean row of each author's texts, float64 (authors, d), in the order of names.

    An author is a user; if the corpus names no users, a document. Without both, return the rows unchanged.

    Args:
        corpus: has the split.
        split: the split of the texts.
        values: float64 (n, d), one row for each text of the split.
    """
    owners = authors(corpus, split)
    if owners is None:
        return values
    sums = np.zeros((owners.max() + 1, values.shape[1]))
    np.add.at(sums, owners, values)
    return sums / np.bincount(owners)[:, None]


def root_mean_square(errors: Array, name: str, variable: str) -> Metric:
    """Return the root of the mean squared error with Student's interval of the mean over rows.

    If all errors are equally large, there is no interval.

    Args:
        errors: float64 (n,), predicted minus true.
        name: name of the metric.
        variable: name of the target.
    """
    squares = errors**2
    value, n = float(np.sqrt(squares.mean())), len(squares)
    if np.allclose(squares, squares[0], atol=0):
        return Metric(name, value, variable, low=float("nan"), high=float("nan"), n=n, status=NO_INTERVAL)
    mean = scipy.stats.ttest_1samp(squares, 0.0).confidence_interval(CONFIDENCE)
    low, high = np.sqrt(np.maximum(0.0, [mean.low, mean.high]))
    return Metric(name, value, variable, low=float(low), high=float(high), n=n)


def _targets(corpus: Corpus, split: str, target: str) -> Array:
    """Return the mean of a numeric target for each author, float64 (authors,)."""
    column = np.asarray(corpus.splits[split][target][:], dtype=np.float64)
    return means_of_authors(corpus, split, column[:, None])[:, 0]


def _models() -> dict[str, Any]:
    """Return unfitted regressions by the last part of their metric's name."""
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    return {
        "linear": make_pipeline(StandardScaler(), LinearRegression()),
        "svr": make_pipeline(StandardScaler(), SVR(kernel="linear", C=1.0, epsilon=0.2)),
        "mean": DummyRegressor(strategy="mean"),
    }
