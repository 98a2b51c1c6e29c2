"""Test the attacks on vector stores: a secret rotation is undone, a fresh key for each vector is not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from leakboard.attacks._alignment import known_encoder, rotation
from leakboard.attacks._alignment.centres import compression
from leakboard.attacks._alignment.known_encoder import KnownEncoder
from leakboard.attacks.aligned import Aligned
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.linking import Linking
from leakboard.attacks.nearest_text import NearestText
from leakboard.attacks.presence import Presence
from leakboard.attacks.surrogate import Surrogate
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import FittedVictim, Secret, Victim
from leakboard.metrics.link_scores import HEADLINE
from leakboard.pipeline.publications import fit, publish
from leakboard.randomness import Streams
from leakboard.suite.options import build
from leakboard.threats.oracle import Oracle
from leakboard.threats.threat import VictimSide

WIDTH = 16
CENTRES = np.random.default_rng(9).normal(size=(12, WIDTH)) * np.linspace(2, 0.5, WIDTH)


def encoded(texts):
    """Return a point near one of twelve centres for each text ``centre number``."""
    rows = [text.split() for text in texts]
    noise = np.array([np.random.default_rng(int(number)).normal(size=WIDTH) for _, number in rows])
    return (CENTRES[[int(centre) for centre, _ in rows]] + 0.4 * noise).astype(np.float32)


def orthogonal(seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)))[0].astype(np.float32)


@dataclass(frozen=True)
class FittedStore(FittedVictim):
    key: int
    fresh: bool

    def unprotected(self, texts):
        return encoded(texts)

    def publish_documents(self, texts, rng):
        if not self.fresh:
            return encoded(texts) @ orthogonal(self.key)
        return np.stack([vector @ orthogonal(rng.integers(2**31)) for vector in encoded(texts)])


@dataclass(frozen=True)
class Store(Victim):
    fresh: bool = False
    encodes_parts = False

    def fit(self, corpus, seed) -> FittedStore:
        return FittedStore(seed % 1000, self.fresh)


def side_of(make_corpus, fresh):
    rng = np.random.default_rng(0)

    def split(n, first):
        centres = rng.integers(12, size=n)
        texts = [f"{centre} {first + i}" for i, centre in enumerate(centres)]
        return {"text": texts, "label": centres % 2, "odd": centres % 2}

    splits = {"train": split(1200, 0), "dev": split(100, 2000), "test": split(300, 3000)}
    corpus = make_corpus(splits, [Secret("odd", ("no", "yes"), "attribute")])
    streams, victim = Streams(0, "made", "store", "spy", "cell"), Store(fresh)
    stored, own = (corpus.with_rows("train", rows) for rows in (range(600), range(600, 1200)))
    fitted = fit(victim, stored, streams)
    published = publish(victim, lambda: fitted, stored, streams)
    return VictimSide(stored, own, victim, lambda: fitted, published, streams)


@pytest.fixture(scope="module", params=[False, True], ids=["one key", "fresh keys"])
def side(request, make_corpus):
    return side_of(make_corpus, request.param)


def scores(attack, side):
    return {metric.name: metric.value for metric in attack.threat.evaluate(attack, side).metrics if not metric.variable}


def test_a_secret_rotation_is_undone_and_fresh_keys_are_not(side):
    linked = scores(Linking(), side)
    if side.victim.fresh:
        assert linked[HEADLINE] < 0.1
        assert linked["linked_first"] < 0.1
    else:
        assert linked[HEADLINE] > 0.95
        assert linked["linked_first"] == 1
    assert (linked["known_pairs"], linked["queries"]) == (0, 0)


def test_signs_are_linked_by_the_attackers_own_store_and_not_surely_by_the_encoder(make_corpus, monkeypatch):
    """The signs of a candidate are the stored vector itself; near texts in the encoder's space have other signs."""
    monkeypatch.setattr(FittedStore, "publish_documents", lambda self, texts, rng: np.sign(encoded(texts)))
    side = side_of(make_corpus, fresh=False)
    adaptive, static = (scores(Linking(adaptive=choice), side) for choice in (True, False))
    assert (adaptive["shadow_models"], static["shadow_models"]) == (1, 0)
    assert adaptive["linked_among_10"] > 0.8 > 0.2 > static["linked_among_10"]


def noisy(self, texts, rng):
    """Publish with noise that is large in half of the directions."""
    spread = np.where(np.arange(WIDTH) % 2, 0.8, 0.05)
    return (encoded(texts) + rng.normal(size=(len(texts), WIDTH)) * spread).astype(np.float32)


def test_the_law_of_the_noise_links_what_cosines_do_not(make_corpus, monkeypatch):
    monkeypatch.setattr(FittedStore, "publish_documents", noisy)
    side = side_of(make_corpus, fresh=False)
    likely, by_cosine = (scores(Linking(adaptive=False, likely=choice), side) for choice in (True, False))
    assert likely[HEADLINE] > by_cosine[HEADLINE] + 0.2
    assert likely["linked_first"] > by_cosine["linked_first"]
    present, nearest = (scores(Presence(likely=choice), side)["attack_score"] for choice in (True, False))
    assert present > nearest + 0.05


def test_the_law_of_the_noise_links_no_random_vector(make_corpus, monkeypatch):
    def publish(self, texts, rng):
        return rng.normal(size=(len(texts), WIDTH)).astype(np.float32)

    monkeypatch.setattr(FittedStore, "publish_documents", publish)
    linked = scores(Linking(adaptive=False, likely=True, alignment="identity"), side_of(make_corpus, fresh=False))
    assert linked[HEADLINE] < 0.05


def quantised(vectors, rng):
    """Return rows whose parts of width 2 are the nearest of eight centres, which ``rng`` draws."""
    parts = np.split(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 8, axis=1)
    centres = rng.normal(size=(8, 8, 2)).astype(np.float32) / 4
    nearest = [((part[:, None] - own) ** 2).sum(2).argmin(1) for part, own in zip(parts, centres, strict=True)]
    return np.hstack([own[rows] for own, rows in zip(centres, nearest, strict=True)])


class TestCentres:
    """Coarse product quantisation, with centres that the attacker's own store does not have."""

    def test_a_stored_vector_is_computed_from_the_centres_that_the_store_shows(self):
        vectors = np.random.default_rng(0).normal(size=(500, WIDTH)).astype(np.float32)
        stored = quantised(vectors, np.random.default_rng(1))
        assert np.array_equal(compression(stored[:400])(3 * vectors[400:]), stored[400:])

    def test_signs_are_centres(self):
        vectors = np.random.default_rng(0).normal(size=(500, WIDTH)).astype(np.float32)
        assert np.array_equal(compression(np.sign(vectors))(vectors), np.sign(vectors))

    def test_vectors_without_repeated_parts_show_none(self):
        with pytest.raises(NotApplicable, match="show no centres"):
            compression(np.random.default_rng(0).normal(size=(500, WIDTH)).astype(np.float32))

    def test_linking_and_presence_compare_with_compressed_candidates(self, make_corpus, monkeypatch):
        def publish(self, texts, rng):
            return quantised(encoded(texts), np.random.default_rng(self.key))

        monkeypatch.setattr(FittedStore, "publish_documents", publish)
        side = side_of(make_corpus, fresh=False)
        found, missed = (scores(Linking(recompress=choice), side)["linked_among_10"] for choice in (True, False))
        assert found > 0.9 > 0.3 > missed
        areas = [scores(Presence(candidates=400, recompress=choice), side)["attack_score"] for choice in (True, False)]
        assert areas[0] > areas[1] + 0.1


@pytest.mark.parametrize("method", ["rotation", "unwhitened"])
@pytest.mark.parametrize(
    "attack",
    [
        lambda method: Linking(adaptive=False, alignment=method, starts=79),
        lambda method: Presence(candidates=100, alignment=method, starts=79),
        lambda method: Aligned(inner=NearestText(), adaptive=False, alignment=method, starts=79),
    ],
    ids=["linking", "presence", "aligned"],
)
def test_a_map_is_sought_from_as_many_starts_as_are_asked_for(make_corpus, monkeypatch, attack, method):
    tried, refined = [], rotation._refined

    def spy(clouds, starts, *rest):
        tried.append(len(starts))
        return refined(clouds, starts, *rest)

    monkeypatch.setattr(rotation, "_refined", spy)
    scores(attack(method), side_of(make_corpus, fresh=False))
    assert tried == [79]


@pytest.mark.parametrize(
    "attack",
    [
        Linking(adaptive=False, alignment="rotation", transport=True),
        Presence(candidates=100, alignment="rotation", transport=True),
        Aligned(inner=NearestText(), adaptive=False, alignment="rotation", transport=True),
    ],
    ids=["linking", "presence", "aligned"],
)
def test_a_rotation_is_refined_by_transport_if_asked_for(make_corpus, monkeypatch, attack):
    refined = []

    def spy(found, own, stored, seed):
        refined.append(len(stored))
        return found

    monkeypatch.setattr(known_encoder, "transported", spy)
    scores(attack, side_of(make_corpus, fresh=False))
    assert len(refined) == 1
    scores(replace(attack, transport=False), side_of(make_corpus, fresh=False))
    assert len(refined) == 1


def test_presence_is_found_in_stolen_vectors_of_one_key(side):
    area = scores(Presence(candidates=400), side)["attack_score"]
    assert area > 0.95 if not side.victim.fresh else area < 0.65


@pytest.mark.parametrize("adaptive", [True, False])
def test_secrets_are_read_after_alignment(side, adaptive):
    inner = AttributeInference(portfolio="logistic", inputs="standardised")
    found = scores(Aligned(inner=inner, adaptive=adaptive), side)
    assert found["attack_score"] > 0.9 if not side.victim.fresh else found["attack_score"] < 0.65
    assert found["shadow_models"] == adaptive


def test_texts_are_read_after_alignment(side):
    """Of the two words of a text, the number is new, and the centre that of the nearest known text."""
    found = scores(Aligned(inner=NearestText()), side)
    assert found["token_f1"] > 0.45 if not side.victim.fresh else found["token_f1"] < 0.1


def test_the_adaptive_attacker_learns_the_protections_noise_but_no_errors_of_its_map(make_corpus, monkeypatch):
    """It has all texts of its own store, so it maps them with hardly an error; what is left is the noise."""
    noise, rotated = 0.1, FittedStore.publish_documents

    def noisy(self, texts, rng):
        vectors = rotated(self, texts, rng)
        return vectors + noise * rng.normal(size=vectors.shape).astype(np.float32)

    monkeypatch.setattr(FittedStore, "publish_documents", noisy)
    side, seen = side_of(make_corpus, fresh=False), []

    class Spy(AttributeInference):
        def fit(self, view, seed):
            seen.append(view)
            return super().fit(view, seed)

    inner = Spy(portfolio="logistic", inputs="standardised")
    scores(replace(Aligned(), inner=inner), side)
    (view,) = seen
    errors = view.train.vectors - encoded(view.train.texts)
    assert errors.std() == pytest.approx(noise, rel=0.1)
    assert np.abs(errors.mean(0)).max() < noise
    assert view.store is None


def test_a_store_of_its_own_with_another_encoder_is_no_help_and_is_not_used(make_corpus, monkeypatch):
    """A trained encoder gives other vectors after another training."""
    side = side_of(make_corpus, fresh=False)
    fitted = side.fitted()

    def unprotected(self, texts):
        return encoded(texts) if self is fitted else encoded(texts) @ orthogonal(99)

    monkeypatch.setattr(FittedStore, "unprotected", unprotected)
    inner = AttributeInference(portfolio="logistic", inputs="standardised")
    assert scores(Aligned(inner=inner), side)["attack_score"] > 0.9
    assert scores(Linking(), side)["linked_first"] == 1


def test_linked_candidates_make_a_rough_rotation_exact():
    rng = np.random.default_rng(1)
    texts = [f"{centre} {number}" for number, centre in enumerate(rng.integers(12, size=1200))]
    own, stored = encoded(texts[:600]), encoded(texts[600:])
    thief = KnownEncoder(own, None, stored @ orthogonal(4))
    rough, exact = (thief.align("rotation", 0, candidates)(thief.stored) for candidates in (None, stored))
    true = stored / np.linalg.norm(stored, axis=1, keepdims=True)
    cosines = [(mapped * true).sum(1) / np.linalg.norm(mapped, axis=1) for mapped in (rough, exact)]
    assert cosines[0].mean() < 0.9995 < 0.99999 < cosines[1].min()


def test_a_thief_with_another_encoder_asks_the_victim_nothing(make_corpus, monkeypatch):
    """Own texts are encoded by the attacker's own encoder; the victim's answers neither vectors nor a recipe."""
    asked = []

    def other(texts):
        asked.extend(texts)
        return encoded(texts)[:, :5]

    monkeypatch.setattr("leakboard.threats.oracle.public_encoder", lambda name: other)
    monkeypatch.setattr(FittedStore, "unprotected", lambda self, texts: pytest.fail("the victim was asked"))
    found = scores(Surrogate(inner=NearestText(), pairs=200), side_of(make_corpus, fresh=False))
    assert found["known_pairs"] == 200
    assert found["own_texts"] == 700  # train and dev
    assert (found["queries"], found["noiseless_queries"], found["shadow_models"]) == (0, 0, 0)
    assert len(asked) == 200 + 700
    assert found["token_f1"] > 0.4  # the centre of a text, half of its words


def test_an_oracle_with_an_own_encoder_refuses_questions_to_the_victim(make_corpus, monkeypatch):
    monkeypatch.setattr("leakboard.threats.oracle.public_encoder", lambda name: encoded)
    side = side_of(make_corpus, fresh=False)
    oracle = Oracle(side, side.auxiliary, own_encoder="MiniLM")
    texts = side.auxiliary.texts("dev")
    assert (oracle.unprotected(texts) == encoded(texts)).all()
    assert oracle.inputs(texts) is None
    questions = [oracle.encode, oracle.words, lambda _: oracle.train_shadow(0), lambda part: oracle.search(part, 1)]
    for ask in questions:
        with pytest.raises(NotApplicable, match="own_encoder: MiniLM, so the attacker does not know the victim's"):
            ask(texts)


def test_a_store_of_its_own_is_published_as_often_as_asked_for(make_corpus, monkeypatch):
    published = []

    def counted(self, texts, rng):
        published.append(len(texts))
        return noisy(self, texts, rng)

    monkeypatch.setattr(FittedStore, "publish_documents", counted)
    side = side_of(make_corpus, fresh=False)
    published.clear()
    scores(Aligned(inner=AttributeInference(portfolio="logistic"), alignment="identity", publications=3), side)
    assert published == [600, 100, 600, 600]


@pytest.mark.parametrize(
    ("attack", "options", "message"),
    [
        (Linking, {"radius": 0.5}, "radius: 0.5 is not allowed with likely: false; allowed: null"),
        (Presence, {"radius": 0.5}, "radius: 0.5 is not allowed with likely: false; allowed: null"),
        (
            Linking,
            {"likely": True, "radius": float("inf")},
            "radius: inf is not allowed: input should be a finite number",
        ),
        (Aligned, {"publications": 2, "adaptive": False}, "publications: 2 is not allowed with adaptive: false"),
        (Aligned, {"inner": AttributeInference(made_texts=9)}, "made_texts is not allowed in aligned: the store would"),
        (Linking, {"likely": True, "recompress": True}, "recompress: true is not allowed with likely: true"),
        (Presence, {"likely": True, "access": "scores"}, "likely: true is not allowed with access: scores"),
    ],
)
def test_options_that_do_not_go_together_are_refused(attack, options, message):
    with pytest.raises(RequestError, match=message):
        build(attack, options, "attack")
