"""The surrogate of an unknown encoder: its map, its errors, and what an attacker reads through it."""

import numpy as np
import pytest
from planted_texts import BAG, FakeOracle, hashed, positions, view_of

from leakboard.attacks._alignment.alignment import Pairs
from leakboard.attacks._alignment.surrogate import SurrogateStore
from leakboard.attacks.surrogate import Surrogate
from leakboard.errors import NotApplicable
from leakboard.interfaces import Texts
from leakboard.metrics.text_scores import bags, best_constant_bag, overlap
from leakboard.threats.stores import KnownPairs, StolenStore

RNG = np.random.default_rng(0)
OWN = RNG.normal(1, 1, (400, 12)).astype(np.float32)
MATRIX = RNG.normal(size=(12, 9)).astype(np.float32)


def test_the_surrogate_of_a_linear_map_is_exact():
    stored = OWN @ MATRIX + 3
    fitted = SurrogateStore.fit(OWN, stored, Pairs(OWN[:60], stored[:60]), seed=0)
    new = RNG.normal(1, 1, (50, 12)).astype(np.float32)
    assert np.allclose(fitted(new, np.random.default_rng(1)), new @ MATRIX + 3, atol=2e-2)


def test_errors_of_left_out_pairs_have_the_law_of_new_errors():
    spread = np.diag(np.linspace(0.5, 2, 9)).astype(np.float32)
    stored = OWN @ MATRIX + RNG.normal(size=(400, 9)).astype(np.float32) @ spread
    fitted = SurrogateStore.fit(OWN, stored, Pairs(OWN[:300], stored[:300]), seed=0)
    drawn = fitted(np.repeat(OWN[:1], 20_000, axis=0), np.random.default_rng(1))
    expected = 300 / (300 - 13)  # left-out errors of least squares with 12 inputs are larger by about this factor
    assert drawn.var(0).sum() == pytest.approx(expected * np.square(spread.diagonal()).sum(), rel=0.08)
    assert drawn.var(0)[8] > 8 * drawn.var(0)[0]  # 16 times the variance, less what is shrunk


def test_vectors_that_pairs_cannot_predict_keep_their_covariance():
    stored = RNG.normal(2, 3, (400, 9)).astype(np.float32)
    fitted = SurrogateStore.fit(OWN, stored, Pairs(OWN[:200], stored[:200]), seed=0)
    drawn = fitted(OWN, np.random.default_rng(1))
    assert drawn.mean(0) == pytest.approx(stored.mean(0), abs=0.7)
    assert drawn.var(0).mean() == pytest.approx(stored.var(0).mean(), rel=0.15)


def test_errors_come_from_the_symmetric_root_which_is_unique():
    """Five pairs leave a space of errors without axes of its own; another processor would choose others there."""
    fitted = SurrogateStore.fit(OWN, OWN @ MATRIX, Pairs(OWN[:5], OWN[:5] @ MATRIX), seed=0)
    assert np.allclose(fitted.factor, fitted.factor.T, atol=1e-6)
    assert np.linalg.eigvalsh(fitted.factor).min() > 0


class OwnEncoder(FakeOracle):
    def encode(self, texts):
        raise NotApplicable("own_encoder: the attacker does not know the victim's encoder")


def f1(view, encode, inner=BAG):
    """Return the F1 over sets of words of test texts, and of the best constant."""
    store_texts = Texts(list(view_of(encode, None, sizes=(900, 200)).train.texts[500:]))
    test = Texts(list(view_of(encode, None, sizes=(900, 200)).dev.texts))
    vectors = encode(store_texts)
    pairs = KnownPairs(Texts(store_texts[:100]), vectors[:100])
    view = type(view)(view.train, view.dev, view.oracle, StolenStore(pairs, vectors[100:]), known_encoder=True)
    guesses = Surrogate(inner=inner, pairs=100).fit(view, 0)(encode(test))
    constant = best_constant_bag(bags(view.train.texts, False))
    sets = bags(test, False)
    return overlap(bags(guesses.texts, False), sets)[2].value, overlap([constant] * len(test), sets)[2].value


def mixed(texts):
    """Return another encoder's vectors: an unknown linear map of the positions, float32 (n, 70)."""
    found: np.ndarray = positions(texts) @ np.random.default_rng(7).normal(size=(100, 70)).astype(np.float32)
    return found


def test_words_are_read_through_another_encoder():
    view = view_of(positions, OwnEncoder(positions))
    found, constant = f1(view, mixed)
    assert found > constant + 0.2


def test_vectors_that_depend_on_nothing_shared_give_no_more_than_the_constant():
    view = view_of(positions, OwnEncoder(positions))
    found, constant = f1(view, hashed)
    assert found < constant + 0.03
