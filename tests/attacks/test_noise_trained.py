"""Training on fresh publications: it is asked for, counted, helps against noise, and does nothing without noise."""

import numpy as np
from planted_texts import BAG, FakeOracle, positions, view_of

from leakboard.attacks.noise_trained import NoiseTrained
from leakboard.interfaces import Texts
from leakboard.metrics.text_scores import bags, overlap


def noisy(sigma):
    rng = np.random.default_rng(3)
    return lambda vectors: (vectors + rng.normal(0, sigma, vectors.shape)).astype(np.float32)


def f1(attack, view, vectors, texts):
    return overlap(bags(attack.fit(view, 0)(vectors).texts, False), bags(texts, False))[2].value


def test_more_publications_name_more_words():
    protect = noisy(0.6)
    oracle = FakeOracle(positions, protect)
    view = view_of(lambda texts: protect(positions(texts)), oracle, sizes=(200, 100))
    test = Texts(list(view_of(positions, None, sizes=(200, 400)).dev.texts[100:]))
    vectors = protect(positions(test))
    once, often = f1(BAG, view, vectors, test), f1(NoiseTrained(inner=BAG, publications=8), view, vectors, test)
    assert often > once + 0.02
    assert oracle.asked == 7 * 200 + 3 * 100


def test_without_noise_the_inner_attack_answers():
    view = view_of(positions, FakeOracle(positions))
    vectors = positions(view.dev.texts)
    guesses = NoiseTrained(inner=BAG).fit(view, 0)(vectors)
    assert guesses.texts == BAG.fit(view, 0)(vectors).texts
    assert guesses.details.endswith("a second publication is the same: there is no noise")
