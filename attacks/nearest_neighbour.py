"""Recover words: name each published word vector by its nearest neighbours in the attacker's space.

This is algorithm A1 of Zouhri and Abecidan (2021).

- Against a static table the attacker trains the same recipe on auxiliary texts, and compares vectors by cosine. Two
  trainings give rotated spaces. The attacker may first align them by an orthogonal map of known vectors (Procrustes).
- With ``lengths`` the attacker of an aligned table also uses the lengths of vectors, and corrects for hubs. The study
  has neither. Left-out known words choose the weight of the lengths.
- The attacker knows its own table without noise, as in the study (algorithm A3). With ``own_publications: 1`` it adds
  the victim's noise to its own table, as in the study's second variant.
- Against contextual encoders the attacker embeds auxiliary texts, and names each vector by the words nearest to it.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._words.lengths import WEIGHTS, Lengths, log_lengths, nearest_without_hubs
from leakboard.claims import ReleaseClaim
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Integers, PublishedWords, Texts
from leakboard.logs import log_progress
from leakboard.models.search import nearest, nearest_groups, normalised
from leakboard.suite.options import Count, attack
from leakboard.threats.words import WordGuesses, WordsAttack, WordsView

AVERAGED = 100
"""Noisy copies that are averaged if the victim does not give its exact table."""
FOLDS = 5
"""Folds of anchors that are left out of the rotation in turn, to choose the weight of the lengths."""


@dataclass(frozen=True)
class Anchors:
    """Known words: their published vectors, float32 (a, d), and their rows in the attacker's vocabulary."""

    published: Floats
    vocabulary_rows: np.ndarray


@attack(revision=2)
class NearestNeighbour(WordsAttack):
    align: Literal["none", "anchors", "iterative"] = "none"
    """Static tables: no rotation (none), rotation by known words (anchors), or also by mutual matches (iterative)."""
    anchors: Count = 100
    """Number of known words: the attacker's most frequent words, whose vectors it asks for; they are not scored."""
    iterations: Count = 5
    """Rounds of the ``iterative`` alignment."""
    candidates: Annotated[int, Field(ge=5, le=16)] = 10
    """Number of words named for each vector; all other words have the reciprocal rank 0."""
    own_texts: Count = 2000
    """Contextual encoders: number of texts that the attacker embeds for its index; there is no alignment."""
    own_publications: Count | None = None
    """Static tables with noise: noisy copies of its own table that the attacker averages; null: the exact table."""
    exact_limit: Count = 2_000_000
    """Largest static table that is searched exactly (vectors); else the record has the measured recall."""
    lengths: bool = False
    """Static tables, aligned: also compare lengths of vectors, which tell how frequent words are; correct for hubs."""

    def __post_init__(self) -> None:
        if self.lengths and self.align == "none":
            raise RequestError("lengths: true is not allowed with align: none, since anchors choose their weight")

    def fit(self, view: WordsView, seed: int) -> "FittedNearestNeighbour":
        """Build the attacker's space, and query the anchors' published vectors to align it.

        Raises:
            NotApplicable: no anchor is in the vocabularies of both attacker and victim.
        """
        if view.contextual:
            return self._contextual(view, seed)
        shadow_table = self._shadow_table(view, seed)
        anchors = None if self.align == "none" else self._anchors(view, shadow_table.words)
        vectors = normalised(shadow_table.vectors) if anchors is None else _centred(shadow_table.vectors)
        logs = log_lengths(shadow_table.vectors) if self.lengths else None
        return FittedNearestNeighbour(self, shadow_table.words, vectors, anchors=anchors, log_lengths=logs)

    def _shadow_table(self, view: WordsView, seed: int) -> PublishedWords:
        """Return the attacker's table, trained by the victim's recipe, without noise or as an average of noisy copies.

        A victim that does not give its exact table is averaged over `AVERAGED` copies.
        """
        shadow = view.oracle.train_shadow(seed, private=False)
        texts, rng = view.auxiliary.texts("train"), np.random.default_rng(seed)
        if self.own_publications is None and (exact := shadow.exact_words(texts)) is not None:
            return exact
        first = shadow.publish_words(texts, rng)
        if not isinstance(view.claim, ReleaseClaim):  # the table is the same each time
            return first
        copies = self.own_publications or AVERAGED
        total = first.vectors.astype(np.float64)
        for _ in range(copies - 1):
            total += shadow.publish_words(texts, rng).vectors
        return PublishedWords(first.words, (total / copies).astype(np.float32))

    def _anchors(self, view: WordsView, vocabulary: list[str]) -> Anchors:
        counts = Counter(word for text in view.auxiliary.texts("train") for word in words(text))
        rows = {word: row for row, word in enumerate(vocabulary)}
        frequent = [word for word, _ in counts.most_common() if word in rows][: self.anchors]
        published = view.oracle.words(Texts(frequent))
        shared = [i for i, word in enumerate(published.words) if word in rows]
        if not shared:
            raise NotApplicable("nearest_neighbour: no anchor word is known to attacker and victim")
        return Anchors(published.vectors[shared], np.array([rows[published.words[i]] for i in shared]))

    def _contextual(self, view: WordsView, seed: int) -> "FittedNearestNeighbour":
        texts = view.auxiliary.texts("train")
        chosen = np.random.default_rng(seed).permutation(len(texts))[: self.own_texts]
        log_progress(f"embedding {len(chosen)} texts of the attacker's own")
        occurrences = view.oracle.words(Texts([texts[i] for i in sorted(chosen)]))
        vocabulary, codes = np.unique(np.array(occurrences.words, object), return_inverse=True)
        return FittedNearestNeighbour(self, vocabulary.tolist(), normalised(occurrences.vectors), codes)


def _centred(vectors: Floats) -> Floats:
    """Return rows of length 1, centred, and of length 1 again (Artetxe, Labaka and Agirre 2018, step 1)."""
    unit = normalised(vectors)
    return normalised(unit - unit.mean(0))


def _procrustes(source: Floats, target: Floats) -> Floats:
    """Return the orthogonal R that minimises ||source R - target|| (Schoenemann 1966), float32 (d, d)."""
    from scipy.linalg import orthogonal_procrustes

    return orthogonal_procrustes(source.astype(np.float64), target.astype(np.float64))[0].astype(np.float32)


@dataclass(frozen=True)
class FittedNearestNeighbour:
    """The attacker's space: ``vectors`` (m, d) of length 1, one for each word, or for each occurrence (contextual)."""

    options: NearestNeighbour
    vocabulary: list[str]
    vectors: Floats
    owners: Integers | None = None
    """int64 (m,), index of each occurrence's word in ``vocabulary``; None if each word has one vector."""
    anchors: Anchors | None = None
    log_lengths: Floats | None = None
    """Natural logarithms of the lengths of the table's vectors, float32 (m,); None: lengths are not compared."""

    def __call__(self, vectors: Floats) -> WordGuesses:
        """Rank words for each published vector."""
        queries, remarks, limit = normalised(vectors), [], self.options.exact_limit
        lengths = None
        if self.anchors:
            queries, lengths, remark = self._aligned(vectors, self.anchors)
            remarks.append(remark)
        if self.anchors and lengths:
            queries, index = lengths.appended(queries, self.vectors)
            others = np.setdiff1d(np.arange(len(index)), self.anchors.vocabulary_rows)
            if not len(others):
                raise NotApplicable("nearest_neighbour: all words that the attacker knows are anchors (fewer anchors?)")
            neighbours = nearest_without_hubs(queries, index[others], self.options.candidates, limit)
            neighbours = replace(neighbours, rows=np.append(others, -1)[neighbours.rows])  # -1: none was found
        elif self.owners is None:
            neighbours = nearest(queries, self.vectors, self.options.candidates, limit)
        else:
            neighbours = nearest_groups(queries, self.vectors, self.owners, self.options.candidates)
            remarks.append(f"each word by the nearest of {len(self.vectors)} occurrences of the attacker's own")
        if neighbours.recall < 1:
            remarks.append(f"approximate search with recall {neighbours.recall:.3f}")
        return WordGuesses(self.vocabulary, neighbours.rows, neighbours.similarity, "; ".join(remarks))

    def _aligned(self, vectors: Floats, anchors: Anchors) -> tuple[Floats, Lengths | None, str]:
        """Rotate the published vectors into the attacker's space, compare lengths, and describe both."""
        centred = _centred(np.concatenate([vectors, anchors.published]))
        queries, anchor_vectors = centred[: len(vectors)], centred[len(vectors) :]
        rotation = _procrustes(anchor_vectors, self.vectors[anchors.vocabulary_rows])
        lengths = self._lengths(vectors, anchors, anchor_vectors)
        remark = f"rotated by {len(anchor_vectors)} anchors"
        for _ in range(self.options.iterations if self.options.align == "iterative" else 0):
            rotation, matched = self._refined(queries, anchor_vectors, rotation, lengths)
            remark = f"rotated by {len(anchor_vectors)} anchors and {matched} matched words"
        remark += f"; lengths have the weight {lengths.weight:g}" if lengths else ""
        return normalised(queries @ rotation), lengths, remark

    def _lengths(self, vectors: Floats, anchors: Anchors, anchor_vectors: Floats) -> Lengths | None:
        """Choose the weight of the lengths: the one that names left-out anchors best, by mean reciprocal rank."""
        if self.log_lengths is None:
            return None
        rows, known = anchors.vocabulary_rows, log_lengths(anchors.published)
        own = self.log_lengths - np.median(self.log_lengths)
        shift = np.median(known - own[rows])  # another recipe may make all vectors longer
        rotated, fold = np.empty_like(anchor_vectors), np.arange(len(rows)) % min(FOLDS, len(rows))
        for left_out in (fold == f for f in range(FOLDS)):
            target = self.vectors[rows[~left_out]]
            rotated[left_out] = anchor_vectors[left_out] @ _procrustes(anchor_vectors[~left_out], target)

        def reciprocal_rank(weight: float) -> float:
            queries, index = Lengths(known - shift, own, weight).appended(rotated, self.vectors)
            found = nearest(queries, index, self.options.candidates, self.options.exact_limit).rows == rows[:, None]
            return float((found / np.arange(1, found.shape[1] + 1)).sum())

        return Lengths(log_lengths(vectors) - shift, own, max(WEIGHTS, key=reciprocal_rank))

    def _refined(
        self, queries: Floats, anchor_vectors: Floats, rotation: Floats, lengths: Lengths | None
    ) -> tuple[Floats, int]:
        """Rotate again, by the anchors and by all pairs that are mutual nearest neighbours under this rotation."""
        assert self.anchors, "only aligned attacks are refined"
        rotated, index = normalised(queries @ rotation), self.vectors
        if lengths:
            rotated, index = lengths.appended(rotated, index)
        forth = nearest(rotated, index, 1, self.options.exact_limit).rows[:, 0]
        back = nearest(index, rotated, 1, self.options.exact_limit).rows[:, 0]
        mutual = np.flatnonzero(back[forth] == np.arange(len(queries)))
        source = np.concatenate([anchor_vectors, queries[mutual]])
        target = self.vectors[np.concatenate([self.anchors.vocabulary_rows, forth[mutual]])]
        return _procrustes(source, target), len(mutual)
