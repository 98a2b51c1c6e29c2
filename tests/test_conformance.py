"""One suite for every plugin. It finds them by itself: a new file joins without being listed here."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import conformance
import numpy as np
import pins
import pytest
from conformance import content, digest, example, published

from leakboard.claims import PrivacyClaim
from leakboard.errors import RequestError
from leakboard.interfaces import Attack, Dataset, FittedVictim, Publication, Victim
from leakboard.suite.options import as_dict, describe
from leakboard.suite.registry import KINDS, Registry
from leakboard.threats.threat import Threat

CHECKOUT = Path(__file__).resolve().parent.parent
LISTINGS = {kind: Registry().listings(kind) for kind in KINDS}
LIBRARIES = ["os.putenv b'KMP_DUPLICATE_LIB_OK'"]
"""What scikit-learn does when it is imported."""


def plugins(*kinds):
    return pytest.mark.parametrize(
        ("kind", "name"),
        [
            pytest.param(kind, item.name, id=f"{kind}/{Path(item.origin).name}")
            for kind in kinds
            for item in LISTINGS[kind]
        ],
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return where the files that examples need are written."""
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="session")
def surroundings():
    """Return an environment without network whose published files are the local ones, if any."""
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
def answers(surroundings, tmp_path_factory):
    """Return digest and pins of what every plugin makes of its example, in another process."""
    folder = tmp_path_factory.mktemp("elsewhere")
    return ask("answers", surroundings, folder, str(folder / "examples"))[0]


@pytest.fixture(scope="session")
def elsewhere(answers):
    """Return the digest of every plugin's example."""
    return {name: digest for name, (digest, _) in answers.items()}


@pytest.fixture(scope="session")
def imported(surroundings, tmp_path_factory):
    """Return what importing each plugin did, and the files it left."""
    return ask("imports", surroundings, tmp_path_factory.mktemp("imports"))


@pytest.fixture(scope="session")
def sides(folder):
    return conformance.Sides(folder)


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

    @plugins(*KINDS)
    def test_is_of_its_kind_and_gives_an_example_of_itself(self, kind, name, folder):
        usable(kind, name)
        cls = Registry().load(kind, name)
        assert issubclass(cls, {"datasets": Dataset, "victims": Victim, "attacks": Attack}[kind])
        first, again = example(kind, name, folder), example(kind, name, folder)
        assert type(first) is cls
        assert as_dict(first) == as_dict(again)
        if kind != "datasets":  # those whose file is not here are skipped below
            assert first.fingerprint() == again.fingerprint()

    @plugins("victims")
    def test_a_victim_says_what_it_publishes(self, kind, name):
        usable(kind, name)
        published = Registry().load(kind, name).publishes
        assert published
        assert set(published) <= set(get_args(Publication))

    @plugins("attacks")
    def test_an_attack_says_what_it_threatens(self, kind, name):
        usable(kind, name)
        threat = Registry().load(kind, name).threat
        assert isinstance(threat, Threat)
        assert threat.name
        assert threat.needs in get_args(Publication)
        assert threat.revision >= 1


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
    def test_keeps_the_contract(self, kind, name, folder, elsewhere):
        usable(kind, name)
        dataset = example(kind, name, folder)
        try:
            fingerprint, corpus = dataset.fingerprint(), dataset.load()
        except RequestError as error:
            if not any(reason in str(error) for reason in ("cannot be fetched", "nltk.downloader")):
                raise
            pytest.skip(f"its public file, or a model that it needs, is not here: {error}")
        assert fingerprint == example(kind, name, folder).fingerprint()
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
    def test_keeps_the_contract(self, kind, name, folder, elsewhere):
        usable(kind, name)
        victim = example(kind, name, folder)
        corpus = victim.example_corpus() or conformance.corpus()
        before = digest(content(corpus))
        assert victim.why_not_applicable(corpus) == ""
        fitted = fitted_on(corpus, victim)
        assert isinstance(fitted, FittedVictim)
        first = published(victim, fitted, corpus)
        texts, classes = corpus.texts("test"), len(corpus.values("label"))
        if "documents" in victim.publishes:
            vectors = fitted.publish_documents(texts, np.random.default_rng(0))
            assert vectors.shape == (len(texts), vectors.shape[1])
            assert vectors.dtype == np.float32
            assert np.isfinite(vectors).all()
        if "documents" in victim.publishes and corpus.has_labels:
            predicted = fitted.predict(vectors)
            if predicted is not None:  # else the engine classifies
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
        shares = vars(fitted.coverage(texts)).values()
        assert all(0 <= share <= 1 for share in shares if share is not None)
        assert digest(published(victim, fitted, corpus)) == digest(first)
        assert digest(content(corpus)) == before
        assert elsewhere[f"{kind}/{name}"] == digest(first)

    @plugins("victims")
    def test_is_saved_and_loaded_without_pickle(self, kind, name, folder, tmp_path):
        usable(kind, name)
        victim = example(kind, name, folder)
        corpus = victim.example_corpus() or conformance.corpus()
        fitted = fitted_on(corpus, victim)
        fitted.save(tmp_path)
        suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
        assert suffixes <= {".safetensors", ".npy", ".npz", ".json", ".txt"}
        loaded = example(kind, name, folder).load(tmp_path)
        first, again = (published(victim, f, corpus) for f in (fitted, loaded))
        assert digest(first) == digest(again)
        assert loaded.claim == fitted.claim

    @plugins("victims")
    def test_its_recipes_are_recipes_that_lead_no_further(self, kind, name, folder):
        usable(kind, name)
        victim = example(kind, name, folder)
        trained, unprotected = victim.training_config(), victim.non_private()
        assert type(trained) is type(victim)
        assert trained.training_config() == trained
        assert isinstance(unprotected, Victim)
        assert unprotected.non_private() == unprotected


class TestAttacks:
    """What an attack promises, whatever its threat."""

    @plugins("attacks")
    def test_keeps_the_contract(self, kind, name, folder, sides, elsewhere):
        usable(kind, name)
        attack = example(kind, name, folder)
        there = sides(attack)
        watched, result = conformance.attacked(attack, there)
        assert watched.calls, "it was never asked"
        for inputs, answer in watched.calls:
            floats = [array for array in conformance.arrays(answer) if array.dtype.kind == "f"]
            assert all(np.isfinite(array).all() for array in floats)
            if isinstance(inputs[0], np.ndarray) and inputs[0].dtype == np.float32:
                assert {array.dtype for array in floats} <= {np.dtype(np.float32)}
            for mapping in conformance.mappings(answer):
                assert set(mapping) == set(result.secrets)
        events = [array for _, answer in watched.calls for array in conformance.arrays(answer) if array.dtype == bool]
        assert not events or 0 < np.mean(np.concatenate(events)) < 1, "an event holds always or never"
        made = [conformance.plain(watched.learned), [answer for _, answer in watched.calls], result]
        assert digest(conformance.answers(example(kind, name, folder), there)) == digest(made)
        assert elsewhere[f"{kind}/{name}"] == digest(made)

    @plugins("attacks")
    def test_is_scored(self, kind, name, folder, sides):
        usable(kind, name)
        attack = example(kind, name, folder)
        _, result = conformance.attacked(attack, sides(attack))
        assert result.secrets
        assert result.attack_metric
        assert result.test_size > 0
        found = {metric.name: metric.value for metric in result.metrics if not metric.variable}
        if result.audited is None:
            assert 0 <= found["attack_score"] <= 1
            assert 0 <= found["empirical_privacy"] <= found["privacy_best_constant"] <= 1
            return
        assert 0 <= found["attack_score"] < np.inf
        counts = [("canary_right", "canary_guesses", "canaries"), ("false_positives", "true_positives")]
        (names,) = [names for names in counts if found.keys() >= set(names)]
        assert sorted(found[name] for name in names) == [found[name] for name in names]
        assert found[names[0]] >= 0
