"""The other side of the conformance suite: a plugin that breaks the contract fails, with the reason and its line."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from leakboard.conformance.expect import Broken
from leakboard.conformance.promises import examine
from leakboard.conformance.subjects import Group
from leakboard.conformance.suite import outcomes, promises_of
from leakboard.conformance.watched import Sides, attacked
from leakboard.suite.registry import Registry
from leakboard.threats.secrets import SecretsAttack


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    return Sides(Registry(), tmp_path_factory.mktemp("examples"))


class Guesses(SecretsAttack):
    """An attack on secrets whose answer is given."""

    def __init__(self, guess):
        self.guess = guess

    def fit(self, view, seed):
        return lambda vectors: {secret.name: self.guess(view, vectors, len(secret.values)) for secret in view.secrets}


def zeros(view, vectors, values):
    return np.zeros((len(vectors), values), np.float32)


def drawn(view, vectors, values):
    return np.random.default_rng().random((len(vectors), values)).astype(np.float32)


def writing(view, vectors, values):
    vectors[:] = 0.0
    return zeros(view, vectors, values)


def writing_into_the_view(view, vectors, values):
    view.vectors[:] = 0.0
    return zeros(view, vectors, values)


@pytest.mark.parametrize(
    ("guess", "complaint"),
    [
        (zeros, ""),
        (drawn, "answers the same question otherwise"),
        (writing, "writes into what it is shown"),
        (writing_into_the_view, "writes into its view"),
    ],
)
def test_an_attack_that_breaks_the_contract_would_be_found(guess, complaint, sides):
    attack = Guesses(guess)
    if not complaint:
        watched, _ = attacked(attack, sides(attack))
        assert len(watched.calls) == 1
        return
    with pytest.raises(Broken, match=complaint):
        attacked(attack, sides(attack))


def test_an_attack_without_an_applicable_victim_gets_the_reasons(tmp_path):
    threat = SimpleNamespace(needs="documents", why_not_applicable=lambda *_: "texts are too short")
    sides = Sides(Registry(), tmp_path)
    sides.makers = {name: sides.makers[name] for name in list(sides.makers)[:1]}
    with pytest.raises(LookupError, match=r"no victim .* SimpleNamespace: .*: 'texts are too short'"):
        sides(SimpleNamespace(threat=threat))


VICTIM = '''"""The lengths of a text: how many letters and how many words it has."""

from dataclasses import dataclass

import numpy as np

from leakboard.interfaces import FittedVictim, Victim
from leakboard.suite.options import victim


@victim(revision=1)
class Mine(Victim):
    scale: float = 1.0
    """What lengths are multiplied with."""

    def fit(self, corpus, seed) -> "Lengths":
        return Lengths(self.scale)


@dataclass(frozen=True)
class Lengths(FittedVictim):
    scale: float

    def publish_documents(self, texts, rng):
        lengths = [[len(text), len(text.split())] for text in texts]
        return self.scale * np.array(lengths, np.float32)
'''
BREAKS = {
    "doubles": (("np.float32", "float"), "publishes documents", "are float64, expected float32", "def publish_doc"),
    "NaN": (("self.scale *", "np.float32('nan') *"), "publishes documents", "hold NaN or infinity", "def publish_doc"),
    "noise from elsewhere": (
        ("self.scale *", "np.random.default_rng().random(dtype=np.float32) *"),
        "publishes the same each time",
        "its randomness comes from elsewhere",
        "def publish_documents",
    ),
    "salted hashes": (
        ("len(text), len", "hash(text) % 7, len"),
        "publishes the same each time",
        "another process makes something else of the same seed",
        "def fit",
    ),
    "labels are needed": (
        ("        return Lengths", "        corpus.column('train', 'label')\n        return Lengths"),
        "works without task labels",
        "Column 'label' doesn't exist",
        "corpus.column",
    ),
    "an undocumented option": (('    """What', '    #"""What'), "is documented", "options without a line", "@victim"),
    "a file at import": (
        ("@victim", "open('/tmp/left', 'a').close()\n\n\n@victim"),
        "importing it is free",
        "writes /tmp/left",
        "@victim",
    ),
    "an error": (
        ("lengths = [", "lengths = texts.all() or ["),
        "publishes documents",
        "AttributeError: 'Texts' object has no attribute 'all'",
        "lengths = ",
    ),
    "no fit": (("def fit(", "def fitt("), "is whole", "does not define fit, which every victim has; did", "@victim"),
}


@pytest.fixture
def subject(tmp_path):
    """Return the victim with a part of its source replaced, to be checked."""

    made = []

    def write(old="", new=""):
        path = tmp_path / "mine.py"
        path.write_text(VICTIM.replace(old, new, 1) if old else VICTIM)
        registry = Registry([path])
        group = Group(registry, [registry.find("victims", "mine", "test")], tmp_path / str(len(made)))
        made.append(group)
        return group.subjects["victims/mine"]

    return write


def test_a_victim_that_keeps_its_promises_passes(subject):
    found = list(outcomes(subject()))
    assert {outcome.status for outcome in found if outcome.reason == ""} == {"passed"}
    assert [outcome.promise.name for outcome in found if outcome.status == "skipped"] == [
        "releases are its mechanisms",
        "publishes words",
    ]


@pytest.mark.parametrize("case", BREAKS)
def test_a_broken_promise_names_reason_and_line(case, subject):
    replacement, name, reason, line = BREAKS[case]
    broken = subject(*replacement)
    (promise,) = [promise for promise in promises_of("victims") if promise.name == name]
    outcome = examine(promise, broken)
    assert (outcome.status, reason in outcome.reason) == ("failed", True), outcome
    file, _, number = outcome.place.partition(":")
    path = Path(broken.listing.origin)
    assert file == path.name
    assert line in path.read_text().splitlines()[int(number) - 1]


def test_what_rests_on_a_broken_promise_is_skipped(subject):
    first, *others = outcomes(subject("def fit(", "def fitt("))
    assert (first.promise.name, first.status) == ("is whole", "failed")
    assert {(outcome.status, outcome.reason) for outcome in others} == {("skipped", "rests on: is whole")}


def test_a_victim_without_a_revision_is_told_that_it_cannot_be_published(subject):
    (promise,) = [promise for promise in promises_of("victims") if promise.name == "declares a revision"]
    outcome = examine(promise, subject("@victim(revision=1)", "@victim"))
    assert (outcome.status, outcome.reason) == ("passed", "no revision: it may be run, not published")
    assert examine(promise, subject()).reason == ""


def test_what_a_library_does_while_it_is_imported_is_not_the_plugins(subject):
    """scikit-learn sets a variable; the same call in the plugin's own file is the plugin's."""
    (promise,) = [promise for promise in promises_of("victims") if promise.name == "importing it is free"]
    assert examine(promise, subject("import numpy as np", "import sklearn, numpy as np")).status == "passed"
    outcome = examine(promise, subject("import numpy as np", "import os, numpy as np\nos.environ['A'] = 'b'"))
    assert (outcome.status, "os.putenv" in outcome.reason) == ("failed", True)


def test_a_victim_that_cannot_be_imported_names_the_line_that_fails(subject):
    first, *_ = outcomes(subject("import numpy as np", "import numpy as np\n\nlengths = undefined"))
    assert first.status == "failed"
    assert "is broken: NameError: name 'undefined' is not defined (mine.py:7)" in first.reason


def test_an_installed_plugin_is_checked_where_its_package_is(tmp_path, monkeypatch):
    """Its origin is no file's name, and its package need not be LeakBoard's."""
    package = tmp_path / "site" / "lengths"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import os\n")
    (package / "victims.py").write_text(
        VICTIM.replace("np.float32", "float").replace("return self", "return 1.0 * self")
    )
    info = tmp_path / "site" / "lengths-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[leakboard.victims]\nlengths = lengths.victims:Mine\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    registry = Registry()
    group = Group(registry, [registry.find("victims", "lengths", "test")], tmp_path / "files")
    found = {outcome.promise.name: outcome for outcome in outcomes(group.subjects["victims/lengths"])}
    failed = [outcome for outcome in found.values() if outcome.status == "failed"]
    assert [(outcome.promise.name, outcome.place) for outcome in failed][:1] == [
        ("publishes documents", "victims.py:24"),
    ]
    assert {found[name].status for name in ("is documented", "importing it is free", "is fitted")} == {"passed"}
    assert found["publishes the same each time"].status == "passed"  # the other process found the package too
