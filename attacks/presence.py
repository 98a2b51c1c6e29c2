"""Infer whether a text is in a vector store, from its similarity to the nearest stored vectors.

With ``access: vectors`` the attacker stole the vectors. It maps them to the space of the public encoder
(`leakboard.attacks._alignment`), and compares them with the encoded candidates. With ``recompress: true`` it compresses
the candidates first, by the centres that the stolen vectors show. With ``access: scores`` it searches the store for
each candidate, and sees the similarity of the nearest vector alone.

The score is the cosine similarity of the nearest vector. With ``likely: true`` it is the largest log-odds that a stolen
vector is of the candidate (`leakboard.attacks._alignment.noise_law`).
"""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._alignment.align import Method
from leakboard.attacks._alignment.centres import compression
from leakboard.attacks._alignment.known_encoder import KnownEncoder, own_texts, search
from leakboard.attacks._alignment.noise_law import NoiseLaw, Radius, check_radius, largest_odds
from leakboard.attacks._alignment.rotation import STARTS
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats
from leakboard.suite.options import Count, attack
from leakboard.threats.presence import KnownAs, PresenceAttack, PresenceScorer, PresenceView
from leakboard.threats.stores import StolenStore


@attack(revision=3)
class Presence(PresenceAttack):
    access: Literal["vectors", "scores"] = "vectors"
    """What the attacker has: the stored vectors, or a search that returns similarities (scores)."""
    known_as: KnownAs = "exact"
    """How the attacker knows a candidate: as stored, with a tenth of its words replaced, or half."""
    pairs: Annotated[int, Field(ge=0)] = 0
    """Number of known pairs of a text and its stored vector; only with access to vectors."""
    candidates: Annotated[int, Field(ge=2, multiple_of=2)] = 4000
    """Largest number of candidates, half of them stored."""
    alignment: Method = "auto"
    """How to undo the protection of stolen vectors. auto: the map that fits best, but never ``unwhitened``. unwhitened:
    for whitened stores; it ignores pairs. whitened: any linear map, with pairs."""
    starts: Count = STARTS
    """Largest number of patterns of signs from which a rotation, or the map of ``unwhitened``, is sought. 79 find most
    maps."""
    transport: bool = False
    """Whether optimal transport between own and stolen vectors refines a rotation that was found without pairs. Then a
    refinement must bring stolen vectors nearer to own ones."""
    recompress: bool = False
    """Whether the attacker compresses candidates by the centres that stolen vectors show."""
    likely: bool = False
    """Whether the score is the odds under the law of the noise; only with access to vectors."""
    radius: Radius = None
    """With ``likely``: radius of the ball in which the noise is uniform, for vectors of length 1. It is beta / 4 for
    scale and perturb. null: the noise is normal."""

    def __post_init__(self) -> None:
        if self.likely and self.access == "scores":
            raise RequestError("likely: true is not allowed with access: scores")
        check_radius(self.radius, self.likely)

    def fit(self, view: PresenceView, seed: int) -> PresenceScorer:
        """Search for the candidates, or encode them."""
        if self.access == "scores":
            found = view.oracle.search(view.candidates, 1)[:, 0]
            return lambda _: found
        encode = view.oracle.unprotected

        def score(store: StolenStore | None) -> Floats:
            assert store is not None, "access to vectors was asked for"
            compress = compression(store.vectors) if self.recompress else lambda vectors: vectors
            own, known = (compress(encode(texts)) for texts in (own_texts(view.auxiliary), view.candidates))
            encoder = KnownEncoder.of(lambda texts: compress(encode(texts)), own, store)
            stored = encoder.align(self.alignment, seed, known, starts=self.starts, transport=self.transport)(
                store.vectors
            )
            if not self.likely:
                return search(known, stored, stored, 1).similarity[:, 0]
            texts = np.concatenate([known, own])  # own texts may be stored, too, and explain vectors
            law = NoiseLaw.fit(stored, texts, np.random.default_rng(seed), len(texts), self.radius)
            if law is None:
                raise NotApplicable("likely: fewer than two stored vectors have a likely text")
            return largest_odds(law, stored, texts)[: len(known)]

        return score
