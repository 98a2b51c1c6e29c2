"""Bayes' rule mixed with an ensemble: by hand, and in a world where half of the texts are copies of known ones."""

import dataclasses

import numpy as np
import pytest
from planted import GENDER, SMALL
from scipy.special import expit
from test_posterior import CLAIM, NoisyOracle, task_of

from leakboard.attacks._portfolio.ensemble import pooled
from leakboard.attacks._portfolio.members import Task, log_loss
from leakboard.attacks._portfolio.mixture import Gate, Mixture, _mixed, _read, fit_mixture
from leakboard.attacks._portfolio.posterior import Law
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.interfaces import Texts
from leakboard.threats.secrets import KnownTexts, SecretsView

ATTACK = AttributeInference(**SMALL, bayes="mixed")
SIZES = (500, 400, 1000)


def world(copied=0.5, seed=0):
    """Return a view, test vectors, their secrets and which are copies.

    The first of 24 coordinates gives the gender away in three of four texts. Copies of train have its inputs and
    secrets.
    """
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(sum(SIZES), 24))
    style = rng.random(len(inputs)) < 0.5
    inputs[:, 0] = 8 * style
    gender = style ^ (rng.random(len(inputs)) < 0.25)
    is_copy = rng.random(len(inputs)) < copied
    is_copy[: SIZES[0]] = False
    source = rng.integers(0, SIZES[0], is_copy.sum())
    inputs[is_copy], gender[is_copy] = inputs[source], gender[source]
    oracle = NoisyOracle(inputs, rng, 0.2)
    texts = Texts(map(str, range(len(inputs))))
    vectors, values = oracle.encode(texts), gender.astype(np.int64)
    train, dev, test = (slice(end - size, end) for size, end in zip(SIZES, np.cumsum(SIZES), strict=True))
    known = (KnownTexts(Texts(texts[part]), vectors[part], {"gender": values[part]}) for part in (train, dev))
    return SecretsView((GENDER,), *known, CLAIM, oracle), vectors[test], values[test], is_copy[test]


class Expert:
    """An ensemble that knows how the first coordinate shows the gender."""

    name = "expert"

    def __init__(self, view):
        self.on_dev = self(view.dev.vectors)

    def __call__(self, vectors, publications=None):
        mean = vectors if publications is None else publications.mean(1)
        of_one = np.where(mean[:, 0] > 4, 0.75, 0.25)
        return {"gender": np.log(np.column_stack([1 - of_one, of_one])).astype(np.float32)}


def losses(view, vectors, truth, publications=None, dev_publications=None):
    """Return the log-losses of the mixture, of Bayes' rule, of the expert, and of the best sum of these two."""
    mixture = fit_mixture(Expert(view), task_of(view, dev_publications=dev_publications))
    law, known = mixture.law, mixture.known
    rules = [
        _read(law, seen, part, (GENDER,))[1]["gender"]
        for seen, part in (
            (view.dev.vectors if dev_publications is None else dev_publications, task_of(view).train),
            (vectors if publications is None else publications, known),
        )
    ]
    expert = mixture.ensemble(vectors, publications)["gender"]
    pool = pooled([rules[0], mixture.ensemble.on_dev["gender"]], view.dev.values["gender"])
    answers = [mixture(vectors, publications)["gender"], rules[1], expert, pool([rules[1], expert])]
    return [log_loss(answer, truth) for answer in answers]


def test_a_mixture_beats_both_and_every_sum_where_half_of_the_texts_are_copies():
    view, vectors, truth, _ = world()
    mixture, rule, expert, pool = losses(view, vectors, truth)
    assert mixture < min(rule, expert, pool) - 0.05


def test_without_copies_the_expert_alone_counts():
    view, vectors, truth, _ = world(copied=0)
    mixture, rule, expert, _ = losses(view, vectors, truth)
    assert mixture < expert + 0.02
    assert mixture < rule - 1


def test_several_publications_tell_copies_under_more_noise():
    view, _, truth, _ = world()
    view.oracle.scale = 0.8
    texts = Texts([str(row) for row in range(SIZES[0] + SIZES[1], sum(SIZES))])

    def published(of, times):
        return np.stack([view.oracle.encode(of) for _ in range(times)], axis=1)

    once, several, dev = published(texts, 1)[:, 0], published(texts, 16), published(view.dev.texts, 16)
    train, first = published(view.train.texts, 1)[:, 0], published(view.dev.texts, 1)[:, 0]
    view = dataclasses.replace(
        view, train=dataclasses.replace(view.train, vectors=train), dev=dataclasses.replace(view.dev, vectors=first)
    )
    of_one = losses(view, once, truth)
    view = dataclasses.replace(view, dev=dataclasses.replace(view.dev, vectors=dev.mean(1)))
    of_many = losses(view, several.mean(1), truth, several, dev)
    assert of_many[0] < of_one[0] - 0.02
    assert of_many[0] < min(of_many[1:]) - 0.02


def test_the_ensemble_is_mixed_with_the_rule():
    view, vectors, truth, is_copy = world()
    fitted = ATTACK.fit(view, 0)
    assert isinstance(fitted.attacker, Mixture)
    assert fitted.details.startswith("mixture of Bayes' rule (0.")
    assert "posterior" not in fitted.details
    right = fitted(vectors).scores["gender"].argmax(1) == truth
    assert right[is_copy].mean() > 0.95
    assert right[~is_copy].mean() > 0.64


def test_without_the_law_of_the_noise_the_ensemble_reads_all():
    view, vectors, *_ = world()
    fitted = ATTACK.fit(dataclasses.replace(view, claim=None), 0)
    assert "Bayes' rule left out (ValueError: the vectors before the noise are unknown)" in fitted.details
    plain = dataclasses.replace(ATTACK, bayes="member").fit(dataclasses.replace(view, claim=None), 0)
    assert np.array_equal(fitted(vectors).scores["gender"], plain(vectors).scores["gender"])


def test_measures_by_hand():
    """Surprises 1, 1 + ln 2 and 4: weights 1, 1/2 and e**-3."""
    known = KnownTexts(
        Texts([]), np.zeros((3, 1)), {"gender": np.array([0, 1, 1])}, np.array([[1], [-1 - np.log(2)], [4]])
    )
    measures, scores = _read(Law("laplace", 1.0), np.zeros((1, 1)), known, (GENDER,))
    total = 1.5 + np.exp(-3)
    assert measures[0] == pytest.approx([1, np.log(total), (1 + 1 + np.log(2) + 4) / 3 - 1])
    assert np.exp(scores["gender"][0]) == pytest.approx([1 / total, 1 - 1 / total], rel=1e-5)


def test_a_mixture_by_hand():
    mixed = _mixed(np.array([0.25]), {"gender": np.log([[0.8, 0.2]])}, {"gender": np.log([[0.4, 0.6]])})
    assert np.exp(mixed["gender"]) == pytest.approx(np.array([[0.5, 0.5]]))
    for weight, expected in ((0.0, 0.4), (1.0, 0.8)):
        mixed = _mixed(np.array([weight]), {"gender": np.log([[0.8, 0.2]])}, {"gender": np.log([[0.4, 0.6]])})
        assert np.exp(mixed["gender"][0, 0]) == pytest.approx(expected)


def test_the_gate_has_the_least_loss_of_random_gates():
    rng = np.random.default_rng(0)
    measures = rng.normal(size=(300, 3)) * [1, 5, 0.1]
    gains = np.where(rng.random((300, 2)) < expit(measures[:, :1]), 1.0, -0.8)
    gate = Gate.of(measures, gains)

    def loss(coefficients):
        weights = dataclasses.replace(gate, coefficients=coefficients)(measures)
        return -np.log(1 + weights[:, None] * gains).sum() + coefficients @ coefficients / 2

    best = loss(gate.coefficients)
    assert all(loss(gate.coefficients + 0.05 * rng.normal(size=4)) > best for _ in range(200))
    assert gate.coefficients[0] > 1
    assert Gate.of(np.ones((5, 3)), np.ones((5, 1))).coefficients[:3].tolist() == [0, 0, 0]


def test_unknown_inputs_are_refused():
    view, *_ = world()
    task = task_of(view)
    with pytest.raises(ValueError, match="the vectors before the noise are unknown"):
        fit_mixture(None, Task(view.train, view.dev, view.secrets, task.options, 0))
