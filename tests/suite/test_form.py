"""What a plugin's class lacks is told when a suite is read, with the nearest name and the line."""

from pathlib import Path

import pytest

from leakboard.suite.form import complaint, line_of
from leakboard.suite.registry import KINDS, Registry
from leakboard.suite.suites import load_suite

TINY = Path(__file__).resolve().parents[1] / "tiny"
FIT = "    def fit("
CASES = {
    "a misspelled publication": ("hashed", FIT, '    publishes = ("document",)\n\n' + FIT, "did you mean 'documents'?"),
    "a text for a tuple": (
        "hashed",
        FIT,
        '    publishes = "words"\n\n' + FIT,
        "publishes = 'words': allowed is a tuple",
    ),
    "nothing published": ("hashed", FIT, "    publishes = ()\n\n" + FIT, "publishes = (): allowed is a tuple"),
    "a publication without its member": (
        "hashed",
        FIT,
        '    publishes = ("documents", "words")\n\n' + FIT,
        "FittedHashed does not define publish_words, but publishes = ('documents', 'words')",
    ),
    "a misspelled member": (
        "hashed",
        "    def publish_documents(",
        "    def publish_document(",
        "does not define publish_documents, but publishes = ('documents',); did you mean 'publish_document'?",
    ),
    "threads that are none": (
        "hashed",
        FIT,
        "    threads = 0\n\n" + FIT,
        "threads = 0: allowed is a whole number from 1",
    ),
    "a text for yes": (
        "ridge",
        FIT,
        '    uses_gpu = "yes"\n\n' + FIT,
        "uses_gpu = 'yes': allowed is True, False or None",
    ),
    "no fit": ("ridge", FIT, "    def train(", "does not define fit, which every attack has"),
    "no base class": ("hashed", "(Victim):", ":", "Hashed does not derive from Victim"),
    "another base class": ("ridge", "(SecretsAttack)", "(Attack)", "Ridge has no threat"),
    "a threat that is none": ("ridge", FIT, "    threat = int\n\n" + FIT, "a Threat is expected, not its class"),
    "no load": (
        "letters",
        "    def load(",
        "    def loads(",
        "does not define load, which every dataset has; did you mean",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_missing_is_told_when_the_suite_is_read(case, tmp_path):
    source, old, new, reason = CASES[case]
    text = (TINY / f"{source}.py").read_text()
    assert text.count(old) == 1
    head = "from leakboard.suite"
    changed = text.replace(old, new).replace(head, f"from leakboard.interfaces import Attack\n{head}", 1)
    path = tmp_path / f"{source}.py"
    path.write_text(changed)
    names = {"letters": "datasets", "hashed": "victims", "ridge": "attacks"}
    suite = tmp_path / "suite.yaml"
    suite.write_text("".join(f"{kind}: [{name}]\n" for name, kind in names.items()))
    files = [path if path.stem == name else TINY / f"{name}.py" for name in names]
    loaded = load_suite(str(suite), Registry(files))
    choices = {"letters": loaded.sources[0].corpus, "hashed": loaded.victims[0], "ridge": loaded.attacks[0]}
    assert reason in choices[source].problem
    assert f"({source}.py:" in choices[source].problem
    assert not any(choice.problem for name, choice in choices.items() if name != source)


def test_every_plugin_that_can_be_loaded_is_whole():
    registry, seen = Registry(), 0
    for kind in KINDS:
        for listing in registry.listings(kind):
            if not listing.problem:
                assert complaint(registry.load(kind, listing.name), kind) == ""
                seen += 1
    assert seen > 30


def test_a_line_is_that_of_the_class_or_function(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text((TINY / "hashed.py").read_text())
    cls = Registry([path]).load_whole("victims", "mine")
    lines = path.read_text().splitlines()
    assert lines[int(line_of(cls).partition(":")[2]) - 1].startswith("@victim")
    assert "def fit" in lines[int(line_of(cls.fit).partition(":")[2]) - 1]
