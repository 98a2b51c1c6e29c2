"""Compute features of training texts in a published word table: losses, norms, and their likelihood ratios.

The loss of skip-gram needs output vectors, which are not published, so `ContextModel` estimates them. Skip-gram with
negative sampling factorises a matrix of pointwise mutual information (Levy and Goldberg 2014; they subtract the log of
the number of negatives). The attacker counts the positive part of that matrix in auxiliary texts. Its ridge regression
on the published input vectors gives output vectors. A pair in the training data has a larger product than another pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakboard.data.corpora import with_texts
from leakboard.data.tokens import words
from leakboard.interfaces import Corpus, FittedVictim, Floats, PublishedWords, Texts
from leakboard.logs import log_progress
from leakboard.models.skip_gram.pairs import Pairs, pairs_of
from leakboard.threats.oracle import Oracle

CHUNK = 1 << 18
"""Number of pairs whose products are computed together."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ContextModel:
    """A published table with the attacker's output vectors."""

    words: list[str]
    inputs: Floats
    """float32 (V, d), as published."""
    outputs: Floats
    """float32 (V, d)."""
    window: int

    @classmethod
    def of(cls, published: PublishedWords, texts: Sequence[str], window: int, ridge: float) -> ContextModel:
        """Estimate the output vectors.

        Args:
            published: a static table.
            texts: the attacker's texts.
            window: largest distance between the words of a pair (words).
            ridge: weight of the penalty, divided by the mean square of a published coordinate.
        """
        from scipy import sparse

        from leakboard.models.skip_gram.vocabulary import NEGATIVES_POWER

        inputs = published.vectors.astype(np.float64)
        pairs = pairs_of([words(text) for text in texts], None, published.words, window)
        size = len(published.words)
        counts = sparse.coo_matrix((np.ones(len(pairs.centres)), (pairs.centres, pairs.contexts)), (size, size))
        counts = counts.tocsr().tocoo()  # adds up equal pairs
        centre_counts = np.bincount(counts.row, counts.data, size)
        drawn = np.bincount(counts.col, counts.data, size) ** NEGATIVES_POWER
        drawn /= max(drawn.sum(), 1.0)
        information = np.log(counts.data / (centre_counts[counts.row] * drawn[counts.col]))
        matrix = sparse.csr_matrix((np.maximum(information, 0.0), (counts.row, counts.col)), (size, size))
        square = inputs.T @ inputs
        square += (ridge * np.trace(square) / len(square) + 1e-12) * np.eye(len(square))
        outputs = np.linalg.solve(square, (matrix.T @ inputs).T).T
        return cls(published.words, published.vectors, outputs.astype(np.float32), window)

    def losses(self, pairs: Pairs) -> Array:
        """Return the loss of skip-gram on each pair, float64 (pairs,)."""
        losses = np.empty(len(pairs.centres))
        for start in range(0, len(losses), CHUNK):
            part = slice(start, start + CHUNK)
            centres, contexts = self.inputs[pairs.centres[part]], self.outputs[pairs.contexts[part]]
            losses[part] = np.logaddexp(0.0, -np.einsum("nd,nd->n", centres, contexts))
        return losses

    def features(self, units: Sequence[Texts]) -> Array:
        """Return the mean loss of each unit and the mean log norm of its words, float64 (n, 2).

        A unit without a pair of known words gets the loss of a coin flip and the mean norm of the others.
        """
        pairs, sizes = self._pairs(units)
        losses = self.losses(pairs)
        norms = np.log(np.linalg.norm(self.inputs, axis=1) + 1e-12)[pairs.centres].astype(np.float64)
        owners = np.repeat(np.arange(len(units)), sizes)
        has_pairs = sizes > 0
        features = np.empty((len(units), 2))
        mean_norm = float(norms.mean()) if len(norms) else 0.0
        for column, (values, missing) in enumerate(((losses, math.log(2)), (norms, mean_norm))):
            sums = np.bincount(owners, values, len(units))
            features[:, column] = np.where(has_pairs, sums / np.maximum(sizes, 1), missing)
        return features

    def _pairs(self, units: Sequence[Texts]) -> tuple[Pairs, NDArray[np.int64]]:
        pairs = pairs_of(*words_of_units(units), self.words, self.window)
        sizes = np.diff(pairs.starts)
        return pairs, np.concatenate([sizes, np.zeros(len(units) - len(sizes), np.int64)])


def words_of_units(units: Sequence[Texts]) -> tuple[list[list[str]], NDArray[np.int64]]:
    """Return the words of each text of all units, and the unit of each text, int64 (texts,)."""
    texts = [words(text) for unit in units for text in unit]
    return texts, np.repeat(np.arange(len(units)), [len(unit) for unit in units])


@dataclass(frozen=True)
class FeatureExtractor:
    """Compute features of units from a published table."""

    texts: list[str]
    """The attacker's."""
    window: int
    ridge: float
    earlier: Sequence[str] | None = None
    """Words of an earlier table without the units, in order. None: the place of a word is no feature."""

    def __call__(self, published: PublishedWords, units: Sequence[Texts]) -> Array:
        """Return `ContextModel.features` of the units, float64 (n, 2); with an earlier table also their rise, (n, 3).

        The rise is `mean_places` in the earlier table minus that in the published one.
        """
        features = ContextModel.of(published, self.texts, self.window, self.ridge).features(units)
        if self.earlier is None:
            return features
        rise = mean_places(self.earlier, units) - mean_places(published.words, units)
        return np.column_stack([features, rise])


def places_of_rows(size: int) -> Array:
    """Return the place of each word of a table, float64 (V,): the first has 1 / V, the last 1."""
    return np.arange(1, size + 1) / size


def mean_places(table: Sequence[str], units: Sequence[Texts]) -> Array:
    """Return the mean place of each unit's distinct words in a table, float64 (n,).

    A word that the table lacks has the place 1 + 1 / V. In a table that is sorted by frequency, the place tells how
    often a word is in the training data. A unit without words has the mean of the others, or 0.
    """
    place_of = dict(zip(table, places_of_rows(len(table)), strict=True))
    missing_word = 1 + 1 / max(len(table), 1)
    places = [[place_of.get(word, missing_word) for word in {*words(" ".join(unit))}] for unit in units]
    means = [sum(unit) / len(unit) for unit in places if unit]
    missing = sum(means) / len(means) if means else 0.0
    return np.array([sum(unit) / len(unit) if unit else missing for unit in places])


@dataclass(frozen=True)
class LikelihoodRatio:
    """Likelihood ratio of a unit's features with and without it in training (LiRA; Carlini et al. 2022, algorithm 1).

    Both distributions are normal with the same covariance. The change by training on a unit is estimated for each unit.
    Then it is shrunk towards the mean of all units (James and Stein 1961, as empirical Bayes, for each feature), and
    more if shadow models are few or units are similar: two models with a unit and two without show mostly noise.
    """

    middle: Array
    """float64 (n, f), mid-point of the means with and without the unit."""
    change: Array
    """float64 (n, f), the mean with the unit minus the mean without it."""
    precision: Array
    """float64 (f, f), inverse of the shared covariance."""

    @classmethod
    def of(cls, features: Array, included: NDArray[np.bool_]) -> LikelihoodRatio:
        """Fit the distributions.

        Args:
            features: float64 (models, n, f).
            included: bool (models, n), whether a model was trained on the unit; both must occur for every unit.
        """
        member = included[:, :, None]
        inside = (features * member).sum(0) / member.sum(0)
        outside = (features * ~member).sum(0) / (~member).sum(0)
        residuals = (features - np.where(member, inside, outside)).reshape(-1, features.shape[2])
        freedom = max(included.size - 2 * included.shape[1], 1)
        covariance = residuals.T @ residuals / freedom
        covariance += 1e-9 * (np.trace(covariance) + 1e-12) * np.eye(len(covariance))
        change = inside - outside
        by_chance = np.diag(covariance) * (1 / member.sum(0) + 1 / (~member).sum(0)).mean(0)
        reliability = np.clip(1 - by_chance / (change.var(0) + 1e-300), 0.0, 1.0)
        change = change.mean(0) + reliability * (change - change.mean(0))
        return cls((inside + outside) / 2, change, np.linalg.inv(covariance))

    def __call__(self, features: Array) -> Array:
        """Return ln p(features | inside) - ln p(features | outside) of each unit, float64 (n,)."""
        return np.einsum("nf,fg,ng->n", features - self.middle, self.precision, self.change)


def shadow_tables(
    oracle: Oracle, auxiliary: Corpus, units: Sequence[Texts], models: int, seed: int
) -> tuple[list[PublishedWords], NDArray[np.bool_]]:
    """Train shadow models on the attacker's texts and half of the units, each unit in half of the models.

    Args:
        oracle: trains the victim's recipe.
        auxiliary: the attacker's texts.
        units: candidates or canaries.
        models: number of models, even.
        seed: of the halves and of the training.

    Returns:
        The tables, and whether each model was trained on each unit, bool (models, n).
    """
    rng = np.random.default_rng(seed)
    included = np.zeros((models, len(units)), bool)
    for unit in range(len(units)):
        included[rng.permutation(models)[: models // 2], unit] = True
    tables = []
    for model in range(models):
        log_progress(f"shadow model {model + 1} of {models}")
        fitted = oracle.train_shadow(int(rng.integers(2**31)), with_texts(auxiliary, units, included[model]))
        tables.append(static_table(fitted, rng))
    return tables, included


def static_table(fitted: FittedVictim, rng: np.random.Generator) -> PublishedWords:
    """Return the static table that a model publishes."""
    return fitted.publish_words(Texts([]), rng)
