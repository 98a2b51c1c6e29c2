"""Infer membership from how often words are in the training data, which the order of many tables reveals.

A table that is sorted by frequency reveals the count c of each word. A text with x copies of a word is a likely member
if the other texts alone explain c badly.

1. Shadow models were trained on known texts. They show which count belongs to which place in a table.
2. Each other candidate is a member with probability 1/2. The rest of the training data has a Poisson number of copies
   of a word. Its rate has a gamma distribution, by the copies in the candidates and in the attacker's own texts. This
   gives the mean m and the variance v of the count without the candidate.
3. The log likelihood ratio of a candidate is the sum over its words of ln f(c - x; m, v) - ln f(c; m, v). Here f is the
   negative binomial distribution: a Poisson distribution with a gamma rate (Greenwood and Yule 1920). A word that the
   table lacks has a smaller count than every word of the table.

Counts that are read from places have errors. The method of moments estimates their relative variance from all words of
the table; v includes it. Own texts from another domain explain the counts badly. Then they are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakboard.attacks._membership.training_data import Array, places_of_rows
from leakboard.data.tokens import words
from leakboard.interfaces import PublishedWords, Texts

if TYPE_CHECKING:
    from scipy import sparse
    from sklearn.isotonic import IsotonicRegression

MIN_EXPECTED_COUNT = 20
"""Words with a smaller expected count say little about relative errors, and are left out of their estimate."""


class Explanation(NamedTuple):
    """Log likelihood ratios under one rate for each word."""

    ratios: Array
    """float64 (n,), of each candidate."""
    likelihood: float
    """Log likelihood of all counts that were read from the table."""


@dataclass(frozen=True)
class CountRatio:
    """Computes the log likelihood ratio of each candidate from the order of a table."""

    vocabulary: list[str]
    """All words of the candidates."""
    copies: sparse.csr_matrix
    """Number of copies of each word in each candidate, float64 (n, V)."""
    own: Array
    """Number of copies of each word in the attacker's own texts, float64 (V,)."""
    log_count_at: IsotonicRegression
    """Maps a place, 0 to 1, the last word at 1, to the log of a count."""

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        units: Sequence[Texts],
        tables: Sequence[PublishedWords],
        included: NDArray[np.bool_],
    ) -> CountRatio:
        """Learn which count belongs to which place.

        Args:
            texts: the attacker's own.
            units: the candidates, half of them members.
            tables: of shadow models, which were trained on ``texts`` and some of the candidates.
            included: whether each shadow model was trained on each candidate, bool (models, n).
        """
        from scipy import sparse
        from sklearn.isotonic import IsotonicRegression

        of_units = [Counter(word for text in unit for word in words(text)) for unit in units]
        own = Counter(word for text in texts for word in words(text))
        vocabulary = sorted({word for counts in of_units for word in counts})
        row_of = {word: row for row, word in enumerate(vocabulary)}
        entries = [(unit, row_of[word], n) for unit, counts in enumerate(of_units) for word, n in counts.items()]
        unit, row, copies = np.array(entries, np.int64).reshape(-1, 3).T
        shape = (len(units), len(vocabulary))
        matrix = sparse.csr_matrix((copies.astype(np.float64), (unit, row)), shape)
        places, logs = [], []
        for table, members in zip(tables, included, strict=True):
            planted = dict(zip(vocabulary, members @ matrix, strict=True))
            places.append(places_of_rows(len(table.words)))
            logs.append(np.log([own[word] + planted.get(word, 0.0) + 0.5 for word in table.words]))
        log_count_at = IsotonicRegression(increasing=False, out_of_bounds="clip")
        log_count_at.fit(np.concatenate(places), np.concatenate(logs))
        return cls(vocabulary, matrix, np.array([own[word] for word in vocabulary], np.float64), log_count_at)

    def __call__(self, published: PublishedWords) -> Array:
        """Return ln p(counts | member) - ln p(counts | no member) of each candidate, float64 (n,)."""
        by_place = np.exp(self.log_count_at.predict(places_of_rows(len(published.words)))) - 0.5
        count_of = dict(zip(published.words, by_place, strict=True))
        counts = np.array([count_of.get(word, np.nan) for word in self.vocabulary])
        in_candidates = np.asarray(self.copies.sum(0)).ravel() + 0.5
        rates = (in_candidates, in_candidates + self.own)
        explanations = [self._explain(counts, rate, by_place[-1]) for rate in rates]
        return max(explanations, key=lambda explanation: explanation.likelihood).ratios

    def _explain(self, counts: Array, rates: Array, smallest: float) -> Explanation:
        """Explain counts by members among the candidates, and by other texts.

        Args:
            counts: read from the table, float64 (V,); NaN for a word that it lacks.
            rates: shape of the gamma distribution of each word's rate in the other texts, float64 (V,).
            smallest: count of the table's last word.
        """
        listed = ~np.isnan(counts)
        in_members = np.asarray(self.copies.sum(0)).ravel() / 2
        in_others = max(float((counts - in_members)[listed].sum()), 1.0)
        scale = in_others / max(float(rates[listed].sum()), 1.0)
        mean = in_members + rates * scale
        variance = np.asarray(self.copies.power(2).sum(0)).ravel() / 4 + rates * scale * (1 + scale)
        error = _relative_variance(counts, mean, variance)

        entries = self.copies.tocoo()
        word, copies = entries.col, entries.data
        count = np.where(listed, counts, smallest)[word]
        without = mean[word] - copies * (1 / 2 + scale)
        without_variance = variance[word] - copies * (copies / 4 + scale * (1 + scale)) + error * without**2
        equal, below = (
            log_chance(np.maximum(count - copies, 0), without, without_variance)
            - log_chance(count, without, without_variance)
            for log_chance in (log_negative_binomial, log_smaller)
        )
        ratios = np.bincount(entries.row, np.where(listed[word], equal, below), self.copies.shape[0])
        explained = log_negative_binomial(counts[listed], mean[listed], (variance + error * mean**2)[listed])
        return Explanation(ratios, float(explained.sum()))


def log_negative_binomial(count: Array, mean: Array, variance: Array) -> Array:
    """Return the log density of counts, float64 (n,), continued to fractions by the gamma function.

    A variance below the mean counts as the mean: the Poisson distribution.
    """
    from scipy.special import gammaln, xlog1py

    size, chance = _size_and_chance(mean, variance)
    log_choose = gammaln(count + size) - gammaln(size) - gammaln(count + 1)
    return np.asarray(log_choose + size * np.log(chance) + xlog1py(count, -chance))


def log_smaller(count: Array, mean: Array, variance: Array) -> Array:
    """Return the log probability of a whole number below each count, float64 (n,); smaller counts count as 1."""
    from scipy.special import betainc

    size, chance = _size_and_chance(mean, variance)
    return np.log(np.maximum(betainc(size, np.maximum(np.ceil(count), 1.0), chance), 1e-300))


def _size_and_chance(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Return both parameters of negative binomial distributions, each float64 (n,)."""
    chance = mean / np.maximum(variance, mean * (1 + 1e-6))
    return mean * chance / (1 - chance), chance


def _relative_variance(counts: Array, mean: Array, variance: Array) -> float:
    """Return the variance of the counts' errors, divided by the square of the mean, by the method of moments."""
    used = ~np.isnan(counts) & (mean > MIN_EXPECTED_COUNT)
    if not used.any():
        return 0.0
    excess = (counts[used] - mean[used]) ** 2 - variance[used]
    return max(float((excess / mean[used] ** 2).mean()), 0.0)
