"""Link stored vectors to candidate texts by the public encoder, after undoing the protection as far as possible.

1. The attacker encodes its own texts, the candidates and the known pairs with the public encoder.
2. It learns a map from the stored vectors to the encoder's space (`leakboard.attacks._alignment`).
3. It maps each test vector, and ranks the candidates by cosine similarity, which is also the score of a link.

With ``likely: true`` it ranks them by the odds of `leakboard.attacks._alignment.noise_law` instead, in the encoder's
space. A candidate is left out if it is one of the attacker's own texts, or if another stolen vector is more likely of
it than not. Of several vectors with the same first candidate, only the likeliest is linked surely.

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
from leakboard.attacks._alignment.noise_law import NoiseLaw, Radius, check_radius, once, taken
from leakboard.attacks._alignment.rotation import STARTS
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Texts
from leakboard.metrics.link_scores import DEPTH, Links
from leakboard.suite.options import Count, attack
from leakboard.threats.linking import Linker, LinkingAttack, LinkingView
from leakboard.threats.oracle import plain


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
    transport: bool = False
    """Whether optimal transport between own and stolen vectors refines a rotation that was found without pairs. Then a
    refinement must bring stolen vectors nearer to own ones."""
    adaptive: bool = True
    """Whether the attacker also compares with a store of its own that is protected in the same way."""
    recompress: bool = False
    """Whether the attacker also compresses candidates by the centres that the stored vectors show."""
    likely: bool = False
    """Whether links are scored by their odds under the law of the noise, and each candidate is linked once. Then the
    attacker compares in the encoder's space alone."""
    radius: Radius = None
    """With ``likely``: radius of the ball in which the noise is uniform, for vectors of length 1. It is beta / 4 for
    scale and perturb. null: the noise is normal."""

    def __post_init__(self) -> None:
        if self.likely and self.recompress:
            raise RequestError("recompress: true is not allowed with likely: true")
        check_radius(self.radius, self.likely)

    def fit(self, view: LinkingView, seed: int) -> Linker:
        """Encode the candidates, and prepare the alignments."""
        texts, rng = own_texts(view.auxiliary), np.random.default_rng(seed)
        if self.likely:
            return self._likely(view, texts, seed)
        spaces: list[tuple[str, Encode]] = [("the encoder's space", view.oracle.unprotected)]
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

    def _likely(self, view: LinkingView, texts: Texts, seed: int) -> Linker:
        """Prepare to link by the law of the noise."""
        encode = view.oracle.unprotected
        encoder, known = KnownEncoder.of(encode, encode(texts), view.store), encode(view.candidates)
        own = set(map(plain, [*texts, *view.store.pairs.texts]))
        sought = np.array([plain(text) not in own for text in view.candidates], bool)

        def link(vectors: Floats) -> Links:
            alignment = encoder.seeing(vectors).align(
                self.alignment, seed, known, starts=self.starts, transport=self.transport
            )
            mapped, others = alignment(vectors), alignment(view.store.vectors)
            law = NoiseLaw.fit(np.concatenate([others, mapped]), known, np.random.default_rng(seed), radius=self.radius)
            if law is None:
                raise NotApplicable("likely: fewer than two stored vectors have a likely text")
            free = sought.copy()
            free[sought] = taken(law, others, known[sought]) < 0.5
            rows = np.flatnonzero(free)
            if not len(rows):
                raise NotApplicable("likely: other stored vectors are likely of every candidate")
            found = once(law.log_odds(mapped, known[rows]))
            details = f"{alignment.details}; law of the noise from {law.pairs} links; {len(rows)} candidates left"
            return Links(rows[found.rows], found.similarity, details)

        return link

    def _links(self, vectors: Floats, encoder: KnownEncoder, known: Floats, space: str, seed: int) -> Links:
        """Return the links of test vectors in one space."""
        alignment = encoder.seeing(vectors).align(
            self.alignment, seed, known, starts=self.starts, transport=self.transport
        )
        mapped = alignment(vectors)
        found = search(mapped, known, mapped, DEPTH)
        searched = "" if found.recall == 1 else f"; approximate search with recall {found.recall:.3f}"
        return Links(found.rows, found.similarity, f"in {space}: {alignment.details}{searched}")


def _lead(links: Links) -> float:
    """Return the mean difference of cosines between the first and the second candidate; 0: there are no two."""
    if len(links.scores) == 0 or links.scores.shape[1] < 2:
        return 0.0
    return float((links.scores[:, 0] - links.scores[:, 1]).mean())
