"""Defences trained into the encoder: the direction of every term, whose parameters move, and what is left of a leak."""

import dataclasses
import itertools
import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from leakboard.errors import RequestError
from leakboard.models.recipe import Defence
from leakboard.models.trainable import TrainableVictim
from leakboard.models.training import Adversary, shuffled, train
from leakboard.randomness import derived_seed
from leakboard.suite.options import build
from leakboard.victims._adversarial.adversaries import TERMS, AdversaryContext
from leakboard.victims.adversarial import METHODS, Adversarial
from leakboard.victims.lstm import Lstm

RNG = np.random.default_rng(0)
NAMES = list(METHODS)
ENCODERS = [
    {"lstm": {"dimension": 8, "epochs": 2, "batch_size": 16}},
    {"embedding_bag": {"dimension": 8, "epochs": 2}},
]


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
        context = setting_of(corpus, 6, lambda rows, split: vectors[rows])
        adversary, penalty = TERMS[method](context)
        rows = list(range(len(vectors)))
        for _ in range(steps if adversary else 0):
            adversary.optimiser.zero_grad()
            adversary.loss(vectors.detach(), rows).backward()
            adversary.optimiser.step()
        return adversary, penalty, rows

    return make


def setting_of(corpus, dimension, encode):
    return AdversaryContext(
        corpus,
        SimpleNamespace(dimension=dimension, device=torch.device("cpu")),
        encode=encode,
        batches=partial(in_eights, corpus),
        seed=0,
        hidden=32,
        learning_rate=1e-2,
        characters=30,
    )


def in_eights(corpus, generator):
    return (batch.tolist() for batch in shuffled(len(corpus.texts("train")), 8, generator))


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
        truth = np.stack([corpus.column("train", secret.name) for secret in corpus.secrets], axis=1)
        generator, start, agree, grown = torch.Generator().manual_seed(derived_seed(0, "pairs")), 0, [], []
        for others in in_eights(corpus, generator):
            vectors.grad, batch = None, rows[start : start + len(others)]
            penalty(vectors[batch], batch).backward()
            moved = (vectors - 5 * vectors.grad).detach()
            old, new = ((value[batch] - value[others]).square().sum(1) for value in (vectors.detach(), moved))
            grown.append((new - old).numpy())
            agree.append((truth[batch] == truth[others]).mean(1))
            start += len(others)
        grown, agree = np.concatenate(grown), np.concatenate(agree)
        assert grown[agree > 0.5].mean() > 0
        assert grown[agree < 0.5].mean() < 0

    def test_declustering_pairs_a_text_with_any_of_train(self, corpus):
        """Each text is the other one equally often, whatever the first; a short batch is filled up from its start."""
        drawn, n = [], len(corpus.texts("train"))
        context = setting_of(corpus, 2, lambda rows, split: drawn.append(rows) or torch.zeros(len(rows), 2))
        _, penalty = TERMS["declustering"](context)
        passes, batches = 20, -(-n // 8)
        for _ in range(passes * batches):
            penalty(torch.zeros(8, 2), [0] * 8)
        assert [len(rows) for rows in drawn] == [8] * (passes * batches)
        counts = np.bincount([row for rows in drawn for row in dict.fromkeys(rows)], minlength=n)
        assert (counts == passes).all()
        assert len({tuple(rows) for rows in drawn}) > passes * batches - 5

    def test_declustering_moves_both_texts_of_a_pair(self, term, vectors):
        _, penalty, rows = term("declustering")
        penalty(vectors[rows[:1]], rows[:1]).backward()
        assert (vectors.grad.abs().sum(1) > 0).sum() == 2

    def test_of_many_values_any_but_the_true_one(self, make_corpus):
        ages = ("young", "grown", "old")
        made = make_corpus({s: {"age": [0, 1, 2]} for s in ("train", "dev", "test")}, [("age", ages, "attribute")])
        adversary, penalty = TERMS["multidetasking"](setting_of(made, 4, None))
        given = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
        chances = torch.softmax(adversary.module(given), 1).detach().numpy()
        assert penalty(given, [0, 1, 2]).item() == pytest.approx(-np.log(1 - np.diag(chances)).mean(), rel=1e-5)

    def test_flipped_labels_of_a_binary_secret(self, make_corpus):
        """-ln P(not z) of the network's own probabilities, worked out apart."""
        made = make_corpus({s: {"g": [0, 1, 1]} for s in ("train", "dev", "test")}, [("g", ("a", "b"), "attribute")])
        context = setting_of(made, 4, None)
        adversary, penalty = TERMS["multidetasking"](context)
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

    @pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: next(iter(encoder)))
    @pytest.mark.parametrize("method", NAMES[:4])
    def test_without_weight_nothing_changes(self, corpus, method, encoder):
        plain = Adversarial(method=method, encoder=encoder).encoder.fit(corpus, 3)
        found = Adversarial(method=method, encoder=encoder, beta=0).fit(corpus, 3)
        other = Adversarial(method=method, encoder=encoder).fit(corpus, 3)
        for module in ("encoder", "head"):
            assert torch.equal(parameters(getattr(found, module)), parameters(getattr(plain, module)))
        assert not torch.equal(parameters(other.encoder), parameters(plain.encoder))

    @pytest.mark.parametrize(("method", "default"), [("multidetasking", 1.0), ("declustering", 0.1)])
    def test_weights(self, corpus, vectors, method, default, monkeypatch):
        defences = []
        encode, rows = (lambda rows, split: vectors[rows]), list(range(20))
        batches = partial(in_eights, corpus)
        monkeypatch.setattr(
            "leakboard.models.trainable.TrainableVictim.fit_on_task",
            lambda *given: defences.append(given[-1](encoder, encode, batches)) or SimpleNamespace(encoder=0, head=0),
        )
        encoder = type("Encoder", (), {"dimension": 6, "device": torch.device("cpu")})
        for options in ({"beta": 1.0}, {"beta": 2.5, "alpha": 0.5}, {}):
            Adversarial(method=method, **options).fit(corpus, 0)
        one, weighted, usual = (defence.penalty(vectors[rows], rows).item() for defence in defences)
        assert weighted == pytest.approx(2.5 * one, rel=1e-5)
        assert usual == pytest.approx(default * one, rel=1e-5)
        assert [defence.task_weight for defence in defences] == [1.0, 0.5, 1.0]

    def test_the_task_has_its_weight(self, corpus, monkeypatch):
        """Twice the weights of all terms are, under plain gradient descent, twice the rate."""
        fits = []
        for rate, weight in ((2.0, 2.0), (4.0, 1.0)):
            encoder = {"embedding_bag": {"dimension": 8, "epochs": 1, "learning_rate": rate}}
            victim = Adversarial(method="declustering", encoder=encoder, alpha=weight, beta=0.1 * weight)
            fits.append(parameters(victim.fit(corpus, 0).encoder))
        assert torch.allclose(*fits, atol=1e-6)

    def test_what_others_send_to_an_adversary_is_thrown_away(self):
        module, adversary = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
        for part in (module, adversary):
            torch.nn.init.ones_(part.weight)
        rate = torch.optim.SGD(adversary.parameters(), lr=1.0)
        train(
            module,
            lambda: range(3),
            lambda batch: 100 * (module.weight * adversary.weight).sum(),
            lambda: 0.0,
            optimiser=torch.optim.SGD(module.parameters(), lr=0.001),
            epochs=1,
            adversaries=[Adversary(adversary, lambda batch: adversary.weight.sum(), rate)],
        )
        assert adversary.weight.item() == pytest.approx(1 - 3)
        assert module.weight.item() == pytest.approx(1 - 0.1 * (0 - 1 - 2))

    @pytest.mark.parametrize("method", NAMES[:3])
    def test_each_side_moves_its_own_parameters_alone(self, corpus, method, monkeypatch):
        seen, fit = [], TrainableVictim.fit_on_task

        def watched(victim, name, corpus, seed, defend):
            def watching(encoder, *given):
                defence = defend(encoder, *given)
                (adversary,) = defence.adversaries

                def loss(vectors, rows):
                    assert not vectors.requires_grad
                    seen.append(("adversary", parameters(adversary.module), parameters(encoder)))
                    return adversary.loss(vectors, rows)

                def penalty(vectors, rows):
                    assert vectors.requires_grad
                    seen.append(("encoder", parameters(adversary.module), parameters(encoder)))
                    return defence.penalty(vectors, rows)

                changed = Adversary(adversary.module, loss, adversary.optimiser)
                return Defence(adversaries=[changed], penalty=penalty)

            return fit(victim, name, corpus, seed, watching)

        monkeypatch.setattr("leakboard.models.trainable.TrainableVictim.fit_on_task", watched)
        Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1, "batch_size": 16}}).fit(corpus, 0)
        assert len(seen) > 4
        for (turn, adversary, encoder), (_, adversary_after, encoder_after) in itertools.pairwise(seen):
            assert torch.equal(adversary, adversary_after) == (turn == "encoder")
            assert torch.equal(encoder, encoder_after) == (turn == "adversary")

    @pytest.mark.parametrize("apart", [True, False])
    def test_steps_apart_go_down_the_term_before_the_task_is_looked_at(self, corpus, apart, monkeypatch):
        """By the rate times the term's gradient, where steps are plain gradient descent."""
        rate, terms, tasks, fit = 0.5, [], [], TrainableVictim.fit_on_task

        def watched(victim, name, corpus, seed, defend):
            def watching(encoder, *given):
                defence = defend(encoder, *given)

                def penalty(vectors, rows):
                    value = defence.penalty(vectors, rows)
                    (gradient,) = torch.autograd.grad(value, [encoder.bag.weight], retain_graph=True)
                    terms.append(encoder.bag.weight.detach() - rate * gradient.to_dense())
                    return value

                def seen(vectors, epoch):
                    tasks.append(encoder.bag.weight.detach().clone())
                    return vectors

                return dataclasses.replace(defence, penalty=penalty, vectors=seen)

            return fit(victim, name, corpus, seed, watching)

        monkeypatch.setattr("leakboard.models.trainable.TrainableVictim.fit_on_task", watched)
        encoder = {"embedding_bag": {"dimension": 8, "epochs": 1, "learning_rate": rate}}
        Adversarial(method="declustering", encoder=encoder, steps_apart=apart).fit(corpus, 0)
        assert len(terms) > 3
        assert all(torch.allclose(*pair, atol=1e-6) for pair in zip(terms, tasks, strict=False)) == apart

    @pytest.mark.parametrize("method", NAMES)
    def test_it_is_saved_and_loaded(self, corpus, reviews, method, tmp_path):
        victim = Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1}})
        fitted = victim.fit(corpus, 0)
        fitted.save(tmp_path)
        vectors, loaded = fitted.publish_documents(reviews.texts("test"), RNG), victim.load(tmp_path)
        assert np.array_equal(loaded.publish_documents(reviews.texts("test"), RNG), vectors)
        assert np.array_equal(loaded.predict(vectors), fitted.predict(vectors))

    @pytest.mark.parametrize("method", [method for method in NAMES if method != "generation"])
    def test_secrets_are_needed(self, corpus, method):
        silent = dataclasses.replace(corpus, secrets=())
        with pytest.raises(RequestError, match=f"method: '{method}' needs secrets, and generated_reviews has none"):
            Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1}}).fit(silent, 0)

    def test_generation_needs_no_secrets(self, corpus):
        Adversarial(method="generation", encoder={"lstm": {"dimension": 8, "epochs": 1}}).fit(
            dataclasses.replace(corpus, secrets=()), 0
        )


class TestBadInput:
    @pytest.mark.parametrize(
        ("method", "options", "reason"),
        [
            ("erasure", {"beta": 1.0}, "beta: 1.0 is not allowed with method 'erasure' (allowed: multidetasking, grad"),
            ("erasure", {"least_privacy": 0.3}, "least_privacy: 0.3 is not allowed with method 'erasure'"),
            ("declustering", {"hidden": 8}, "hidden: 8 is not allowed with method 'declustering'"),
            ("multidetasking", {"characters": 9}, "with method 'multidetasking' (allowed: generation)"),
        ],
    )
    def test_options_that_a_method_does_not_read(self, method, options, reason):
        with pytest.raises(RequestError, match=re.escape(reason)):
            build(Adversarial, {"method": method, **options}, "here")

    def test_an_encoder_of_which_nothing_is_trained(self, corpus, tiny_bert):
        encoder = {"bert": {"checkpoint": str(tiny_bert), "train_layers": "none", "precision": "float32"}}
        with pytest.raises(RequestError, match="nothing of the encoder is trained, so a defence"):
            Adversarial(method="multidetasking", encoder=encoder).fit(corpus, 0)

    def test_a_network_that_diverged_is_not_kept(self, corpus):
        with pytest.raises(FloatingPointError, match="not finite in any"):
            Lstm(dimension=8, epochs=2, learning_rate=1e38).fit(corpus, 0)
