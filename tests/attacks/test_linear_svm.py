"""The linear support vector machines of the ensemble: their minima are exact, and scikit-learn finds the same."""

import dataclasses

import numpy as np
import pytest
from planted import AGE, GENDER, accuracies, linear, task_of, trained, world

from leakboard.attacks._portfolio import linear as families
from leakboard.attacks._portfolio.linear import fit_svm, svm_weights
from leakboard.threats.secrets import KnownTexts


def test_two_texts_by_hand():
    """With texts at 1 and -1, and a constant coordinate of 1, w^2 / 2 + 2 (1 - w)^2 is least at w = 4 / 5."""
    known = np.array([[1.0, 1.0], [-1.0, 1.0]])
    assert np.allclose(svm_weights(known, np.array([1.0, -1.0]))[0], [0.8, 0.0])


@pytest.mark.parametrize("seed", range(20))
def test_the_minimum_is_exact(seed):
    """The gradient is 0, also with few texts, coordinates of unlike sizes, and separable texts."""
    rng = np.random.default_rng(seed)
    known = rng.normal(size=(rng.integers(5, 400), 12)) * 10.0 ** rng.uniform(-2, 2, 12)
    signs = np.where(known[:, 0] / known[:, 0].std() + (seed % 3) * rng.normal(size=len(known)) > 0, 1.0, -1.0)
    weights, is_minimum = svm_weights(known, signs)
    assert is_minimum
    gradient = weights - 2 * known.T @ (signs * np.maximum(0, 1 - signs * (known @ weights)))
    assert np.abs(gradient).max() < 1e-8 * np.abs(known).sum(0).max()


@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (10, 3), (30, 300)], ids=str)
@pytest.mark.parametrize("classes", [1, 2])
def test_few_texts_and_constant_ones(shape, classes):
    signs = np.where(np.arange(shape[0]) % classes == 0, 1.0, -1.0)
    for known in (np.random.default_rng(0).normal(size=shape), np.ones(shape)):
        weights, is_minimum = svm_weights(known, signs)
        assert is_minimum
        short = np.maximum(0, 1 - signs * (known @ weights))
        assert np.allclose(weights, 2 * known.T @ (signs * short), atol=1e-9)


def test_the_slope_is_the_objectives_derivative():
    rng = np.random.default_rng(0)
    known, signs = rng.normal(size=(50, 4)), rng.choice([-1.0, 1.0], 50)
    weights, step = rng.normal(size=(2, 4))

    def objective(length):
        moved = weights + length * step
        return moved @ moved / 2 + (np.maximum(0, 1 - signs * (known @ moved)) ** 2).sum()

    away = np.array([weights @ step, step @ step])
    for length in (0.0, 0.3, 1.0):
        slope = families._slope(away, signs * (known @ weights), signs * (known @ step), length)
        assert slope == pytest.approx((objective(length + 1e-6) - objective(length - 1e-6)) / 2e-6, rel=1e-5)


def test_retrained_machines_are_those_of_train_and_dev():
    view, vectors, _ = world(linear, [GENDER, AGE])
    task, both = task_of(view), KnownTexts.joined([view.train, view.dev])
    first, whole = fit_svm(task), fit_svm(dataclasses.replace(task, train=both)).scorer(vectors)
    retrained = first.retrain(both).scorer(vectors)
    assert all(np.array_equal(retrained[name], whole[name]) for name in whole)
    assert not np.array_equal(whole["age"], first.scorer(vectors)["age"])


def test_a_machine_that_needs_more_steps_is_reported(monkeypatch):
    monkeypatch.setattr(families, "STEPS", 1)
    view, *_ = world(linear, [GENDER])
    assert trained("svm", view).name.endswith("(stopped at 1 steps)")


def test_decision_functions_are_scikit_learns():
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    view, vectors, _ = world(linear, [GENDER, AGE])
    scores = trained("svm", view)(vectors)
    inputs = StandardScaler().fit(view.vectors)
    for name in ("gender", "age"):
        model = LinearSVC(dual=False, tol=1e-10, max_iter=10_000)
        model.fit(inputs.transform(view.vectors), view.values[name])
        expected = model.decision_function(inputs.transform(vectors))
        expected = np.stack([-expected, expected], axis=1) if name == "gender" else expected
        assert np.allclose(scores[name], expected, atol=1e-4)


def test_only_a_secret_with_too_many_values_has_no_machines(monkeypatch):
    monkeypatch.setattr(families, "MAX_VALUES", 2)
    view, vectors, truth = world(linear, [GENDER, AGE])
    member = trained("svm", view)
    assert accuracies(member(vectors), truth)["gender"] > 0.9
    assert not member(vectors)["age"].any()
    assert member.name.endswith("(age has over 2 values)")
