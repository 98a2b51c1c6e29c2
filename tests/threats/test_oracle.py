"""Test the oracle: encoded texts, vectors of named words, and shadow models trained on the attacker's texts."""

import numpy as np
import pytest

from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import FittedVictim, Texts, Victim
from leakboard.randomness import Streams
from leakboard.threats.oracle import BY_CHANCE, Oracle
from leakboard.threats.published import Publisher
from leakboard.threats.threat import VictimSide
from leakboard.victims.dpnr import Dpnr


def oracle_of(side):
    return Oracle(side, side.auxiliary.only("train", "dev"))


def test_every_queried_word_is_recorded_and_stays_recorded(private):
    oracle = oracle_of(private)
    assert oracle.queried == set()
    oracle.encode(Texts(["w1 Unheard, w2"]))
    oracle.words(Texts(["w3"]))
    oracle.inputs(Texts(["w4"]))
    with pytest.raises(AttributeError):
        oracle.queried.clear()
    with pytest.raises(AttributeError):
        oracle.queried = set()
    assert oracle.queried == {"w1", "unheard", "w2", "w3", "w4"}


def test_the_ledger_counts_what_the_attacker_had_and_used(private):
    oracle = oracle_of(private)
    own = {text for split in ("train", "dev") for text in private.auxiliary.texts(split)}
    unused = {metric.name: metric.value for metric in oracle.ledger()}
    assert unused == {"own_texts": len(own), **dict.fromkeys(list(unused)[1:], 0)}
    oracle.encode(Texts(["w1 w2", "w1 w2", "w3"]))
    oracle.words(Texts(["w4"]))
    oracle.inputs(Texts(["w5", "w6"]))
    oracle.train_shadow(0)
    oracle.inputs(Texts(["w6", "w6"]))
    counts = {metric.name: metric.value for metric in oracle.ledger(known_pairs=7)}
    used = {"known_pairs": 7, "queries": 4, "noiseless_queries": 2, "shadow_models": 1}
    assert counts == {"own_texts": len(own), **used}


def test_an_attacker_of_known_pairs_has_no_texts_of_its_own_without_shadow_models(private):
    ledger = oracle_of(private).ledger(known_pairs=7, has_own_texts=False)
    counts = {metric.name: metric.value for metric in ledger}
    assert (counts["own_texts"], counts["known_pairs"]) == (0, 7)


def test_test_texts_are_no_questions_unless_they_are_the_attackers_own(plain):
    oracle = oracle_of(plain)
    own = set(plain.auxiliary.texts("train"))
    foreign = sorted({text for text in plain.corpus.texts("test") if text not in own})
    by_chance = int(BY_CHANCE * len(foreign))
    oracle.encode(Texts([*own, "of its making", *foreign[:by_chance]]))
    oracle.require_own_questions()
    oracle.encode(Texts([f" {foreign[by_chance].upper()} "]))
    with pytest.raises(RequestError, match=r"the attack sent the victim \d+ of \d+ test texts that are not its own"):
        oracle.require_own_questions()


def test_copies_of_texts_that_the_attacker_sees_are_its_own_questions(plain):
    oracle = oracle_of(plain)
    oracle.encode(plain.corpus.texts("test"))
    oracle.require_own_questions(plain.corpus.texts("test"))
    with pytest.raises(RequestError, match="the attack sent the victim 40 of 40 test texts"):
        oracle.require_own_questions()


def test_queried_texts_lose_their_rows(plain, monkeypatch):
    """A vector store finds vectors by row: rows of test would give an attack the test vectors in order."""
    rows = []
    monkeypatch.setattr(type(plain.fitted()), "publish_documents", lambda self, texts, rng: rows.append(texts.rows))
    oracle_of(plain).encode(Texts(["a", "b"], np.array([120, 121])))
    assert rows == [None]


def test_an_untrainable_victim_has_no_shadow_models(plain, monkeypatch):
    monkeypatch.setattr(type(plain.victim), "trainable", False)
    with pytest.raises(NotApplicable, match="no recipe"):
        oracle_of(plain).train_shadow(0)


def test_a_static_table_returns_only_the_named_words(plain):
    table = plain.published.words
    answer = oracle_of(plain).words(Texts(["w3 unheard", "w1"]))
    assert set(answer.words) == {"w1", "w3"}
    for word, vector in zip(answer.words, answer.vectors, strict=True):
        assert np.array_equal(vector, table.vectors[table.words.index(word)])
    answer.vectors[:] = 7.0
    assert not (plain.fitted().publish_words(Texts([]), None).vectors == 7.0).any()


def test_only_a_victim_with_noise_has_a_mechanism(plain, private):
    with pytest.raises(RequestError, match="FittedWord2Vec has no mechanism that could release other vectors"):
        _ = oracle_of(plain).mechanism
    assert oracle_of(private).mechanism.dimension == 4


class Recipe(Victim):
    """A victim that records its trainings."""

    def __init__(self, trained, private=True):
        self.trained, self.private = trained, private

    def fit(self, corpus, seed):
        self.trained.append((self.private, corpus, seed))
        return FittedVictim()

    def non_private(self):
        return Recipe(self.trained, private=False)


@pytest.fixture
def trained():
    """Return the list of trainings: private or not, corpus, seed."""
    return []


@pytest.fixture
def oracle(corpus, trained):
    """Return an oracle of an attacker with ten texts; no corpus names users."""
    side = VictimSide(corpus, corpus, Recipe(trained), FittedVictim, None, Streams(0, "made", "recipe"))
    return Oracle(side, corpus.only("train", "dev").with_rows("train", range(10)))


class TestShadowModels:
    @pytest.mark.parametrize("private", [True, False])
    def test_they_are_trained_on_the_attackers_texts_alone(self, private, oracle, trained, corpus):
        oracle.train_shadow(3, private=private)
        ((was_private, shadow, seed),) = trained
        assert (was_private, seed) == (private, 3)
        assert set(shadow.splits) == {"train", "dev"}
        assert shadow.texts("train") == corpus.texts("train")[:10]

    def test_an_attack_may_give_another_corpus(self, oracle, trained, reviews):
        oracle.train_shadow(3, reviews)
        assert trained == [(True, reviews, 3)]

    def test_texts_without_users_get_one_user_each_if_the_victims_texts_have_users(self, corpus, reviews, trained):
        for victims, attackers in ((reviews, corpus), (reviews, reviews), (corpus, corpus)):
            side = VictimSide(victims, attackers, Recipe(trained), FittedVictim, None, Streams(0, "made", "recipe"))
            Oracle(side, attackers.only("train", "dev")).train_shadow(0)
        added, kept, unnamed = (shadow for _, shadow, _ in trained)
        assert len(set(added.splits["train"]["user"][:])) == len(added.splits["train"])
        assert kept.splits["train"]["user"][:] == reviews.splits["train"]["user"][:]
        assert not unnamed.has_users


def test_a_repeated_query_is_not_encoded_again(reviews):
    victim = Dpnr(encoder={"embedding_bag": {"dimension": 16, "epochs": 1}}, epsilon=1.0, training="standard")
    fitted, encoded = victim.fit(reviews.only("train", "dev"), 0), []
    inner = fitted.encoder.documents
    fitted.encoder.documents = lambda texts: encoded.append(len(texts)) or inner(texts)
    ask, texts = Publisher(victim, lambda: fitted), reviews.texts("test")
    first, second = ask(texts, np.random.default_rng(0)), ask(texts, np.random.default_rng(1))
    assert encoded == [len(set(texts))]
    assert not np.array_equal(first, second)
    assert np.array_equal(first, fitted.publish_documents(texts, np.random.default_rng(0)))
