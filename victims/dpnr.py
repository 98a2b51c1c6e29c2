"""Publish differentially private neural representations (DPNR: Lyu, He and Li 2020), on any trained encoder.

Words of a text may be hidden first. The text is encoded, and its vector is scaled to [0, 1] by its own minimum and
maximum. Then noise is added (their algorithms 1 and 2). Training data are not protected. By default the vector is
BERT's pooled one, as in their code. The defaults are the paper's algorithms:

| option | value | what is released | what is proved |
|---|---|---|---|
| ``calibration`` | ``per_coordinate`` | the paper: noise for one coordinate's sensitivity, 1 | d times the claim |
| | ``l1`` (Gaussian noise: ``l2``) | the correct release: noise for the vector's sensitivity | the claim |
| ``sampling`` | ``shared`` | their released code: one number for all coordinates | nothing |

``training`` is ``robust`` (under the noise of the release, algorithm 1), ``standard`` (without noise), or ``adaptive``.
Adaptive training is for a server that does not know the user's epsilon: its noise grows by a schedule (Zouhri and
Abecidan 2021, algorithm 3).
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.claims import ReleaseClaim
from leakboard.interfaces import Corpus, Floats, Publication, Texts, Victim
from leakboard.models import checkpoints
from leakboard.models.recipe import Defence
from leakboard.models.trainable import FittedOnTask
from leakboard.privacy.mechanisms.cube import (
    Calibration,
    CubeRelease,
    Family,
    HiddenWordRelease,
    Sampling,
    check_release,
)
from leakboard.privacy.mechanisms.masking import check_sensitive, hide_words
from leakboard.privacy.mechanisms.normalisation import min_max
from leakboard.privacy.mechanisms.textbook import Positive, WordDropout
from leakboard.randomness import derived_seed, stream
from leakboard.suite.options import ALWAYS_NAMED, Strings, part, reset, victim
from leakboard.victims._encoders import ENCODERS
from leakboard.victims.bert import Bert
from leakboard.victims.embedding_bag import EmbeddingBag

Budgets = Annotated[tuple[Positive, ...], Field(strict=False)]


@victim(revision=1)
class Dpnr(Victim):
    epsilon: Positive | None
    """Epsilon that is claimed for one release, before word dropout; null: normalised vectors without noise."""
    encoder: Annotated[part(ENCODERS), ALWAYS_NAMED] = Field(default=Bert(pooling="pooler"))  # type: ignore[valid-type]
    """Victim that makes the vectors, with its own options; ``encoder: bert`` alone takes the first token's vector."""
    mu: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Word dropout: the rate at which words are hidden before they are encoded."""
    dropout: Literal["independent", "exact_count"] = "independent"
    """Hide each word independently with probability mu (the theorem), or exactly this share (the paper's formula)."""
    sensitive_words: Strings = ()
    """Words that are always hidden, in upper or lower case; the claim does not improve by them."""
    mechanism: Family = "laplace"
    """Law of the noise; ``gaussian`` is the released code's default, ``discrete_laplace`` is safe in floating point."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    """Delta that is claimed with Gaussian noise; the default is that of the released code."""
    calibration: Calibration = "per_coordinate"
    """Sensitivity that scales the noise: 1, as in the paper, or the true bound: d in L1, sqrt(d) in L2."""
    sampling: Sampling = "independent"
    """A fresh number for every coordinate, or one for the whole vector, as in the released code."""
    training: Literal["robust", "standard", "adaptive"] = "robust"
    """Train under the noise of the release, without noise, or under ``schedule``."""
    schedule: Budgets = ()
    """Epsilon of each epoch of ``adaptive`` training; later epochs have the last one. Empty: 10/t in epoch t."""
    train_dropout: bool = False
    """Whether words are hidden in training too, with new draws in every epoch."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents", "releases")

    def __post_init__(self) -> None:
        check_release(self.mechanism, self.calibration, self.sampling)
        check_sensitive(self.sensitive_words)

    @classmethod
    def availability(cls) -> str:
        """Return whether the default encoder's checkpoint is installed; other encoders need none."""
        checkpoint = checkpoints.availability()
        return checkpoint if checkpoint == "ready" else f"ready but for encoder: bert; {checkpoint}"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return noise on an encoder that is trained for one epoch."""
        return cls(epsilon=1.0, encoder=EmbeddingBag(epochs=1))

    def fingerprint(self) -> str:
        """Identify the encoder's pretrained weights."""
        return self.encoder.fingerprint()

    def training_config(self) -> "Dpnr":
        """Return the recipe without dropout and noise, if these act only when it publishes."""
        recipe = self
        if not (self.train_dropout and (self.mu or self.sensitive_words)):
            recipe = reset(recipe, "mu", "dropout", "sensitive_words", "train_dropout")
        if self.training == "standard" or (self.training == "robust" and self.epsilon is None):
            recipe = reset(recipe, "mechanism", "calibration", "sampling")
            recipe = dataclasses.replace(recipe, training="standard", epsilon=None)
        elif self.mechanism == "discrete_laplace":
            recipe = dataclasses.replace(recipe, mechanism="laplace")
        recipe = dataclasses.replace(recipe, epsilon=1.0) if self.training == "adaptive" else reset(recipe, "schedule")
        return recipe if recipe.mechanism == "gaussian" else reset(recipe, "delta")

    def fit(self, corpus: Corpus, seed: int) -> "FittedDpnr":
        """Train encoder and softmax layer under the noise that ``training`` asks for.

        Raises:
            RequestError: there are no weights, or the corpus has no task label.
            ValueError: a vector is constant and cannot be normalised.
        """
        import torch

        noise_generator = torch.Generator().manual_seed(derived_seed(seed, "noise"))
        dropout_generator = stream(seed, "word dropout")

        def noisy(vectors: torch.Tensor, epoch: int) -> torch.Tensor:
            normalised = min_max(vectors)
            release = self._training_release(epoch, vectors.shape[1])
            if release is None:
                return normalised
            noise = release.release(torch.zeros(normalised.shape), noise_generator)
            return normalised + noise.to(normalised.device)

        hides_words = self.train_dropout and (self.mu > 0 or self.sensitive_words)
        hide = (lambda texts, mask: self.hidden(texts, mask, dropout_generator)) if hides_words else None
        defence = Defence(vectors=noisy, texts=hide)
        fitted = self.encoder.fit_on_task("dpnr", corpus, seed, lambda *_: defence)
        return FittedDpnr(fitted.encoder, fitted.head, self)

    def load(self, folder: Path) -> "FittedDpnr":
        """Return a saved encoder and its softmax layer."""
        fitted = self.encoder.load(folder)
        return FittedDpnr(fitted.encoder, fitted.head, self)

    def _training_release(self, epoch: int, dimension: int) -> CubeRelease | None:
        epsilon = None if self.training == "standard" else self.epsilon
        if self.training == "adaptive":
            epsilon = self.schedule[min(epoch, len(self.schedule)) - 1] if self.schedule else 10 / epoch
        release = self.release(epsilon, dimension)
        if release is not None and release.family == "discrete_laplace":
            return dataclasses.replace(release, family="laplace")
        return release

    def release(self, epsilon: float | None, dimension: int) -> CubeRelease | None:
        """Return the noise of a release, or None without an epsilon."""
        if epsilon is None:
            return None
        delta = self.delta if self.mechanism == "gaussian" else 0.0
        return CubeRelease(dimension, epsilon, self.mechanism, self.calibration, self.sampling, delta)

    def hidden(self, texts: Texts, mask: str, generator: np.random.Generator) -> Texts:
        """Return the texts with words hidden."""
        sensitive = frozenset(map(str.lower, self.sensitive_words))
        return hide_words(texts, mask, WordDropout(self.mu), sensitive, generator, self.dropout == "exact_count")


@dataclass(frozen=True)
class FittedDpnr(FittedOnTask):
    options: Dpnr

    @property
    def _release(self) -> CubeRelease | None:
        return self.options.release(self.options.epsilon, self.encoder.dimension)

    @property
    def mechanism(self) -> CubeRelease | HiddenWordRelease | None:
        """The mechanism that adds noise to a normalised vector; None without noise.

        With word dropout, the mechanism may hide the word in which neighbours differ.
        """
        release = self._release
        return HiddenWordRelease(release, self.options.mu) if release and self.options.mu else release

    @property
    def claim(self) -> ReleaseClaim | None:
        """The paper's claim, theorem 2 included, and the epsilon that is proved.

        The theorem holds if `WordDropout` hides the words. A text with a hidden word is also a neighbour, since any two
        vectors of the cube are neighbours of the release.
        """
        if (release := self._release) is None:
            return None
        amplified = WordDropout(self.options.mu).amplified if self.options.mu else None
        return release.claim("word", amplified, amplification_proved=self.options.dropout == "independent")

    def inputs(self, texts: Texts) -> Floats | None:
        """Return the normalised vectors, float32 (n, d), or None under word dropout, which makes them random."""
        return None if self.options.mu else self._normalised(texts, np.random.default_rng(0))

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return normalised vectors with noise.

        Raises:
            ValueError: a vector is constant and cannot be normalised.
        """
        vectors, release = self._normalised(texts, rng), self._release
        return vectors if release is None else release.release(vectors, rng).astype(np.float32)

    def _normalised(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Hide words, and encode every distinct text once."""
        hidden = self.options.hidden(texts, self.encoder.mask, rng)
        rows = {text: row for row, text in enumerate(dict.fromkeys(hidden))}
        return min_max(self.encoder.documents(list(rows)))[[rows[text] for text in hidden]]
