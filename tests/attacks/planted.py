"""Make vectors with planted secrets, and train the portfolio's classifiers on them."""

import numpy as np

from leakboard.attacks._portfolio.members import Task
from leakboard.attacks._portfolio.trainer import Trainer
from leakboard.attacks._portfolio.vector_inputs import Scaling
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.interfaces import Secret, Texts
from leakboard.threats.secrets import KnownTexts, SecretsView

GENDER = Secret("gender", ("f", "m"), "attribute")
AGE = Secret("age", ("a", "b", "c"), "attribute")
SMALL = {"hidden": 32, "epochs": 25, "patience": 25, "batch_size": 64, "learning_rate": 3e-3}


def world(vectors_of, secrets, seed=0, sizes=(400, 200, 600)):
    """Return a view and test vectors with their secrets; ``vectors_of(codes, rng)`` makes the vectors."""
    rng = np.random.default_rng(seed)
    parts = []
    for n in sizes:
        codes = {secret.name: rng.integers(0, len(secret.values), n) for secret in secrets}
        parts.append(KnownTexts(Texts([""] * n), vectors_of(codes, rng).astype(np.float32), codes))
    view = SecretsView(tuple(secrets), parts[0], parts[1], claim=None, oracle=None)  # no attack asks here
    return view, parts[2].vectors, parts[2].values


def task_of(view):
    return Task(view.train, view.dev, view.secrets, AttributeInference(**SMALL), 0)


def trained(family, view, scaling=None):
    """Return a trained member of the portfolio."""
    (member,) = Trainer(task_of(view)).members([(family, scaling or Scaling("raw"))])
    return member


def accuracies(scores, truth):
    return {name: float(np.mean(scores[name].argmax(1) == truth[name])) for name in truth}


def attack_accuracies(attack, view, vectors, truth):
    return accuracies(attack.fit(view, 0)(vectors).scores, truth)


def noise(codes, rng):
    return rng.normal(size=(len(next(iter(codes.values()))), 8))


def linear(codes, rng):
    vectors = noise(codes, rng)
    vectors[:, 0] += 4 * codes["gender"]
    if "age" in codes:
        vectors[:, 1:4] += 6 * np.eye(3)[codes["age"]]
    return vectors


def exclusive_or(codes, rng):
    vectors = noise(codes, rng)
    first = rng.integers(0, 2, len(vectors))
    vectors[:, 0] += 8 * first - 4
    vectors[:, 1] += 8 * (first ^ codes["gender"]) - 4
    return vectors


def copies(codes, rng):
    """Draw each vector from 40 points, each with a random gender; a linear classifier learns little from them."""
    points = np.random.default_rng(5).normal(size=(40, 8))
    chosen = rng.integers(0, 40, len(codes["gender"]))
    codes["gender"][:] = np.random.default_rng(6).integers(0, 2, 40)[chosen]
    return points[chosen]


def constant(codes, rng):
    return np.ones((len(codes["gender"]), 4))
