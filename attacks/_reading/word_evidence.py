"""Gather the evidence for words in the texts of vectors (`leakboard.attacks.stacked_words`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from warnings import catch_warnings

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._alignment.known_encoder import search
from leakboard.attacks._reading.word_sums import WordSums
from leakboard.attacks.bag_of_words import FittedBagOfWords
from leakboard.data.tokens import words
from leakboard.interfaces import Floats, Integers
from leakboard.models.search import normalised
from leakboard.models.vocabulary import Vocabulary
from leakboard.threats.secrets import KnownTexts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

WIDTHS = (0.02, 0.06)
"""Neighbours weigh exp(cosine / width)."""
LIKELIEST, NEAREST = 60, 40
"""Words of a text with evidence in any case: the likeliest by the bag, and by the neighbours."""
ATOMS = 120
"""Words that a sum is made of: so many by the bag, and so many by their own vectors."""
PENALTIES = (0.001, 0.008)
"""A word of share p costs -ln(p) times this in a sum: with the smaller one, sums have more words."""
LEAST_WEIGHT = 1e-3
"""Words with a larger weight in a sum have evidence."""
TEXTS_AT_ONCE = 500


@dataclass(frozen=True)
class Found:
    """Evidence for words in texts, one line for each pair of a text and a word."""

    rows: Integers
    """Number of the text, int64 (m,)."""
    words: Integers
    """Code of the word, int64 (m,)."""
    columns: Floats
    """float32 (m, kinds of evidence)."""


@dataclass(frozen=True)
class WordEvidence:
    bag: FittedBagOfWords
    known: Floats
    """Vectors of known texts, float32 (n, d)."""
    holding: csr_matrix
    """Whether each known text has each word, float32 (n, words)."""
    atoms: Sequence[Floats]
    """Tables of the vector of each word, of length 1, float32 (words, d) each."""
    neighbours: int
    """Number of nearest known texts that count."""

    @classmethod
    def of(cls, known: KnownTexts, bag: FittedBagOfWords, tables: Sequence[Floats], neighbours: int) -> WordEvidence:
        """Keep known texts, and tables of the vector of each word, float32 (words, d) each."""
        from scipy.sparse import csr_matrix

        texts = [sorted(set(text)) for text in bag.vocabulary.codes(map(words, known.texts))]
        ends = np.cumsum([0, *map(len, texts)])
        flat = np.array([code for text in texts for code in text], np.int64)
        shape = (len(texts), len(bag.vocabulary.units))
        holding = csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape)
        atoms = [normalised(table) for table in tables]
        return cls(bag, known.vectors, holding, atoms, min(neighbours, len(texts)))

    def __call__(self, vectors: Floats) -> Found:
        """Return the evidence in vectors, float32 (n, d)."""
        starts = range(0, max(1, len(vectors)), TEXTS_AT_ONCE)
        parts = [self._part(vectors[start : start + TEXTS_AT_ONCE], start) for start in starts]
        return Found(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.columns for part in parts]),
        )

    def _part(self, vectors: Floats, start: int) -> Found:
        targets, odds = normalised(vectors), self.bag.log_odds(vectors)
        near = search(vectors, self.known, vectors, self.neighbours)
        rows, cosines = near.rows.clip(0), near.similarity  # missing ones have a small cosine, and weigh nothing
        shares = [self._neighbours(rows, np.exp((cosines - cosines[:, :1]) / width)) for width in WIDTHS]
        copied = self.holding[rows[:, 0]].toarray() * cosines[:, :1]
        evidence = [odds, *shares, copied]
        chosen = _largest(odds, LIKELIEST) | _largest(shares[-1], NEAREST)
        for atoms in self.atoms:
            similar = targets @ atoms.T
            *most, fewest = self._sums(targets, odds, similar, atoms)
            chosen |= most[0] > LEAST_WEIGHT
            evidence += [*most, fewest, fewest / fewest.max(1, keepdims=True).clip(1e-9), similar]
        text, word = np.nonzero(chosen)
        own = [cosines[text, 0], np.log(np.array(self.bag.vocabulary.shares)[word])]
        columns = np.stack([*(values[text, word] for values in evidence), *own], axis=1).astype(np.float32)
        return Found(text + start, word, columns)

    def _neighbours(self, rows: Integers, weights: Floats) -> Floats:
        """Return the weighted share of near texts that have each word, float32 (n, words)."""
        from scipy.sparse import csr_matrix

        weights = weights / weights.sum(1, keepdims=True)
        ends = np.arange(len(rows) + 1) * rows.shape[1]
        chosen = csr_matrix((weights.ravel(), rows.ravel(), ends), (len(rows), len(self.known)))
        shares: Floats = (chosen @ self.holding).toarray()
        return shares

    def _sums(self, targets: Floats, odds: Floats, similar: Floats, table: Floats) -> list[Floats]:
        """Return the weights of words in sparse sums, float32 (n, words), for each penalty.

        Minimises |t - sum_w x_w a_w|^2 / 2 + penalty sum_w x_w ln(1 / p_w) over x >= 0: the lasso of scikit-learn, with
        each word's vector divided by its cost.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso

        costs = -np.log(np.array(self.bag.vocabulary.shares).clip(1e-6, 0.9)).astype(np.float32)
        chosen = _largest(odds, ATOMS) | _largest(similar - PENALTIES[-1] * costs, ATOMS)
        sums = [np.zeros_like(odds) for _ in PENALTIES]
        for row, target in enumerate(targets):
            atoms = np.flatnonzero(chosen[row])
            scaled = np.asfortranarray((table[atoms] / costs[atoms, None]).T, np.float64)
            gram = scaled.T @ scaled
            for penalty, weights in zip(PENALTIES, sums, strict=True):
                lasso = Lasso(
                    penalty / len(target), positive=True, fit_intercept=False, precompute=gram, tol=1e-3, max_iter=300
                )
                with catch_warnings(action="ignore", category=ConvergenceWarning):  # nearly the least is evidence, too
                    weights[row, atoms] = lasso.fit(scaled, target.astype(np.float64)).coef_ / costs[atoms]
        return sums


def fitted_vectors(known: KnownTexts, vocabulary: Vocabulary) -> Floats:
    """Return the vector of each word, float32 (words, d), fitted to known texts by `WordSums`."""
    codes = vocabulary.codes(map(words, known.texts))
    return WordSums.fit(codes, known.vectors, len(vocabulary.units)).table[:-1]


def _largest(values: Floats, count: int) -> NDArray[np.bool_]:
    """Return whether a value is among the largest of its row, bool (n, m)."""
    count = min(count, values.shape[1])
    chosen = np.zeros(values.shape, bool)
    np.put_along_axis(chosen, np.argpartition(-values, count - 1, axis=1)[:, :count], True, axis=1)
    return chosen
