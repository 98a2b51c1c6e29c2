"""The classifier portfolio behind the attacks on documents: planted signals are found, absent ones are not."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from leakboard.attacks import entity_presence
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.interfaces import Secret, Texts
from leakboard.metrics.measures import best_offset
from leakboard.threats.secrets import KnownTexts, SecretsView

GENDER = Secret("gender", ("f", "m"), "attribute")
AGE = Secret("age", ("a", "b", "c"), "attribute")
SMALL = {"hidden": 32, "epochs": 25, "patience": 25, "batch_size": 64, "learning_rate": 3e-3}


def world(vectors_of, secrets, seed=0, sizes=(400, 200, 600)):
    """Return a view and test vectors with their secrets; ``vectors_of(codes, rng)`` gives the vectors."""
    rng = np.random.default_rng(seed)
    parts = []
    for n in sizes:
        codes = {secret.name: rng.integers(0, len(secret.values), n) for secret in secrets}
        parts.append(KnownTexts(Texts([""] * n), vectors_of(codes, rng).astype(np.float32), codes))
    view = SecretsView(tuple(secrets), parts[0], parts[1], claim=None, oracle=None)  # no attack asks here
    return view, parts[2].vectors, parts[2].values


def accuracies(attack, view, vectors, truth, seed=0):
    scores = attack.fit(view, seed)(vectors).scores
    return {name: float(np.mean(scores[name].argmax(1) == truth[name])) for name in truth}


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


@pytest.mark.parametrize("portfolio", ["ensemble", "mlp", "logistic"])
def test_a_linear_signal_is_found_by_all(portfolio):
    found = accuracies(AttributeInference(portfolio=portfolio, **SMALL), *world(linear, [GENDER, AGE]))
    assert found["gender"] > 0.95  # the best possible is Φ(2) = 0.977
    assert found["age"] > 0.97


def test_a_curved_signal_is_found_by_the_network_and_not_by_a_line():
    found = {
        portfolio: accuracies(AttributeInference(portfolio=portfolio, **SMALL), *world(exclusive_or, [GENDER]))
        for portfolio in ("ensemble", "mlp", "logistic")
    }
    assert found["mlp"]["gender"] > 0.97
    assert found["ensemble"]["gender"] > 0.97
    assert found["logistic"]["gender"] < 0.6


@pytest.mark.parametrize("seed", [0, 1])
def test_independent_vectors_give_nothing_away(seed):
    view, vectors, truth = world(noise, [GENDER, AGE], seed)
    found = accuracies(AttributeInference(**SMALL), view, vectors, truth)
    for name, chance in (("gender", 1 / 2), ("age", 1 / 3)):
        low, high = stats.binom(600, chance).interval(0.9999)
        assert low <= found[name] * 600 <= high


@pytest.mark.parametrize(
    ("scale", "shift"), [(1e4, 1e6), (1e-4, 1.0), (1e25, 0.0), (1e-30, 0.0)], ids=["large", "small", "huge", "minute"]
)
def test_bad_scaling_is_no_defence(scale, shift):
    def badly(codes, rng):
        vectors = scale * linear(codes, rng)
        return vectors + shift * rng.normal(size=(len(vectors), 1))

    recipe = SMALL | {"epochs": 8}
    alone, together = (
        accuracies(AttributeInference(portfolio=portfolio, **recipe), *world(badly, [GENDER]))["gender"]
        for portfolio in ("mlp", "ensemble")
    )
    assert together > 0.9
    assert alone < together - 0.05


def entities(strength):
    """Two entities, each in one text of eight, that shift a coordinate by ``strength``."""

    def vectors(codes, rng):
        n = len(codes["one"])
        for name in codes:
            codes[name][:] = rng.random(n) < 1 / 8
        return noise(codes, rng) + strength * np.stack([codes["one"], codes["two"]] + [np.zeros(n)] * 6, axis=1)

    return [Secret(name, ("absent", "present"), "entity") for name in ("one", "two")], vectors


def micro_f1(attack, view, vectors, truth):
    scores = attack.fit(view, 0)(vectors).scores
    guessed = np.stack([scores[name].argmax(1) for name in truth], axis=1)
    return f1_score(np.stack(list(truth.values()), axis=1), guessed, average="micro", zero_division=0)


def test_the_threshold_helps_with_rare_entities():
    secrets, vectors = entities(1.2)
    given = world(vectors, secrets, sizes=(600, 600, 1200))
    plain, chosen = (micro_f1(EntityPresence(portfolio="logistic", threshold=t), *given) for t in (False, True))
    assert chosen > plain + 0.1


def test_entities_are_found_and_not_invented():
    secrets, vectors = entities(6.0)
    assert micro_f1(EntityPresence(**SMALL), *world(vectors, secrets)) > 0.97
    secrets, vectors = entities(0.0)
    # A set chosen without knowledge has at most the F1 of calling everything present, 2q / (1 + q), give or take.
    assert micro_f1(EntityPresence(**SMALL), *world(vectors, secrets)) < 2 / 9 + 4 * 0.02


def test_no_threshold_lies_between_equal_scores():
    """Only "all present" and "none" can be told apart, and all present is better."""
    scores = {"e": np.zeros((6, 2), np.float32)}
    truth = {"e": np.array([1, 0, 0, 1, 0, 0])}
    offset = entity_presence._best_offset(scores, truth)
    assert ((scores["e"] + [0, offset]).argmax(1) == 1).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_threshold_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    margin = rng.integers(-3, 4, 12).astype(np.float32)
    truth = {"e": rng.integers(0, 2, 12)}
    scores = {"e": np.stack([np.zeros(12, np.float32), margin], axis=1)}
    offset = entity_presence._best_offset(scores, truth)
    found = f1_score(truth["e"], margin + offset > 0, zero_division=0)
    assert found == pytest.approx(max(f1_score(truth["e"], margin >= m, zero_division=0) for m in np.unique(margin)))


@pytest.mark.parametrize("attack", [AttributeInference(**SMALL), EntityPresence(**SMALL)])
def test_same_seed_same_guesses_and_inputs_unchanged(attack):
    secrets, vectors = entities(2.0) if isinstance(attack, EntityPresence) else ([GENDER, AGE], linear)
    view, test, _ = world(vectors, secrets, sizes=(100, 50, 80))
    before = [array.copy() for known in (view.train, view.dev) for array in (known.vectors, *known.values.values())]
    kept = test.copy()
    first, second = (attack.fit(view, 3)(test) for _ in range(2))
    assert first.details == second.details
    for name, scores in first.scores.items():
        assert np.array_equal(scores, second.scores[name])
        assert scores.dtype == np.float32
    after = [array for known in (view.train, view.dev) for array in (known.vectors, *known.values.values())]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert np.array_equal(test, kept)


def test_values_that_train_does_not_hold():
    view, vectors, _ = world(linear, [GENDER, AGE], sizes=(60, 30, 20))
    only = {"gender": np.ones(60, np.int64), "age": 2 * view.values["gender"]}
    view = dataclasses.replace(view, train=dataclasses.replace(view.train, values=only))
    scores = AttributeInference(portfolio="logistic").fit(view, 0)(vectors).scores
    assert (scores["gender"].argmax(1) == 1).all()
    assert set(scores["age"].argmax(1)) <= {0, 2}
    assert all(np.isfinite(s).all() for s in scores.values())


def test_the_details_name_the_classifier_and_its_inputs():
    view, vectors, _ = world(linear, [GENDER], sizes=(100, 60, 10))
    details = AttributeInference(portfolio="logistic").fit(view, 0)(vectors).details
    assert details == "logistic on raw inputs"


def test_without_a_positive_no_threshold_is_better_than_another():
    margins, present = np.array([3.0, -1.0, 0.5]), np.zeros(3, np.int64)
    assert best_offset(margins, present) == 0
