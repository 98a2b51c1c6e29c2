"""Publish the texts of a corpus, so that an encoder can be trained on published texts."""

from collections.abc import Callable
from dataclasses import replace

from numpy.random import Generator

from leakboard.interfaces import Corpus, Texts
from leakboard.randomness import stream


def with_published_texts(corpus: Corpus, publish: Callable[[Texts, Generator], Texts], seed: int) -> Corpus:
    """Return the corpus with published texts; the draws of each split depend on the seed."""
    splits = {}
    for name, rows in corpus.splits.items():
        texts = publish(corpus.texts(name), stream(seed, "texts of the encoder", name))
        splits[name] = rows.remove_columns("text").add_column("text", list(texts))
    return replace(corpus, splits=type(corpus.splits)(splits))
