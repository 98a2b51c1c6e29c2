"""Share a corpus and victim's sides between the tests of threats."""

import numpy as np
import pytest

from leakboard.interfaces import Secret
from leakboard.pipeline.publications import fit, publish
from leakboard.randomness import Streams
from leakboard.threats.threat import VictimSide
from leakboard.victims.word2vec import Word2Vec


@pytest.fixture(scope="session")
def corpus(make_corpus):
    """Return 90 train, 30 dev and 40 test texts; ``only<split>`` marks the split and ``mark<row>`` the row."""
    rng = np.random.default_rng(0)

    def split(name, n, first):
        texts = [
            " ".join([f"only{name}", f"mark{first + i}", *(f"w{k}" for k in rng.integers(12, size=8))])
            for i in range(n)
        ]
        label = rng.integers(2, size=n)
        return {"text": texts, "label": label, "colour": rng.integers(2, size=n)}

    splits = {"train": split("train", 90, 0), "dev": split("dev", 30, 90), "test": split("test", 40, 120)}
    for columns in splits.values():
        columns["posterior:colour"] = [[0.5, 0.5]] * len(columns["text"])
    return make_corpus(splits, [Secret("colour", ("red", "blue"), "attribute")])


def side_of(corpus, epsilon=None):
    """Return the victim's side of a word2vec that publishes documents, words and, with an epsilon, releases."""
    victim = Word2Vec(vector_size=4, min_count=2, epochs=1, epsilon=epsilon)
    streams = Streams(0, corpus.name, "word2vec", "spy", "cell")
    fitted = fit(victim, corpus, streams)
    published = publish(victim, lambda: fitted, corpus, streams)
    return VictimSide(corpus, corpus, victim, lambda: fitted, published, streams)


@pytest.fixture(scope="session")
def plain(corpus):
    """Return the side of a victim without noise and without a claim."""
    return side_of(corpus)


@pytest.fixture(scope="session")
def private(corpus):
    """Return the side of a victim that claims an epsilon of 5 per word."""
    return side_of(corpus, epsilon=5.0)
