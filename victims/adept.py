"""Rewrite texts by an auto-encoder with noise: ADePT (Krishna, Gupta and Dupuy 2021), as published and corrected.

An LSTM reads a text, and its last state is clipped to an L2 norm C. Noise is added, and another LSTM writes a text from
the noisy vector, the likeliest word at each step. Both LSTMs are trained to reproduce the texts of train, with clipping
and without noise.

The claim is about one text, for any two texts. As published, the Laplace noise has the scale 2 C / epsilon. Habernal
(2021) found that it needs 2 C sqrt(d) / epsilon in d dimensions, so that sqrt(d) times the claim is proved
(`leakboard.privacy.mechanisms.clipping`).

| ``encoder`` | documents | texts |
|---|---|---|
| null | (v + 1) / 2 for each noisy vector v | written from these vectors |
| a victim | vectors of the published texts, by this victim | written from noisy vectors that stay private |

Writing texts, and encoding them, reads nothing but noisy vectors. So the claim holds for these publications if it holds
for the vectors (post-processing, Dwork and Roth 2014, proposition 2.1). Texts may show less than vectors, so
``dp_audit`` audits published vectors only. The claim does not cover the training texts: the vocabulary and the weights
are learned from them without noise.

Texts are split into words and lower-cased. The decoder writes only words of at least two texts of train.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.claims import ReleaseClaim
from leakboard.interfaces import Corpus, Coverage, FittedVictim, Floats, Integers, Publication, Texts, Victim
from leakboard.privacy.mechanisms.clipping import Calibration, ClippedRelease, Family, check_clipping, clipped
from leakboard.privacy.mechanisms.textbook import Positive
from leakboard.randomness import seeded
from leakboard.suite.options import Count, part, reset, victim
from leakboard.victims._encoders import DOCUMENT_ENCODERS
from leakboard.victims._published_texts import with_published_texts

if TYPE_CHECKING:
    from leakboard.models.auto_encoder import AutoEncoder


@victim(revision=1)
class Adept(Victim):
    epsilon: Positive | None
    """Epsilon that is claimed for one text; null: clipped vectors without noise."""
    calibration: Calibration = "as_published"
    """Scale of the noise: the paper's, or the one that the claim needs."""
    noise: Family = "laplace"
    """Law of the noise. As published, ``gaussian`` is right up to epsilon 1."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    """Delta that is claimed with Gaussian noise."""
    clipping_norm: Positive = 1.0
    """C, the largest L2 norm of a text's vector; at most sqrt(dimension)."""
    dimension: Annotated[int, Field(ge=2)] = 64
    """Dimensions of a text's vector."""
    encoder: part(DOCUMENT_ENCODERS) | None = None  # type: ignore[valid-type]
    """Victim that makes vectors of the published texts, trained on published texts of train; null: the noisy vectors
    are published, too."""
    vocabulary: Count = 10_000
    """Largest number of words, the most frequent ones."""
    longest: Count = 64
    """Longest text that is learned and written (words)."""
    hidden: Annotated[int, Field(ge=4)] = 128
    """Width of the decoder's state."""
    embedding: Count = 64
    """Width of the word vectors."""
    epochs: Count = 10
    """Passes over train; of few texts, as many passes as make 100 steps. The epoch with the least dev loss is kept."""
    batch_size: Count = 64
    """Texts in each step."""
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    """Learning rate of Adam."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "rewritten_texts", "releases")
    uses_gpu: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_clipping(self.clipping_norm, self.dimension)

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return noise on a narrow auto-encoder that is trained for one epoch."""
        return cls(epsilon=1.0, dimension=8, hidden=8, embedding=8, longest=4, epochs=1, batch_size=16)

    def fingerprint(self) -> str:
        """Identify the files of the encoder."""
        return str(self.encoder.fingerprint()) if self.encoder else ""

    def why_not_applicable(self, corpus: Corpus) -> str:
        """Return why a corpus cannot train the encoder."""
        return str(self.encoder.why_not_applicable(corpus)) if self.encoder else ""

    def training_config(self) -> "Adept":
        """Return the recipe without noise, unless an encoder is trained on published texts."""
        if self.encoder is None or self.epsilon is None:
            return dataclasses.replace(reset(self, "calibration", "noise", "delta"), epsilon=None)
        return self if self.noise == "gaussian" else reset(self, "delta")

    def fit(self, corpus: Corpus, seed: int) -> "FittedAdept":
        """Train the auto-encoder, then the encoder on published texts, if there is one.

        Raises:
            RequestError: the encoder cannot be trained.
        """
        from leakboard.models.auto_encoder import AutoEncoder

        texts, sizes = corpus.texts("train"), (self.vocabulary, self.embedding, self.dimension, self.hidden)
        with seeded(seed):
            model = AutoEncoder.of(texts, *sizes, self.clipping_norm, self.batch_size)
            how = {"longest": self.longest, "epochs": self.epochs}
            model.learn(texts, corpus.texts("dev"), **how, learning_rate=self.learning_rate, seed=seed)
        fitted = FittedAdept(self, model)
        if self.encoder is None:
            return fitted
        published = with_published_texts(corpus, fitted.publish_texts, seed)
        return FittedAdept(self, model, self.encoder.fit(published, seed))

    def load(self, folder: Path) -> "FittedAdept":
        """Return a saved auto-encoder, and the encoder."""
        from leakboard.models.auto_encoder import AutoEncoder

        model = AutoEncoder.load(folder / "auto_encoder", self.clipping_norm, self.batch_size)
        return FittedAdept(self, model, self.encoder.load(folder / "encoder") if self.encoder else None)


@dataclass(frozen=True)
class FittedAdept(FittedVictim):
    options: Adept
    model: "AutoEncoder"
    encoder: FittedVictim | None = None

    @property
    def mechanism(self) -> ClippedRelease | None:
        """The clipping and the noise; None without noise, or if the noisy vectors stay private."""
        return self._release if self.encoder is None else None

    @property
    def _release(self) -> ClippedRelease | None:
        options = self.options
        if options.epsilon is None:
            return None
        delta = options.delta if options.noise == "gaussian" else 0.0
        kind = options.noise, options.calibration, delta
        return ClippedRelease(options.dimension, options.epsilon, options.clipping_norm, *kind)

    @property
    def claim(self) -> ReleaseClaim | None:
        """The claim about one text, and the epsilon that is proved."""
        return self._release.claim if self._release else None

    def inputs(self, texts: Texts) -> Floats | None:
        """Return the vectors before clipping, float32 (n, d) from 0 to 1; None if the noisy vectors stay private."""
        return self._states(texts) if self.encoder is None else None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return noisy vectors, or vectors of texts that are published first."""
        if self.encoder is None:
            return self._noisy(texts, rng)
        return self.encoder.publish_documents(self.publish_texts(texts, rng), rng)

    def publish_texts(self, texts: Texts, rng: np.random.Generator) -> Texts:
        """Write a text from each noisy vector."""
        from leakboard.models.language_model import write_texts

        vectors = 2 * self._noisy(texts, rng) - 1
        written = write_texts(self.model.decoder, vectors, self.model.units, self.options.longest)
        return Texts([" ".join(text) for text in written], texts.rows, texts.ids)

    def unprotected(self, texts: Texts) -> Floats:
        """Return clipped vectors without noise, or vectors of the texts themselves."""
        if self.encoder is None:
            return self._clipped(texts)
        return self.encoder.publish_documents(texts, np.random.default_rng(0))

    def predict(self, vectors: Floats) -> Integers | None:
        """Return the labels of the encoder's task head, if there is one."""
        return self.encoder.predict(vectors) if self.encoder else None

    def coverage(self, texts: Texts) -> Coverage:
        """Return the share of texts without a word that the auto-encoder knows."""
        return self.model.encoder.coverage(texts)

    def _states(self, texts: Texts) -> Floats:
        """Return the vectors before clipping, in the unit cube."""
        return _in_cube(self.model.states(texts))

    def _clipped(self, texts: Texts) -> Floats:
        return _in_cube(clipped(self.model.states(texts), self.options.clipping_norm))

    def _noisy(self, texts: Texts, rng: np.random.Generator) -> Floats:
        if (release := self._release) is None:
            return self._clipped(texts)
        return release.release(self._states(texts), rng).astype(np.float32)

    def save(self, folder: Path) -> None:
        """Write the auto-encoder and the encoder, each into a folder of its own."""
        self.model.save(folder / "auto_encoder")
        if self.encoder is not None:
            (folder / "encoder").mkdir()
            self.encoder.save(folder / "encoder")


def _in_cube(states: Floats) -> Floats:
    """Scale states, float32 (n, d), from (-1, 1) to the unit cube."""
    scaled: Floats = (states + 1) * np.float32(0.5)
    return scaled
