"""Stacked words: sums of words' vectors are taken apart, and chance is not success."""

from dataclasses import replace

import numpy as np
import pytest
from planted_texts import FakeOracle, Refusing, hashed, view_of
from scipy.sparse import csr_matrix
from sklearn.model_selection import GroupKFold

from leakboard.attacks._reading import word_evidence
from leakboard.attacks._reading.word_evidence import WordEvidence
from leakboard.attacks.bag_of_words import BagOfWords, FittedBagOfWords
from leakboard.attacks.stacked_words import StackedWords
from leakboard.errors import NotApplicable
from leakboard.interfaces import Texts
from leakboard.metrics.text_scores import bags, best_constant_bag, overlap
from leakboard.models.search import normalised
from leakboard.models.vocabulary import Vocabulary
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import TextsView

WORDS = [f"word{i}" for i in range(120)]
TABLE = dict(zip(WORDS, np.random.default_rng(5).normal(size=(120, 24)).astype(np.float32), strict=True))
BAG = BagOfWords(epochs=10, learning_rate=0.02)


def summed(texts):
    """Return the mean of random vectors of words, float32 (n, 24): fewer numbers than words."""
    return np.stack([np.mean([TABLE[word] for word in text.split()], axis=0) for text in texts])


def texts_of(count, rng):
    return Texts([" ".join(rng.choice(WORDS, rng.integers(3, 6), replace=False)) for _ in range(count)])


def set_f1(guesses, texts):
    return overlap(bags(guesses.texts, False), bags(texts, False))[2].value


@pytest.fixture(scope="module")
def summed_texts():
    """Return the view of an attacker of means of words, and test texts."""
    rng = np.random.default_rng(0)
    train, dev, test = (texts_of(size, rng) for size in (500, 150, 60))
    known = [KnownTexts(texts, summed(texts), {}) for texts in (train, dev)]
    return TextsView(*known, FakeOracle(summed)), test


def test_words_of_a_mean_are_found_where_a_linear_layer_finds_few(summed_texts):
    view, test = summed_texts
    vectors = summed(test)
    guesses = StackedWords(bag=BAG).fit(view, 0)(vectors)
    assert set_f1(guesses, test) > 0.9
    assert set_f1(BAG.fit(view, 0)(vectors), test) < 0.6
    assert "vectors of words also by the encoder" in guesses.details
    fitted = StackedWords(bag=BAG, asks=False).fit(view, 0)(vectors)
    assert set_f1(fitted, test) > 0.7
    assert fitted.details.endswith("no vectors of words by the encoder (asks: false)")


def test_random_vectors_give_no_more_than_the_best_constant():
    view = view_of(hashed, FakeOracle(hashed))
    test = Texts(list(view_of(hashed, None, sizes=(400, 300)).dev.texts[100:]))
    constant = best_constant_bag(bags(view.train.texts, False))
    known = overlap([constant] * len(test), bags(test, False))[2].value
    rng = np.random.default_rng(3)
    guesses = StackedWords(bag=BAG).fit(view, 0)(rng.normal(size=(len(test), 60)).astype(np.float32))
    assert set_f1(guesses, test) < known + 0.03


def test_publications_of_a_text_stay_in_one_part(monkeypatch):
    """The trees that score a text learn from none of its publications; one text alone cannot be divided."""
    parts = []

    class Spy(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                parts.append((set(groups[train]), set(groups[test])))
                yield train, test

    monkeypatch.setattr("sklearn.model_selection.GroupKFold", Spy)
    view = view_of(hashed, Refusing(), sizes=(200, 40))
    twice = replace(view, dev=KnownTexts.joined([view.dev, view.dev]))
    StackedWords(bag=BAG, trees=2).fit(twice, 0)
    assert len(parts) == 4
    assert all(not learned & scored for learned, scored in parts)
    assert set.union(*(scored for _, scored in parts)) <= set(range(40))
    with pytest.raises(NotApplicable, match="dev has 1 distinct texts; needed: 2"):
        StackedWords(bag=BAG, trees=2).fit(replace(view, dev=view.dev.rows(np.array([0]))), 0)


def test_a_refusal_leaves_the_fitted_vectors():
    view = view_of(hashed, Refusing())
    fitted = StackedWords(bag=BAG, trees=5).fit(view, 0)
    assert (
        "no vectors of words by the encoder (the victim cannot encode new texts)" in fitted(hashed(["w1 w2"])).details
    )
    assert fitted(np.empty((0, 60), np.float32)).texts == []


class Ones:
    """A bag that finds each word equally likely."""

    def __init__(self, shares):
        self.vocabulary = Vocabulary([f"w{i}" for i in range(len(shares))], list(shares))

    log_odds = FittedBagOfWords.log_odds


def test_sums_solve_their_problem():
    """Karush-Kuhn-Tucker: a word in the sum has a gradient equal to its cost, the others have none that is larger."""
    rng = np.random.default_rng(1)
    atoms, targets = (normalised(rng.normal(size=(n, 16)).astype(np.float32)) for n in (30, 5))
    shares = rng.uniform(0.01, 0.3, 30)
    evidence = WordEvidence(Ones(shares), targets, csr_matrix((5, 30)), [atoms], 1)
    for penalty, weights in zip(
        word_evidence.PENALTIES, evidence._sums(targets, np.zeros((5, 30)), targets @ atoms.T, atoms), strict=True
    ):
        cost = penalty * -np.log(shares)
        gradient = (targets - weights @ atoms) @ atoms.T
        assert (weights >= 0).all()
        assert (gradient <= cost + 2e-3).all()
        assert np.abs((gradient - cost)[weights > 1e-3]).max() < 2e-3


def test_near_texts_vote_by_their_cosines():
    holding = csr_matrix(np.array([[1, 0], [1, 1], [0, 1]], np.float32))
    evidence = WordEvidence(Ones([0.5, 0.5]), np.zeros((3, 2), np.float32), holding, [], 2)
    shares = evidence._neighbours(np.array([[0, 1], [2, 1]]), np.array([[3.0, 1.0], [1.0, 1.0]], np.float32))
    assert shares.tolist() == [[1, 0.25], [0.5, 1]]
