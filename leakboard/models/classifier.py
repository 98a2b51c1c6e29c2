"""Classify published vectors by logistic regression, for victims without a task classifier of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import Floats, Integers


@dataclass(frozen=True)
class LinearClassifier:
    """A linear classifier: its scores are ``vectors @ weights + bias``."""

    weights: Floats
    """float32 (d, c)."""
    bias: Floats
    """float32 (c,)."""
    classes: Integers
    """Labels seen in training, int64 (c,)."""

    @classmethod
    def fit(cls, vectors: Floats, labels: Integers) -> LinearClassifier:
        """Fit on standardised vectors, and fold the scaling into the weights.

        Args:
            vectors: float32 (n, d).
            labels: int64 (n,). If there is only one class, it is always predicted.
        """
        from sklearn.linear_model import LogisticRegression

        classes = np.unique(labels)
        if len(classes) == 1:
            return cls(np.zeros((vectors.shape[1], 1), np.float32), np.zeros(1, np.float32), classes)
        mean, deviation = vectors.mean(0), vectors.std(0)
        deviation[deviation == 0] = 1
        model = LogisticRegression(max_iter=2000).fit((vectors - mean) / deviation, labels)
        weights, bias = model.coef_.T, model.intercept_
        if len(classes) == 2:  # scikit-learn keeps one column of scores for two classes
            weights, bias = np.hstack([-weights, weights]) / 2, np.hstack([-bias, bias]) / 2
        weights = weights / deviation[:, None]
        return cls(weights.astype(np.float32), (bias - mean @ weights).astype(np.float32), classes)

    def probabilities(self, vectors: Floats, labels: int) -> Floats:
        """Return the probability of each label, float32 (n, labels); 0 for labels that were not in training."""
        import scipy

        result = np.zeros((len(vectors), labels), np.float32)
        result[:, self.classes] = scipy.special.softmax(vectors @ self.weights + self.bias, axis=1)
        return result

    def predict(self, vectors: Floats) -> Integers:
        """Return the label of the highest score, int64 (n,)."""
        return self.classes[(vectors @ self.weights + self.bias).argmax(1)]
