"""Learn from shadow models how a unit's text looks in a table that was trained on it (Shokri et al. 2017).

1. Each pair of neighbouring words of a unit has three values in a table: the loss of skip-gram, the cosine of both
   words, and the log length of the centre word's vector.
2. The mean over shadow models that were not trained on the unit is subtracted: some pairs are easy for every model
   (Watson et al. 2022, "On the importance of difficulty calibration in membership inference attacks").
3. The differences of a unit are averaged. They are also added up with more weight on rare centre words, which have few
   other texts to learn from. Both are done for short and long windows.
4. A logistic regression on the units of the shadow models tells trained units from others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._membership.training_data import Array, ContextModel, words_of_units
from leakboard.data.tokens import words
from leakboard.interfaces import PublishedWords, Texts
from leakboard.models.search import normalised
from leakboard.models.skip_gram.pairs import Pairs, pairs_of

WINDOWS = (1, 2, 5)
"""Largest distances between the words of a pair (words); gensim trains up to a distance of 5 by default."""
INVERSE_PENALTY = 0.03
"""Inverse of the logistic regression's penalty, for standardised features."""


@dataclass(frozen=True)
class UnitPairs:
    """The pairs of all units, in one vocabulary for all tables."""

    texts: list[str]
    """The attacker's, to estimate output vectors."""
    ridge: float
    vocabulary: list[str]
    rarity: Array
    """1 / sqrt(1 + number of occurrences in the attacker's texts), float64 (V,)."""
    pairs: tuple[Pairs, ...]
    """For each of `WINDOWS`."""

    @classmethod
    def of(cls, texts: list[str], units: Sequence[Texts], ridge: float) -> UnitPairs:
        """Find the pairs of units; the vocabulary has all words of the attacker's texts and of the units."""
        unit_words, owners = words_of_units(units)
        counts = Counter(word for text in texts for word in words(text))
        vocabulary = sorted({*counts, *(word for text in unit_words for word in text)})
        rarity = 1 / np.sqrt([1 + counts[word] for word in vocabulary])
        pairs = tuple(pairs_of(unit_words, owners, vocabulary, window) for window in WINDOWS)
        return cls(texts, ridge, vocabulary, rarity, pairs)

    def values(self, published: PublishedWords) -> list[Array]:
        """Return the values of each pair in a table, float64 (3, pairs), for each of `WINDOWS`.

        Words that the table lacks have its mean vector.
        """
        inputs = np.tile(published.vectors.mean(0), (len(self.vocabulary), 1))
        rows = {word: row for row, word in enumerate(self.vocabulary)}
        known = [i for i, word in enumerate(published.words) if word in rows]
        inputs[[rows[published.words[i]] for i in known]] = published.vectors[known]
        model = ContextModel.of(PublishedWords(self.vocabulary, inputs), self.texts, max(WINDOWS), self.ridge)
        centred = normalised(inputs - inputs.mean(0))
        lengths = np.log(np.linalg.norm(inputs, axis=1) + 1e-12)
        return [
            np.stack(
                [
                    model.losses(pairs),
                    np.einsum("nd,nd->n", centred[pairs.centres], centred[pairs.contexts]),
                    lengths[pairs.centres],
                ]
            )
            for pairs in self.pairs
        ]

    @cached_property
    def owners(self) -> tuple[NDArray[np.int64], ...]:
        """The unit of each pair, int64 (pairs,), for each of `WINDOWS`."""
        return tuple(np.repeat(np.arange(pairs.units), np.diff(pairs.starts)) for pairs in self.pairs)

    def summed(self, differences: Sequence[Array], units: int) -> Array:
        """Return standardised features of units, float64 (units, 6 for each window).

        Args:
            differences: from other models, as `values`.
            units: their number.
        """
        features = []
        for place, values in enumerate(differences):
            owners, rarity = self.owners[place], self.rarity[self.pairs[place].centres]
            sizes = np.bincount(owners, minlength=units) + 1  # so that means of few pairs are near 0
            for value in values:
                features += [np.bincount(owners, value, units) / sizes, np.bincount(owners, value * rarity, units)]
        table = np.stack(features, 1)
        return (table - table.mean(0)) / (table.std(0) + 1e-12)


@dataclass(frozen=True)
class LearnedScore:
    """Scores units in a published table by what shadow models show."""

    unit_pairs: UnitPairs
    shadows: Sequence[Sequence[Array]]
    """Values of the pairs in each shadow model (`UnitPairs.values`)."""
    included: NDArray[np.bool_]
    """Whether each model was trained on each unit, bool (models, n)."""

    def __call__(self, published: PublishedWords) -> Array:
        """Return the log-odds that a table was trained on each unit, float64 (n,)."""
        from sklearn.linear_model import LogisticRegression

        models = range(len(self.shadows))
        features = np.concatenate([self._features(self.shadows[model], leave_out=model) for model in models])
        learned = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000).fit(features, self.included.ravel())
        odds: Array = learned.decision_function(self._features(self.unit_pairs.values(published)))
        return odds

    def _features(self, values: Sequence[Array], leave_out: int | None = None) -> Array:
        """Return the features of a table's units: values minus their mean in other models without the unit."""
        others = [model for model in range(len(self.shadows)) if model != leave_out]
        differences = []
        for place, of_table in enumerate(values):
            without = ~self.included[others][:, self.unit_pairs.owners[place]]
            known = np.stack([self.shadows[model][place] for model in others])
            reference = (known * without[:, None]).sum(0) / np.maximum(without.sum(0), 1)
            differences.append(of_table - reference)
        return self.unit_pairs.summed(differences, self.included.shape[1])
