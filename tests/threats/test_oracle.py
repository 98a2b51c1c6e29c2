"""What an attack may ask of a victim: texts encoded again, words by name, and shadow models on texts of its own."""

import numpy as np
import pytest

from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import FittedVictim, Texts, Victim
from leakboard.randomness import Streams
from leakboard.threats.oracle import Oracle
from leakboard.threats.published import Publisher
from leakboard.threats.threat import VictimSide
from leakboard.victims.dpnr import Dpnr


def oracle_of(side):
    return Oracle(side, side.auxiliary.only("train", "dev"))


def test_every_word_that_it_was_asked_is_recorded(plain):
    oracle = oracle_of(plain)
    assert oracle.queried == set()
    oracle.encode(Texts(["w1 Unheard, w2"]))
    oracle.words(Texts(["w3"]))
    assert oracle.queried == {"w1", "unheard", "w2", "w3"}


def test_questions_about_inputs_are_recorded_too(private):
    oracle = oracle_of(private)
    oracle.inputs(Texts(["w4"]))
    assert oracle.queried == {"w4"}


def test_texts_lose_their_source_rows_on_the_way(plain, monkeypatch):
    """A store of vectors looks texts up by row: with rows of test an attack would read its vectors in order."""
    rows = []
    monkeypatch.setattr(type(plain.fitted()), "publish_documents", lambda self, texts, rng: rows.append(texts.rows))
    oracle_of(plain).encode(Texts(["a", "b"], np.array([120, 121])))
    assert rows == [None]


def test_a_victim_without_a_recipe_has_no_shadow_models(plain, monkeypatch):
    monkeypatch.setattr(type(plain.victim), "trainable", False)
    with pytest.raises(NotApplicable, match="no recipe"):
        oracle_of(plain).train_shadow(0)


def test_what_was_asked_cannot_be_taken_back(plain):
    oracle = oracle_of(plain)
    oracle.words(Texts(["w1"]))
    with pytest.raises(AttributeError):
        oracle.queried.clear()
    with pytest.raises(AttributeError):
        oracle.queried = set()
    assert oracle.queried == {"w1"}


def test_of_a_static_table_the_named_words_alone_are_returned(plain):
    table = plain.published.words
    answer = oracle_of(plain).words(Texts(["w3 unheard", "w1"]))
    assert set(answer.words) == {"w1", "w3"}
    for word, vector in zip(answer.words, answer.vectors, strict=True):
        assert np.array_equal(vector, table.vectors[table.words.index(word)])
    answer.vectors[:] = 7.0
    assert not (plain.fitted().publish_words(Texts([]), None).vectors == 7.0).any()


def test_a_victim_without_noise_has_no_mechanism_and_one_with_noise_has(plain, private):
    with pytest.raises(RequestError, match="FittedWord2Vec has no mechanism to release other vectors by"):
        _ = oracle_of(plain).mechanism
    assert oracle_of(private).mechanism.dimension == 4


class Recipe(Victim):
    """A victim that keeps what it is trained on."""

    def __init__(self, trained, private=True):
        self.trained, self.private = trained, private

    def fit(self, corpus, seed):
        self.trained.append((self.private, corpus, seed))
        return FittedVictim()

    def non_private(self):
        return Recipe(self.trained, private=False)


@pytest.fixture
def trained():
    """Return the trainings of a recipe: whether it was private, the corpus, the seed."""
    return []


@pytest.fixture
def oracle(corpus, trained):
    """Return an oracle whose attacker has ten texts of its own; no corpus names users."""
    side = VictimSide(corpus, corpus, Recipe(trained), FittedVictim, None, Streams(0, "made", "recipe"))
    return Oracle(side, corpus.only("train", "dev").with_rows("train", range(10)))


class TestShadowModels:
    def test_they_are_trained_on_the_attackers_texts_alone(self, oracle, trained, corpus):
        oracle.train_shadow(3)
        ((private, own, seed),) = trained
        assert (private, seed) == (True, 3)
        assert set(own.splits) == {"train", "dev"}
        assert own.texts("train") == corpus.texts("train")[:10]

    def test_they_are_trained_on_another_corpus_where_the_attack_gives_one(self, oracle, trained, reviews):
        oracle.train_shadow(3, reviews)
        assert trained == [(True, reviews, 3)]

    def test_without_protection_where_the_attack_asks_for_that(self, oracle, trained):
        oracle.train_shadow(3, private=False)
        assert trained[0][0] is False

    def test_each_text_has_a_user_where_the_victims_texts_have_and_the_attackers_have_not(
        self, corpus, reviews, trained
    ):
        for victims, own in ((reviews, corpus), (reviews, reviews), (corpus, corpus)):
            side = VictimSide(victims, own, Recipe(trained), FittedVictim, None, Streams(0, "made", "recipe"))
            Oracle(side, own.only("train", "dev")).train_shadow(0)
        made, given, unnamed = (found for _, found, _ in trained)
        assert len(set(made.splits["train"]["user"][:])) == len(made.splits["train"])
        assert given.splits["train"]["user"][:] == reviews.splits["train"]["user"][:]
        assert not unnamed.has_users


def test_texts_asked_for_again_are_not_encoded_again(reviews):
    victim = Dpnr(encoder={"embedding_bag": {"dimension": 16, "epochs": 1}}, epsilon=1.0, training="standard")
    fitted, encoded = victim.fit(reviews.only("train", "dev"), 0), []
    inner = fitted.encoder.documents
    fitted.encoder.documents = lambda texts: encoded.append(len(texts)) or inner(texts)
    ask, texts = Publisher(victim, lambda: fitted), reviews.texts("test")
    first, second = ask(texts, np.random.default_rng(0)), ask(texts, np.random.default_rng(1))
    assert encoded == [len(set(texts))]
    assert not np.array_equal(first, second)
    assert np.array_equal(first, fitted.publish_documents(texts, np.random.default_rng(0)))
