"""Fit a classifier of scikit-learn with its defaults to each secret: what an hour of work would try first."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from leakboard.attacks._portfolio.vector_inputs import standardised
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import SecretsView

Classifier = Literal[
    "AdaBoost", "DecisionTree", "ExtraTrees", "GaussianNB", "HistGradientBoosting", "KNeighbors",
    "LinearDiscriminantAnalysis", "LinearSVC", "LogisticRegression", "MLP", "RandomForest", "RidgeClassifier", "SVC",
]  # fmt: skip
CLASSIFIERS: tuple[str, ...] = Classifier.__args__  # type: ignore[attr-defined]


def build(name: str, seed: int) -> Any:
    """Return the classifier, with the seed if it takes one."""
    from sklearn import utils

    known = dict(utils.all_estimators("classifier"))
    cls = known.get(name) or known[f"{name}Classifier"]
    return cls(random_state=seed) if "random_state" in cls().get_params() else cls()


def fit_scores(name: str, view: SecretsView, seed: int) -> Callable[[Floats], dict[str, Floats]]:
    """Fit on standardised vectors; return a function from vectors to scores, float32 (n, values) for each secret."""
    scale = standardised(view.vectors)
    inputs = scale(view.vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of convergence: the defaults are not tuned
        models = {secret.name: _fit(name, inputs, view.values[secret.name], seed) for secret in view.secrets}

    def scores(vectors: Floats) -> dict[str, Floats]:
        scaled = scale(vectors)
        return {secret.name: _scores(models[secret.name], scaled, secret) for secret in view.secrets}

    return scores


def _fit(name: str, vectors: Floats, codes: Integers, seed: int) -> Any:
    from sklearn.dummy import DummyClassifier

    model = build(name, seed) if len(np.unique(codes)) > 1 else DummyClassifier()
    return model.fit(vectors, codes)


def _scores(model: Any, vectors: Floats, secret: Secret) -> Floats:
    """Return a score for each value of the secret; values that the model has not seen get the lowest."""
    if hasattr(model, "decision_function"):
        scores = model.decision_function(vectors)
        scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    else:
        scores = np.log(model.predict_proba(vectors).clip(1e-9))
    full = np.full((len(vectors), len(secret.values)), min(-30.0, float(scores.min())), np.float32)
    full[:, model.classes_] = scores
    return full
