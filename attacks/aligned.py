"""Undo the protection of a vector store, and attack its vectors like those of the public encoder.

1. The attacker fits the store's recipe on its own texts. So it has a store of its own, with a key of its own.
2. It maps the vectors of this store to the encoder's space (`leakboard.attacks._alignment`): each half of its texts by
   the other half, since the stolen texts are not its own either.
3. The inner attack learns from the mapped vectors, errors and noise included.
4. It guesses from the stolen vectors, which are mapped in the same way.

With ``adaptive: false``, or if the encoder is trained, the inner attack learns from the encoder's vectors without
protection. The attacker needs no stored vector whose secret it knows.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from leakboard.attacks._alignment.align import Method
from leakboard.attacks._alignment.alignment import Alignment, Pairs
from leakboard.attacks._alignment.known_encoder import KnownEncoder, own_store
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.bag_of_words import BagOfWords
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.attacks.nearest_text import NearestText
from leakboard.attacks.search import Search
from leakboard.interfaces import Attack, FittedVictim, Floats, Integers, SecretKind
from leakboard.suite.options import ALWAYS_NAMED, attack, part
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.stores import StoreThief
from leakboard.threats.threat import Threat

INNER: Mapping[str, type[Attack]] = {
    "attribute_inference": AttributeInference,
    "entity_presence": EntityPresence,
    "bag_of_words": BagOfWords,
    "nearest_text": NearestText,
    "search": Search,
}


class _ThreatOfInner:
    """Returns the threat of the inner attack."""

    def __get__(self, instance: "Aligned | None", owner: type) -> Threat[Any]:
        found: Threat[Any] = AttributeInference.threat if instance is None else instance.inner.threat
        return found


@attack(revision=2)
class Aligned(StoreThief):
    inner: Annotated[part(INNER), ALWAYS_NAMED] = Field(default=AttributeInference())  # type: ignore[valid-type]
    """The attack: attribute_inference, entity_presence, bag_of_words, nearest_text or search, with its options."""
    pairs: Annotated[int, Field(ge=0)] = 0
    """Number of known pairs of a text and its stored vector."""
    alignment: Method = "auto"
    """How to undo the protection; auto: the way that makes the stored vectors most like the encoder's."""
    adaptive: bool = True
    """Whether the inner attack learns from a store of the attacker's own that is mapped in the same way."""

    threat: ClassVar[Any] = _ThreatOfInner()
    observations: ClassVar[int] = 1

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an inner attack with one narrow network."""
        return cls(inner=replace(AttributeInference.example(folder), portfolio="mlp"))

    @property
    def kind(self) -> SecretKind:
        """The kind of the secrets that the inner attack guesses."""
        return self.inner.kind  # type: ignore[no-any-return]

    def fit(self, view: Any, seed: int) -> Any:
        """Train the inner attack on the attacker's own texts."""
        train, dev = view.train, view.dev
        if self.adaptive and (own := own_store(view.oracle, train.texts, seed)) is not None:
            train, dev = self._mapped(train, dev, own, seed)
        guess = self.inner.fit(replace(view, train=train, dev=dev, store=None), seed)
        encoder = KnownEncoder.of(view.oracle.unprotected, view.train.vectors, view.store)
        return lambda vectors: guess(encoder.seeing(vectors).align(self.alignment, seed)(vectors))

    def _mapped(
        self, train: KnownTexts, dev: KnownTexts, own: FittedVictim, seed: int
    ) -> tuple[KnownTexts, KnownTexts]:
        """Return train and dev with vectors of the attacker's own store, mapped like stolen ones."""
        rng = np.random.default_rng(seed)
        stored, stored_dev = (own.publish_documents(known.texts, rng) for known in (train, dev))
        mapped, order = np.empty_like(train.vectors), rng.permutation(len(stored))
        halves = order[: len(order) // 2], order[len(order) // 2 :]
        for mine, others in (halves, halves[::-1]):
            alignment = self._map(train.vectors, stored, mine, others, seed)
            mapped[mine] = alignment(stored[mine])
        return replace(train, vectors=mapped), replace(dev, vectors=alignment(stored_dev))

    def _map(self, vectors: Floats, stored: Floats, mine: Integers, others: Integers, seed: int) -> Alignment:
        """Return the map for the stored vectors of some texts, found from the encoder's vectors of the others."""
        paired = mine[: self.pairs]
        pairs = Pairs(vectors[paired], stored[paired]) if self.pairs else None
        return KnownEncoder(vectors[others], pairs, stored[mine[self.pairs :]]).align(self.alignment, seed)
