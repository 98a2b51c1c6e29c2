"""A plugin's class that lacks a part is refused when the suite is read, with the nearest name and the line."""

from pathlib import Path

import pytest

from leakboard.suite.form import complaint, line_of
from leakboard.suite.registry import FOLDERS, Registry
from leakboard.suite.suites import load_suite

TINY = Path(__file__).resolve().parents[1] / "tiny"
WHOLE = {"datasets": "letters", "victims": "hashed", "attacks": "ridge"}
START = '''"""A plugin that lacks a part."""

from leakboard.interfaces import Attack, Dataset, FittedVictim, Victim
from leakboard.suite.options import attack, dataset, victim
from leakboard.threats.secrets import SecretsAttack


class Fitted(FittedVictim):
    def publish_documents(self, texts, rng): ...


class Misspelled(FittedVictim):
    def publish_document(self, texts, rng): ...

'''
"""The file of every plugin below starts with these lines."""


def victim(*lines, base="(Victim)", fitted="Fitted"):
    """Return the kind and the code of a victim with some lines in its class."""
    return "victims", [f"@victim\nclass Mine{base}:", *lines, f"def fit(self, corpus, seed) -> {fitted}: ..."]


def attack(*lines, base="(SecretsAttack)", fit="fit"):
    return "attacks", [f"@attack\nclass Mine{base}:", *lines, f"def {fit}(self, view, seed): ..."]


def dataset(load):
    return "datasets", ["@dataset\nclass Mine(Dataset):", f"def {load}(self): ...", "def fingerprint(self): ..."]


CASES = {
    "a misspelled publication": (victim('publishes = ("document",)'), "did you mean 'documents'?"),
    "a text for a tuple": (victim('publishes = "words"'), "publishes = 'words': allowed is a tuple"),
    "nothing published": (victim("publishes = ()"), "publishes = (): allowed is a tuple"),
    "a publication without its member": (
        victim('publishes = ("documents", "words")'),
        "Fitted does not define publish_words, but publishes = ('documents', 'words')",
    ),
    "a misspelled member": (
        victim(fitted="Misspelled"),
        "does not define publish_documents, but publishes = ('documents',); did you mean 'publish_document'?",
    ),
    "threads that are none": (victim("threads = 0"), "threads = 0: allowed is a whole number from 1"),
    "a text for yes": (attack('uses_gpu = "yes"'), "uses_gpu = 'yes': allowed is True, False or None"),
    "no fit": (attack(fit="train"), "does not define fit, which every attack has"),
    "no base class": (victim(base=""), "Mine does not derive from Victim"),
    "another base class": (attack(base="(Attack)"), "Mine has no threat"),
    "a threat that is none": (attack("threat = int"), "a Threat is expected, not its class"),
    "no load": (dataset("loads"), "does not define load, which every dataset has; did you mean"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_missing_part_is_reported_when_the_suite_is_read(case, tmp_path):
    (kind, (head, *body)), reason = CASES[case]
    path = tmp_path / "mine.py"
    path.write_text("\n".join([START, head, *(f"    {line}" for line in body), ""]))
    names = WHOLE | {kind: "mine"}
    suite = tmp_path / "suite.yaml"
    suite.write_text("".join(f"{each}: [{name}]\n" for each, name in names.items()))
    files = [path if name == "mine" else TINY / f"{name}.py" for name in names.values()]
    loaded = load_suite(str(suite), Registry(files))
    choices = {"datasets": loaded.sources[0].corpus, "victims": loaded.victims[0], "attacks": loaded.attacks[0]}
    assert reason in choices[kind].problem
    assert "(mine.py:" in choices[kind].problem
    assert not any(choice.problem for each, choice in choices.items() if each != kind)


def test_every_plugin_that_can_be_loaded_is_whole():
    registry, seen = Registry(), 0
    for kind in FOLDERS:
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
