"""Recover words: name each published word vector by its nearest neighbours in the attacker's space.

This is algorithm A1 of Zouhri and Abecidan (2021).

- Against a static table the attacker trains the same recipe on auxiliary texts, and compares vectors by cosine. Two
  trainings give rotated spaces. The attacker may first align them by an orthogonal map of known vectors (Procrustes).
- With ``lengths`` the attacker of an aligned table also uses the lengths of vectors, and corrects for hubs. With
  ``own_tables`` above 1 it averages several trainings. The study has neither.
- With ``weigh`` it weighs directions by how little the vectors of one word differ: those of several trainings, or of
  several occurrences (contextual encoders).
- The attacker knows its own table without noise, as in the study (algorithm A3). With ``own_publications: 1`` it adds
  the victim's noise to its own table, as in the study's second variant.
- Against contextual encoders the attacker embeds auxiliary texts, and names each vector by the words nearest to it.
"""

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._words.lengths import WEIGHTS, log_lengths, nearest_without_hubs, with_lengths
from leakboard.attacks._words.own_tables import OwnTable, Training, averaged, centred, procrustes
from leakboard.attacks._words.weighing import weighing, within_words, word_means
from leakboard.claims import ReleaseClaim
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Floats, Integers, PublishedWords, Texts
from leakboard.logs import log_progress
from leakboard.models.search import Neighbours, nearest, nearest_groups, normalised
from leakboard.suite.options import Count, attack
from leakboard.threats.words import Namer, WordGuesses, WordsAttack, WordsView

AVERAGED = 100
"""Noisy copies that are averaged if the victim does not give its exact table."""
FOLDS = 5
"""Folds of anchors that are left out of the rotation in turn, to choose the weights."""
RIDGES = (0.01, 0.1, 1.0, 10.0)
"""Ridges to choose from when directions are weighed; the first is used where no anchors can choose."""


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
    own_tables: Count = 1
    """Static tables: number of tables that the attacker trains and averages."""
    weigh: bool = False
    """Weigh directions by how little the vectors of one word differ: of several own tables, or of occurrences."""
    lengths: bool = False
    """Static tables, aligned: also compare lengths of vectors, which tell how frequent words are; correct for hubs."""

    def __post_init__(self) -> None:
        if self.lengths and self.align == "none":
            raise RequestError("lengths: true is not allowed with align: none, since anchors choose their weight")

    def fit(self, view: WordsView, seed: int) -> Namer:
        """Build the attacker's space, and query the anchors' published vectors to align it.

        Raises:
            NotApplicable: no anchor is in the vocabularies of both attacker and victim.
            RequestError: ``weigh`` has one table of a static victim.
        """
        if view.contextual:
            return self._contextual(view, seed)
        if self.weigh and self.own_tables == 1:
            raise RequestError("weigh: true is not allowed with own_tables: 1, since one table shows no differences")
        more = np.random.default_rng(seed).integers(2**31, size=self.own_tables - 1).tolist()
        own = averaged([self._train(view, s) for s in [seed, *more]], aligned=self.align != "none")
        return NamerOfTables(self, own, None if self.align == "none" else self._anchors(view, own.words))

    def _train(self, view: WordsView, seed: int) -> Training:
        """Train a table by the victim's recipe, and publish it; it is known exactly or as an average of noisy copies.

        A victim that does not give its exact table is averaged over `AVERAGED` copies.
        """
        shadow = view.oracle.train_shadow(seed, private=False)
        texts, rng = view.auxiliary.texts("train"), np.random.default_rng(seed)
        exact = shadow.exact_words(texts) if self.own_publications is None else None
        published = shadow.publish_words(texts, rng)
        if not isinstance(view.claim, ReleaseClaim):  # the table is the same each time
            return Training(exact or published, published)
        if exact is None:
            copies = self.own_publications or AVERAGED
            total = published.vectors.astype(np.float64)
            for _ in range(copies - 1):
                total += shadow.publish_words(texts, rng).vectors
            exact = PublishedWords(published.words, (total / copies).astype(np.float32))
        return Training(exact, published)

    def _anchors(self, view: WordsView, vocabulary: list[str]) -> Anchors:
        counts = Counter(word for text in view.auxiliary.texts("train") for word in words(text))
        rows = {word: row for row, word in enumerate(vocabulary)}
        frequent = [word for word, _ in counts.most_common() if word in rows][: self.anchors]
        published = view.oracle.words(Texts(frequent))
        shared = [i for i, word in enumerate(published.words) if word in rows]
        if not shared:
            raise NotApplicable("nearest_neighbour: no anchor word is known to attacker and victim")
        return Anchors(published.vectors[shared], np.array([rows[published.words[i]] for i in shared]))

    def _contextual(self, view: WordsView, seed: int) -> Namer:
        texts = view.auxiliary.texts("train")
        chosen = np.random.default_rng(seed).permutation(len(texts))[: self.own_texts]
        log_progress(f"embedding {len(chosen)} texts of the attacker's own")
        occurrences = view.oracle.words(Texts([texts[i] for i in sorted(chosen)]))
        vocabulary, codes = np.unique(np.array(occurrences.words, object), return_inverse=True)
        if not self.weigh:
            return NamerOfOccurrences(self, vocabulary.tolist(), normalised(occurrences.vectors), codes)
        centre = occurrences.vectors.mean(0)
        directions = weighing(within_words(occurrences.vectors, codes), RIDGES[0])
        weighed = normalised((occurrences.vectors - centre) @ directions)
        return NamerOfMeans(self, vocabulary.tolist(), word_means(weighed, codes), centre, directions)


@dataclass(frozen=True)
class NamerOfOccurrences:
    """Names contextual vectors by the attacker's occurrences of words."""

    options: NearestNeighbour
    vocabulary: list[str]
    vectors: Floats
    """float32 (m, d) of length 1, one for each occurrence."""
    owners: Integers
    """int64 (m,), index of each occurrence's word in ``vocabulary``."""

    def __call__(self, vectors: Floats) -> WordGuesses:
        """Rank words for each published vector."""
        found = nearest_groups(normalised(vectors), self.vectors, self.owners, self.options.candidates)
        remark = f"each word by the nearest of {len(self.vectors)} occurrences of the attacker's own"
        return WordGuesses(self.vocabulary, found.rows, found.similarity, remark)


@dataclass(frozen=True)
class NamerOfMeans:
    """Names contextual vectors by the mean vector of each word, in weighed directions (linear discriminants)."""

    options: NearestNeighbour
    vocabulary: list[str]
    means: Floats
    """Weighed means, float32 (m, d), one for each word."""
    centre: Floats
    """Mean of the attacker's occurrences, float32 (d,)."""
    directions: Floats
    """Map to weighed directions, float32 (d, d)."""

    def __call__(self, vectors: Floats) -> WordGuesses:
        """Rank words for each published vector."""
        weighed = ((vectors - self.centre) @ self.directions).astype(np.float32)
        found = nearest(weighed, self.means, self.options.candidates, self.options.exact_limit)
        remark = f"each word by the mean of its occurrences, of {len(self.means)} words, in weighed directions"
        return WordGuesses(self.vocabulary, found.rows, found.similarity, remark)


@dataclass(frozen=True)
class Weights:
    """What counts when vectors are compared."""

    ridge: float
    """Ridge of the weighing of directions; it does not count if they are not weighed."""
    lengths: float | None
    """Weight of the lengths; None: they are not compared."""


@dataclass(frozen=True)
class NamerOfTables:
    """Names the vectors of a static table by the attacker's own table."""

    options: NearestNeighbour
    own: OwnTable
    anchors: Anchors | None
    """Known words, to align the published table; None: it is not aligned."""

    def __call__(self, vectors: Floats) -> WordGuesses:
        """Rank words for each published vector."""
        remarks = [f"mean of {self.options.own_tables} own tables"] if self.options.own_tables > 1 else []
        if self.anchors is None:
            neighbours = self._nearest(*self._compared(vectors, None, Weights(RIDGES[0], None)))
        else:
            neighbours, remark = self._by_anchors(vectors, self.anchors)
            remarks.append(remark)
        if neighbours.recall < 1:
            remarks.append(f"approximate search with recall {neighbours.recall:.3f}")
        return WordGuesses(self.own.words, neighbours.rows, neighbours.similarity, "; ".join(remarks))

    def _by_anchors(self, vectors: Floats, anchors: Anchors) -> tuple[Neighbours, str]:
        """Rotate the published vectors into the attacker's space, and compare them; describe it."""
        both = centred(np.concatenate([vectors, anchors.published]))
        queries, known = both[: len(vectors)], both[len(vectors) :]
        shift = np.median(log_lengths(anchors.published) - self.own.log_lengths[anchors.vocabulary_rows])
        angles = log_lengths(vectors) - shift  # another recipe may make all vectors longer
        weights = self._weights(anchors, known, log_lengths(anchors.published) - shift)
        rotation = procrustes(known, self.own.vectors[anchors.vocabulary_rows])
        remark = f"rotated by {len(known)} anchors"
        for _ in range(self.options.iterations if self.options.align == "iterative" else 0):
            forth, mutual = self._matched(*self._compared(queries @ rotation, angles, weights))
            source = np.concatenate([known, queries[mutual]])
            rows = np.concatenate([anchors.vocabulary_rows, forth[mutual]])
            rotation = procrustes(source, self.own.vectors[rows])
            remark = f"rotated by {len(known)} anchors and {len(mutual)} matched words"
        compared, index = self._compared(queries @ rotation, angles, weights)
        if weights.lengths is None:
            return self._nearest(compared, index), remark
        others = np.setdiff1d(np.arange(len(index)), anchors.vocabulary_rows)
        if not len(others):
            raise NotApplicable("nearest_neighbour: all words that the attacker knows are anchors (fewer anchors?)")
        found = nearest_without_hubs(compared, index[others], self.options.candidates, self.options.exact_limit)
        found = replace(found, rows=np.append(others, -1)[found.rows])  # -1: none was found
        return found, f"{remark}; lengths have the weight {weights.lengths:g}"

    def _weights(self, anchors: Anchors, known: Floats, angles: Floats) -> Weights:
        """Choose the weights that name left-out anchors best, by mean reciprocal rank.

        Args:
            anchors: known words.
            known: their centred vectors, float32 (a, d).
            angles: their log lengths around the attacker's median, float32 (a,).
        """
        lengths = WEIGHTS if self.options.lengths else (None,)
        ridges = RIDGES if self.options.weigh else RIDGES[:1]
        choices = [Weights(ridge, length) for ridge, length in itertools.product(ridges, lengths)]
        if len(choices) == 1:
            return choices[0]
        rows = anchors.vocabulary_rows
        rotated, fold = np.empty_like(known), np.arange(len(rows)) % min(FOLDS, len(rows))
        for left_out in (fold == f for f in range(FOLDS)):
            rotated[left_out] = known[left_out] @ procrustes(known[~left_out], self.own.vectors[rows[~left_out]])

        def reciprocal_rank(weights: Weights) -> float:
            found = self._nearest(*self._compared(rotated, angles, weights)).rows == rows[:, None]
            return float((found / np.arange(1, found.shape[1] + 1)).sum())

        return max(choices, key=reciprocal_rank)

    def _compared(self, rotated: Floats, angles: Floats | None, weights: Weights) -> tuple[Floats, Floats]:
        """Return published and own vectors so that the cosine compares them by these weights.

        Args:
            rotated: published vectors in the attacker's space, float32 (n, d).
            angles: their log lengths around the attacker's median, float32 (n,); None: lengths are not compared.
            weights: what counts.
        """
        index = self.own.vectors
        if self.options.weigh and self.own.differences is not None:
            directions = weighing(self.own.differences, weights.ridge)
            rotated, index = rotated @ directions, index @ directions
        queries, index = normalised(rotated), normalised(index)
        if weights.lengths is None or angles is None:
            return queries, index
        lengths = with_lengths(index, self.own.log_lengths, weights.lengths)
        return with_lengths(queries, angles, weights.lengths), lengths

    def _nearest(self, queries: Floats, index: Floats) -> Neighbours:
        return nearest(queries, index, self.options.candidates, self.options.exact_limit)

    def _matched(self, queries: Floats, index: Floats) -> tuple[Integers, Integers]:
        """Return each query's nearest row of the index, int64 (n,), and the queries that are that row's nearest."""
        forth = nearest(queries, index, 1, self.options.exact_limit).rows[:, 0]
        back = nearest(index, queries, 1, self.options.exact_limit).rows[:, 0]
        return forth, np.flatnonzero(back[forth] == np.arange(len(queries)))
