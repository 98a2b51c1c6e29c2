"""Link stored vectors to candidate texts by the public encoder, after undoing the protection as far as possible.

1. The attacker encodes its own texts, the candidates and the known pairs with the public encoder.
2. It learns a map from the stored vectors to the encoder's space (`leakboard.attacks._alignment`).
3. It maps each test vector, and ranks the candidates by cosine similarity, which is also the score of a link.
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from leakboard.attacks._alignment.align import Method
from leakboard.attacks._alignment.known_encoder import KnownEncoder, own_vectors, search
from leakboard.interfaces import Floats
from leakboard.metrics.link_scores import DEPTH, Links
from leakboard.suite.options import Count, attack
from leakboard.threats.linking import Linker, LinkingAttack, LinkingView


@attack(revision=1)
class Linking(LinkingAttack):
    pairs: Annotated[int, Field(ge=0)] = 0
    """Number of known pairs of a text and its stored vector."""
    candidates: Count | None = None
    """Largest number of candidate texts; null: all texts of the corpus, and all of the attacker's own."""
    alignment: Method = "auto"
    """How to undo the protection; auto: the way that makes the stored vectors most like the encoder's."""

    def fit(self, view: LinkingView, seed: int) -> Linker:
        """Encode the candidates, and prepare the alignment."""
        encoder = KnownEncoder.of(view.oracle, own_vectors(view.oracle, view.auxiliary), view.store)
        known = view.oracle.unprotected(view.candidates)

        def link(vectors: Floats) -> Links:
            everything = replace(encoder, stored=np.concatenate([encoder.stored, vectors]))
            alignment = everything.align(self.alignment, seed, known)
            mapped = alignment(vectors)
            found = search(mapped, known, mapped, DEPTH)
            return Links(found.rows, found.similarity, alignment.details)

        return link
