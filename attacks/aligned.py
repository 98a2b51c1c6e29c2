"""Undo the protection of a vector store, and attack its vectors like those of the public encoder.

1. The attacker maps the stolen vectors to the encoder's space (`leakboard.attacks._alignment`).
2. It fits the store's recipe on its own texts. So it has a store of its own, with a key of its own.
3. It maps this store by the same kind of map, fitted to all its texts, so with hardly an error.
4. The inner attack learns from these vectors, and so from what the protection loses. It does not learn the errors that
   the map of the stolen vectors has.
5. It guesses from the stolen vectors.

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
from leakboard.attacks._alignment.alignment import Pairs
from leakboard.attacks._alignment.known_encoder import REFINED, KnownEncoder, own_store
from leakboard.attacks._alignment.rotation import STARTS
from leakboard.attacks._portfolio.portfolio_options import PortfolioAttack
from leakboard.attacks._reading.readers import READERS
from leakboard.attacks.attribute_inference import AttributeInference
from leakboard.attacks.entity_presence import EntityPresence
from leakboard.errors import RequestError
from leakboard.interfaces import Attack, SecretKind
from leakboard.suite.options import ALWAYS_NAMED, Count, attack, part
from leakboard.threats.secrets import KnownTexts
from leakboard.threats.stores import StoreThief
from leakboard.threats.threat import Threat

INNER: Mapping[str, type[Attack]] = {
    "attribute_inference": AttributeInference,
    "entity_presence": EntityPresence,
    **READERS,
}


class _ThreatOfInner:
    """Returns the threat of the inner attack."""

    def __get__(self, instance: "Aligned | None", owner: type) -> Threat[Any]:
        found: Threat[Any] = AttributeInference.threat if instance is None else instance.inner.threat
        return found


@attack(revision=3)
class Aligned(StoreThief):
    inner: Annotated[part(INNER), ALWAYS_NAMED] = Field(default=AttributeInference())  # type: ignore[valid-type]
    """The attack, with its options: on secrets, or on texts: one of those in the list."""
    pairs: Annotated[int, Field(ge=0)] = 0
    """Number of known pairs of a text and its stored vector."""
    alignment: Method = "auto"
    """How to undo the protection. auto: the map that fits best, but never ``unwhitened``. unwhitened: for whitened
    stores; it ignores pairs. whitened: any linear map, with pairs."""
    starts: Count = STARTS
    """Largest number of patterns of signs from which a rotation, or the map of ``unwhitened``, is sought. 79 find most
    maps."""
    transport: bool = False
    """Whether optimal transport between own and stolen vectors refines a rotation that was found without pairs. Then a
    refinement must bring stolen vectors nearer to own ones."""
    adaptive: bool = True
    """Whether the inner attack learns from a store of the attacker's own, mapped by all its texts."""
    publications: Count = 1
    """Number of vectors of each train text in the attacker's own store; several show more of a protection's noise."""

    threat: ClassVar[Any] = _ThreatOfInner()
    observations: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.publications > 1 and not self.adaptive:
            raise RequestError(f"publications: {self.publications} is not allowed with adaptive: false; allowed: 1")
        if isinstance(self.inner, PortfolioAttack) and self.inner.made_texts:
            raise RequestError("made_texts is not allowed in aligned: the store would answer under its secret key")

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an inner attack with one narrow network."""
        return cls(inner=replace(AttributeInference.example(folder), portfolio="mlp"))

    @property
    def kind(self) -> SecretKind:
        """The kind of the secrets that the inner attack guesses."""
        return self.inner.kind  # type: ignore[no-any-return]

    def fit(self, view: Any, seed: int) -> Any:
        """Find the map, and train the inner attack on the attacker's own texts."""
        train, dev = view.train, view.dev
        encoder = KnownEncoder.of(view.oracle.unprotected, train.vectors, view.store)
        stolen = encoder.align(self.alignment, seed, starts=self.starts, transport=self.transport).without_still(
            train.vectors
        )
        if self.adaptive and (own := own_store(view.oracle, train.texts, seed)) is not None:
            rng = np.random.default_rng(seed)

            def stored(known: Any) -> Any:
                return replace(known, vectors=own.publish_documents(known.texts, rng))

            first, stored_dev = stored(train), stored(dev)
            pairs, (method, *_) = Pairs(train.vectors, first.vectors), REFINED.get(stolen.method, (stolen.method,))
            mapped = KnownEncoder(train.vectors, pairs, first.vectors).align(method, seed).without_still(train.vectors)
            several = KnownTexts.joined([first, *(stored(train) for _ in range(self.publications - 1))])
            train, dev = (replace(known, vectors=mapped(known.vectors)) for known in (several, stored_dev))
        guess = self.inner.fit(replace(view, train=train, dev=dev, store=None), seed)
        return lambda vectors: guess(stolen(vectors))
