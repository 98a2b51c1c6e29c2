"""Test that near copies of train's vectors are counted, and vectors of one topic are not."""

import numpy as np
import pytest
from marks import with_slow
from scipy import stats

import leakboard
from leakboard.metrics.near_copies import near_copy_metrics


def share(vectors, test=5):
    """Return the share of near copies, if every fifth vector is of test."""
    is_test = np.arange(len(vectors)) % test == 0
    parts = {"train": vectors[~is_test], "test": vectors[is_test]}
    (metric,) = near_copy_metrics({split: part.astype(np.float32) for split, part in parts.items()})
    return metric.value


def chunks(dimensions, noise, documents=300, each=10):
    """Return chunks of documents: the document's vector and noise."""
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.standard_normal((documents, dimensions)), each, axis=0)
    return centres + noise * rng.standard_normal(centres.shape)


@pytest.mark.parametrize("dimensions", [16, 64, 384])
@pytest.mark.parametrize("scale", with_slow([1e-30, 1.0, 1e30], 1.0))
def test_chunks_of_one_document_are_copies(dimensions, scale):
    assert share(scale * (chunks(dimensions, 0.1) + 7)) == 1


@pytest.mark.parametrize("scale", [10.0, 1e4])
def test_a_dimension_of_another_scale_hides_no_copies(scale):
    vectors = chunks(32, 0.1)
    assert share(np.hstack([vectors, scale * vectors[:, :1]])) == 1


def test_noise_in_a_narrow_dimension_hides_no_copies():
    vectors = chunks(32, 0.1)
    assert share(np.hstack([vectors, 1e-3 * np.random.default_rng(5).standard_normal((len(vectors), 30))])) == 1


@pytest.mark.parametrize("count", [3, 30])
def test_the_share_is_that_of_the_copied_vectors(count):
    vectors = np.random.default_rng(1).standard_normal((1500, 50))
    vectors[0 : 5 * count : 5] = vectors[1 : 5 * count + 1 : 5] + 0.01
    assert share(vectors) == pytest.approx(count / 300)


@pytest.mark.parametrize("dimensions", with_slow([1, 2, 5, 64], 2, 5))
def test_vectors_that_are_near_in_few_dimensions_are_no_copies(dimensions):
    """A thousandth is expected by construction, of 600 vectors."""
    vectors = np.random.default_rng(2).standard_normal((3000, dimensions))
    narrow = vectors @ np.random.default_rng(3).standard_normal((dimensions, 64))  # in as few directions
    for given in (vectors, narrow):
        assert 600 * share(given) <= stats.binom.isf(1e-4, 600, 0.002)


def test_vectors_of_one_topic_are_no_copies():
    assert share(chunks(64, 1.0, documents=20, each=100)) < 0.01


def test_constant_vectors_are_no_copies():
    assert share(np.ones((100, 3))) == 0


@pytest.fixture(scope="module")
def documents():
    """Return 300 documents of ten chunks each, and a random secret of each document."""
    names = np.repeat(np.arange(300), 10)
    return chunks(32, 0.1), names, np.random.default_rng(4).integers(0, 2, 300)[names]


@pytest.mark.slow
def test_a_random_secret_of_documents_seems_to_leak_and_the_report_warns(documents):
    vectors, _, secret = documents
    report = leakboard.evaluate(vectors, {"secret": secret}, attacks=[{"attribute_inference": {"portfolio": "mlp"}}])
    assert report.table["attack_score"].iloc[0] > 0.9
    start = "warning: 100.0 % of the test vectors have a near copy among the training vectors"
    (sentence,) = (sentence for sentence in report.sentences if sentence.startswith(start))
    for role in ("document", "user", "text"):
        assert all(form in sentence for form in (f"--{role}", f"{role}s=", f"{role}:"))


@pytest.mark.slow
def test_the_warning_names_the_vectors_if_there_are_several_releases(documents):
    vectors, _, secret = documents
    attacks = [{"attribute_inference": {"portfolio": "logistic"}}]
    report = leakboard.evaluate({"stored": vectors, "scaled": 2 * vectors}, {"secret": secret}, attacks=attacks)
    for name in ("stored", "scaled"):
        assert f"warning: {name} on table: 100.0 % of the test vectors have a near copy" in report.summary


@pytest.mark.slow
def test_copies_of_a_text_are_no_near_copies_if_the_texts_are_given():
    rng = np.random.default_rng(6)
    copied = np.repeat(rng.standard_normal((300, 32)), 5, axis=0)
    secret, texts = rng.integers(0, 2, 300).repeat(5), [f"text {i}" for i in np.arange(300).repeat(5)]
    attacks = [{"attribute_inference": {"portfolio": "logistic"}}]
    without = leakboard.evaluate(copied, {"secret": secret}, attacks=attacks)
    given = leakboard.evaluate(copied, {"secret": secret}, texts=texts, attacks=attacks)
    assert "near copy" in without.summary
    assert "near copy" not in given.summary


def test_with_the_names_of_documents_nothing_leaks(documents):
    vectors, names, secret = documents
    report = leakboard.evaluate(
        vectors, {"secret": secret}, documents=names, attacks=[{"attribute_inference": {"portfolio": "mlp"}}]
    )
    row = report.table.iloc[0]
    assert (
        row["empirical_privacy_high"] - row["empirical_privacy_low"] > 0.1
    )  # an interval over 60 documents, not 600 texts
    assert row["empirical_privacy_high"] >= row["privacy_best_constant"] - 1e-9
    assert "near copy" not in report.summary
