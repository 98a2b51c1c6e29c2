"""Attackers that know the mechanism: denoising removes noise, and several publications reveal more than one."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from planted import GENDER, linear, world

from leakboard.attacks._portfolio import portfolio
from leakboard.attacks._portfolio.vector_inputs import Scaling, shrinkage
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.claims import ReleaseClaim
from leakboard.interfaces import FittedVictim, Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.publications import publish
from leakboard.randomness import Streams
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.threat import VictimSide

N = 900


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def planted(make_corpus):
    """Return numbered texts; a fixed direction of their vectors will show the gender."""
    genders = {split: rng(i).integers(0, 2, N) for i, split in enumerate(("train", "dev", "test"))}
    splits = {split: {"gender": codes, "person": codes} for split, codes in genders.items()}
    secrets = [("gender", ("f", "m"), "attribute"), ("person", ("absent", "present"), "entity")]
    return make_corpus(splits, secrets)


class Noisy(FittedVictim):
    """A victim with known clean vectors and given noise; it claims privacy."""

    publishes = ("documents", "releases")
    encodes_texts = True
    encodes_parts = False
    claim = ReleaseClaim(0.5, 0.0, "document", "made", "1 in L1")
    dimension = 6

    def __init__(self, corpus, noise, claim=claim):
        self.noise, self.claim, self.encodings = noise, claim, 0
        self.clean = np.zeros((3 * N, self.dimension), np.float32)
        for split in ("train", "dev", "test"):
            rows, secret = corpus.texts(split).rows, corpus.column(split, "gender")
            self.clean[rows, 1], self.clean[rows, 2] = secret, 1 - secret
        self.clean += 0.05 * rng(9).normal(size=self.clean.shape).astype(np.float32)

    @property
    def mechanism(self):
        return self

    def inputs(self, texts):
        self.encodings += 1
        return self.clean[[int(text.split()[1]) for text in texts]]

    def release(self, values, generator):
        return values + self.noise(values.shape, generator)

    def publish_documents(self, texts, generator):
        return self.release(self.inputs(texts), generator).astype(np.float32)


def shared(shape, generator):
    return generator.laplace(0, 20, (shape[0], 1))


def independent(shape, generator):
    return generator.laplace(0, 1.5, shape)


def accuracy(corpus, noise, attack=AttributeInference, claim=Noisy.claim, **options):
    """Return the score of an attack, its result, and the victim."""
    victim = Noisy(corpus, noise, claim)
    streams = Streams(0, corpus.name, "noisy", "attack")
    published = publish(victim, lambda: victim, corpus, streams)
    side = VictimSide(corpus, corpus, victim, lambda: victim, published, streams)
    result = evaluate_attack(attack(epochs=8, hidden=32, **options), side)
    return next(m.value for m in result.metrics if m.name == "attack_score"), result, victim


class TestSharedNoise:
    """One number for all coordinates hides the secret in raw vectors; centring removes it."""

    @pytest.mark.parametrize("inputs", ["centred", "above minimum", "per vector", "shrunken"])
    def test_removed(self, planted, inputs):
        assert accuracy(planted, shared, portfolio="logistic", inputs=inputs)[0] > 0.97

    def test_removed_before_guessing_entities(self, planted):
        assert accuracy(planted, shared, EntityPresence, portfolio="logistic", inputs="centred")[0] > 0.97

    def test_the_papers_attacker_does_worse(self, planted):
        assert accuracy(planted, shared, portfolio="mlp")[0] < 0.9

    @pytest.mark.slow
    def test_the_ensemble_removes_it_by_itself(self, planted):
        assert accuracy(planted, shared)[0] > 0.97


class TestIndependentNoise:
    """Averaging m publications of a text divides the noise by the square root of m."""

    def test_observations_of_the_same_text(self, planted):
        once, few, many = (
            accuracy(planted, independent, portfolio="logistic", inputs="standardised", observations=m)[0]
            for m in (1, 4, 32)
        )
        assert once < few - 0.05 < many - 0.1
        # the best guess from m sums is right with Phi(distance / 2 sd); the distance between the genders is sqrt(2)
        assert many == pytest.approx(0.97, abs=0.04)

    def test_each_query_averages_fresh_publications(self):
        """The oracle's k-th publication is the number k, and the one that the attacker was given is 0."""
        publications = itertools.count(1)
        oracle = SimpleNamespace(encode=lambda texts: np.full((1, 2), next(publications), np.float32))
        known = KnownTexts(Texts(["a"]), np.zeros((1, 2), np.float32), {"gender": np.array([1])})
        averaged = portfolio._published(SimpleNamespace(oracle=oracle), known, queries=2, observations=3, trim=0.0)
        assert averaged.vectors.tolist() == [[(0 + 1 + 2) / 3] * 2, [(3 + 4 + 5) / 3] * 2]
        assert (list(averaged.texts), averaged.values["gender"].tolist()) == (["a", "a"], [1, 1])

    def test_the_claim_is_composed(self, planted):
        _, result, _ = accuracy(planted, independent, portfolio="logistic", inputs="raw", observations=4)
        assert (result.claim.epsilon, result.claim.observations) == (2.0, 4)

    def test_queries_are_made_once_and_answered_with_fresh_noise(self, planted):
        _, _, victim = accuracy(planted, independent, portfolio="logistic", inputs="raw", queries=5)
        # a publication of each split, two to compare their noise, three to compare orders of a few texts, and one
        # encoding of the attacker's texts
        assert victim.encodings == 3 + 2 + 3 + 1

    def test_more_queries_teach_more(self, planted):
        """With few texts and much noise, the learned direction is noisy, too."""
        few = planted.with_rows("train", range(60))
        scores = [
            accuracy(few, independent, portfolio="logistic", inputs="standardised", queries=q, observations=8)[0]
            for q in (1, 20)
        ]
        assert scores[1] > scores[0]


class TestDenoising:
    """The maps, without a classifier."""

    def test_a_shift_is_removed_exactly(self):
        vectors = rng().random((50, 8)).astype(np.float64)
        vectors[:, 0] = 0.0
        shifted = vectors + rng(1).laplace(0, 20, (50, 1))
        assert np.abs(Scaling("above minimum")(shifted) - vectors).max() < 1e-9
        centred = Scaling("centred")
        assert np.abs(centred(shifted) - centred(vectors)).max() < 1e-5

    @pytest.mark.slow
    def test_shrinkage_is_the_best_linear_estimate(self):
        """Compare with the regression of the clean on the noisy vectors, which an attacker cannot compute."""
        n, d = 400_000, 5
        clean = rng().normal(size=(n, d)) @ rng(1).normal(size=(d, d)) + 3.0
        deviations = np.array([0.1, 1.0, 3.0, 10.0, 0.5])
        noisy, again = (clean + rng(seed).normal(size=(n, d)) * deviations for seed in (2, 3))
        scaling = shrinkage(noisy.astype(np.float32), again.astype(np.float32))
        design = np.column_stack([noisy, np.ones(n)])
        best = np.linalg.lstsq(design, clean, rcond=None)[0][:-1]
        factor = np.sum(scaling.scale * best) / np.sum(best**2)  # its overall size is free
        assert np.abs(scaling.scale / factor - best).max() < 0.03
        outputs = scaling(noisy.astype(np.float32))
        assert outputs.var(0).mean() == pytest.approx(1.0, rel=0.02)

    def test_shrinkage_of_a_shared_shift_keeps_everything_else(self):
        clean = rng().random((5000, 4))
        noisy, again = ((clean + rng(seed).laplace(0, 50, (5000, 1))).astype(np.float32) for seed in (1, 2))
        outputs = shrinkage(noisy, again)(noisy)
        shift = (noisy - clean).mean(1)
        assert max(abs(np.corrcoef(outputs[:, i], shift)[0, 1]) for i in range(4)) < 0.1
        centred = Scaling("centred")(clean.astype(np.float32))
        left = centred - outputs @ np.linalg.lstsq(outputs, centred, rcond=None)[0]
        assert left.var() < 0.05 * centred.var()

    def test_the_attacker_estimates_the_noise_from_a_second_publication(self):
        view, *_ = world(linear, [GENDER])
        second = view.vectors + rng().normal(size=view.vectors.shape).astype(np.float32)
        view = dataclasses.replace(view, oracle=SimpleNamespace(encode=lambda texts: second))
        fitted = AttributeInference(portfolio="logistic", inputs="shrunken").fit(view, 0)
        assert np.array_equal(fitted.attacker.inputs.scale, shrinkage(view.vectors, second).scale)

    @pytest.mark.slow
    def test_without_a_claim_nothing_is_denoised(self, planted):
        _, result, victim = accuracy(planted, lambda shape, g: np.zeros(shape), claim=None)
        assert victim.encodings == 3 + 2  # two orders of a few texts
        assert not any(name in result.details for name in ("centred", "above minimum", "shrunken"))
