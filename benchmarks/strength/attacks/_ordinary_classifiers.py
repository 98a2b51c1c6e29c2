"""A classifier of scikit-learn with its defaults, as somebody would try it who has an hour: one a secret."""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from leakboard.attacks._portfolio.inputs import standardised
from leakboard.interfaces import Floats, Integers, Secret
from leakboard.threats.secrets import SecretsView

Classifier = Literal[
    "AdaBoost", "DecisionTree", "ExtraTrees", "GaussianNB", "HistGradientBoosting", "KNeighbors",
    "LinearDiscriminantAnalysis", "LinearSVC", "LogisticRegression", "MLP", "RandomForest", "RidgeClassifier", "SVC",
]  # fmt: skip
CLASSIFIERS: tuple[str, ...] = Classifier.__args__  # type: ignore[attr-defined]


def built(name: str, seed: int) -> Any:
    """Return the classifier; where it takes a seed, with this one."""
    from sklearn import utils

    found = dict(utils.all_estimators("classifier"))
    cls = found.get(name) or found[f"{name}Classifier"]
    return cls(random_state=seed) if "random_state" in cls().get_params() else cls()


def scored(name: str, view: SecretsView, seed: int) -> Callable[[Floats], dict[str, Floats]]:
    """Return scores of every value, float32 (n, values) a secret, of classifiers trained on standardised vectors."""
    scaling = standardised(view.vectors)
    inputs = scaling(view.vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: it is as it comes
        models = {s.name: _fitted(name, inputs, view.values[s.name], seed) for s in view.secrets}

    def scores(vectors: Floats) -> dict[str, Floats]:
        scaled = scaling(vectors)
        return {s.name: _scores(models[s.name], scaled, s) for s in view.secrets}

    return scores


def _fitted(name: str, vectors: Floats, codes: Integers, seed: int) -> Any:
    from sklearn.dummy import DummyClassifier

    model = built(name, seed) if len(np.unique(codes)) > 1 else DummyClassifier()
    return model.fit(vectors, codes)


def _scores(model: Any, vectors: Floats, secret: Secret) -> Floats:
    if hasattr(model, "decision_function"):
        found = model.decision_function(vectors)
        found = np.stack([-found, found], axis=1) if found.ndim == 1 else found
    else:
        found = np.log(model.predict_proba(vectors).clip(1e-9))
    full = np.full((len(vectors), len(secret.values)), min(-30.0, float(found.min())), np.float32)
    full[:, model.classes_] = found
    return full
