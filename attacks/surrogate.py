"""Read texts from vectors of an unknown encoder, with few known pairs: ALGEN's setting, and TEIA's idea.

1. The attacker encodes its own texts, and those of the known pairs, by another public encoder.
2. Ridge regression on the pairs predicts stored vectors from these vectors. Left-out pairs show the errors.
3. The inner attack learns from the stored vectors that its own texts might have, errors included, and from the pairs.
4. It guesses from the stolen vectors as they are.

Chen, Xu and Bjerva (2025, ALGEN) map in the other direction, from stored to own vectors, and their decoder learns from
own vectors without errors. Huang et al. (2024, TEIA) imitate stored vectors as here, by a trained adapter.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._alignment.alignment import Pairs
from leakboard.attacks._alignment.surrogate import SurrogateStore
from leakboard.attacks._reading.readers import READERS
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.models import static_vectors
from leakboard.models.public_encoders import PublicEncoder, files_of
from leakboard.suite.options import ALWAYS_NAMED, Count, attack, part
from leakboard.threats.oracle import Refusing
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.stores import StoreThief
from leakboard.threats.texts import Reader, TextsAttack, TextsView

UNKNOWN = "the attacker does not know the victim's encoder"


@attack(revision=2)
class Surrogate(StoreThief, TextsAttack):
    inner: Annotated[part(READERS), ALWAYS_NAMED] = Field(default=BagOfWords())  # type: ignore[valid-type]
    """The attack on texts, with its options. The oracle refuses its questions."""
    pairs: Annotated[int, Field(ge=2)] = 1_000
    """Number of known pairs of a text and its stored vector."""
    own_encoder: PublicEncoder = "WordLlama"
    """The attacker's encoder: MiniLM, or static vectors (WordLlama)."""
    copies: Count = 2
    """Number of vectors that are drawn for each own text."""
    repeats: Count = 4
    """How often the inner attack sees each known pair."""

    uses_gpu: ClassVar[bool] = True
    only_by_name: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a narrow bag of words, five pairs, and the encoder that tests have."""
        return cls(inner=BagOfWords.example(folder), pairs=5, own_encoder="MiniLM")

    @classmethod
    def availability(cls) -> str:
        """Return whether the default encoder is installed."""
        return static_vectors.availability()

    def fingerprint(self) -> str:
        """Identify the files of the attacker's encoder."""
        return files_of(self.own_encoder)

    def fit(self, view: TextsView, seed: int) -> Reader:
        """Imitate the store, and train the inner attack."""
        assert view.store is not None, "a thief has a store"
        known, rng = view.store.pairs, np.random.default_rng(seed)
        pairs = Pairs(view.oracle.unprotected(known.texts), known.vectors)
        stored = np.concatenate([view.store.vectors, known.vectors])
        imitate = SurrogateStore.fit(view.train.vectors, stored, pairs, seed)

        def imitated(own: KnownTexts) -> KnownTexts:
            return replace(own, vectors=imitate(own.vectors, rng))

        paired = KnownTexts(known.texts, known.vectors, {})
        train = KnownTexts.joined([imitated(view.train) for _ in range(self.copies)] + [paired] * self.repeats)
        view = replace(view, train=train, dev=imitated(view.dev), store=None, oracle=Refusing(UNKNOWN))
        guess: Reader = self.inner.fit(view, seed)
        return guess
