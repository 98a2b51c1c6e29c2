"""Train Word2Vec with gensim: the word vectors of the recovery study (Zouhri and Abecidan 2021), and their means.

``initialisation`` matters for recovery. Gensim 3 drew a word's start vector from a hash of the word. So all models of
one process had the same start vector for a word. Gensim 4 draws the start vector by row. Training runs in one thread
and does not depend on ``PYTHONHASHSEED``.

With ``epsilon`` every word vector is scaled to [0, 1] and released with Laplace(1/epsilon) noise on each coordinate, as
in the study's section on noise. For one changed word, epsilon is claimed, and d epsilon is proved. A document is the
mean of fresh releases of its words. Without ``epsilon`` there is no privacy claim.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.claims import ReleaseClaim
from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Floats, Publication, PublishedWords, Texts, Victim
from leakboard.privacy.mechanisms.cube import CubeRelease
from leakboard.privacy.mechanisms.normalisation import min_max
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.randomness import stream
from leakboard.suite.options import Count, victim
from leakboard.victims._word_vectors import WordVectors


@victim(revision=1)
class Word2Vec(Victim):
    sg: Literal[0, 1] = 0
    """0: continuous bag of words, as in the study; 1: skip-gram."""
    vector_size: Count = 100
    """Dimensions of the vectors."""
    window: Count = 5
    """Largest distance between a word and its context (words)."""
    min_count: Count = 5
    """Least number of occurrences of a word with a vector."""
    negative: Count = 5
    """Negative samples for each word."""
    sample: Annotated[float, Field(ge=0)] = 1e-3
    """Words above this frequency are downsampled (share of all words)."""
    alpha: Annotated[float, Field(gt=0)] = 0.025
    """First learning rate."""
    min_alpha: Annotated[float, Field(gt=0)] = 1e-4
    """Last learning rate."""
    epochs: Count = 5
    """Passes over the texts."""
    initialisation: Literal["gensim", "word"] = "gensim"
    """gensim: start vectors by row (gensim 4); word: by a hash of the word, so equal in all models (gensim 3)."""
    epsilon: Positive | None = None
    """Epsilon that is claimed for one word; vectors are normalised, and every coordinate gets noise; null: no noise."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "words", "releases")

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return one epoch of short vectors."""
        return cls(epochs=1, min_count=2, vector_size=8)

    def fit(self, corpus: Corpus, seed: int) -> "FittedWord2Vec":
        """Train on the words of train.

        Raises:
            RequestError: no word occurs ``min_count`` times.
        """
        from gensim.models import Word2Vec as GensimWord2Vec

        sentences = [words(text) for text in corpus.texts("train")]
        model = GensimWord2Vec(
            sg=self.sg,
            vector_size=self.vector_size,
            window=self.window,
            min_count=self.min_count,
            negative=self.negative,
            sample=self.sample,
            alpha=self.alpha,
            min_alpha=self.min_alpha,
            epochs=self.epochs,
            seed=seed,
            workers=1,
        )
        model.build_vocab(sentences)
        vocabulary = list(model.wv.index_to_key)
        if not vocabulary:
            raise RequestError(f"word2vec: no word of {corpus.name} occurs min_count={self.min_count} times")
        if self.initialisation == "word":
            model.wv.vectors[:] = [_start_vector(word, self.vector_size) for word in vocabulary]
        model.train(sentences, total_examples=model.corpus_count, epochs=self.epochs)
        vectors = np.asarray(model.wv.vectors, np.float32)
        return FittedWord2Vec(vocabulary, vectors if self.epsilon is None else min_max(vectors), self.epsilon)


def _start_vector(word: str, size: int) -> Floats:
    """Return a vector uniform in (-0.5/size, 0.5/size), gensim's range, that depends on the word alone."""
    return ((stream("word2vec", "start", word).random(size) - 0.5) / size).astype(np.float32)


@dataclass(frozen=True)
class FittedWord2Vec(WordVectors):
    """A table of word vectors; their coordinates are in [0, 1] if they are released with noise."""

    epsilon: float | None = None

    @property
    def mechanism(self) -> CubeRelease | None:
        """The noise on a word's vector; None for no noise."""
        return CubeRelease(self.vectors.shape[1], self.epsilon) if self.epsilon is not None else None

    @property
    def claim(self) -> ReleaseClaim | None:
        """The study's claim, and the proved epsilon."""
        return self.mechanism.claim("word") if self.mechanism else None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return mean word vectors; with noise, the means of fresh releases of all strings between blanks.

        A string that is no known word (punctuation, a rare word, an empty text) is released as the centre of the cube.
        Otherwise the number of releases, and so the noise of the mean, would reveal whether a word is known.
        """
        if (mechanism := self.mechanism) is None:
            return self.mean_vectors(texts)
        rows = {word: row for row, word in enumerate(self.vocabulary)}
        table = np.concatenate([self.vectors, np.full((1, self.vectors.shape[1]), 0.5, np.float32)])
        means = np.empty((len(texts), self.vectors.shape[1]), np.float32)
        for i, text in enumerate(texts):
            released_rows = [rows.get("".join(words(part)), -1) for part in text.split()] or [-1]
            means[i] = mechanism.release(table[released_rows], rng).mean(0)
        return means

    def exact_words(self, texts: Texts) -> PublishedWords:
        """Return the whole table, scaled to [0, 1] if it is released with noise."""
        return PublishedWords(self.vocabulary, self.vectors)

    def publish_words(self, texts: Texts, rng: np.random.Generator) -> PublishedWords:
        """Return the whole table; with noise, each vector is released once."""
        vectors = self.vectors if self.mechanism is None else self.mechanism.release(self.vectors, rng)
        return PublishedWords(self.vocabulary, vectors)
