"""ADePT: planted texts come back without noise, its claim on both sides, and attacks on its vectors and texts."""

import numpy as np
import pytest

from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.dp_audit import DpAudit
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable
from leakboard.interfaces import Coverage, Secret, Texts
from leakboard.metrics.audits import corrected_bound, verdict, verdict_error
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.publications import publish
from leakboard.randomness import Streams
from leakboard.threats.threat import VictimSide
from leakboard.victims.adept import Adept

COLOURS, ANIMALS, PLACES = ("red", "blue", "green", "grey"), ("cat", "dog", "owl", "fox"), ("sits", "runs", "eats")
SIZES = {"dimension": 16, "hidden": 32, "embedding": 16, "batch_size": 32, "learning_rate": 0.01, "epochs": 5}
BAG = {"embedding_bag": {"dimension": 16, "epochs": 20}}
NOISY = {"epsilon": 0.1, "calibration": "corrected"}
ATTACKS = [
    AttributeInference(portfolio="logistic"),
    EntityPresence(portfolio="logistic"),
    BagOfWords(epochs=10, batch_size=32),
]


def rng(seed=0):
    return np.random.default_rng(seed)


def adept(**options):
    return Adept(**{"epsilon": None, **SIZES, **options})


@pytest.fixture(scope="module")
def planted(make_corpus):
    """Return short texts whose first word shows an attribute, the second one the label, and the last one a person."""
    draws, splits = rng(7), {}
    for name, count in (("train", 400), ("dev", 60), ("test", 100)):
        colour, animal, place, kelly = (draws.integers(0, n, count) for n in (4, 4, 3, 2))
        parts = zip(colour, animal, place, kelly, strict=True)
        splits[name] = {
            "text": [f"a {COLOURS[c]} {ANIMALS[a]} {PLACES[p]} {'by kelly' if k else 'there'}" for c, a, p, k in parts],
            "label": animal % 2,
            "shade": colour,
            "kelly": kelly,
        }
    secrets = [Secret("shade", COLOURS, "attribute"), Secret("kelly", ("absent", "present"), "entity")]
    return make_corpus(splits, secrets)


@pytest.fixture(scope="module")
def fitted(planted):
    return adept().fit(planted.only("train", "dev"), 0)


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adept")
    fitted.save(folder)
    return folder


@pytest.fixture
def of(saved):
    """Return a victim that shares the fit, with other options."""
    return lambda **options: adept(**options).load(saved)


def side_of(victim, fitted, corpus):
    streams = Streams(0, corpus.name, "adept", "a", "cell")
    return VictimSide(corpus, corpus, victim, lambda: fitted, publish(victim, lambda: fitted, corpus, streams), streams)


def right(fitted, corpus):
    """Return the share of test texts that are published as they are."""
    texts = corpus.texts("test")
    return np.mean([one == other for one, other in zip(fitted.publish_texts(texts, rng()), texts, strict=True)])


class TestAutoEncoder:
    def test_without_noise_planted_texts_come_back_and_with_noise_they_do_not(self, planted, fitted, of):
        assert right(fitted, planted) >= 0.95
        assert right(of(epsilon=1e5), planted) >= 0.9
        assert right(of(**NOISY), planted) <= 0.2  # one text of 96 by chance

    def test_texts_keep_rows_and_ids_and_have_only_known_words(self, fitted):
        texts = Texts(["A red CAT, eats there!", "", "nothing known"], np.array([5, 6, 9]), ["x", "y", "z"])
        published = fitted.publish_texts(texts, rng())
        assert (published.rows.tolist(), published.ids) == ([5, 6, 9], ["x", "y", "z"])
        assert published[0] == "a red cat eats there"
        assert {word for text in published for word in words(text)} <= {*fitted.model.units}
        assert fitted.coverage(texts) == Coverage(unknown=pytest.approx(2 / 3))

    def test_longer_texts_are_cut(self, planted):
        victim = adept(longest=2, epochs=1)
        published = victim.fit(planted.only("train", "dev"), 0).publish_texts(planted.texts("test"), rng())
        assert {len(text.split()) for text in published} == {2}

    def test_vectors_are_clipped_states_in_the_unit_cube(self, fitted, planted):
        texts = planted.texts("test")
        states = fitted.model.states(texts)
        norms = np.linalg.norm(2 * fitted.publish_documents(texts, rng()) - 1, axis=1)
        assert norms == pytest.approx(np.minimum(np.linalg.norm(states, axis=1), 1), rel=1e-5)
        assert fitted.inputs(texts) == pytest.approx((states + 1) / 2)
        assert fitted.claim is None


class TestOptions:
    def test_noise_shares_a_fit_unless_an_encoder_learns_from_published_texts(self):
        assert adept(**NOISY, noise="gaussian", delta=1e-5).training_config() == adept()
        assert adept(clipping_norm=2.0).training_config() != adept()
        with_encoder = adept(**NOISY, encoder=BAG)
        assert with_encoder.training_config() == with_encoder
        assert adept(**NOISY, encoder=BAG, delta=0.1).training_config() == with_encoder

    def test_a_norm_that_clips_nothing_is_refused(self):
        with pytest.raises(ValueError, match="clipping_norm: 5 is not allowed with dimension 16: at most 4, "):
            adept(clipping_norm=5.0)


class TestClaim:
    @pytest.mark.parametrize(
        ("options", "proved", "expected"),
        [
            ({}, 4.0, "violated"),
            ({"calibration": "corrected"}, 1.0, "holds"),
            ({"noise": "gaussian", "calibration": "corrected"}, 1.0, "holds"),
        ],
    )
    def test_the_published_scale_is_refuted_and_the_corrected_one_is_not(self, options, proved, expected, planted, of):
        """The audit tries corners of the cube, and sentences of the corpus."""
        victim = adept(epsilon=1.0, **options)
        result = evaluate_attack(
            DpAudit(budget=300_000, calls=0, sentences=20), side_of(victim, of(epsilon=1.0, **options), planted)
        )
        bound = corrected_bound([result.metrics], verdict_error(result.claim.delta))
        assert result.claim.proved == pytest.approx(proved)
        assert verdict(result.claim.epsilon, result.claim.proved, bound) == expected
        assert bound <= proved


@pytest.fixture(scope="module", params=[None, BAG], ids=["vectors", "texts"])
def sides(request, planted, saved):
    """Return the side without noise and the one with noise, of vectors or of texts."""
    sides = {}
    for name, options in (("plain", {}), ("noisy", NOISY)):
        victim = adept(encoder=request.param, **options)
        fitted = victim.fit(planted.only("train", "dev"), 0) if request.param else victim.load(saved)
        sides[name] = side_of(victim, fitted, planted)
    return sides


class TestAttacks:
    """Attacks gain without noise, and with noise nothing, on vectors and on vectors of rewritten texts."""

    @pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
    def test_secrets_and_words(self, attack, sides):
        advantage = {name: evaluate_attack(attack, side).value("attack_advantage") for name, side in sides.items()}
        assert advantage["plain"] > 0.8
        assert advantage["noisy"] < 0.3

    def test_task_and_searches(self, sides, planted):
        labels = planted.column("test", "label")
        accuracy = {name: np.mean(side.published.predicted == labels) for name, side in sides.items()}
        assert accuracy["plain"] > 0.9
        assert accuracy["noisy"] < 0.7
        first = {name: np.median(side.published.ranks[:, 1]) for name, side in sides.items()}
        assert first["plain"] < first["noisy"]

    def test_texts_are_published_with_the_documents(self, sides):
        for side in sides.values():
            assert len(side.published.texts) == 100
            assert side.published.faults == ()

    def test_attacks_that_need_a_channel_do_not_apply(self, sides):
        with pytest.raises(NotApplicable, match="the victim rewrites whole texts"):
            evaluate_attack(AttributeInference(portfolio="sources"), sides["plain"])


def test_the_encoder_reads_published_texts_and_is_saved_and_vectors_stay_private(planted, of, tmp_path):
    victim, of_vectors = adept(encoder=BAG, epochs=1, **NOISY), of(**NOISY)
    fitted, texts = victim.fit(planted.only("train", "dev"), 0), planted.texts("test")
    fitted.save(tmp_path)
    for one in (fitted, victim.load(tmp_path)):
        vectors = fitted.encoder.publish_documents(one.publish_texts(texts, rng(3)), rng())
        assert np.array_equal(one.publish_documents(texts, rng(3)), vectors)
        assert np.array_equal(one.unprotected(texts), fitted.encoder.publish_documents(texts, rng()))
        assert np.array_equal(one.predict(vectors), fitted.encoder.predict(vectors))
        assert one.claim == of_vectors.claim
    with pytest.raises(NotApplicable, match="the noisy vectors that the claim is about are not published"):
        evaluate_attack(DpAudit(budget=100_000), side_of(victim, fitted, planted))
