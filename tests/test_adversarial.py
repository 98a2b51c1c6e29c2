"""Defences trained into the encoder: the direction of every term, whose parameters move, and what is left of a leak."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from leakboard import task_model
from leakboard.errors import RequestError
from leakboard.randomness import derived_seed
from leakboard.victims._adversaries import TERMS, Setting, dev_privacy
from leakboard.victims.adversarial import Adversarial
from leakboard.victims.lstm import Lstm

RNG = np.random.default_rng(0)
SMALL = Lstm(dimension=8, epochs=2, batch_size=16)
METHODS = ["multidetasking", "gradient_reversal", "generation", "declustering", "erasure"]


@pytest.fixture(scope="module")
def corpus(reviews):
    return reviews.only("train", "dev")


@pytest.fixture
def vectors(corpus):
    """Free vectors in the place of an encoder's, one a text of train."""
    rng = np.random.default_rng(1)
    return torch.tensor(rng.standard_normal((len(corpus.texts("train")), 6)), dtype=torch.float32, requires_grad=True)


@pytest.fixture
def term(corpus, vectors):
    """Return adversary and penalty of a method, with the adversary trained for a while."""

    def make(method, steps=30):
        setting = Setting(corpus, 6, torch.device("cpu"), lambda rows, split: vectors[rows], 0, 32, 1e-2, 30)
        adversary, penalty = TERMS[method](setting)
        rows = list(range(len(vectors)))
        for _ in range(steps if adversary else 0):
            adversary.optimiser.zero_grad()
            adversary.loss(vectors.detach(), rows).backward()
            adversary.optimiser.step()
        return adversary, penalty, rows

    return make


def parameters(module):
    return torch.cat([value.detach().flatten() for value in module.parameters()])


class TestTerms:
    """One step on the penalty alone."""

    @pytest.mark.parametrize("method", ["multidetasking", "gradient_reversal", "generation"])
    def test_a_step_of_the_encoder_makes_the_adversary_fail(self, term, vectors, method):
        adversary, penalty, rows = term(method)
        before = adversary.loss(vectors.detach(), rows).item()
        penalty(vectors, rows).backward()
        step = vectors.grad / vectors.grad.norm(dim=1, keepdim=True)
        assert adversary.loss(vectors.detach() - step, rows).item() > before + 0.003
        assert adversary.loss(vectors.detach() + step, rows).item() < before - 0.003

    @pytest.mark.parametrize("method", ["multidetasking", "gradient_reversal", "generation"])
    def test_a_step_of_the_adversary_makes_it_succeed(self, term, vectors, method):
        untrained, _, rows = term(method, steps=0)
        trained, _, _ = term(method, steps=30)
        assert trained.loss(vectors.detach(), rows) < untrained.loss(vectors.detach(), rows) - 0.01

    def test_declustering_parts_the_like_and_joins_the_unlike(self, term, vectors, corpus):
        _, penalty, rows = term("declustering")
        penalty(vectors, rows).backward()
        moved = (vectors - 5 * vectors.grad).detach()
        truth = np.stack([corpus.column("train", secret.name) for secret in corpus.secrets], axis=1)
        generator = torch.Generator().manual_seed(derived_seed(0, "pairs"))
        others = torch.randint(len(truth), (len(rows),), generator=generator).tolist()
        agree = (truth == truth[others]).mean(1)
        old, new = ((value - value[others]).square().sum(1) for value in (vectors.detach(), moved))
        grown = (new - old).numpy()
        assert grown[agree > 0.5].mean() > 0
        assert grown[agree < 0.5].mean() < 0

    def test_flipped_labels_of_a_binary_secret(self, make_corpus):
        """-ln P(not z) of the network's own probabilities, worked out apart."""
        made = make_corpus({s: {"g": [0, 1, 1]} for s in ("train", "dev", "test")}, [("g", ("a", "b"), "attribute")])
        setting = Setting(made, 4, torch.device("cpu"), lambda rows, split: None, 0, 5, 1e-3, 30)
        adversary, penalty = TERMS["multidetasking"](setting)
        given = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
        chances = torch.softmax(adversary.module(given), 1).detach().numpy()
        expected = -np.log([chances[0, 1], chances[1, 0], chances[2, 0]]).mean()
        assert penalty(given, [0, 1, 2]).item() == pytest.approx(expected, rel=1e-5)

    def test_a_generator_that_knows_nothing_loses_the_logarithm_of_its_characters(self, term, vectors):
        adversary, _, rows = term("generation", steps=0)
        for value in adversary.module.parameters():
            torch.nn.init.zeros_(value)
        characters = adversary.module.output.out_features
        assert adversary.loss(vectors.detach()[:5], rows[:5]).item() == pytest.approx(np.log(characters), rel=1e-5)


class TestTraining:
    """In the one training loop."""

    @pytest.mark.parametrize("method", METHODS[:4])
    def test_without_weight_nothing_changes(self, corpus, method):
        plain = SMALL.fit(corpus, 3).model
        defended = Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 2, "batch_size": 16}}, beta=0)
        found = defended.fit(corpus, 3).model
        for module in ("encoder", "head"):
            expected = getattr(plain, module).state_dict()
            for name, value in getattr(found, module).state_dict().items():
                assert torch.equal(value, expected[name]), name

    @pytest.mark.parametrize("method", METHODS[:3])
    def test_each_side_moves_its_own_parameters_alone(self, corpus, method, monkeypatch):
        seen, fit = [], task_model.fit_task_model

        def watched(victim, name, corpus, seed, defend):
            def watching(encoder, encode):
                defence = defend(encoder, encode)
                (adversary,) = defence.adversaries

                def loss(vectors, rows):
                    assert not vectors.requires_grad
                    seen.append(("adversary", parameters(adversary.module), parameters(encoder)))
                    return adversary.loss(vectors, rows)

                def penalty(vectors, rows):
                    assert vectors.requires_grad
                    seen.append(("encoder", parameters(adversary.module), parameters(encoder)))
                    return defence.penalty(vectors, rows)

                changed = task_model.Adversary(adversary.module, loss, adversary.optimiser)
                return task_model.Defence(adversaries=[changed], penalty=penalty)

            return fit(victim, name, corpus, seed, watching)

        monkeypatch.setattr("leakboard.victims.adversarial.fit_task_model", watched)
        Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1, "batch_size": 16}}).fit(corpus, 0)
        assert len(seen) > 4
        for (turn, adversary, encoder), (_, adversary_after, encoder_after) in itertools.pairwise(seen):
            assert torch.equal(adversary, adversary_after) == (turn == "encoder")
            assert torch.equal(encoder, encoder_after) == (turn == "adversary")

    @pytest.mark.parametrize("method", METHODS)
    def test_it_is_saved_and_loaded(self, corpus, reviews, method, tmp_path):
        victim = Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1}})
        fitted = victim.fit(corpus, 0)
        fitted.save(tmp_path)
        vectors, loaded = fitted.publish_documents(reviews.texts("test"), RNG), victim.load(tmp_path)
        assert np.array_equal(loaded.publish_documents(reviews.texts("test"), RNG), vectors)
        assert np.array_equal(loaded.predict(vectors), fitted.predict(vectors))

    @pytest.mark.parametrize("method", [method for method in METHODS if method != "generation"])
    def test_secrets_are_needed(self, corpus, method):
        silent = dataclasses.replace(corpus, secrets=())
        with pytest.raises(RequestError, match=f"method: '{method}' needs secrets, and generated_reviews has none"):
            Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1}}).fit(silent, 0)

    def test_generation_needs_no_secrets(self, corpus):
        Adversarial(method="generation", encoder={"lstm": {"dimension": 8, "epochs": 1}}).fit(
            dataclasses.replace(corpus, secrets=()), 0
        )


class TestPrivacyBudget:
    """The most accurate epoch that is private enough on dev."""

    @pytest.mark.parametrize(
        ("privacies", "errors", "kept"),
        [
            ([0.1, 0.5, 0.4], [0.1, 0.3, 0.2], 3),  # 2 and 3 are private enough, 3 is more accurate
            ([0.1, 0.5, 0.1], [0.1, 0.3, 0.2], 2),
            ([0.1, 0.2, 0.15], [0.1, 0.3, 0.2], 2),  # none is: the most private
        ],
    )
    def test_which_epoch_is_best(self, corpus, monkeypatch, privacies, errors, kept):
        told = iter(privacies)
        monkeypatch.setattr("leakboard.victims.adversarial.dev_privacy", lambda *_: next(told))
        victim = Adversarial(method="multidetasking", least_privacy=0.4)
        values = [victim._within_budget(error, corpus, None) for error in errors]
        assert 1 + int(np.argmin(values)) == kept

    def test_dev_privacy_of_vectors_that_show_everything_or_nothing(self, corpus):
        def showing(rows, split):
            columns = [corpus.column(split, secret.name)[rows] for secret in corpus.secrets]
            return torch.tensor(np.stack([c == v for c in columns for v in range(5)], axis=1), dtype=torch.float32)

        assert dev_privacy(corpus, showing) == pytest.approx(0.0, abs=0.01)
        constant = dev_privacy(corpus, lambda rows, split: torch.zeros(len(rows), 3))
        attributes = [secret.name for secret in corpus.secrets if secret.kind == "attribute"]
        majority = [np.bincount(corpus.column("train", name)).argmax() for name in attributes]
        right = [np.mean(corpus.column("dev", n) == m) for n, m in zip(attributes, majority, strict=True)]
        assert constant == pytest.approx(1 - np.mean(right))

    def test_it_is_used_in_training(self, corpus, monkeypatch):
        asked = []
        monkeypatch.setattr("leakboard.victims.adversarial.dev_privacy", lambda *_: asked.append(1) or 0.9)
        encoder = {"lstm": {"dimension": 8, "epochs": 3}}
        Adversarial(method="declustering", encoder=encoder, least_privacy=0.4).fit(corpus, 0)
        assert len(asked) == 3
        with pytest.raises(RequestError, match=r"least_privacy: 0\.4 needs secrets, and generated_reviews has none"):
            Adversarial(method="generation", encoder=encoder, least_privacy=0.4).fit(
                dataclasses.replace(corpus, secrets=()), 0
            )


class TestErasure:
    """LEACE: no linear attacker does better than a constant on the vectors that it was fitted on."""

    def test_a_linear_attacker_is_left_with_the_majority(self, corpus):
        from sklearn.linear_model import LogisticRegression

        encoder = {"lstm": {"dimension": 16, "epochs": 6, "batch_size": 8, "learning_rate": 0.01}}
        fitted = Adversarial(method="erasure", encoder=encoder).fit(corpus, 0)
        plain = fitted.model.encoder.documents(corpus.texts("train")).astype(np.float64)
        erased = fitted.publish_documents(corpus.texts("train"), RNG).astype(np.float64)
        beaten = 0
        for secret in corpus.secrets:
            truth = corpus.column("train", secret.name)
            majority = np.bincount(truth).max() / len(truth)
            scores = [
                LogisticRegression(C=np.inf, max_iter=5000).fit(x, truth).score(x, truth) for x in (plain, erased)
            ]
            assert scores[1] <= majority + 0.02, secret.name
            beaten += scores[0] > majority + 0.05
        assert beaten
