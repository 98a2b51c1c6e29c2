"""The conformance suite itself: plugins that keep the contract pass, and broken ones fail with reason and line."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from marks import with_slow

from leakboard.column import Column
from leakboard.conformance.of_attacks import _expect_all_metrics
from leakboard.conformance.promises import Broken
from leakboard.conformance.subjects import Group
from leakboard.conformance.suite import examine, outcomes, promises_of
from leakboard.conformance.watched import VictimSides, run_watched
from leakboard.metrics.measures import Metric
from leakboard.suite.registry import Registry
from leakboard.threats.secrets import AttributesThreat, SecretsAttack
from leakboard.threats.threat import AttackResult


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    return VictimSides(Registry(), tmp_path_factory.mktemp("examples"))


class Guesses(SecretsAttack):
    """An attack on secrets that gives every value the score 0."""

    def fit(self, view, seed):
        return lambda vectors: {secret.name: self.scores(view, vectors, secret) for secret in view.secrets}

    def scores(self, view, vectors, secret):
        return np.zeros((len(vectors), len(secret.values)), np.float32)


class Drawing(Guesses):
    def scores(self, view, vectors, secret):
        return super().scores(view, vectors, secret) + np.random.default_rng().random(dtype=np.float32)


class WritingIntoVectors(Guesses):
    def scores(self, view, vectors, secret):
        vectors[:] = 0.0
        return super().scores(view, vectors, secret)


class WritingIntoTheView(Guesses):
    def scores(self, view, vectors, secret):
        view.vectors[:] = 0.0
        return super().scores(view, vectors, secret)


def test_an_attack_that_keeps_the_contract_is_recorded(sides):
    watched, _ = run_watched(Guesses(), sides(Guesses()))
    assert len(watched.calls) == 1


@pytest.mark.parametrize(
    ("attack", "complaint"),
    [
        (Drawing(), "gives another answer to the same question"),
        (WritingIntoVectors(), "writes into its inputs"),
        (WritingIntoTheView(), "writes into its view"),
    ],
)
def test_an_attack_that_breaks_the_contract_is_found(attack, complaint, sides):
    with pytest.raises(Broken, match=complaint):
        run_watched(attack, sides(attack))


def test_an_attack_without_an_applicable_victim_gets_the_reasons(tmp_path):
    threat = SimpleNamespace(needs="documents", why_not_applicable=lambda *_: "texts are too short")
    sides = VictimSides(Registry(), tmp_path)
    sides.makers = {name: sides.makers[name] for name in list(sides.makers)[:1]}
    with pytest.raises(LookupError, match=r"no victim .* SimpleNamespace: .*: 'texts are too short'"):
        sides(SimpleNamespace(threat=threat))


LENGTHS = '''"""Publish the lengths of a text: how many letters and how many words it has."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakboard.interfaces import FittedVictim, Victim
from leakboard.suite.options import victim


@dataclass(frozen=True)
class FittedLengths(FittedVictim):
    scale: float

    def publish_documents(self, texts, rng):
        lengths = [[len(text), len(text.split())] for text in texts]
        return self.scale * np.array(lengths, np.float32)


class Lengths(Victim):
    fitted_class: ClassVar[type] = FittedLengths

    def fit(self, corpus, seed) -> FittedLengths:
        return self.fitted_class(1.0)
'''
"""The file of every victim below starts with this base class."""
KEEPS_ALL = '''
@victim(revision=1)
class Mine(Lengths):
    scale: float = 1.0
    """Factor of the lengths."""

    def fit(self, corpus, seed) -> FittedLengths:
        return FittedLengths(self.scale)
'''


HAS_OTHER_EXACT_WORDS = """
from leakboard.interfaces import PublishedWords


class FittedMine(FittedLengths):
    def publish_words(self, texts, rng):
        return PublishedWords(["one", "two"], rng.random((2, 2), np.float32))

    def exact_words(self, texts):
        return PublishedWords(["two", "one"], np.ones((2, 2), np.float32))


@victim(revision=1)
class Mine(Lengths):
    publishes = ("documents", "words")
    fitted_class = FittedMine
"""


def publishes(vectors):
    """Return the code of a victim that publishes an expression of the lengths."""
    return f"""
class FittedMine(FittedLengths):
    def publish_documents(self, texts, rng):
        lengths = super().publish_documents(texts, rng)
        return {vectors}


@victim(revision=1)
class Mine(Lengths):
    fitted_class = FittedMine
"""


NEEDS_LABELS = """
@victim(revision=1)
class Mine(Lengths):
    def fit(self, corpus, seed):
        corpus.column("train", "label")
        return super().fit(corpus, seed)
"""
DROPS_WHAT_IT_TRAINS_WITH = """
import dataclasses


@victim(revision=1)
class Mine(Lengths):
    scale: float = 1.0
    '''Factor of the lengths.'''

    def training_config(self):
        return dataclasses.replace(self, scale=1.0)

    def fit(self, corpus, seed) -> FittedLengths:
        return FittedLengths(self.scale)
"""
HAS_NO_FIT = """
@victim(revision=1)
class Mine(Victim):
    def fitt(self, corpus, seed):
        return FittedLengths(1.0)
"""
KEEPS_A_FIT = """
KEPT = []


@victim(revision=1)
class Mine(Lengths):
    def fit(self, corpus, seed) -> FittedLengths:
        if not KEPT:
            KEPT.append(FittedLengths(1.0 + seed))
        return KEPT[0]
"""
DROPS_WORDS = """
@dataclass(frozen=True)
class FittedFirstWords(FittedLengths):
    def publish_texts(self, texts, rng):
        return [text.split()[0] for text in texts]


@victim(revision=1)
class Mine(Lengths):
    publishes = ("documents", "texts")
    fitted_class = FittedFirstWords
"""
KEEPS_WORDS = """
from leakboard.data.tokens import words


@dataclass(frozen=True)
class FittedOtherWords(FittedLengths):
    @property
    def text_channel(self):
        import leakboard.privacy.channels.randomised_response as responses
        from leakboard.privacy.channels.texts import TextChannel
        from leakboard.privacy.channels.words import WordSpace

        space = WordSpace(["unk", "hotel", "inn"], np.eye(3))
        return TextChannel(responses.FittedRandomisedResponse(space, 1.0))

    def publish_texts(self, texts, rng):
        return [" ".join("unk" for word in words(text)) for text in texts]


@victim(revision=1)
class Mine(Lengths):
    publishes = ("documents", "texts")
    fitted_class = FittedOtherWords
"""
DOCUMENTS, REPEATABLE = "publishes documents", "publishes the same each time"
OWN_VECTORS = "gives each text its own vector"
BROKEN = {
    "doubles": (publishes("lengths.astype(float)"), DOCUMENTS, "are float64, expected float32", "def publish_doc"),
    "NaN": (publishes("lengths * np.float32('nan')"), DOCUMENTS, "hold NaN or infinity", "def publish_documents"),
    "an error": (publishes("texts.all()"), DOCUMENTS, "'Texts' object has no attribute 'all'", "return texts.all()"),
    "another source of randomness": (
        publishes("lengths * np.random.default_rng().random(dtype=np.float32)"),
        REPEATABLE,
        "the victim has another source of randomness",
        "def publish_documents",
    ),
    "salted hashes": (
        publishes("np.array([[hash(text) % 7] for text in texts], np.float32)"),
        REPEATABLE,
        "another process, after another fit, gives another result for the same seed",
        "def fit",
    ),
    "the texts are sorted": (
        publishes("super().publish_documents(sorted(texts, key=len), rng)"),
        OWN_VECTORS,
        "the same texts in another order have other vectors: does it restore their order?",
        "def publish_documents",
    ),
    "texts change each other's vectors": (
        publishes("(lengths - lengths.mean(0)) / (lengths.std(0) + 1)"),
        OWN_VECTORS,
        "a text alone has another vector than among others",
        "def publish_documents",
    ),
    "a fit outlives the next": (
        KEEPS_A_FIT,
        REPEATABLE,
        "another process, after another fit, gives another result for the same seed",
        "def fit",
    ),
    "labels are needed": (NEEDS_LABELS, "works without task labels", "Column 'label' doesn't exist", "corpus.column"),
    "a recipe without an option of training": (
        DROPS_WHAT_IT_TRAINS_WITH,
        "learns the same as its training recipe",
        "Mine(scale=2.0) learns something else than its training_config",
        "def training_config",
    ),
    "an undocumented option": (
        "\n@victim(revision=1)\nclass Mine(Lengths):\n    scale: float = 1.0\n",
        "is documented",
        "options without a line",
        "@victim",
    ),
    "a file at import": (
        "open('/tmp/left', 'a').close()\n" + KEEPS_ALL,
        "imports without side effects",
        "writes /tmp/left",
        "@victim",
    ),
    "other exact words": (
        HAS_OTHER_EXACT_WORDS,
        "publishes words",
        "it returns other words than publish_words",
        "    def exact_words(self, texts):",
    ),
    "words are dropped": (
        DROPS_WORDS,
        "publishes texts",
        "has 1 when published",
        "    def publish_texts(self, texts, rng):",
    ),
    "words are not replaced": (
        KEEPS_WORDS,
        "texts come from its channel",
        "its words are not those of its channel: p = ",
        "    def publish_texts(self, texts, rng):",
    ),
    "no fit": (HAS_NO_FIT, "is complete", "does not define fit, which every victim has; did", "@victim"),
}


@pytest.fixture
def subject(tmp_path):
    """Return a function that writes a victim's file and returns the victim, to be checked."""

    def write(code):
        path = tmp_path / "mine.py"
        path.write_text(f"{LENGTHS}\n{code}")
        registry = Registry([path])
        files = tmp_path / str(len(list(tmp_path.iterdir())))
        return Group(registry, [registry.find("victims", "mine", "test")], files).subjects["victims/mine"]

    return write


def checked(name, subject):
    """Return the outcome of the promise of a name."""
    (promise,) = [promise for promise in promises_of("victims") if promise.name == name]
    return examine(promise, subject)


def test_a_victim_that_keeps_its_promises_passes(subject):
    results = list(outcomes(subject(KEEPS_ALL)))
    assert {outcome.status for outcome in results if outcome.reason == ""} == {"passed"}
    assert [outcome.promise.name for outcome in results if outcome.status == "skipped"] == [
        "releases come from its mechanism",
        "publishes words",
        "publishes texts",
        "texts come from its channel",
        "learns the same as its training recipe",
    ]


def test_rewritten_texts_may_have_other_numbers_of_words(subject):
    rewrites = DROPS_WORDS.replace('"texts")', '"rewritten_texts")')
    assert checked("publishes texts", subject(rewrites)).status == "passed"
    loses_texts = rewrites.replace("for text in texts]", "for text in texts[1:]]")
    assert "texts give" in checked("publishes texts", subject(loses_texts)).reason


@pytest.mark.parametrize("case", with_slow(BROKEN, "a file at import", "salted hashes"))
def test_a_broken_promise_names_reason_and_line(case, subject):
    code, name, reason, line = BROKEN[case]
    broken = subject(code)
    outcome = checked(name, broken)
    assert (outcome.status, reason in outcome.reason) == ("failed", True), outcome
    file, _, number = outcome.location.partition(":")
    path = Path(broken.listing.origin)
    assert file == path.name
    assert line in path.read_text().splitlines()[int(number) - 1]


def test_promises_after_a_broken_required_one_are_skipped(subject):
    first, *others = outcomes(subject(HAS_NO_FIT))
    assert (first.promise.name, first.status) == ("is complete", "failed")
    assert {(outcome.status, outcome.reason) for outcome in others} == {("skipped", "requires: is complete")}


def test_a_victim_without_a_revision_gets_the_remark_that_it_cannot_be_published(subject):
    outcome = checked(
        "may be published once it declares a revision", subject("\n@victim\nclass Mine(Lengths):\n    pass\n")
    )
    assert (outcome.status, outcome.reason) == ("passed", "it declares no revision yet")
    assert checked("may be published once it declares a revision", subject(KEEPS_ALL)).reason == ""


@pytest.mark.slow
def test_side_effects_of_a_librarys_import_are_not_the_plugins(subject):
    """scikit-learn sets a variable; the same call in the plugin's own file is the plugin's."""
    assert checked("imports without side effects", subject("import sklearn\n" + KEEPS_ALL)).status == "passed"
    outcome = checked("imports without side effects", subject("import os\nos.environ['A'] = 'b'\n" + KEEPS_ALL))
    assert (outcome.status, "os.putenv" in outcome.reason) == ("failed", True)


def test_a_victim_that_cannot_be_imported_names_the_line_that_fails(subject):
    first, *_ = outcomes(subject("lengths = undefined\n" + KEEPS_ALL))
    assert first.status == "failed"
    line = LENGTHS.count("\n") + 2
    assert f"is broken: NameError: name 'undefined' is not defined (mine.py:{line})" in first.reason


@pytest.mark.slow
def test_an_installed_plugin_is_checked_where_its_package_is(tmp_path, monkeypatch):
    """Its origin is not the name of a file, and its package is not LeakBoard's."""
    package = tmp_path / "site" / "lengths"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import os\n")
    source = LENGTHS + publishes("lengths.astype(float)")
    (package / "victims.py").write_text(source)
    info = tmp_path / "site" / "lengths-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[leakboard.victims]\nlengths = lengths.victims:Mine\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    registry = Registry()
    group = Group(registry, [registry.find("victims", "lengths", "test")], tmp_path / "files")
    results = {outcome.promise.name: outcome for outcome in outcomes(group.subjects["victims/lengths"])}
    *_, line = (i for i, text in enumerate(source.splitlines(), 1) if "def publish_documents" in text)
    first = next(outcome for outcome in results.values() if outcome.status == "failed")
    assert (first.promise.name, first.location) == ("publishes documents", f"victims.py:{line}")
    # the other process finds the package, too: its results are the same
    passed = ("is documented", "imports without side effects", "is fitted", "publishes the same each time")
    assert {results[name].status for name in passed} == {"passed"}


ATTACK = '''"""Guess secrets."""

import sys

import numpy as np

from leakboard.conformance import stand_ins
from leakboard.randomness import Streams
from leakboard.suite.options import attack
from leakboard.threats.secrets import SecretGuesses, SecretsAttack


class Guesses(SecretsAttack):
    def fit(self, view, seed):
        return lambda vectors: {secret.name: self.scores(view, vectors, secret) for secret in view.secrets}

    def right(self, secret, codes):
        return np.eye(len(secret.values), dtype=np.float32)[codes]
'''
HONEST = """
@attack(revision=1)
class Mine(Guesses):
    def scores(self, view, vectors, secret):
        return self.right(secret, (vectors[:, 0] > np.median(vectors[:, 0])).astype(int))
"""
FORESEES_THE_ORDER = """
@attack(revision=1)
class Mine(Guesses):
    def scores(self, view, vectors, secret):
        corpus = stand_ins.corpus()
        streams = Streams(0, corpus.name, "Tabled", "attack", "cell")
        order = streams.stream("shuffle").permutation(len(vectors))
        return self.right(secret, corpus.column("test", secret.name)[order])
"""
READS_THE_SECRETS = """
@attack(revision=1)
class Mine(Guesses):
    def scores(self, view, vectors, secret):
        frame = sys._getframe()
        while "side" not in frame.f_locals:
            frame = frame.f_back
        return self.right(secret, frame.f_locals["side"].corpus.column("test", secret.name))
"""
LEARNS_DEV = """
@attack(revision=1)
class Mine(Guesses):
    def fit(self, view, seed):
        on_dev = {secret.name: self.right(secret, view.dev.values[secret.name]) for secret in view.secrets}
        return lambda vectors: SecretGuesses({s.name: self.scores(view, vectors, s) for s in view.secrets}, "", on_dev)

    def scores(self, view, vectors, secret):
        return np.zeros((len(vectors), len(secret.values)), np.float32)
"""
KNOWS, FORESEES = "does not know the secrets", "does not foresee random draws"
SCORES_DEV = "scores dev before it learns from dev"


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        (HONEST, KNOWS, ""),
        (HONEST, FORESEES, ""),
        (READS_THE_SECRETS, KNOWS, "if the secrets of the test texts are changed, it answers differently"),
        (FORESEES_THE_ORDER, FORESEES, "with other draws it scores"),
        pytest.param(LEARNS_DEV, SCORES_DEV, "shuffled secrets of dev are guessed in 100 %", marks=pytest.mark.slow),
        (LEARNS_DEV.replace("view.dev.values[secret.name]", "view.dev.values[secret.name] * 0"), SCORES_DEV, ""),
    ],
)
def test_an_attack_that_knows_what_is_not_published_is_found(tmp_path, code, name, reason):
    (tmp_path / "mine.py").write_text(f"{ATTACK}\n{code}")
    registry = Registry([tmp_path / "mine.py"])
    group = Group(registry, [registry.find("attacks", "mine", "test")], tmp_path / "files")
    (promise,) = [promise for promise in promises_of("attacks") if promise.name == name]
    outcome = examine(promise, group.subjects["attacks/mine"])
    assert outcome.status == ("failed" if reason else "passed"), outcome
    assert outcome.reason.startswith(reason)


REQUIRED = ("attack_score", "empirical_privacy", "privacy_best_constant")


def result_with(variables, names=REQUIRED):
    """Return a result on two secrets with metrics of the variables."""
    return AttackResult(("age", "gender"), 9, [Metric(name, 0.5, variable) for name in names for variable in variables])


def test_several_secrets_need_metrics_each():
    _expect_all_metrics(AttributesThreat(), result_with(["", "age", "gender"]))
    _expect_all_metrics(AttributesThreat(), result_with(["", "age", "gender"], ("attack_accuracy", *REQUIRED[1:])))
    for variables in ([""], ["", "age"]):
        with pytest.raises(Broken, match=r"several secrets, but no metric 'attack_score' with variable='(age|gender)'"):
            _expect_all_metrics(AttributesThreat(), result_with(variables))
    with pytest.raises(Broken, match="no metric 'attack_score' with variable='age'"):
        _expect_all_metrics(AttributesThreat(), result_with(["", "age", "gender"], ("attack_f1", *REQUIRED[1:])))


def threat_with_column(metric):
    """Return a threat with a column that shows the metric."""

    class Counting(AttributesThreat):
        columns = (Column("m", "M.", ("leaderboard.csv",), metric=metric),)

    return Counting()


def test_the_metric_of_a_threats_column_must_be_returned():
    result = result_with(["", "age", "gender"], (*REQUIRED, "misses"))
    for metric in ("misses", "task_accuracy"):
        _expect_all_metrics(threat_with_column(metric), result)
    with pytest.raises(Broken, match="the metric 'mises', which evaluate does not return; did you mean 'misses'"):
        _expect_all_metrics(threat_with_column("mises"), result)


def test_a_check_of_secrets_is_skipped_for_an_answer_about_none_of_them(tmp_path):
    registry = Registry()
    group = Group(registry, [registry.find("attacks", "bag_of_words", "test")], tmp_path)
    (promise,) = [promise for promise in promises_of("attacks") if promise.name == KNOWS]
    outcome = examine(promise, group.subjects["attacks/bag_of_words"])
    assert (outcome.status, outcome.reason) == ("skipped", "the answer is about none of the corpus's secrets")
