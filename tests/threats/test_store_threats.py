"""Test the threats to vector stores: what a thief is granted, what is counted, and what it can never see."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from leakboard.board.doubts import with_doubts
from leakboard.column import Column
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import FittedVictim, Secret, Texts, Victim
from leakboard.metrics.link_scores import HEADLINE, Links
from leakboard.models.search import nearest
from leakboard.pipeline.publications import fit, publish
from leakboard.randomness import Streams
from leakboard.site.rendering import cell
from leakboard.threats.linking import TOO_FEW_LINKS, LinkingAttack, LinkingThreat, draw_candidates
from leakboard.threats.oracle import Oracle
from leakboard.threats.presence import PresenceAttack, changed
from leakboard.threats.secrets import SecretsAttack
from leakboard.threats.stores import StoreThief, stolen_store
from leakboard.threats.threat import VictimSide

WIDTH = 16


@dataclass(frozen=True)
class FittedHashes(FittedVictim):
    """A random direction for each word, summed; the store turns the vectors by minus one."""

    def unprotected(self, texts):
        words = {word for text in texts for word in text.split()}
        of_word = {word: np.random.default_rng(hash_of(word)).normal(size=WIDTH) for word in words}
        return np.array([sum(of_word[word] for word in text.split()) for text in texts], np.float32)

    def publish_documents(self, texts, rng):
        return -self.unprotected(texts)


def hash_of(word):
    return int.from_bytes(word.encode(), "little")


@dataclass(frozen=True)
class Hashes(Victim):
    def fit(self, corpus, seed) -> FittedHashes:
        return FittedHashes()


@pytest.fixture(scope="module")
def side(make_corpus):
    generator = np.random.default_rng(0)

    def split(name, n):
        texts = [" ".join([f"{name}{i}", *(f"w{k}" for k in generator.integers(30, size=6))]) for i in range(n)]
        return {"text": texts, "label": generator.integers(2, size=n), "colour": generator.integers(2, size=n)}

    splits = {"train": split("train", 260), "dev": split("dev", 40), "test": split("test", 240)}
    corpus = make_corpus(splits, [Secret("colour", ("red", "blue"), "attribute")])
    streams, victim = Streams(0, "made", "hashes", "spy", "cell"), Hashes()
    fitted = fit(victim, corpus, streams)
    published = publish(victim, lambda: fitted, corpus, streams)
    half = corpus.with_rows("train", range(130))
    return VictimSide(corpus, half, victim, lambda: fitted, published, streams)


class Thief(LinkingAttack):
    """Undoes the protection, which it was told, and keeps its view."""

    def __init__(self, pairs=0, candidates=None, is_told=True):
        self.pairs, self.candidates, self.is_told = pairs, candidates, is_told

    def fit(self, view, seed):
        self.view = view
        known = view.oracle.unprotected(view.candidates)

        def link(vectors):
            self.vectors = vectors
            found = nearest(-vectors if self.is_told else vectors, known, 2)
            return Links(found.rows, found.similarity)

        return link


def scores(result):
    return {metric.name: metric.value for metric in result.metrics}


class TestLinking:
    def test_a_thief_who_undoes_the_protection_links_all_and_another_none(self, side):
        result = scores(Thief.threat.evaluate(Thief(), side))
        assert result[HEADLINE] == result["linked_first"] == 1
        result = scores(Thief.threat.evaluate(Thief(is_told=False), side))
        assert result["linked_first"] < 0.05

    def test_the_right_half_of_the_test_texts_are_candidates(self, side):
        rows, truth, candidates = draw_candidates(side, None)
        texts = side.corpus.texts("test")
        assert len(rows) == 240
        for row, right in zip(rows, truth, strict=True):
            assert candidates[right] == texts[row] if right >= 0 else texts[row] not in candidates
        assert (truth < 0).sum() == 120
        assert len(candidates) == 120 + 260 + 40

    def test_the_number_of_candidates_is_limited_and_never_at_the_cost_of_right_ones(self, side):
        assert len(draw_candidates(side, 200)[2]) == 200
        assert len(draw_candidates(side, 5)[2]) == 120

    def test_the_ledger_counts_pairs_texts_and_the_encoder(self, side):
        result = scores(Thief.threat.evaluate(Thief(pairs=20), side))
        assert (result["known_pairs"], result["own_texts"], result["queries"]) == (20, 170, 0)
        assert result["noiseless_queries"] == 420
        assert (result["candidate_texts"], result["stolen_vectors"]) == (420, 260 + 240)

    def test_one_new_text_is_no_test(self, side):
        small = replace(side, corpus=side.corpus.with_rows("test", range(1)))
        with pytest.raises(NotApplicable, match="1 texts of test are in no other split, needed: 2"):
            Thief.threat.evaluate(Thief(), small)

    def test_copies_in_other_case_are_no_targets(self, side):
        """A link to such a copy would count as false, though the vectors are equal."""
        texts = [text.upper() + "!" if i < 40 else text for i, text in enumerate(side.corpus.texts("test"))]
        parts = dict(side.corpus.splits)
        added = [*side.corpus.texts("train")[:220], *side.corpus.texts("test")[:40]]
        parts["train"] = parts["train"].remove_columns("text").add_column("text", added)
        parts["test"] = parts["test"].remove_columns("text").add_column("text", texts)
        corpus = replace(side.corpus, splits=type(side.corpus.splits)(parts))
        rows, truth, _ = draw_candidates(replace(side, corpus=corpus), None)
        assert rows.min() == 40
        assert len(rows) == len(truth) == 200

    def test_known_pairs_may_be_asked_about_though_their_texts_are_in_test_too(self, side):
        copies = [*side.corpus.texts("train")[:220], *side.corpus.texts("test")[:40]]
        parts = dict(side.corpus.splits)
        parts["train"] = parts["train"].remove_columns("text").add_column("text", copies)
        corpus = replace(side.corpus, splits=type(side.corpus.splits)(parts))
        for attack in (AskingReader(), Searcher("vectors", pairs=100)):
            attack.threat.evaluate(attack, replace(side, corpus=corpus))


class TestSentence:
    ROW = {  # noqa: RUF012
        **{"secrets": "text", "attack_score": 0.874, "attack_metric": HEADLINE, "privacy_best_constant": 0.9999},
        **{"attack_advantage": 0.874, "attack_advantage_low": -0.01, "attack_advantage_high": 0.91},
        **{"attack_advantage_p": 0.0, "test_size": 1200, "candidate_texts": 8000, "chosen_on": "dev"},
    }

    def test_links_are_a_share_of_the_stored_vectors(self):
        assert Thief.threat.sentence(self.ROW) == (
            "87 % of the stored vectors were linked to their text among 8,000 candidates at 1 % false links "
            "(0 % to 91 %; 1,200 vectors tried)"
        )
        assert Thief.threat.sentence({**self.ROW, "attack_advantage_p": 0.5}).endswith("tried; this may be chance)")

    def test_first_candidates_are_told_if_vectors_are_too_few_for_1_percent(self):
        row = {**self.ROW, "attack_advantage_low": 0.0, "linked_first": 0.93}
        assert Thief.threat.sentence(row) == (
            "93 % of the stored vectors have their text as first of 8,000 candidates "
            "(too few vectors to tell how many at 1 % false links; 1,200 vectors tried)"
        )
        assert "at 1 % false links (10 % to 91 %" in Thief.threat.sentence({**row, "attack_advantage_low": 0.1})
        assert "may be chance" in Thief.threat.sentence({**row, "attack_advantage_p": 0.5})

    def test_an_attack_that_links_nothing_proves_nothing(self):
        sentence = Thief.threat.sentence({**self.ROW, "attack_score": 0.0, "attack_advantage": 0.0})
        assert "links no more vectors to their texts than chance would (1,200 vectors); this does not" in sentence


class TestStolenStore:
    def test_pairs_are_true_and_the_other_vectors_are_shuffled(self, side):
        store = stolen_store(side, Thief(20))
        fitted = side.fitted()
        assert np.array_equal(store.pairs.vectors, fitted.publish_documents(store.pairs.texts, None))
        assert store.pairs.texts.rows is None
        rows = nearest(store.vectors, side.published.documents["train"], 1).rows[:, 0]
        assert len(rows) == 240
        assert not np.array_equal(rows, np.sort(rows))

    def test_hidden_texts_are_no_pairs_but_their_vectors_are_stored(self, side):
        hidden = side.corpus.texts("train")[:240]
        store = stolen_store(side, Thief(20), hidden)
        assert set(store.pairs.texts) == set(side.corpus.texts("train")[240:])
        assert len(store.vectors) == 240

    def test_more_pairs_than_the_store_has_are_refused(self, side):
        with pytest.raises(NotApplicable, match="pairs: 300 asked for, but only 260 stored texts may be known"):
            stolen_store(side, Thief(300))

    def test_a_victim_without_a_public_encoder_is_no_target(self, side, monkeypatch):
        monkeypatch.setattr(FittedHashes, "unprotected", lambda self, texts: None)
        with pytest.raises(NotApplicable, match="no public encoder"):
            Thief.threat.evaluate(Thief(), side)


def test_texts_that_an_attack_encodes_lose_their_rows(side, monkeypatch):
    """Precomputed vectors are found by row: rows of test would give an attack the test vectors in order."""
    asked = []
    unprotected = FittedHashes.unprotected

    def spy(self, texts):
        asked.append((texts, texts.rows))
        return unprotected(self, texts)

    monkeypatch.setattr(FittedHashes, "unprotected", spy)
    oracle = Oracle(side, side.auxiliary.only("train", "dev"))
    oracle.unprotected(Texts(["new", "texts"], np.array([300, 301])))
    assert [(list(texts), rows) for texts, rows in asked] == [(["new", "texts"], None)]


def test_texts_without_words_cannot_be_told_apart_and_are_refused(side):
    parts = side.corpus.splits.remove_columns("text")
    silent = replace(side, corpus=replace(side.corpus, splits=parts))
    with pytest.raises(NotApplicable, match="the corpus has no texts"):
        Oracle(silent, side.auxiliary.only("train", "dev")).unprotected(Texts(["", ""]))


class Searcher(PresenceAttack):
    """Scores candidates by the nearest vector of a search, or of the stolen store."""

    def __init__(self, access="scores", known_as="exact", pairs=0):
        self.access, self.known_as, self.pairs, self.candidates = access, known_as, pairs, 400

    def fit(self, view, seed):
        self.view = view

        def score(store):
            self.store = store
            if store is None:
                return view.oracle.search(view.candidates, 1)[:, 0]
            return nearest(-view.oracle.unprotected(view.candidates), store.vectors, 1).similarity[:, 0]

        return score


class TestPresence:
    @pytest.mark.parametrize("access", ["scores", "vectors"])
    def test_exact_copies_are_found_and_half_texts_less_surely(self, side, access):
        exact = scores(Searcher.threat.evaluate(Searcher(access), side))
        half = scores(Searcher.threat.evaluate(Searcher(access, "half"), side))
        assert exact["attack_score"] > 0.99
        assert 0.6 < half["attack_score"] < exact["attack_score"]

    def test_a_searcher_sees_no_vector_and_its_queries_count(self, side):
        attack = Searcher()
        result = scores(attack.threat.evaluate(attack, side))
        assert attack.store is None
        assert result["queries"] == len(attack.view.candidates)

    def test_candidates_are_hidden_from_pairs_and_own_texts(self, side):
        attack = Searcher("vectors", pairs=5)
        attack.threat.evaluate(attack, side)
        hidden = set(attack.view.candidates)
        assert hidden.isdisjoint(attack.store.pairs.texts)
        assert hidden.isdisjoint(attack.view.auxiliary.texts("train"))
        assert len(attack.store.pairs.texts) == 5

    def test_the_ledger_counts_candidates_and_stolen_vectors(self, side):
        search, theft = (scores(Searcher.threat.evaluate(Searcher(access), side)) for access in ("scores", "vectors"))
        assert (search["candidate_texts"], "stolen_vectors" in search) == (260, False)
        assert (theft["candidate_texts"], theft["stolen_vectors"]) == (260, 260)

    def test_the_texts_alone_tell_members_of_another_vocabulary_and_not_of_the_same(self, side, make_corpus):
        same = scores(Searcher.threat.evaluate(Searcher(), side))["presence_without_store"]
        assert 0.35 < same < 0.65
        other = replace(side, corpus=side.corpus.with_rows("test", range(240)))
        shifted = [text.replace("w1", "v1") for text in side.corpus.texts("test")]
        parts = dict(side.corpus.splits)
        parts["test"] = parts["test"].remove_columns("text").add_column("text", shifted)
        other = replace(side, corpus=replace(side.corpus, splits=type(side.corpus.splits)(parts)))
        assert scores(Searcher.threat.evaluate(Searcher(), other))["presence_without_store"] > 0.8


def test_changed_texts():
    generator = np.random.default_rng(0)
    text, others = " ".join(f"a{i}" for i in range(20)), ["b b b"]
    assert changed(text, "exact", others, generator) == text
    half = changed(text, "half", others, generator).split()
    assert len(half) == 10
    assert half == sorted(half, key=text.split().index)
    edited = changed(text, "edited", others, generator).split()
    assert [word for word in edited if word == "b"] == ["b"] * 2
    assert len(edited) == 20
    assert changed("one", "edited", others, generator) == "b"
    assert changed("", "half", others, generator) == ""


class Reader(StoreThief, SecretsAttack):
    """Keeps its view, and guesses nothing."""

    pairs = 7

    def fit(self, view, seed):
        self.view = view
        return lambda vectors: {"colour": np.zeros((len(vectors), 2), np.float32)}


class AskingReader(Reader):
    """Encodes the texts of its known pairs."""

    pairs = 200

    def fit(self, view, seed):
        view.oracle.unprotected(view.store.pairs.texts)
        return super().fit(view, seed)


def test_a_thief_of_secrets_learns_from_its_own_texts_alone(side):
    attack = Reader()
    result = scores(attack.threat.evaluate(attack, side))
    view, own = attack.view, side.auxiliary.texts("train")
    assert list(view.train.texts) == list(own)
    assert np.array_equal(view.train.vectors, side.fitted().unprotected(own))
    assert np.array_equal(view.train.values["colour"], side.auxiliary.column("train", "colour"))
    assert len(view.store.pairs.texts) == 7
    assert (result["known_pairs"], result["own_texts"], result["stolen_vectors"]) == (7, 170, 260 + 240)


def test_a_thief_without_the_secret_in_its_own_corpus_has_nothing_to_learn(side):
    other = replace(side, auxiliary=replace(side.auxiliary, secrets=()))
    with pytest.raises(NotApplicable, match="has no secret colour"):
        Reader.threat.evaluate(Reader(), other)


def test_test_texts_may_not_be_sent_to_the_encoder(side):
    class Cheat(Reader):
        def fit(self, view, seed):
            view.oracle.unprotected(Texts(list(side.corpus.texts("test"))))
            return super().fit(view, seed)

    with pytest.raises(RequestError, match="test texts that are not its own"):
        Cheat.threat.evaluate(Cheat(), side)


def test_a_score_that_the_sentence_does_not_claim_is_in_no_table():
    """The interval of the share at 1 % false links contains 0, and the first candidates are right."""
    row = {"dataset": "d", "victim": "v", "attack": "linking", "threat": "linking", "secrets": "text", "status": "ok"}
    row |= {"attack_score": 0.4, "attack_advantage": 0.4, "attack_advantage_low": 0.0, "attack_advantage_high": 1.0}
    row |= {"attack_advantage_p": 0.001, "linked_first": 0.9, "candidate_texts": 500.0, "test_size": 100}
    row |= {HEADLINE: 0.4, "privacy_best_constant": 0.99}
    few, clear = (LinkingThreat.doubt(one).why for one in (row, row | {"attack_advantage_low": 0.2}))
    assert few == TOO_FEW_LINKS
    assert few in LinkingThreat.sentence(row)
    assert clear == ""
    shown, told = with_doubts([row, row | {"attack_advantage_low": 0.2}])
    for name, kind in (("attack_score", "score"), ("attack_advantage", "interval"), (HEADLINE, "number")):
        column = Column(name, "", (), kind=kind)
        assert (cell(column, shown).text, cell(column, told).text) == ("too few", "0.400")
    first = Column("linked_first", "", (), kind="number")
    assert cell(first, shown).text == "0.900"
    assert (shown["status"], told["status"]) == (few, "ok")
