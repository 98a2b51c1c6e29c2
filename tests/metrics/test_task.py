"""Test task accuracy: overall, of the majority of train, and by group."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from leakboard.metrics.task import calibration_error, task_metrics


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


def test_both_classifiers_are_scored_over_the_labels_of_test(make_corpus):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    corpus = make_corpus({"train": {"label": [0, 1, 2]}, "dev": {"label": [1]}, "test": {"label": labels}}, [], "xyz")
    probabilities = rng.dirichlet(np.ones(3), 60).astype(np.float32)
    predicted = np.where(rng.random(60) < 0.8, labels, 1 - labels)
    metrics = task_metrics(corpus, predicted, probabilities)
    for name, answer in (("task", predicted), ("retrained", probabilities.argmax(1))):
        kept = {"labels": [0, 1], "average": "macro"}  # no test text has the third label
        assert by_name(metrics, f"{name}_accuracy").value == pytest.approx(accuracy_score(labels, answer))
        assert by_name(metrics, f"{name}_f1_macro").value == pytest.approx(f1_score(labels, answer, **kept))
        recalls = [np.mean(answer[labels == label] == label) for label in (0, 1)]
        assert by_name(metrics, f"{name}_balanced_accuracy").value == pytest.approx(np.mean(recalls))
    assert by_name(metrics, "task_balanced_accuracy").value == pytest.approx(balanced_accuracy_score(labels, predicted))


def test_a_constant_answer_has_the_balanced_accuracy_of_chance(make_corpus):
    labels = [0] * 97 + [1] * 3
    corpus = make_corpus({name: {"label": labels} for name in ("train", "dev", "test")}, [])
    metrics = task_metrics(corpus, np.zeros(100, np.int64))
    assert by_name(metrics, "task_accuracy").value == 0.97
    assert by_name(metrics, "task_balanced_accuracy").value == 0.5


def test_calibration_error_by_hand():
    # bins (.6, .667] and (.933, 1]: |2/3 - .65| of 3 texts, and |1/2 - .95| of 2 texts
    probabilities = np.array([[0.65, 0.35]] * 3 + [[0.05, 0.95]] * 2, np.float32)
    labels = np.array([0, 0, 1, 1, 0])
    assert calibration_error(probabilities, labels) == pytest.approx((3 * (2 / 3 - 0.65) + 2 * 0.45) / 5, abs=1e-6)


def test_right_probabilities_are_calibrated_and_too_sure_ones_are_not():
    rng = np.random.default_rng(2)
    first = rng.uniform(0.02, 0.98, 20_000)
    labels = (rng.random(20_000) > first).astype(np.int64)
    right = np.stack([first, 1 - first], axis=1).astype(np.float32)
    assert calibration_error(right, labels) < 0.015  # 15 bins of about 1,300 texts each: 0.011 by chance
    sure = np.where(right > 0.5, 0.99, 0.01).astype(np.float32)
    assert calibration_error(sure, labels) > 0.2
