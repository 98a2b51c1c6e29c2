"""Test the features of units in a word table, and their likelihood with and without the unit in training."""

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge

from leakboard.attacks._membership.training_data import ContextModel, LikelihoodRatio
from leakboard.interfaces import PublishedWords, Texts


def test_the_likelihood_ratio_is_that_of_normal_distributions():
    rng = np.random.default_rng(0)
    included = np.array([[True, False, True], [False, True, True], [True, False, False], [False, True, False]] * 500)
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    means = rng.normal(size=(2, 3, 2))
    noise = rng.multivariate_normal(np.zeros(2), covariance, size=(2000, 3))
    features = np.where(included[:, :, None], means[1], means[0]) + noise
    ratio = LikelihoodRatio.of(features, included)
    for unit in range(3):
        at = rng.normal(size=2)
        inside, outside = (stats.multivariate_normal(means[side, unit], covariance) for side in (1, 0))
        expected = inside.logpdf(at) - outside.logpdf(at)
        assert ratio(np.tile(at, (3, 1)))[unit] == pytest.approx(expected, abs=0.25)


def test_a_change_shared_by_all_units_finds_members_better_than_separate_changes():
    """The units change equally, and there are only four models."""
    rng = np.random.default_rng(0)
    units, spread = 2000, 1.5
    included = np.array([[True, True, False, False]] * units).T
    members = rng.random(units) < 0.5
    features = included[:, :, None] + rng.normal(0, spread, (4, units, 1))
    target = members[:, None] + rng.normal(0, spread, (units, 1))
    ratio = LikelihoodRatio.of(features, included)
    separate_change = features[:2].mean(0) - features[2:].mean(0)
    separate = ((target - ratio.middle) * separate_change)[:, 0]

    def area(scores):
        return stats.mannwhitneyu(scores[members], scores[~members]).statistic / (members.sum() * (~members).sum())

    error = 1 / np.sqrt(3 * units)
    assert area(ratio(target)) > area(separate) + 4 * error
    assert ratio.change.std() < 0.3 * separate_change.std()


class TestContextModel:
    TEXTS = ("a b a b a b", "c d c d", "a c")

    def model(self, ridge=1e-3):
        vectors = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
        return ContextModel.of(PublishedWords(list("abcd"), vectors), list(self.TEXTS), 1, ridge), vectors

    def test_output_vectors_are_a_ridge_regression_of_pointwise_mutual_information(self):
        ridge = 0.3
        model, vectors = self.model(ridge)
        counts = np.zeros((4, 4))
        for text in self.TEXTS:
            known = ["abcd".index(word) for word in text.split()]
            for first, second in itertools.pairwise(known):
                counts[first, second] += 1
                counts[second, first] += 1
        drawn = counts.sum(0) ** 0.75 / (counts.sum(0) ** 0.75).sum()
        with np.errstate(divide="ignore"):
            information = np.log(counts / (counts.sum(1)[:, None] * drawn))
        penalty = ridge * np.trace(vectors.T @ vectors) / 3
        fitted = Ridge(alpha=penalty, fit_intercept=False).fit(vectors, np.maximum(information, 0))
        np.testing.assert_allclose(model.outputs, fitted.coef_, atol=1e-4)

    def test_features_are_the_mean_loss_and_the_mean_log_norm(self):
        model, vectors = self.model()
        features = model.features([Texts(["a b", "c x d"]), Texts(["c d"]), Texts(["x"])])
        for row, (first, second) in ((0, (0, 1)), (1, (2, 3))):
            products = [vectors[first] @ model.outputs[second], vectors[second] @ model.outputs[first]]
            norms = np.log(np.linalg.norm(vectors[[first, second]], axis=1))
            assert features[row, 0] == pytest.approx(np.mean(np.log1p(np.exp(-np.array(products)))), rel=1e-4)
            assert features[row, 1] == pytest.approx(norms.mean(), rel=1e-4)
        assert features[2, 0] == pytest.approx(np.log(2))
