"""Test what word counts reveal: ratios by hand, members of planted worlds, and nothing in tables of other texts."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.metrics import roc_auc_score

from leakboard.attacks._membership.word_counts import CountRatio, log_negative_binomial, log_smaller
from leakboard.attacks.membership_inference import MembershipInference
from leakboard.interfaces import PublishedWords, Texts

TOLERANCE = 4 / np.sqrt(3 * 600 * 5)
"""Four standard deviations of the mean area of five worlds with 600 candidates, half of them members, by chance."""
VOCABULARY = [f"w{number:04d}" for number in range(3000)]


def table_of(words):
    return PublishedWords(list(words), np.zeros((len(words), 1), np.float32))


def negative_binomial(mean, variance):
    return stats.nbinom(mean**2 / (variance - mean), mean / variance)


class TestDistributions:
    COUNTS = np.array([0.0, 3, 7, 40])
    MEANS = np.array([0.5, 4, 6, 30])
    VARIANCES = np.array([0.9, 9, 6.5, 200])

    def test_chances_of_counts_are_those_of_scipy(self):
        expected = negative_binomial(self.MEANS, self.VARIANCES)
        found = log_negative_binomial(self.COUNTS, self.MEANS, self.VARIANCES)
        assert found == pytest.approx(expected.logpmf(self.COUNTS))
        assert log_smaller(self.COUNTS + 1, self.MEANS, self.VARIANCES) == pytest.approx(expected.logcdf(self.COUNTS))
        between = log_smaller(self.COUNTS + 0.5, self.MEANS, self.VARIANCES)
        assert between == pytest.approx(expected.logcdf(self.COUNTS))

    def test_a_variance_below_the_mean_is_that_of_poisson(self):
        found = log_negative_binomial(self.COUNTS, self.MEANS, self.MEANS / 2)
        assert found == pytest.approx(stats.poisson(self.MEANS).logpmf(self.COUNTS), abs=1e-4)


def test_ratios_by_hand():
    """Each word is in one candidate, so no other candidate matters. The table has 7 copies of a, and lacks b."""
    copies = sparse.csr_matrix(np.array([[2.0, 0], [0, 1], [0, 0]]))
    log_count_at = SimpleNamespace(
        predict=lambda places: np.log(np.array([7.5, 3.5])[np.round(2 * places).astype(int) - 1])
    )
    ratio = CountRatio(["a", "b"], copies, np.zeros(2), log_count_at)
    scale = (7 - 2 / 2) / 2.5  # copies of a, without those of half of the candidates, over its rate
    listed, missing = 0.5 * scale, 0.5 * scale  # of other texts
    variance = 0.5 * scale * (1 + scale)
    expected = [
        negative_binomial(listed, variance).logpmf(5) - negative_binomial(listed, variance).logpmf(7),
        negative_binomial(missing, variance).logcdf(1) - negative_binomial(missing, variance).logcdf(2),
        0,
    ]
    assert ratio(table_of(["a", "z"])) == pytest.approx(expected)


class TestWorlds:
    """Texts are of words by Zipf's law. Tables list the words with at least two copies, the most frequent first."""

    @staticmethod
    def texts(number, rng, shift=0):
        chances = 1 / np.arange(3, len(VOCABULARY) + 3)
        drawn = rng.choice(len(VOCABULARY), (number, 15), p=chances / chances.sum())
        return [" ".join(VOCABULARY[(word * 7 + shift) % len(VOCABULARY)] for word in text) for text in drawn]

    @staticmethod
    def counted(texts):
        counts = Counter(" ".join(texts).split())
        return table_of(sorted((w for w in counts if counts[w] > 1), key=lambda word: (-counts[word], word)))

    def areas(self, own_shift=0, tables=None):
        """Return the areas under the curve of five worlds."""
        areas = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            candidates, others = self.texts(600, rng), self.texts(500, rng)
            members = rng.permutation(600) < 300
            own = self.texts(2000, rng, own_shift)
            included = np.array([rng.permutation(600) < 300 for _ in range(4)])
            shadows = [self.counted(own + [candidates[i] for i in np.flatnonzero(row)]) for row in included]
            ratio = CountRatio.of(own, [Texts([text]) for text in candidates], shadows, included)
            trained = self.counted(others + [candidates[i] for i in np.flatnonzero(members)])
            areas.append(roc_auc_score(members, ratio(tables(trained, self.texts(800, rng)) if tables else trained)))
        return np.array(areas)

    def test_members_are_found_also_by_own_texts_of_another_domain(self):
        near, far = self.areas(), self.areas(own_shift=1)
        assert near.mean() > 0.85
        assert far.mean() > 0.83

    def test_a_table_of_other_texts_reveals_no_member(self):
        areas = self.areas(tables=lambda trained, others: self.counted(others))
        assert abs(areas.mean() - 0.5) < TOLERANCE

    def test_a_public_list_of_words_reveals_no_member(self):
        areas = self.areas(tables=lambda trained, others: table_of(VOCABULARY))
        assert abs(areas.mean() - 0.5) < TOLERANCE


def test_ranks_need_shadow_models_with_candidates():
    with pytest.raises(ValueError, match="ranks: true is not allowed with score: loss; allowed: likelihood_ratio"):
        MembershipInference(ranks=True)
