"""What a published word table shows of the texts that it was trained on: losses, norms, and likelihood ratios of them.

The loss of skip-gram needs output vectors, which are not published. `ContextModel` makes its own: skip-gram with
negative sampling factorises a matrix of pointwise mutual information (Levy and Goldberg 2014; they subtract the log of
the number of negatives), so output vectors that go with published input vectors W are about the ridge regression of the
positive part of that matrix, counted in the attacker's own texts, on W. A pair that was trained on has a higher product
than one that was not.
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
"""Pairs whose products are worked out at once."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ContextModel:
    """A published table with output vectors of the attacker's own."""

    words: list[str]
    inputs: Floats
    """float32 (V, d), as published."""
    outputs: Floats
    """float32 (V, d)."""
    window: int

    @classmethod
    def of(cls, published: PublishedWords, texts: Sequence[str], window: int, ridge: float) -> ContextModel:
        """Work out the output vectors.

        Args:
            published: a static table.
            texts: of the attacker's own.
            window: of its pairs (words).
            ridge: weight of the penalty, over the mean square of a published coordinate.
        """
        from scipy import sparse

        from leakboard.models.skip_gram.vocabulary import POWER

        inputs = published.vectors.astype(np.float64)
        pairs = pairs_of([words(text) for text in texts], None, published.words, window)
        size = len(published.words)
        counts = sparse.coo_matrix((np.ones(len(pairs.centres)), (pairs.centres, pairs.contexts)), (size, size))
        counts = counts.tocsr().tocoo()  # the same pair once
        of_centre = np.bincount(counts.row, counts.data, size)
        drawn = np.bincount(counts.col, counts.data, size) ** POWER
        drawn /= max(drawn.sum(), 1.0)
        information = np.log(counts.data / (of_centre[counts.row] * drawn[counts.col]))
        matrix = sparse.csr_matrix((np.maximum(information, 0.0), (counts.row, counts.col)), (size, size))
        square = inputs.T @ inputs
        square += (ridge * np.trace(square) / len(square) + 1e-12) * np.eye(len(square))
        outputs = np.linalg.solve(square, (matrix.T @ inputs).T).T
        return cls(published.words, published.vectors, outputs.astype(np.float32), window)

    def features(self, units: Sequence[Texts]) -> Array:
        """Return of each unit its mean loss and the mean log norm of its words, float64 (n, 2).

        A unit without a pair of known words has the loss of a coin toss and the mean of the others' norms.
        """
        pairs, sizes = self._pairs(units)
        losses = np.empty(len(pairs.centres))
        for start in range(0, len(losses), CHUNK):
            part = slice(start, start + CHUNK)
            centres, contexts = self.inputs[pairs.centres[part]], self.outputs[pairs.contexts[part]]
            losses[part] = np.logaddexp(0.0, -np.einsum("nd,nd->n", centres, contexts))
        norms = np.log(np.linalg.norm(self.inputs, axis=1) + 1e-12)[pairs.centres].astype(np.float64)
        owners = np.repeat(np.arange(len(units)), sizes)
        has_pairs = sizes > 0
        features = np.empty((len(units), 2))
        for column, (values, missing) in enumerate(
            ((losses, math.log(2)), (norms, float(norms.mean()) if len(norms) else 0.0))
        ):
            sums = np.bincount(owners, values, len(units))
            features[:, column] = np.where(has_pairs, sums / np.maximum(sizes, 1), missing)
        return features

    def _pairs(self, units: Sequence[Texts]) -> tuple[Pairs, NDArray[np.int64]]:
        texts = [words(text) for unit in units for text in unit]
        owners = np.repeat(np.arange(len(units)), [len(unit) for unit in units])
        pairs = pairs_of(texts, owners, self.words, self.window)
        assert pairs.starts is not None, "texts with owners have units"
        sizes = np.diff(pairs.starts)
        return pairs, np.concatenate([sizes, np.zeros(len(units) - len(sizes), np.int64)])


@dataclass(frozen=True)
class FeatureExtractor:
    """Turns a published table into features of units."""

    texts: list[str]
    """Of the attacker's own."""
    window: int
    ridge: float

    def __call__(self, published: PublishedWords, units: Sequence[Texts]) -> Array:
        """Return the features of the units, float64 (n, 2): `ContextModel.features`."""
        return ContextModel.of(published, self.texts, self.window, self.ridge).features(units)


@dataclass(frozen=True)
class LikelihoodRatio:
    """How likely a unit's features are with it and without it in training (LiRA; Carlini et al. 2022, algorithm 1).

    Normal laws that share a covariance. What training on a unit changes is estimated unit by unit and drawn towards the
    mean over all units, the more the fewer the shadow models and the more alike the units (James and Stein 1961, as
    empirical Bayes, feature by feature): two models with a unit and two without tell hardly more than noise of it.
    """

    middle: Array
    """float64 (n, f), half way between the means with and without the unit."""
    change: Array
    """float64 (n, f), what training on the unit adds."""
    precision: Array
    """float64 (f, f), inverse of the shared covariance."""

    @classmethod
    def of(cls, features: Array, included: NDArray[np.bool_]) -> LikelihoodRatio:
        """Fit the laws.

        Args:
            features: float64 (models, n, f).
            included: bool (models, n), whether a model holds the unit; both occur for every unit.
        """
        held = included[:, :, None]
        inside = (features * held).sum(0) / held.sum(0)
        outside = (features * ~held).sum(0) / (~held).sum(0)
        rest = (features - np.where(held, inside, outside)).reshape(-1, features.shape[2])
        freedom = max(included.size - 2 * included.shape[1], 1)
        covariance = rest.T @ rest / freedom
        covariance += 1e-9 * (np.trace(covariance) + 1e-12) * np.eye(len(covariance))
        change = inside - outside
        by_chance = np.diag(covariance) * (1 / held.sum(0) + 1 / (~held).sum(0)).mean(0)
        reliability = np.clip(1 - by_chance / (change.var(0) + 1e-300), 0.0, 1.0)
        change = change.mean(0) + reliability * (change - change.mean(0))
        return cls((inside + outside) / 2, change, np.linalg.inv(covariance))

    def __call__(self, features: Array) -> Array:
        """Return ln p(features | inside) - ln p(features | outside) of each unit, float64 (n,)."""
        return np.einsum("nf,fg,ng->n", features - self.middle, self.precision, self.change)


def shadow_features(
    oracle: Oracle, auxiliary: Corpus, units: Sequence[Texts], features_of: FeatureExtractor, models: int, seed: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Train shadow models on the attacker's texts and half of the units, each unit in half of the models.

    Args:
        oracle: trains the victim's recipe.
        auxiliary: the attacker's texts.
        units: candidates or canaries.
        features_of: extracts the features of a table.
        models: how many, an even number.
        seed: of the halves and of the training.

    Returns:
        The features, float64 (models, n, f), and what each model holds, bool (models, n).
    """
    rng = np.random.default_rng(seed)
    included = np.zeros((models, len(units)), bool)
    for unit in range(len(units)):
        included[rng.permutation(models)[: models // 2], unit] = True
    features = []
    for model in range(models):
        log_progress(f"shadow model {model + 1} of {models}")
        fitted = oracle.train_shadow(int(rng.integers(2**31)), with_texts(auxiliary, units, included[model]))
        features.append(features_of(table(fitted, rng), units))
    return np.stack(features), included


def table(fitted: FittedVictim, rng: np.random.Generator) -> PublishedWords:
    """Return a static table that a model publishes."""
    return fitted.publish_words(Texts([]), rng)
