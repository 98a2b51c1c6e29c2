"""What attackers see: for every threat, nothing of test but its publications, in an order that tells nothing."""

import dataclasses

import numpy as np
import pytest

from leakboard.interfaces import Corpus, Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.randomness import derived_seed
from leakboard.threats.canaries import Canaries, CanaryAttack
from leakboard.threats.membership import MembershipAttack
from leakboard.threats.releases import Distinguisher, ReleaseAudit
from leakboard.threats.secrets import SecretsAttack
from leakboard.threats.texts import TextGuesses, TextsAttack
from leakboard.threats.words import WordGuesses, WordsAttack


class Seen:
    """What an attack was shown: its view, and what it was to answer about."""

    view = None
    shown = None
    seed = None


def spies():
    """Return an attack of every threat that keeps what it sees, and answers as simply as can be."""

    def by(cls):
        seen = Seen()

        class Spy(cls):
            def fit(self, view, seed):
                seen.view, seen.seed = view, seed
                return self.answer(view)

        return Spy, seen

    secrets, secrets_seen = by(SecretsAttack)
    texts, texts_seen = by(TextsAttack)
    words, words_seen = by(WordsAttack)
    members, members_seen = by(MembershipAttack)
    canaries, canaries_seen = by(CanaryAttack)
    releases, releases_seen = by(ReleaseAudit)

    def keep(seen, shown):
        seen.shown = shown
        return shown

    def score(view, vectors):
        return np.arange(len(view.candidates), dtype=float)

    secrets.answer = lambda self, view: (
        lambda vectors: {
            s.name: np.zeros((len(keep(secrets_seen, vectors)), len(s.values)), np.float32) for s in view.secrets
        }
    )
    texts.answer = lambda self, view: lambda vectors: TextGuesses(["x"] * len(keep(texts_seen, vectors)))
    words.answer = lambda self, view: (
        lambda vectors: WordGuesses(
            ["x"], np.zeros((len(keep(words_seen, vectors)), 5), np.int64) - 1, np.zeros((len(vectors), 5), np.float32)
        )
    )
    members.answer = lambda self, view: lambda table: score(view, keep(members_seen, table.vectors))
    canaries.answer = lambda self, view: Canaries(
        [Texts([f"{word} {word}"]) for word in view.words[:10]], lambda table: np.arange(10.0), 1e-6
    )
    releases.answer = lambda self, view: Distinguisher(
        np.zeros(view.mechanism.dimension), np.ones(view.mechanism.dimension), lambda rows: rows[:, 0] > 0.5, 200
    )
    return {
        "secrets": (secrets(), secrets_seen),
        "texts": (texts(), texts_seen),
        "words": (words(), words_seen),
        "membership": (members(), members_seen),
        "canaries": (canaries(), canaries_seen),
        "releases": (releases(), releases_seen),
    }


THREATS = list(spies())


@pytest.fixture(scope="module")
def seen(plain, private):
    """Return what each spy saw."""
    found = {}
    for name, (attack, kept) in spies().items():
        evaluate_attack(attack, private if name == "releases" else plain)
        found[name] = kept
    return found


@pytest.mark.parametrize("threat", THREATS)
def test_every_attack_gets_its_cells_seed(threat, seen, plain):
    assert seen[threat].seed == plain.streams.seed_for("attack") == derived_seed(0, "made", "word2vec", "spy", "attack")


def reachable(value, depth=0):
    """Return every text, array and corpus that an attack can reach from a value, private names left out."""
    if isinstance(value, Corpus):
        return [value, *(text for part in value.splits.values() for text in part["text"][:])]
    if isinstance(value, str | np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [found for pair in value.items() for part in pair for found in reachable(part, depth + 1)]
    if isinstance(value, list | tuple | set):
        return [found for part in value for found in reachable(part, depth + 1)]
    if depth > 6 or value is None or isinstance(value, bool | int | float | type) or callable(value):
        return []
    names = {entry.name for entry in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set(vars(value))
    return [found for name in names if not name.startswith("_") for found in reachable(getattr(value, name), depth + 1)]


@pytest.mark.parametrize("threat", [name for name in THREATS if name != "membership"])
def test_no_view_holds_a_text_or_a_word_of_test(threat, seen):
    texts = [text for text in reachable(seen[threat].view) if isinstance(text, str)]
    marks = {word for text in texts for word in text.split() if word.startswith("mark")}
    assert not marks & {f"mark{row}" for row in range(120, 160)}


def test_the_check_of_views_would_find_a_test_text(corpus, seen):
    """The other side: a view with the attacker's corpus whole would be told."""
    view = dataclasses.replace(seen["words"].view, auxiliary=corpus)
    assert any("mark150" in text for text in reachable(view) if isinstance(text, str))


@pytest.mark.parametrize("threat", THREATS)
def test_no_view_holds_the_test_split_or_a_posterior(threat, seen):
    corpora = [value for value in reachable(seen[threat].view) if isinstance(value, Corpus)]
    for found in corpora:
        assert set(found.splits) == {"train", "dev"}
        columns = {name for part in found.splits.values() for name in part.column_names}
        assert "posterior:colour" not in columns
        assert "text" in columns
    assert len(corpora) == (threat not in ("secrets", "texts"))


def test_candidates_alone_may_be_texts_of_test_and_the_attackers_own_texts_hold_none_of_them(seen):
    view = seen["membership"].view
    candidates = {text for unit in view.candidates for text in unit}
    assert any("onlytest" in text for text in candidates)
    assert any("onlytrain" in text for text in candidates)
    own = {text for part in view.auxiliary.splits.values() for text in part["text"][:]}
    assert own
    assert not own & candidates
    assert not any("onlytest" in text for text in own)


@pytest.mark.parametrize("threat", ["secrets", "texts"])
def test_documents_come_in_an_order_that_tells_nothing(threat, seen, plain):
    published, shown = plain.published.documents["test"], seen[threat].shown
    assert shown.shape == published.shape
    assert not np.array_equal(shown, published)
    assert np.mean((shown == published).all(1)) < 0.2
    assert np.array_equal(np.unique(shown, axis=0), np.unique(published, axis=0))


def test_words_come_without_names_in_an_order_that_tells_nothing(seen, plain):
    table, shown = plain.published.words.vectors, seen["words"].shown
    assert shown.shape == table.shape
    assert np.mean((shown == table).all(1)) < 0.3
    assert np.array_equal(np.unique(shown, axis=0), np.unique(table, axis=0))


@pytest.mark.parametrize("threat", ["secrets", "texts", "words", "membership"])
def test_what_is_shown_is_a_copy(threat, plain):
    """An attack that writes into what it is shown changes nothing of what is published."""
    before = (plain.published.documents["test"].copy(), plain.published.words.vectors.copy())
    attack, kept = spies()[threat]
    evaluate_attack(attack, plain)
    kept.shown[:] = 7.0
    for known in (getattr(kept.view, "train", None), getattr(kept.view, "dev", None)):
        if known is not None:
            known.vectors[:] = 7.0
    assert np.array_equal(plain.published.documents["test"], before[0])
    assert np.array_equal(plain.published.words.vectors, before[1])
    assert not (plain.published.documents["train"] == 7.0).all()
