"""Make texts of ten words, encoders that hide nothing or everything, and oracles that answer or refuse."""

from functools import partial

import numpy as np

from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.errors import NotApplicable
from leakboard.interfaces import Texts
from leakboard.threats import oracle
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.texts import TextsView

WORDS = [f"w{i}" for i in range(10)]
LONGEST = 6
BAG = BagOfWords(epochs=38, learning_rate=0.02, batch_size=64)


def any_words(rng):
    return " ".join(rng.choice(WORDS, rng.integers(3, LONGEST)))


def positions(texts):
    """Return the word of each position, one-hot, float32 (n, 100); other words than `WORDS` leave no trace."""
    found = np.zeros((len(texts), LONGEST + 4, len(WORDS)), np.float32)
    for row, text in zip(found, texts, strict=True):
        for place, word in enumerate(text.split()[: LONGEST + 4]):
            if word in WORDS:
                row[place, WORDS.index(word)] = 1
    return found.reshape(len(texts), -1)


def hashed(texts):
    """Return random vectors that depend on the whole text alone."""
    seeds = [int.from_bytes(text.encode(), "big") for text in texts]
    return np.stack([np.random.default_rng(seed).normal(size=60) for seed in seeds]).astype(np.float32)


class FakeOracle:
    """Encodes by a function, before and after a protection."""

    def __init__(self, encode, protect=lambda vectors: vectors, public=True):
        self.plain, self.protect, self.public, self.asked = encode, protect, public, 0

    def unprotected(self, texts):
        if not self.public:
            raise NotApplicable("the victim has no public encoder that the attacker could know")
        return self.plain(texts)

    def encode(self, texts):
        self.asked += len(texts)
        return self.protect(self.plain(texts))


Refusing = partial(oracle.Refusing, "the victim cannot encode new texts")


def view_of(encode, oracle, sizes=(400, 100), **knowledge):
    rng = np.random.default_rng(0)
    texts = [Texts([any_words(rng) for _ in range(size)]) for size in sizes]
    train, dev = (KnownTexts(part, encode(part), {}) for part in texts)
    return TextsView(train, dev, oracle, **knowledge)
