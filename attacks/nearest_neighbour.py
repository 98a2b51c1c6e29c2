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

from collections import Counter
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from leakboard.attacks._words.namers import RIDGES, Anchors, NamerOfMeans, NamerOfOccurrences, NamerOfTables
from leakboard.attacks._words.own_tables import Training, averaged
from leakboard.attacks._words.weighing import weighing, within_words, word_means
from leakboard.claims import ReleaseClaim
from leakboard.data.tokens import words
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import PublishedWords, Texts
from leakboard.logs import log_progress
from leakboard.models.search import normalised
from leakboard.suite.options import Count, attack
from leakboard.threats.words import Namer, WordsAttack, WordsView

AVERAGED = 100
"""Noisy copies that are averaged if the victim does not give its exact table."""


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
    """Largest number of words that are searched exactly; else the record has the measured recall."""
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
            RequestError: the victim is static, ``weigh`` is true and ``own_tables`` is 1.
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
