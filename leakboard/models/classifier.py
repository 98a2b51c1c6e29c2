"""Logistic regression on published vectors: the task classifier of victims that have none of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakboard.interfaces import Floats, Integers


@dataclass(frozen=True)
class LinearClassifier:
    """Scores are ``vectors @ weights + bias``; ``classes`` (int64 (c,)) are the labels seen in training."""

    weights: Floats
    bias: Floats
    classes: Integers

    @classmethod
    def fit(cls, vectors: Floats, labels: Integers) -> LinearClassifier:
        """Fit on standardised vectors; the scaling is folded into the weights.

        Args:
            vectors: float32 (n, d).
            labels: int64 (n,); with one class only, that class is always predicted.
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

    def predict(self, vectors: Floats) -> Integers:
        """Return labels, int64 (n,)."""
        return self.classes[(vectors @ self.weights + self.bias).argmax(1)]

    def save(self, path: Path) -> None:
        """Write a ``.npz`` file."""
        np.savez(path, weights=self.weights, bias=self.bias, classes=self.classes)

    @classmethod
    def load(cls, path: Path) -> LinearClassifier:
        """Return what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            return cls(file["weights"], file["bias"], file["classes"])
