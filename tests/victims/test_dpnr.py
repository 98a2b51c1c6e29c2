"""DPNR in every variant: the noise of training, the publication, its claim, and which options share a fit."""

import math

import numpy as np
import pytest
import torch

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.models.recipe import Defence
from leakboard.models.trainable import TrainableVictim
from leakboard.models.word_encoders import UNKNOWN, BagEncoder
from leakboard.privacy.mechanisms.normalisation import min_max
from leakboard.privacy.mechanisms.textbook import gaussian_delta
from leakboard.suite import options
from leakboard.suite.options import build, label
from leakboard.victims.bert import Bert
from leakboard.victims.dpnr import Dpnr

BAG = {"embedding_bag": {"dimension": 8, "epochs": 2}}


def rng(seed=0):
    return np.random.default_rng(seed)


def dpnr(**settings):
    return Dpnr(**{"encoder": BAG, "epsilon": 1.0, **settings})


@pytest.fixture(scope="module")
def fitted(corpus):
    return dpnr(training="standard").fit(corpus, 0)


@pytest.fixture
def steps(monkeypatch):
    """Record every step of the softmax layer: the epoch, whether it is a training step, and the noise on its input."""
    steps, fit_on_task = [], TrainableVictim.fit_on_task

    def recording(victim, name, corpus, seed, defend):
        defence = defend()

        def vectors(batch, epoch):
            noisy = defence.vectors(batch, epoch)
            steps.append((epoch, torch.is_grad_enabled(), noisy.detach() - min_max(batch.detach())))
            return noisy

        return fit_on_task(victim, name, corpus, seed, lambda *_: Defence(vectors, defence.texts))

    monkeypatch.setattr(TrainableVictim, "fit_on_task", recording)
    return steps


class TestTraining:
    """Algorithm 1, and the study's schedules."""

    def test_robust_training_has_fresh_noise_every_step(self, steps, corpus):
        dpnr(training="robust", epsilon=0.5).fit(corpus, 0)
        assert len(steps) > 4
        assert len({round(float(noise[0, 0]), 6) for _, _, noise in steps}) == len(steps)
        everything = torch.cat([noise.flatten() for _, _, noise in steps])
        assert everything.abs().mean().item() == pytest.approx(2.0, rel=0.1)  # the mean of |Lap(1/0.5)|
        assert any(not training for _, training, _ in steps)  # selection is under noise too

    def test_standard_training_has_no_noise(self, steps, corpus):
        dpnr(training="standard", epsilon=0.5).fit(corpus, 0)
        assert steps
        assert not any(noise.any() for _, _, noise in steps)

    @pytest.mark.parametrize(("schedule", "scales"), [((), {1: 0.1, 2: 0.2}), ((4.0,), {1: 0.25, 2: 0.25})])
    def test_adaptive_noise_follows_the_schedule_not_the_users_epsilon(self, steps, corpus, schedule, scales):
        dpnr(training="adaptive", epsilon=0.001, schedule=schedule).fit(corpus, 0)
        for epoch, scale in scales.items():
            everything = torch.cat([noise.flatten() for e, _, noise in steps if e == epoch])
            assert everything.abs().mean().item() == pytest.approx(scale, rel=0.15)

    def test_the_released_variant_draws_one_number_a_row(self, steps, corpus):
        dpnr(sampling="shared", epsilon=0.5).fit(corpus, 0)
        for _, _, noise in steps:
            assert (noise - noise[:, :1]).abs().max() < 1e-5
            assert noise[:, 0].unique().numel() == len(noise)

    def test_words_are_hidden_in_training_only_when_asked(self, corpus, monkeypatch):
        hidden, prepare = [], BagEncoder.prepare

        def recorded(encoder, texts):
            hidden.append(np.mean([UNKNOWN in text for text in texts]))
            return prepare(encoder, texts)

        monkeypatch.setattr(BagEncoder, "prepare", recorded)
        dpnr(mu=0.5).fit(corpus, 0)
        assert set(hidden) == {0.0}
        hidden.clear()
        dpnr(mu=0.5, train_dropout=True).fit(corpus, 0)
        assert max(hidden) > 0.9

    def test_a_constant_vector_is_one_clear_error(self, corpus, monkeypatch):
        monkeypatch.setattr(torch.nn.init, "uniform_", lambda tensor, *_: tensor.data.fill_(1.0))
        with pytest.raises(ValueError, match="min-max normalisation: vector 0 has the range 0;"):
            dpnr().fit(corpus, 0)

    def test_it_needs_a_task(self, make_corpus):
        unlabelled = make_corpus({s: {"g": [0, 1]} for s in ("train", "dev", "test")}, [("g", ("a", "b"), "attribute")])
        with pytest.raises(RequestError, match="dpnr: made has no task label"):
            dpnr().fit(unlabelled, 0)


class TestSharedFits:
    """Options that act only at release share a fit; all others cause another training."""

    @pytest.mark.parametrize(
        ("base", "changes"),
        [
            ({"training": "standard"}, {"epsilon": 5.0, "mechanism": "gaussian", "calibration": "l2", "delta": 0.1}),
            ({"training": "standard"}, {"epsilon": None, "mu": 0.3, "sensitive_words": ("a",)}),
            ({"training": "standard"}, {"epsilon": None, "training": "robust"}),
            ({"training": "robust"}, {"mu": 0.5, "sensitive_words": ("the",)}),
            ({"training": "robust"}, {"schedule": (1.0, 2.0)}),
            ({"training": "robust"}, {"delta": 1e-5}),
            ({"training": "robust"}, {"train_dropout": True}),
            ({"training": "robust", "calibration": "l1"}, {"mechanism": "discrete_laplace"}),
            ({"training": "adaptive"}, {"epsilon": None}),
            ({"training": "adaptive"}, {"epsilon": 0.05}),
        ],
    )
    def test_options_that_share(self, base, changes, corpus, tmp_path):
        one, other = dpnr(**base), dpnr(**{**base, **changes})
        assert one.training_config() == other.training_config()
        for name, victim in {"one": one, "other": other, "shared": one.training_config()}.items():
            victim.fit(corpus, 3).save(tmp_path / name)
        files = [p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*") if p.is_file()]
        assert files
        for path in files:
            contents = {(tmp_path / name / path).read_bytes() for name in ("one", "other", "shared")}
            assert len(contents) == 1

    @pytest.mark.parametrize(
        "changes",
        [
            {"epsilon": 5.0},
            {"mechanism": "gaussian"},
            {"calibration": "l1"},
            {"sampling": "shared"},
            {"training": "standard"},
            {"training": "adaptive"},
            {"mu": 0.5, "train_dropout": True},
            {"encoder": {"embedding_bag": {"dimension": 9, "epochs": 2}}},
        ],
    )
    def test_options_that_do_not_share(self, changes):
        assert dpnr().training_config() != dpnr(**changes).training_config()

    def test_a_loaded_fit_releases_by_the_options_that_load_it(self, fitted, tmp_path):
        fitted.save(tmp_path)
        loaded = dpnr(training="standard", epsilon=7.0, calibration="l1").load(tmp_path)
        assert (loaded.claim.epsilon, loaded.claim.proved) == (7.0, 7.0)


class TestPublication:
    """Algorithm 2."""

    def test_normalised_vectors_with_noise_of_the_claims_scale(self, fitted, reviews):
        texts = reviews.texts("test")
        clean = fitted.inputs(texts)
        assert (clean.min(1) == 0).all()
        assert (clean.max(1) == 1).all()
        noise = np.concatenate([fitted.publish_documents(texts, rng(seed)) - clean for seed in range(20)])
        assert np.abs(noise).mean() == pytest.approx(1.0, rel=0.1)
        assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.1

    def test_without_noise(self, fitted, reviews, tmp_path):
        fitted.save(tmp_path)
        bare, texts = dpnr(training="standard", epsilon=None).load(tmp_path), reviews.texts("test")
        assert bare.claim is None
        assert bare.mechanism is None
        assert np.array_equal(bare.publish_documents(texts, rng()), fitted.inputs(texts))

    def test_subtracting_the_minimum_removes_the_released_variants_noise(self, fitted, reviews, tmp_path):
        fitted.save(tmp_path)
        texts = reviews.texts("test")
        released = dpnr(training="standard", sampling="shared", epsilon=0.05).load(tmp_path)
        published = released.publish_documents(texts, rng()).astype(np.float64)
        assert np.abs(published - fitted.inputs(texts)).mean() > 1
        assert np.abs(published - published.min(1, keepdims=True) - fitted.inputs(texts)).max() < 1e-4

    def test_word_dropout_at_release(self, fitted, reviews, tmp_path):
        fitted.save(tmp_path)
        texts = Texts(reviews.texts("test")[:1] * 500)
        hidden = dpnr(training="standard", mu=1.0, epsilon=None).load(tmp_path).publish_documents(texts, rng())
        assert len(np.unique(hidden, axis=0)) == 1
        some = dpnr(training="standard", mu=0.2, epsilon=None).load(tmp_path).publish_documents(texts, rng())
        assert len(np.unique(some, axis=0)) > 50

    def test_it_publishes_no_words(self, fitted):
        with pytest.raises(RequestError, match="FittedDpnr publishes no words"):
            fitted.publish_words(Texts(["a"]), rng())


class TestClaims:
    """Claimed and proved epsilons (the audited epsilon is in test_dp_audit)."""

    @pytest.mark.parametrize(
        ("settings", "claimed", "proved", "delta"),
        [
            ({}, 1.0, 8.0, 0.0),
            ({"calibration": "l1"}, 1.0, 1.0, 0.0),
            ({"mechanism": "discrete_laplace", "calibration": "l1"}, 1.0, 1.0, 0.0),
            ({"sampling": "shared"}, 1.0, math.inf, 0.0),
            ({"mu": 0.5}, 0.6201, math.log(0.5 * math.exp(8) + 0.5), 0.0),
            ({"mu": 0.5, "calibration": "l1"}, 0.6201, 0.6201, 0.0),
            ({"mu": 0.5, "calibration": "l1", "dropout": "exact_count"}, 0.6201, 1.0, 0.0),
            ({"mechanism": "gaussian", "calibration": "l2"}, 1.0, 1.0, 1e-3),
        ],
    )
    def test_by_variant(self, settings, claimed, proved, delta, fitted, tmp_path):
        fitted.save(tmp_path)
        claim = dpnr(training="standard", **settings).load(tmp_path).claim
        assert claim.epsilon == pytest.approx(claimed, abs=5e-5)
        assert claim.proved == pytest.approx(proved, abs=5e-5)
        assert claim.delta == delta
        assert claim.unit == "word"

    def test_gaussian_for_one_coordinate(self, fitted, tmp_path):
        fitted.save(tmp_path)
        victim = dpnr(training="standard", mechanism="gaussian").load(tmp_path)
        scale = victim.mechanism.mechanism.scale
        assert gaussian_delta(victim.claim.proved, scale, math.sqrt(8)) == pytest.approx(1e-3, rel=1e-6)


class TestOptions:
    def test_the_encoder_is_written_as_victims_are(self):
        assert dpnr(encoder="bert").encoder == Bert()
        assert dpnr(encoder={"bert": {"epochs": 3}}).encoder == Bert(epochs=3)
        assert label("dpnr", dpnr(encoder={"bert": {"epochs": 3}})) == "dpnr(encoder=bert(epochs=3), epsilon=1.0)"
        assert label("dpnr", dpnr(encoder="bert", epsilon=None)) == "dpnr(encoder=bert, epsilon=null)"
        again = build(Dpnr, options.as_dict(dpnr()), "here")
        assert again == dpnr()

    @pytest.mark.parametrize(
        ("settings", "complaint"),
        [
            ({"epsilon": 0.0}, "here.epsilon: 0.0 is not allowed: input should be greater than 0"),
            ({"epsilon": -1.0}, "here.epsilon: -1.0 is not allowed"),
            ({"epsilon": math.nan}, "here.epsilon: nan is not allowed"),
            ({"mu": 1.5}, "here.mu: 1.5 is not allowed: input should be less than or equal to 1"),
            ({"mu": -0.1}, "here.mu: -0.1 is not allowed"),
            ({"delta": 0.0}, "here.delta: 0.0 is not allowed"),
            ({"schedule": [1.0, 0.0]}, "here.schedule[1]: 0.0 is not allowed"),
            ({"encoder": "brt"}, "here.encoder: 'brt' is not allowed: allowed is one of bert, embedding_bag, lstm"),
            ({"encoder": {"bert": {"epochs": 0}}}, "bert.epochs: 0 is not allowed"),
            ({"encoder": {"bert": 3}}, "bert: 3 is not a mapping of options"),
            ({"calibration": "l2"}, "calibration: 'l2' is not allowed with mechanism 'laplace' (allowed: per_coord"),
            ({"mechanism": "gaussian", "calibration": "l1"}, "(allowed: per_coordinate, l2)"),
            ({"mechanism": "discrete_laplace"}, "here: calibration: 'per_coordinate' is not allowed"),
            ({"sensitive_words": ["O'Brien"]}, 'sensitive_words: "O\'Brien" is not one word'),
            ({"epsilon": 1.0, "epsilonn": 2.0}, "did you mean 'epsilon'?"),
        ],
    )
    def test_mistakes_are_one_clear_line(self, settings, complaint):
        with pytest.raises(RequestError) as error:
            build(Dpnr, {"epsilon": 1.0, "encoder": BAG, **settings}, "here")
        assert complaint in str(error.value)
        assert "\n" not in str(error.value)

    def test_the_budget_must_be_named(self):
        with pytest.raises(RequestError, match=r"here\.epsilon: required, but missing"):
            build(Dpnr, {}, "here")


class TestOnBert:
    def test_masked_words_become_one_mask_each(self, tiny_bert, corpus):
        encoder = {"bert": {"checkpoint": str(tiny_bert), "epochs": 1, "precision": "float32"}}
        victim = Dpnr(encoder=encoder, epsilon=1.0)
        fitted = victim.fit(corpus, 0)
        encoder = fitted.encoder
        ids = encoder.tokenise([f"the {encoder.mask} was extraordinarily"])[0].ids
        assert ids.count(encoder.tokenizer.mask_token_id) == 1
        vectors = fitted.publish_documents(corpus.texts("dev"), rng())
        assert vectors.shape == (len(corpus.texts("dev")), encoder.dimension)
        assert fitted.claim.proved == pytest.approx(encoder.dimension)
        assert fitted.predict(vectors).shape == (len(vectors),)
