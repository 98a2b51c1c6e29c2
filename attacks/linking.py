"""Link stored vectors to candidate texts by the public encoder, after undoing the protection as far as possible.

1. The attacker encodes its own texts, the candidates and the known pairs with the public encoder.
2. It learns a map from the stored vectors to the encoder's space (`leakboard.attacks._alignment`).
3. It maps each test vector, and ranks the candidates by cosine similarity, which is also the score of a link.

With ``adaptive: true`` it also fits the store's recipe on its own texts, and does the same with the vectors of this
store, if the encoder needs no training. A protection without a key, such as signs, then gives a candidate the stored
vector itself. With ``recompress: true`` it compresses its vectors by the centres that the stolen ones show
(`leakboard.attacks._alignment.centres`). The attacker keeps the space in which first candidates lead second ones by
the larger mean cosine.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from leakboard.attacks._alignment.align import Method
from leakboard.attacks._alignment.centres import compression
from leakboard.attacks._alignment.known_encoder import Encode, KnownEncoder, own_store, own_texts, search
from leakboard.attacks._alignment.rotation import STARTS
from leakboard.interfaces import Floats
from leakboard.metrics.link_scores import DEPTH, Links
from leakboard.suite.options import Count, attack
from leakboard.threats.linking import Linker, LinkingAttack, LinkingView


@attack(revision=3)
class Linking(LinkingAttack):
    pairs: Annotated[int, Field(ge=0)] = 0
    """Number of known pairs of a text and its stored vector."""
    candidates: Count | None = None
    """Largest number of candidate texts, never fewer than the right ones; null: no limit."""
    alignment: Method = "auto"
    """How to undo the protection. auto: the map that fits best, but never ``unwhitened``. unwhitened: for whitened
    stores; it ignores pairs. whitened: any linear map, with pairs."""
    starts: Count = STARTS
    """Largest number of patterns of signs from which a rotation, or the map of ``unwhitened``, is sought. 79 find most
    maps."""
    adaptive: bool = True
    """Whether the attacker also compares with a store of its own that is protected in the same way."""
    recompress: bool = False
    """Whether the attacker also compresses candidates by the centres that the stored vectors show."""

    def fit(self, view: LinkingView, seed: int) -> Linker:
        """Encode the candidates, and prepare the alignments."""
        spaces: list[tuple[str, Encode]] = [("the encoder's space", view.oracle.unprotected)]
        texts, rng = own_texts(view.auxiliary), np.random.default_rng(seed)
        if self.adaptive and (store := own_store(view.oracle, texts, seed)) is not None:
            spaces.append(("its own store's space", lambda asked: store.publish_documents(asked, rng)))
        if self.recompress:
            compress = compression(view.store.vectors)
            spaces.append(("the store's centres", lambda asked: compress(view.oracle.unprotected(asked))))
        prepared = [
            (name, KnownEncoder.of(encode, encode(texts), view.store), encode(view.candidates))
            for name, encode in spaces
        ]

        def link(vectors: Floats) -> Links:
            found = [self._links(vectors, encoder, known, name, seed) for name, encoder, known in prepared]
            return max(found, key=_lead)

        return link

    def _links(self, vectors: Floats, encoder: KnownEncoder, known: Floats, space: str, seed: int) -> Links:
        """Return the links of test vectors in one space."""
        alignment = encoder.seeing(vectors).align(self.alignment, seed, known, starts=self.starts)
        mapped = alignment(vectors)
        found = search(mapped, known, mapped, DEPTH)
        searched = "" if found.recall == 1 else f"; approximate search with recall {found.recall:.3f}"
        return Links(found.rows, found.similarity, f"in {space}: {alignment.details}{searched}")


def _lead(links: Links) -> float:
    """Return the mean difference of cosines between the first and the second candidate; 0: there are no two."""
    if len(links.scores) == 0 or links.scores.shape[1] < 2:
        return 0.0
    return float((links.scores[:, 0] - links.scores[:, 1]).mean())
