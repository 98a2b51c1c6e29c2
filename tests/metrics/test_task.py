"""Test task accuracy: overall, of the majority of train, and by group."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from leakboard.metrics.task import task_metrics


def by_name(metrics, name, group=None):
    (metric,) = [m for m in metrics if m.name == name and group in (None, m.group)]
    return metric


@pytest.mark.parametrize("seed", range(3))
def test_group_accuracies_weighted_by_shares_add_up_to_the_accuracy(make_corpus, seed):
    rng = np.random.default_rng(seed)
    splits = {
        split: {"label": rng.integers(0, 3, n), "age": rng.integers(0, 3, n), "who": rng.integers(0, 2, n)}
        for split, n in (("train", 30), ("dev", 5), ("test", 97))
    }
    secrets = [("age", ("a", "b", "c"), "attribute"), ("who", ("absent", "present"), "entity")]
    corpus = make_corpus(splits, secrets, labels=("x", "y", "z"))
    predicted = rng.integers(0, 3, 97)
    metrics = task_metrics(corpus, predicted)
    overall = by_name(metrics, "task_accuracy", group="").value
    assert overall == pytest.approx(accuracy_score(corpus.column("test", "label"), predicted))
    for secret in corpus.secrets:
        shares = {m.group: m.value for m in metrics if m.name == "share" and m.variable == secret.name}
        parts = {m.group: m.value for m in metrics if m.name == "task_accuracy" and m.variable == secret.name}
        assert sum(shares.values()) == pytest.approx(1)
        assert sum(shares[g] * (parts[g] or 0) for g in shares) == pytest.approx(overall, abs=1e-12)


def test_the_task_majority_is_chosen_on_train(make_corpus):
    corpus = make_corpus({"train": {"label": [0, 0, 1]}, "dev": {"label": [1]}, "test": {"label": [1, 1, 1, 0]}}, [])
    assert by_name(task_metrics(corpus, np.array([1, 1, 1, 1])), "task_majority").value == 0.25


def test_without_predictions_only_shares_are_reported(make_corpus):
    splits = {name: {"s": [0, 1, 1, 1]} for name in ("train", "dev", "test")}
    corpus = make_corpus(splits, [("s", ("a", "b"), "attribute")])
    shares = [(m.name, m.group, m.value) for m in task_metrics(corpus, None)]
    assert shares == [("share", "a", 0.25), ("share", "b", 0.75)]
