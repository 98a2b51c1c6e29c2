"""Test what attackers see in every threat: of test only its publications, in random order."""

import dataclasses

import numpy as np
import pytest
from answers import answering

from leakboard.data.corpora import load_corpus, save_corpus
from leakboard.interfaces import Corpus, Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.randomness import derived_seed
from leakboard.threats.canaries import Canaries, CanaryAttack
from leakboard.threats.membership import MembershipAttack
from leakboard.threats.releases import Distinguisher, ReleaseAudit
from leakboard.threats.secrets import SecretsAttack
from leakboard.threats.texts import TextGuesses, TextsAttack
from leakboard.threats.threat import attacker_corpus
from leakboard.threats.words import WordGuesses, WordsAttack


def no_words(vectors):
    return WordGuesses(["x"], np.full((len(vectors), 5), -1), np.zeros((len(vectors), 5), np.float32))


def canaries(view):
    return Canaries([Texts([f"{word} {word}"]) for word in view.words[:10]], lambda table: np.arange(10.0), 1e-6)


def distinguisher(view):
    size = view.mechanism.dimension
    return Distinguisher(np.zeros(size), np.ones(size), lambda rows: rows[:, 0] > 0.5, 200)


def spies():
    """Return an attack of every threat with a simple answer."""
    return {
        "secrets": answering(SecretsAttack, lambda shown: {"colour": np.zeros((len(shown), 2), np.float32)}),
        "texts": answering(TextsAttack, lambda shown: TextGuesses(["x"] * len(shown))),
        "words": answering(WordsAttack, no_words),
        "membership": answering(MembershipAttack, lambda table: np.arange(40.0), candidates=40),
        "canaries": answering(CanaryAttack, prepared=canaries),
        "releases": answering(ReleaseAudit, prepared=distinguisher),
    }


THREATS = list(spies())


@pytest.fixture(scope="module")
def seen(plain, private):
    """Return the attack of each threat after its evaluation, with its view, its seed and what it was shown."""
    attacks = spies()
    for name, attack in attacks.items():
        evaluate_attack(attack, private if name == "releases" else plain)
    return attacks


@pytest.mark.parametrize("threat", THREATS)
def test_every_attack_gets_the_seed_of_its_cell(threat, seen, plain):
    assert seen[threat].seed == plain.streams.seed_for("attack") == derived_seed(0, "made", "word2vec", "spy", "attack")


def reachable(value, depth=0):
    """Return every text, array and corpus that an attack can reach from a value through public names."""
    if isinstance(value, Corpus):
        return [value, *(text for part in value.splits.values() for text in part["text"][:])]
    if isinstance(value, str | np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [leaf for pair in value.items() for part in pair for leaf in reachable(part, depth + 1)]
    if isinstance(value, list | tuple | set):
        return [leaf for part in value for leaf in reachable(part, depth + 1)]
    if depth > 6 or value is None or isinstance(value, bool | int | float | type) or callable(value):
        return []
    names = {entry.name for entry in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set(vars(value))
    return [leaf for name in names if not name.startswith("_") for leaf in reachable(getattr(value, name), depth + 1)]


@pytest.mark.parametrize("threat", [name for name in THREATS if name != "membership"])
def test_no_view_holds_a_text_or_a_word_of_test(threat, seen):
    texts = [text for text in reachable(seen[threat].view) if isinstance(text, str)]
    marks = {word for text in texts for word in text.split() if word.startswith("mark")}
    assert not marks & {f"mark{row}" for row in range(120, 160)}


def test_the_search_for_test_texts_finds_one_in_a_leaky_view(corpus, seen):
    view = dataclasses.replace(seen["words"].view, auxiliary=corpus)
    assert any("mark150" in text for text in reachable(view) if isinstance(text, str))


@pytest.mark.parametrize("threat", THREATS)
def test_no_view_holds_the_test_split_or_a_posterior(threat, seen):
    corpora = [value for value in reachable(seen[threat].view) if isinstance(value, Corpus)]
    for corpus in corpora:
        assert set(corpus.splits) == {"train", "dev"}
        columns = {name for part in corpus.splits.values() for name in part.column_names}
        assert "posterior:colour" not in columns
        assert "text" in columns
    assert len(corpora) == (threat not in ("secrets", "texts"))


def test_candidates_may_be_test_texts_and_the_attackers_texts_hold_no_candidate(seen):
    view = seen["membership"].view
    candidates = {text for unit in view.candidates for text in unit}
    assert any("onlytest" in text for text in candidates)
    assert any("onlytrain" in text for text in candidates)
    attackers = {text for part in view.auxiliary.splits.values() for text in part["text"][:]}
    assert attackers
    assert not attackers & candidates
    assert not any("onlytest" in text for text in attackers)


@pytest.mark.parametrize(("threat", "unmoved"), [("secrets", 0.2), ("texts", 0.2), ("words", 0.3)])
def test_vectors_are_shown_in_random_order(threat, unmoved, seen, plain):
    published = plain.published.words.vectors if threat == "words" else plain.published.documents["test"]
    shown = seen[threat].shown
    assert shown.shape == published.shape
    assert np.mean((shown == published).all(1)) < unmoved
    assert np.array_equal(np.unique(shown, axis=0), np.unique(published, axis=0))


@pytest.mark.parametrize("threat", ["secrets", "texts", "words", "membership"])
def test_an_attack_that_overwrites_its_view_changes_no_publication(threat, plain):
    before = (plain.published.documents["test"].copy(), plain.published.words.vectors.copy())
    attack = spies()[threat]
    evaluate_attack(attack, plain)
    shown = attack.shown.vectors if threat == "membership" else attack.shown
    shown[:] = 7.0
    for known in (getattr(attack.view, "train", None), getattr(attack.view, "dev", None)):
        if known is not None:
            known.vectors[:] = 7.0
    assert np.array_equal(plain.published.documents["test"], before[0])
    assert np.array_equal(plain.published.words.vectors, before[1])
    assert not (plain.published.documents["train"] == 7.0).all()


def test_an_attackers_own_texts_name_no_files(plain, tmp_path):
    """Files of the attacker's corpus lie next to those of its test split."""
    save_corpus(plain.corpus, tmp_path)
    side = dataclasses.replace(plain, auxiliary=load_corpus(tmp_path))
    assert side.auxiliary.splits["train"].cache_files  # so that the test can fail
    own = attacker_corpus(side)
    assert set(own.splits) == {"train", "dev"}
    assert not any(part.cache_files for part in own.splits.values())
    assert own.texts("train") == side.auxiliary.texts("train")
