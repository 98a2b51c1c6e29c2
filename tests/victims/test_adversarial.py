"""Defences trained into the encoder: the direction of every term, and which parameters each step moves."""

import dataclasses
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from marks import with_slow

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


@pytest.fixture
def vectors(corpus):
    """Return free vectors in the place of an encoder's, one a text of train."""
    rng = np.random.default_rng(1)
    return torch.tensor(rng.standard_normal((len(corpus.texts("train")), 6)), dtype=torch.float32, requires_grad=True)


@pytest.fixture
def term(corpus, vectors):
    """Return a function that builds the term of a method, and trains its adversary for some steps."""

    def make(method, steps=30):
        adversary, penalty = TERMS[method](context_of(corpus, 6, lambda rows, split: vectors[rows]))
        rows = list(range(len(vectors)))
        for _ in range(steps if adversary else 0):
            adversary.optimiser.zero_grad()
            adversary.loss(vectors.detach(), rows).backward()
            adversary.optimiser.step()
        return adversary, penalty, rows

    return make


@pytest.fixture
def change_defence(monkeypatch):
    """Return a function that replaces every defence by ``change(defence, encoder)`` when a fit begins."""
    fit_on_task = TrainableVictim.fit_on_task

    def apply(change):
        def changed(victim, name, corpus, seed, defend):
            return fit_on_task(
                victim, name, corpus, seed, lambda encoder, *arguments: change(defend(encoder, *arguments), encoder)
            )

        monkeypatch.setattr(TrainableVictim, "fit_on_task", changed)

    return apply


def context_of(corpus, dimension, encode):
    return AdversaryContext(
        corpus,
        SimpleNamespace(dimension=dimension, device=torch.device("cpu")),
        encode=encode,
        batches=lambda generator: in_eights(corpus, generator),
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

    def test_declustering_parts_equal_secrets_and_joins_different_ones(self, term, vectors, corpus):
        _, penalty, rows = term("declustering")
        truth = np.stack([corpus.column("train", secret.name) for secret in corpus.secrets], axis=1)
        generator, start, agreement, growth = torch.Generator().manual_seed(derived_seed(0, "pairs")), 0, [], []
        for others in in_eights(corpus, generator):
            vectors.grad, batch = None, rows[start : start + len(others)]
            penalty(vectors[batch], batch).backward()
            moved = (vectors - 5 * vectors.grad).detach()
            old, new = ((value[batch] - value[others]).square().sum(1) for value in (vectors.detach(), moved))
            growth.append((new - old).numpy())
            agreement.append((truth[batch] == truth[others]).mean(1))
            start += len(others)
        growth, agreement = np.concatenate(growth), np.concatenate(agreement)
        assert growth[agreement > 0.5].mean() > 0
        assert growth[agreement < 0.5].mean() < 0

    def test_declustering_pairs_a_text_with_any_of_train(self, corpus):
        """Each text is drawn equally often as the second of a pair; a short batch is filled up from its start."""
        drawn, n = [], len(corpus.texts("train"))
        context = context_of(corpus, 2, lambda rows, split: drawn.append(rows) or torch.zeros(len(rows), 2))
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

    @pytest.mark.parametrize(("values", "truth"), [("abc", [0, 1, 2]), ("ab", [0, 1, 1])])
    def test_multidetasking_rewards_any_value_but_the_true_one(self, make_corpus, values, truth):
        """The penalty is -ln P(not z) by the network's probabilities; of a binary secret "not z" is the flipped bit."""
        secret = ("s", tuple(values), "attribute")
        corpus = make_corpus({split: {"s": truth} for split in ("train", "dev", "test")}, [secret])
        adversary, penalty = TERMS["multidetasking"](context_of(corpus, 4, None))
        vectors = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
        probabilities = torch.softmax(adversary.module(vectors), 1).detach().numpy()
        expected = -np.log(1 - probabilities[range(3), truth]).mean()
        assert penalty(vectors, [0, 1, 2]).item() == pytest.approx(expected, rel=1e-5)

    def test_a_generator_that_knows_nothing_loses_the_logarithm_of_its_characters(self, term, vectors):
        adversary, _, rows = term("generation", steps=0)
        for value in adversary.module.parameters():
            torch.nn.init.zeros_(value)
        characters = adversary.module.output.out_features
        assert adversary.loss(vectors.detach()[:5], rows[:5]).item() == pytest.approx(np.log(characters), rel=1e-5)


class TestTraining:
    @pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: next(iter(encoder)))
    @pytest.mark.parametrize("method", with_slow(NAMES[:4], *NAMES[2:4]))
    def test_without_weight_nothing_changes(self, corpus, method, encoder):
        plain = Adversarial(method=method, encoder=encoder).encoder.fit(corpus, 3)
        weightless = Adversarial(method=method, encoder=encoder, beta=0).fit(corpus, 3)
        defended = Adversarial(method=method, encoder=encoder).fit(corpus, 3)
        for module in ("encoder", "head"):
            assert torch.equal(parameters(getattr(weightless, module)), parameters(getattr(plain, module)))
        assert not torch.equal(parameters(defended.encoder), parameters(plain.encoder))

    @pytest.mark.parametrize(("method", "default"), [("multidetasking", 1.0), ("declustering", 0.1)])
    def test_weights(self, corpus, vectors, method, default, monkeypatch):
        defences, rows = [], list(range(20))
        context = context_of(corpus, 6, lambda rows, split: vectors[rows])

        def record(victim, name, corpus, seed, defend):
            defences.append(defend(context.encoder, context.encode, context.batches))
            return SimpleNamespace(encoder=None, head=None)

        monkeypatch.setattr(TrainableVictim, "fit_on_task", record)
        for options in ({"beta": 1.0}, {"beta": 2.5, "alpha": 0.5}, {}):
            Adversarial(method=method, **options).fit(corpus, 0)
        one, weighted, usual = (defence.penalty(vectors[rows], rows).item() for defence in defences)
        assert weighted == pytest.approx(2.5 * one, rel=1e-5)
        assert usual == pytest.approx(default * one, rel=1e-5)
        assert [defence.task_weight for defence in defences] == [1.0, 0.5, 1.0]

    def test_the_task_has_its_weight(self, corpus):
        """Under plain gradient descent, doubling the weights of all terms doubles the rate."""
        fits = []
        for rate, weight in ((2.0, 2.0), (4.0, 1.0)):
            encoder = {"embedding_bag": {"dimension": 8, "epochs": 1, "learning_rate": rate}}
            victim = Adversarial(method="declustering", encoder=encoder, alpha=weight, beta=0.1 * weight)
            fits.append(parameters(victim.fit(corpus, 0).encoder))
        assert torch.allclose(*fits, atol=1e-6)

    def test_gradients_of_the_module_s_loss_do_not_reach_an_adversary(self):
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
    def test_each_side_moves_only_its_own_parameters(self, corpus, method, change_defence):
        seen = []

        def watched(defence, encoder):
            (adversary,) = defence.adversaries

            def loss(vectors, rows):
                assert not vectors.requires_grad
                seen.append(("adversary", parameters(adversary.module), parameters(encoder)))
                return adversary.loss(vectors, rows)

            def penalty(vectors, rows):
                assert vectors.requires_grad
                seen.append(("encoder", parameters(adversary.module), parameters(encoder)))
                return defence.penalty(vectors, rows)

            return Defence(adversaries=[dataclasses.replace(adversary, loss=loss)], penalty=penalty)

        change_defence(watched)
        Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1, "batch_size": 16}}).fit(corpus, 0)
        assert len(seen) > 4
        for (turn, adversary, encoder), (_, adversary_after, encoder_after) in itertools.pairwise(seen):
            assert torch.equal(adversary, adversary_after) == (turn == "encoder")
            assert torch.equal(encoder, encoder_after) == (turn == "adversary")

    @pytest.mark.parametrize("apart", [True, False])
    def test_steps_apart_go_down_the_term_before_the_task_is_computed(self, corpus, apart, change_defence):
        """Under plain gradient descent, a step is the rate times the term's gradient."""
        rate, after_term, before_task = 0.5, [], []

        def watched(defence, encoder):
            def penalty(vectors, rows):
                value = defence.penalty(vectors, rows)
                (gradient,) = torch.autograd.grad(value, [encoder.bag.weight], retain_graph=True)
                after_term.append(encoder.bag.weight.detach() - rate * gradient.to_dense())
                return value

            def unchanged(vectors, epoch):
                before_task.append(encoder.bag.weight.detach().clone())
                return vectors

            return dataclasses.replace(defence, penalty=penalty, vectors=unchanged)

        change_defence(watched)
        encoder = {"embedding_bag": {"dimension": 8, "epochs": 1, "learning_rate": rate}}
        Adversarial(method="declustering", encoder=encoder, steps_apart=apart).fit(corpus, 0)
        assert len(after_term) > 3
        pairs = zip(after_term, before_task, strict=False)
        assert all(torch.allclose(*pair, atol=1e-6) for pair in pairs) == apart

    @pytest.mark.parametrize("method", NAMES)
    def test_it_is_saved_and_loaded(self, corpus, reviews, method, tmp_path):
        victim = Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1}})
        fitted = victim.fit(corpus, 0)
        fitted.save(tmp_path)
        vectors, loaded = fitted.publish_documents(reviews.texts("test"), RNG), victim.load(tmp_path)
        assert np.array_equal(loaded.publish_documents(reviews.texts("test"), RNG), vectors)
        assert np.array_equal(loaded.predict(vectors), fitted.predict(vectors))

    @pytest.mark.parametrize("method", NAMES)
    def test_all_but_generation_need_secrets(self, corpus, method):
        victim = Adversarial(method=method, encoder={"lstm": {"dimension": 8, "epochs": 1}})
        without_secrets = dataclasses.replace(corpus, secrets=())
        if method == "generation":
            victim.fit(without_secrets, 0)
        else:
            with pytest.raises(RequestError, match=f"method: '{method}' needs secrets, and generated_reviews has none"):
                victim.fit(without_secrets, 0)


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
