"""Made texts: their words and shares by hand, and a victim that hides its training texts' secrets in another place."""

import itertools

import numpy as np
import pytest
from planted import GENDER, SMALL, attack_accuracies

from leakboard.attacks._portfolio.made_texts import Splicer, publish_made_texts
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.interfaces import Texts
from leakboard.threats.secrets import KnownTexts, SecretsView

MARKS = [[f"{value}{number}" for number in range(10)] for value in ("f", "m")]


class TestSplicer:
    def test_shares_are_those_of_new_texts_of_dev(self):
        """Of the words a, b, x, c of the new text one is new, and of its three pairs two."""
        splicer = Splicer.of(["a b c", "c d", ""], ["a b c", "A b, x c"])
        assert splicer.texts == [["a", "b", "c"], ["c", "d"]]
        assert splicer.replaced == pytest.approx(1 - np.sqrt(1 / 3))
        assert splicer.unknown == pytest.approx(0.25 / splicer.replaced)

    def test_without_new_words_a_text_is_a_start_and_an_end(self):
        texts = ["a b c d", "e f g h i j", "k l"]
        made = Splicer.of(texts, texts)(300, np.random.default_rng(0))
        splices = set()
        for first, second in itertools.product((text.split() for text in texts), repeat=2):
            for cut in range(len(first) + 1):
                left = len(first) - cut
                splices.add(" ".join(first[:cut] + second[len(second) - min(left, len(second)) :]))
        assert set(made) <= splices
        assert len(set(made)) > 15

    def test_words_are_replaced_at_the_shares(self):
        texts = [["a"] * 50, ["b"] * 50]
        rng = np.random.default_rng(0)
        strange = [word for text in Splicer(texts, 0.3, 1.0)(400, rng) for word in text.split()]
        assert np.mean([word not in "ab" for word in strange]) == pytest.approx(0.3, abs=0.03)
        half = [word for text in Splicer(texts, 0.3, 0.5)(400, rng) for word in text.split()]
        assert np.mean([word not in "ab" for word in half]) == pytest.approx(0.15, abs=0.02)


class Memorising:
    """An encoder that shows the secret of its training texts in one coordinate, and of other texts in another."""

    def __init__(self, train, rng):
        self.train, self.rng = set(train), rng

    def encode(self, texts):
        vectors = self.rng.normal(size=(len(texts), 8))
        for vector, text in zip(vectors, texts, strict=True):
            sign = sum((word in MARKS[1]) - (word in MARKS[0]) for word in text.split())
            vector[0 if text in self.train else 1] += 3 * np.sign(sign)
        return vectors.astype(np.float32)


@pytest.fixture(scope="module")
def memorised():
    """Return a view, test vectors, and their secrets."""
    rng = np.random.default_rng(0)
    genders = rng.integers(0, 2, 1300)
    fillers = rng.integers(0, 60, (1300, 7))
    texts = [
        " ".join([*(f"word{number}" for number in row), rng.choice(MARKS[gender])])
        for row, gender in zip(fillers, genders, strict=True)
    ]
    oracle = Memorising(texts[:600], rng)
    parts = [slice(0, 600), slice(600, 650), slice(700, 1300)]  # dev is too small for members to learn from it
    train, dev, test = (
        KnownTexts(Texts(texts[part]), oracle.encode(texts[part]), {"gender": genders[part]}) for part in parts
    )
    return SecretsView((GENDER,), train, dev, claim=None, oracle=oracle), test.vectors, test.values


def test_secrets_of_made_texts_are_read_from_their_words(memorised):
    view, _, _ = memorised
    made = publish_made_texts(view, 300, seed=0)
    signs = [sum((w in MARKS[1]) - (w in MARKS[0]) for w in text.split()) for text in made.texts]
    clear = np.flatnonzero(signs)
    assert len(clear) > 150
    assert np.mean((np.array(signs) > 0)[clear] == made.values["gender"][clear]) > 0.97
    assert made.vectors.shape == (300, 8)


def test_new_texts_are_read_by_made_texts(memorised):
    without = attack_accuracies(AttributeInference(**SMALL), *memorised)["gender"]
    with_made = attack_accuracies(AttributeInference(**SMALL, made_texts=2000), *memorised)["gender"]
    assert without < 0.75
    assert with_made > 0.9


def test_only_an_ensemble_has_a_network_for_made_texts():
    with pytest.raises(ValueError, match="made_texts: 10 is not allowed with portfolio: mlp; allowed: 0"):
        AttributeInference(portfolio="mlp", made_texts=10)
