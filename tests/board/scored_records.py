"""Records of attacks as the tests of the tables make them."""

from leakboard.metrics.measures import Metric
from leakboard.pipeline.records import Record

CLAIM = {
    "about": "release",
    "epsilon": 0.5,
    "delta": 1e-6,
    "unit": "document",
    "mechanism": "laplace",
    "sensitivity": "L1, 1",
    "proved": 4.0,
}


def scored(seed, score, constant=0.5, attack="guesser", victim="encoder", **more):
    """Return a record of an attack that reached ``score``; intervals are ± 0.1, task accuracy is 0.8 + seed / 10."""
    left = min(1 - score, constant)
    metrics = [
        Metric("task_accuracy", 0.8 + seed / 10, n=40),
        Metric("task_majority", 0.55, n=40),
        Metric("attack_score", score, n=40),
        Metric("empirical_privacy", left, low=left - 0.1, high=left + 0.1, n=40),
        Metric("privacy_best_constant", constant, n=40),
        Metric("privacy_text_classifier", 0.125, n=40),
    ]
    found = {
        "secrets": ("age", "gender"),
        "threat": "attributes",
        "attack_metric": "accuracy",
        "test_size": 40,
        "checks": {"test_copies": 0.25},
    }
    key = f"{victim} {attack} {seed}"
    return Record("texts", victim, attack, seed, "ok", key=key, **({"metrics": metrics} | found | more))


def empty(status, reason, seed=0, **names):
    names = {"dataset": "texts", "victim": "encoder", "attack": "guesser", "key": f"{status} {seed}"} | names
    return Record(**names, seed=seed, status=status, reason=reason)
