"""The victim ``vector_store``: one key for all publications, queries, claims, and encoders of every kind."""

import numpy as np
import pytest

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.metrics.retrieval import half_texts, ranks_of
from leakboard.privacy.protections.none import NoProtection
from leakboard.suite.options import build, label
from leakboard.victims._encoders import DOCUMENT_ENCODERS
from leakboard.victims._protections import PROTECTIONS
from leakboard.victims.vector_store import VectorStore
from leakboard.victims.word2vec import Word2Vec

WORD2VEC = {"word2vec": {"epochs": 2, "vector_size": 16, "min_count": 2}}
NOISY = {"purkayastha": {"epsilon": 10_000.0}}


def rng(seed=0):
    return np.random.default_rng(seed)


def store(protection="none", encoder=WORD2VEC):
    return build(VectorStore, {"encoder": encoder, "protection": protection}, "victim vector_store")


@pytest.fixture(scope="module")
def texts(corpus):
    return corpus.texts("train").distinct()


@pytest.fixture(scope="module")
def fit(corpus):
    """Return a function that fits a store on the reviews, once for each protection and seed."""
    fitted = {}

    def once(protection="none", seed=0):
        if (str(protection), seed) not in fitted:
            fitted[str(protection), seed] = store(protection).fit(corpus, seed)
        return fitted[str(protection), seed]

    return once


def test_it_stores_the_encoders_vectors_at_length_one(corpus, texts, fit):
    encoded = Word2Vec(epochs=2, vector_size=16, min_count=2).fit(corpus, 0).publish_documents(texts, rng())
    lengths = np.linalg.norm(encoded, axis=1, keepdims=True)
    assert lengths.std() > 0.01
    for vectors in (fit().publish_documents(texts, rng()), fit("rotation").unprotected(texts)):
        assert np.allclose(vectors, encoded / lengths, atol=1e-6)


def test_one_fit_has_one_key_and_another_seed_another(texts, fit):
    """The encoder differs, too; so the maps are compared by their products with the unprotected vectors."""

    def rotation(fitted):
        return np.linalg.lstsq(fitted.unprotected(texts), fitted.publish_documents(texts, rng()), rcond=None)[0]

    first = rotation(fit("rotation"))
    assert np.allclose(first @ first.T, np.eye(16), atol=1e-3)
    few = texts.take(range(5))
    again = fit("rotation").publish_documents(few, rng(1))
    assert np.allclose(fit("rotation").unprotected(few) @ first, again, atol=1e-4)
    assert np.abs(rotation(fit("rotation", seed=1)) - first).max() > 0.1


@pytest.mark.parametrize("protection", ["none", "rotation", "int8", NOISY, {"truncation": {"dimensions": 12}}])
def test_queries_find_their_texts(protection, texts, fit):
    fitted = fit(protection)
    documents = fitted.publish_documents(texts, rng())
    rows, halves = half_texts(texts, rng(2))
    assert len(rows)
    ranks = ranks_of(rows, fitted.publish_queries(halves, rng(1)), documents)
    assert np.median(ranks) < len(texts) / 20


def test_compressed_stores_are_searched_by_uncompressed_queries(texts, fit):
    queries = fit("int8").publish_queries(texts, rng())
    assert np.allclose(queries, fit("int8").unprotected(texts), atol=1e-6)
    assert not np.array_equal(queries, fit("int8").publish_documents(texts, rng()))


def test_noise_is_fresh_and_claimed(texts, fit):
    fitted = fit(NOISY)
    same = Texts([texts[0]] * 2)
    assert not np.allclose(*fitted.publish_documents(same, rng()))
    assert fitted.claim.epsilon == pytest.approx(10_000 * np.pi)
    assert fit().claim is None
    assert np.allclose(*fit().publish_documents(same, rng()))


def test_attackers_train_a_store_without_protection():
    recipe = store(NOISY)
    assert recipe.non_private() == store()
    assert recipe.non_private().protection == NoProtection()
    assert recipe.trainable


def test_labels_name_encoder_and_protection_at_any_default():
    assert label("vector_store", VectorStore()) == "vector_store(encoder=sentence_encoder, protection=none)"
    expected = "vector_store(encoder=word2vec, protection=scale_and_perturb(beta=2.0))"
    assert label("vector_store", store({"scale_and_perturb": {"beta": 2.0}}, "word2vec")) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": {"word2vec": {"epsilon": 2.0}}}, "encoder.epsilon: 2 is not allowed: null"),
        ({"protection": {"scale_and_perturb": {"beta": 0}}}, "scale_and_perturb.beta: 0 is not allowed"),
        ({"protection": "gaussian"}, "gaussian.sigma: required, but missing"),
        ({"protection": "rotatoin"}, "did you mean 'rotation'?"),
        ({"encoder": "dpnr"}, "allowed is one of bert, embedding_bag"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options, message):
    with pytest.raises(RequestError) as refused:
        build(VectorStore, options, "victim vector_store")
    assert message in str(refused.value)
    assert str(refused.value).startswith("victim vector_store")


def test_a_protection_that_does_not_suit_the_encoder_is_refused(corpus):
    with pytest.raises(
        RequestError, match=r"subvectors: 5 is not allowed with 16 dimensions \(allowed: 1, 2, 4, 8, 16\)"
    ):
        store({"product_quantisation": {"subvectors": 5}}).fit(corpus, 0)


@pytest.mark.parametrize("name", DOCUMENT_ENCODERS)
def test_every_encoder_is_fitted_saved_and_loaded(name, reviews, tmp_path):
    """Files of examples are in a folder; the key is saved with the encoder."""
    (tmp_path / "files").mkdir()
    (tmp_path / "saved").mkdir()
    recipe = VectorStore(
        encoder=DOCUMENT_ENCODERS[name].example(tmp_path / "files"), protection=PROTECTIONS["rotation"]()
    )
    few = reviews.only("train", "dev").with_rows("train", range(30)).with_rows("dev", range(10))
    fitted = recipe.fit(few, 0)
    fitted.save(tmp_path / "saved")
    loaded, texts = recipe.load(tmp_path / "saved"), few.texts("dev")
    for publish in ("publish_documents", "publish_queries"):
        assert np.array_equal(getattr(loaded, publish)(texts, rng()), getattr(fitted, publish)(texts, rng()))
    assert loaded.coverage(texts) == fitted.coverage(texts)
    assert recipe.fingerprint() == recipe.encoder.fingerprint()
