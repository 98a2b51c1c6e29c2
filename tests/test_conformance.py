"""One suite for every plugin. It finds them by itself: a new file joins without being listed here."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import conformance
import numpy as np
import pandas as pd
import pins
import pytest
from conformance import content, digest, example, published

from leakboard.errors import RequestError
from leakboard.interfaces import MembershipGuesses, PrivacyClaim, SecretGuesses, TextGuesses, WordGuesses
from leakboard.pipeline.cell import mount
from leakboard.pipeline.fitting import Names
from leakboard.suite.options import describe
from leakboard.suite.plugins import KINDS, Registry

CHECKOUT = Path(__file__).resolve().parent.parent
LISTINGS = {kind: Registry().listings(kind) for kind in KINDS}
LIBRARIES = ["os.putenv b'KMP_DUPLICATE_LIB_OK'"]
"""What scikit-learn does when it is imported."""


def plugins(*kinds):
    return pytest.mark.parametrize(
        ("kind", "name"),
        [pytest.param(kind, item.name, id=f"{kind}/{item.name}") for kind in kinds for item in LISTINGS[kind]],
    )


@pytest.fixture(scope="session")
def places(tmp_path_factory, tiny_bert):
    """Write the files that examples need, and find the published ones."""
    folder = tmp_path_factory.mktemp("conformance")
    rng = np.random.default_rng(0)
    rows = {"text": [f"row {i} of a table" for i in range(40)], "label": ["yes", "no"] * 20}
    rows |= {"age": ["old", "young", "old", "old"] * 10, "person": [0, 1, 0, 0] * 10}
    pd.DataFrame(rows).to_csv(folder / "table.csv", index=False)
    np.save(folder / "vectors.npy", rng.normal(size=(120, 5)).astype(np.float32))
    paths = {"table": folder / "table.csv", "vectors": folder / "vectors.npy", "tiny_bert": tiny_bert}
    return {name: str(path) for name, path in paths.items()}


@pytest.fixture(scope="session")
def surroundings():
    """Return an environment without network whose published files are those of the workplace, if any."""
    data = Path(os.environ.get("LEAKBOARD_DATA") or CHECKOUT.parent / "shared" / "data")
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    return proxies | {"no_proxy": "", "NO_PROXY": "", "HF_HUB_OFFLINE": "1", "LEAKBOARD_DATA": str(data)}


@pytest.fixture
def _surrounded(surroundings, monkeypatch):
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)


def ask(command, surroundings, folder, *arguments):
    """Run the conformance program in an empty folder and home, and return its answer."""
    home = folder / "home"
    home.mkdir()
    kept = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment = {**os.environ, **surroundings, **kept, "PYTHONPATH": str(CHECKOUT), "PYTHONHASHSEED": "77"}
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "tests" / "conformance.py"), command, *arguments],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), sorted(path.name for path in home.rglob("*"))


@pytest.fixture(scope="session")
def answers(surroundings, places, tmp_path_factory):
    """Return digest and pins of what every plugin makes of its example, in another process."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "places.json").write_text(json.dumps(places))
    return ask("answers", surroundings, folder, str(folder / "places.json"))[0]


@pytest.fixture(scope="session")
def elsewhere(answers):
    """Return the digest of every plugin's example."""
    return {name: digest for name, (digest, _) in answers.items()}


@pytest.fixture(scope="session")
def imported(surroundings, tmp_path_factory):
    """Return what importing each plugin did, and the files it left."""
    return ask("imports", surroundings, tmp_path_factory.mktemp("imports"))


@pytest.fixture(scope="session")
def scenes():
    return conformance.scenes()


@pytest.fixture(scope="session")
def scene(scenes):
    return scenes(None)


def usable(kind, name):
    """Skip a plugin whose libraries are missing; any other problem fails."""
    listing = Registry().find(kind, name, "suite")
    if "not installed" in listing.problem:
        pytest.skip(listing.problem)
    assert not listing.problem, listing.problem
    return listing


def fitted_on(corpus, victim):
    return victim.fit(corpus.only("train", "dev"), 0)


class TestForm:
    """How a plugin presents itself."""

    @plugins(*KINDS)
    def test_is_documented(self, kind, name):
        listing = usable(kind, name)
        docstring = ast.get_docstring(ast.parse(Path(listing.origin).read_text("utf-8"))) or ""
        assert docstring.splitlines()[0].endswith((".", ":", ",")) or len(docstring.splitlines()[0]) > 20
        undocumented = [option.name for option in describe(Registry().load(kind, name)) if not option.text]
        assert not undocumented

    @plugins(*KINDS)
    def test_importing_it_is_free(self, kind, name, imported):
        usable(kind, name)
        done, left = imported
        assert [act for act in done[f"{kind}/{name}"] if act not in LIBRARIES] == []
        assert left == []

    @plugins("victims")
    def test_a_victim_says_what_it_publishes(self, kind, name):
        published = Registry().load(kind, name).publishes
        assert published
        assert set(published) <= {"documents", "words", "releases"}

    @plugins("attacks")
    def test_an_attack_says_what_it_needs(self, kind, name):
        attack = Registry().load(kind, name)
        assert attack.needs in ("documents", "words", "releases")
        on_training = getattr(attack, "audits", "") == "training"
        needs = {"words": "words", "membership": "words", "claim": "words" if on_training else "releases"}
        assert attack.target in ("attribute", "entity", "text", *needs)
        assert attack.needs == needs.get(attack.target, "documents")


class TestPins:
    """A plugin's results are those of its revision; `make pins` writes them anew."""

    @plugins(*KINDS)
    def test_results_are_those_of_the_revision(self, kind, name, answers):
        usable(kind, name)
        reason, numbers = answers[f"{kind}/{name}"]
        if kind == "datasets" and (numbers is None or not (pins.IS_WRITING or f"{kind}/{name}" in pins.read())):
            pytest.skip("its public file, or a model that it needs, is not here, or was not when pins were written")
        assert numbers, reason
        revision = Registry().load(kind, name).__leakboard_revision__
        assert not pins.complaint(f"{kind}/{name}", revision, numbers)


@pytest.mark.usefixtures("_surrounded")
class TestDatasets:
    """What a corpus promises."""

    @plugins("datasets")
    def test_keeps_the_contract(self, kind, name, places, elsewhere):
        usable(kind, name)
        dataset = example(kind, name, places)
        try:
            fingerprint, corpus = dataset.fingerprint(), dataset.load()
        except RequestError as error:
            if not any(reason in str(error) for reason in ("cannot be fetched", "nltk.downloader")):
                raise
            pytest.skip(f"its public file, or a model that it needs, is not here: {error}")
        assert fingerprint == example(kind, name, places).fingerprint()
        assert set(corpus.splits) == {"train", "dev", "test"}
        rows = np.concatenate([corpus.texts(split).rows for split in corpus.splits])
        assert len(set(rows.tolist())) == len(rows)
        for secret in corpus.secrets:
            assert secret.values == corpus.values(secret.name)
            assert secret.kind == "attribute" or secret.values == ("absent", "present")
            for split in corpus.splits:
                codes = corpus.column(split, secret.name)
                assert 0 <= codes.min() <= codes.max() < len(secret.values)
        if corpus.has_labels:
            labels = corpus.column("train", "label")
            assert 0 <= labels.min() <= labels.max() < len(corpus.values("label"))
        assert elsewhere[f"{kind}/{name}"] == digest(content(corpus))


class TestVictims:
    """What a fitted victim promises."""

    @plugins("victims")
    def test_keeps_the_contract(self, kind, name, places, scene, elsewhere):
        usable(kind, name)
        corpus = conformance.corpus(name) if name == "mechanism" else scene.corpus
        before = digest(content(corpus))
        victim = example(kind, name, places)
        fitted = fitted_on(corpus, victim)
        first = published(victim, fitted, corpus)
        texts, classes = corpus.texts("test"), len(corpus.values("label"))
        if "documents" in victim.publishes:
            vectors = fitted.publish_documents(texts, np.random.default_rng(0))
            assert vectors.shape == (len(texts), vectors.shape[1])
            assert vectors.dtype == np.float32
            assert np.isfinite(vectors).all()
        if "documents" in victim.publishes and corpus.has_labels:
            predicted = np.asarray(fitted.predict(vectors))
            assert predicted.shape == (len(texts),)
            assert predicted.dtype.kind == "i"
            assert 0 <= predicted.min() <= predicted.max() < classes
        if "releases" in victim.publishes and fitted.claim:
            assert fitted.mechanism.epsilon == fitted.claim.epsilon
            assert fitted.mechanism.delta == fitted.claim.delta
            given = np.random.default_rng(0).random((5, fitted.mechanism.dimension))
            released = fitted.mechanism.release(given.copy(), np.random.default_rng(1))
            assert released.shape == given.shape
            assert not np.array_equal(released, fitted.mechanism.release(given, np.random.default_rng(2)))
            if (inputs := fitted.inputs(texts)) is not None:  # then a publication is a release of them, bit for bit
                assert 0 <= inputs.min() <= inputs.max() <= 1
                again = fitted.mechanism.release(inputs, np.random.default_rng(0)).astype(np.float32)
                assert np.array_equal(again, fitted.publish_documents(texts, np.random.default_rng(0)))
        if "words" in victim.publishes:
            words = fitted.publish_words(texts, np.random.default_rng(0))
            assert words.vectors.dtype == np.float32
            assert words.vectors.ndim == 2
            assert len(words.words) == len(words.vectors) > 0
            assert np.isfinite(words.vectors).all()
            if words.text_index is None:
                assert len(set(words.words)) == len(words.words)
            else:
                assert words.text_index.shape == (len(words.words),)
                assert (np.diff(words.text_index) >= 0).all()
                assert 0 <= words.text_index[0] <= words.text_index[-1] < len(texts)
        assert fitted.claim is None or isinstance(fitted.claim, PrivacyClaim)
        assert digest(published(victim, fitted, corpus)) == digest(first)
        assert digest(content(corpus)) == before
        assert elsewhere[f"{kind}/{name}"] == digest(first)

    @plugins("victims")
    def test_is_saved_and_loaded_without_pickle(self, kind, name, places, scene, tmp_path):
        usable(kind, name)
        victim = example(kind, name, places)
        corpus = conformance.corpus(name) if name == "mechanism" else scene.corpus
        fitted = fitted_on(corpus, victim)
        fitted.save(tmp_path)
        suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
        assert suffixes <= {".safetensors", ".npy", ".npz", ".json", ".txt"}
        loaded = example(kind, name, places).load(tmp_path)
        first, again = (published(victim, f, corpus) for f in (fitted, loaded))
        assert digest(first) == digest(again)
        assert loaded.claim == fitted.claim


class TestAttacks:
    """What a fitted attack promises."""

    @plugins("attacks")
    def test_keeps_the_contract(self, kind, name, places, scenes, elsewhere):
        usable(kind, name)
        attack = example(kind, name, places)
        if attack.target == "claim":
            pytest.skip("an audit guesses nothing; see test_an_audit_keeps_the_contract")
        scene = scenes(attack)
        view, vectors = conformance.view(attack, scene), conformance.challenge(attack, scene).copy()
        seen = [view.train.texts, view.train.vectors, view.train.secrets, view.dev.vectors, view.dev.secrets, vectors]
        before = digest([seen, content(view.auxiliary)])
        fitted = attack.fit(view, 0)
        if attack.target == "membership":
            guesses = fitted.guess_members(scene.published.words)
            assert isinstance(guesses, MembershipGuesses)
            assert guesses.scores.shape == (len(view.candidates),)
            assert np.isfinite(guesses.scores).all()
            again, whole = fitted.guess_members(scene.published.words), guesses
        elif isinstance(guesses := fitted.guess(vectors), TextGuesses) or attack.target == "text":
            assert isinstance(guesses, TextGuesses)
            assert len(guesses.texts) == len(vectors)
            again, whole = fitted.guess(vectors), guesses
        elif attack.needs == "documents":
            assert isinstance(guesses, SecretGuesses)
            assert set(guesses.scores) == {s.name for s in scene.corpus.secrets if s.kind == attack.target}
            for secret in view.secrets:
                scores = guesses.scores[secret.name]
                assert scores.shape == (len(vectors), len(secret.values))
                assert scores.dtype == np.float32
                assert np.isfinite(scores).all()
            again, whole = fitted.guess(vectors).scores, dict(guesses.scores)
        else:
            assert isinstance(guesses, WordGuesses)
            assert guesses.ranked.shape == guesses.similarity.shape == (len(vectors), guesses.ranked.shape[1])
            assert guesses.ranked.dtype.kind == "i"
            assert -1 <= guesses.ranked.min() <= guesses.ranked.max() < len(guesses.vocabulary)
            assert np.isfinite(guesses.similarity).all()
            again, whole = fitted.guess(vectors), guesses
        assert digest(again) == digest(whole)
        assert digest([seen, content(view.auxiliary)]) == before
        assert digest(conformance.guesses(attack, scene)) == digest(whole)
        assert elsewhere[f"{kind}/{name}"] == digest(whole)

    @plugins("attacks")
    def test_is_judged(self, kind, name, places, scenes):
        usable(kind, name)
        attack = example(kind, name, places)
        judged = mount(attack, scenes(attack), Names(0, "generated_reviews", "word2vec", name), None)
        found = {metric.name: metric.value for metric in judged.metrics if not metric.variable}
        if hasattr(attack, "audits"):
            assert 0 <= found["attack_score"] < np.inf
            assert 0 <= found["canary_right"] <= found["canary_guesses"] <= found["canaries"]
        elif attack.target == "claim":
            assert 0 <= found["attack_score"] < np.inf
            assert 0 <= found["audit_misses"] <= found["audit_hits"]
        else:
            assert 0 <= found["attack_score"] <= 1
            assert 0 <= found["empirical_privacy"] <= found["privacy_majority"] <= 1

    @plugins("attacks")
    def test_an_audit_keeps_the_contract(self, kind, name, places, scenes, elsewhere):
        usable(kind, name)
        attack = example(kind, name, places)
        if attack.target != "claim":
            pytest.skip("guesses secrets")
        told = conformance.guesses(attack, scenes(attack))
        if hasattr(attack, "audits"):
            canaries, scores = told
            assert len(scores) == len(canaries)
            assert np.isfinite(scores).all()
        else:
            assert told[2] >= 1
            assert told[4].dtype == bool
            assert 0 < told[4].mean() < 1
        assert digest(conformance.guesses(attack, scenes(attack))) == digest(told)
        assert elsewhere[f"{kind}/{name}"] == digest(told)


def test_noise_from_elsewhere_would_be_found(scene):
    """The other side: a victim whose noise does not come from the given generator answers otherwise each time."""

    class Careless:
        publishes = ("documents",)

        def publish_documents(self, texts, rng):
            return np.random.default_rng().normal(size=(len(texts), 2)).astype(np.float32)

        def predict(self, vectors):
            return np.zeros(len(vectors), np.int64)

    first, again = (digest(published(Careless, Careless(), scene.corpus)) for _ in range(2))
    assert first != again
