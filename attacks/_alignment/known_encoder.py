"""Map a stolen store to a space in which the attacker can encode texts, and search in that space."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from leakboard.attacks._alignment.align import Method, align
from leakboard.attacks._alignment.alignment import Alignment, Pairs
from leakboard.attacks._alignment.criterion import closeness
from leakboard.attacks._alignment.linear_maps import ridge
from leakboard.attacks._alignment.rotation import STARTS, procrustes
from leakboard.attacks._alignment.transport import transported
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Corpus, FittedVictim, Floats, Integers, Texts
from leakboard.models.search import Neighbours, nearest, normalised
from leakboard.threats.oracle import Oracle
from leakboard.threats.stores import StolenStore

EXACT_PAIRS = 10**10
"""Largest number of pairs of vectors that are compared exactly."""
REFINED: dict[str, tuple[Method, ...]] = {
    "rotation": ("procrustes", "least_squares"),
    "unwhitened": ("least_squares",),
    "whitened": ("least_squares",),
}
"""Maps that neighbourhoods found, and the methods that may fit them again to linked texts.

The first method finds the same kind of map by pairs alone.
"""
REFINEMENTS = 2
NEAR_ROUNDS = 10
"""Largest number of times that a map is fitted again to near texts."""
JUDGES = 500
"""Number of stored vectors that judge a refinement."""
SAMPLE = 20
"""Number of texts on which two encoders are compared."""


Encode = Callable[[Texts], Floats]
"""Encodes texts, float32 (n, d): the public encoder, or a store of the attacker's own with the victim's protection."""


@dataclass(frozen=True)
class KnownEncoder:
    """The stolen vectors, and the attacker's texts under an encoder that it knows."""

    own: Floats
    """Vectors of the attacker's own texts, float32 (m, d)."""
    pairs: Pairs | None
    stored: Floats
    """Stolen vectors of unknown texts, float32 (n, e)."""

    @classmethod
    def of(cls, encode: Encode, own: Floats, store: StolenStore) -> "KnownEncoder":
        """Encode the texts of the known pairs."""
        known = store.pairs
        return cls(own, Pairs(encode(known.texts), known.vectors) if len(known.texts) else None, store.vectors)

    def seeing(self, vectors: Floats) -> "KnownEncoder":
        """Return the same attacker with more stolen vectors, float32 (n, e)."""
        return replace(self, stored=np.concatenate([self.stored, vectors]))

    def align(
        self,
        method: Method,
        seed: int,
        candidates: Floats | None = None,
        *,
        starts: int = STARTS,
        transport: bool = False,
    ) -> Alignment:
        """Return a map from the stored vectors to the encoder's space.

        A map that neighbourhoods found is fitted again to stored vectors and candidates that are each other's nearest.
        Some of these links judge which method fits them best. If to them another text is as near, they are chance, and
        the map stays as it was. Without candidates and pairs, own texts take their place, and nothing judges the result
        (`_fitted_to_near_texts`). With ``transport`` closeness to own texts judges.

        Args:
            method: how to align; ``auto`` takes what fits best.
            seed: draws the rows of each step.
            candidates: vectors of texts that may be stored, float32 (c, d); None: there are none.
            starts: largest number of patterns of signs from which a rotation is sought.
            transport: whether optimal transport refines a rotation that was found without pairs.

        Raises:
            NotApplicable: the method does not fit the dimensions, the rows or the pairs.
        """
        try:
            for_links = candidates is not None
            found = align(self.own, self.stored, self.pairs, method, seed, for_links=for_links, starts=starts)
        except RequestError as error:
            raise NotApplicable(f"alignment: {error}") from None
        if found.method == "none":
            raise NotApplicable(f"alignment: {found.details}")
        if self.pairs is None:
            found = self._refined(found, seed, transport, to_near_texts=candidates is None)
        if candidates is None or found.method not in REFINED:
            return found
        refined = found
        for _ in range(REFINEMENTS):
            linked = mutual_nearest(refined(self.stored), candidates)
            if len(linked[0]) <= self.own.shape[1]:  # too few to fix every direction
                return found
            order = np.random.default_rng(seed).permutation(len(linked[0]))  # those that judge come first
            pairs = Pairs(candidates[linked[1][order]], self.stored[linked[0][order]])
            fits = [align(self.own, self.stored, pairs, name, seed, for_links=True) for name in REFINED[found.method]]
            best = max(fits, key=lambda fit: fit.criterion)
            if best.criterion <= 0:
                return found
            refined = best
        fitted = f"fitted again by {refined.method} to {len(linked[0])} linked texts"
        return replace(refined, details=f"{found.details}; {fitted}")

    def _refined(self, found: Alignment, seed: int, transport: bool, to_near_texts: bool) -> Alignment:
        """Refine a map that was found without pairs.

        With ``transport`` a step is tried without some stored vectors, the judges. If it brings them nearer to own
        vectors, it is taken with all.
        """
        steps: list[Callable[[Alignment, Floats], Alignment]] = []
        if transport and found.method == "rotation":
            steps.append(lambda start, stored: transported(start, self.own, stored, seed))
        if to_near_texts and found.method in ("rotation", "unwhitened"):
            steps.append(lambda start, stored: _fitted_to_near_texts(start, self.own, stored))
        if not transport:
            return steps[0](found, self.stored) if steps else found
        order = np.random.default_rng(seed).permutation(len(self.stored))
        judges, others = np.split(self.stored[order], [min(JUDGES, len(order) // 5)])
        for step in steps:
            tried = step(found, others)
            before, after = (closeness(fitted, self.own, judges, seed) for fitted in (found, tried))
            found = step(found, self.stored) if after > before else found
        return found


def _fitted_to_near_texts(found: Alignment, own: Floats, stored: Floats) -> Alignment:
    """Fit a map again to near texts: stored and own vectors that are each other's nearest.

    Means of neighbours shrink towards the overall mean; near texts do not. Squared errors are weighted by the fourth
    power of the cosine. Nothing judges the result.
    """
    mean, centre, matrix = own.mean(0), stored.mean(0), found.matrix
    own, stored, factor = own - mean, stored - centre, np.linalg.norm(matrix, 2)
    rows = np.array([], int)
    for _ in range(NEAR_ROUNDS):
        mapped, before = stored @ matrix, rows
        rows, partners = mutual_nearest(mapped, own)
        if len(rows) <= own.shape[1]:  # too few to fix every direction
            return found
        if np.array_equal(rows, before):
            break
        near = (normalised(mapped[rows]) * normalised(own[partners])).sum(1, keepdims=True)
        linked = Pairs(own[partners] * near**2, stored[rows] * near**2)
        matrix = procrustes(linked.stored, linked.own) * factor if found.method == "rotation" else ridge(linked)
    return replace(found, matrix=matrix, details=f"{found.details}; fitted again to {len(rows)} near own texts")


def mutual_nearest(mapped: Floats, candidates: Floats) -> tuple[Integers, Integers]:
    """Return the rows of mapped vectors and candidates that are each other's nearest, int64 (k,) each."""
    forth, back = search(mapped, candidates, mapped, 1).rows[:, 0], search(candidates, mapped, mapped, 1).rows[:, 0]
    rows: Integers = np.flatnonzero(back[forth] == np.arange(len(mapped)))
    return rows, forth[rows]


def own_store(oracle: Oracle, texts: Texts, seed: int) -> FittedVictim | None:
    """Return a store of the attacker's own, with a key of its own; None if its encoder is another one.

    A trained encoder gives other vectors after another training. Then a store of the attacker's own shows nothing.
    """
    if len(texts) == 0:
        return None
    try:
        store = oracle.train_shadow(seed)
    except NotApplicable:
        return None
    sample = Texts(texts[:SAMPLE])
    vectors = store.unprotected(sample)
    return store if vectors is not None and np.allclose(vectors, oracle.unprotected(sample), atol=1e-3) else None


def own_texts(corpus: Corpus) -> Texts:
    """Return the distinct texts of train and dev of the attacker's own corpus."""
    return Texts([text for split in ("train", "dev") for text in corpus.texts(split)]).distinct()


def search(queries: Floats, index: Floats, mapped: Floats, k: int) -> Neighbours:
    """Search by cosine similarity, on the coordinates that the mapped vectors have.

    Args:
        queries: float32 (n, d).
        index: float32 (m, d).
        mapped: the argument, ``queries`` or ``index``, that an `Alignment` returned. Its zeros were left out by the
            store.
        k: number of neighbours.
    """
    kept = mapped.any(0)
    return nearest(queries[:, kept], index[:, kept], k, exact_limit=EXACT_PAIRS // max(1, len(queries)))
