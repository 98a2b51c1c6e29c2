"""Learned scores and thresholds: they find more than the sum does, and no lucky threshold wins."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import linalg, special

from leakboard.privacy.auditing import choosing
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.auditing.scores import fisher, learned_scores, scores_of
from leakboard.privacy.auditing.thresholds import best_threshold
from leakboard.privacy.auditing.trials import LARGEST_NUMBER

N = 20_000


def auc(first, second):
    ranks = np.argsort(np.argsort(np.concatenate([first, second])))
    return (ranks[: len(first)].mean() - (len(first) - 1) / 2) / len(second)


def auc_of(score, sides):
    """Return the area under the curve of a score on the second half of either side."""
    return auc(*(score(side[N:]) for side in sides))


def mechanism(noise, log_ratio=lambda *arguments: None):
    return SimpleNamespace(
        delta=0.0,
        release=lambda values, rng: values + noise(rng, values.shape),
        log_ratio=log_ratio,
        vector_of=lambda values: values,
    )


def test_a_score_is_rounded_by_its_own_spread():
    first, second = np.random.default_rng(0).normal(loc=[0, 1e6], size=(2, 1000, 2))
    silent = mechanism(lambda rng, shape: np.zeros(shape))
    score = scores_of(silent, corners(2)[0], first, second, digits=1)[0]["smallest coordinate"]
    np.testing.assert_allclose(score(first), first.min(1), atol=0.1)  # spread 1, rounded up to at most 2
    assert len(np.unique(score(first))) < 100


class TestLearnedScores:
    def test_values_that_many_releases_share_have_their_own_ratios(self):
        rng, shares = np.random.default_rng(9), np.array([[0.1, 0.8, 0.1], [0.45, 0.1, 0.45]])
        sides = [rng.choice(3, (N, 1), p=share).astype(float) for share in shares]
        score = learned_scores(*sides, np.ones(1))["density ratios of the coordinates"]
        ratios = score(np.array([[0.0], [1.0], [2.0]]))
        np.testing.assert_allclose(ratios, np.log(shares[0] / shares[1]), atol=0.15)

    def test_tables_come_close_to_the_exact_ratio(self):
        """For Laplace noise in eight dimensions, where the sum does not."""
        rng, d = np.random.default_rng(0), 8
        sides = [rng.laplace(value, 2, (2 * N, d)) for value in (0.0, 1.0)]
        best = auc_of(lambda outputs: (np.abs(outputs - 1) - np.abs(outputs)).sum(1), sides)
        for name, score in learned_scores(sides[0][:N], sides[1][:N], np.ones(d)).items():
            assert best - 0.012 < auc_of(score, sides) < best + 0.005, name
        assert auc_of(lambda outputs: -outputs.sum(1), sides) < best - 0.015

    def test_coordinates_with_different_noise_have_their_own_tables(self):
        rng = np.random.default_rng(1)
        sides = [rng.normal(value, [1, 4, 4, 4], (2 * N, 4)) for value in (0.0, 1.0)]
        learned = learned_scores(sides[0][:N], sides[1][:N], None)
        each = auc_of(learned["density ratios of the coordinates"], sides)
        assert each > auc_of(learned["density ratio of all coordinates"], sides) + 0.02

    def test_trees_find_a_scale_that_a_row_shares(self):
        """Rows have little or much noise: the distance of a row shows how much its sum reveals."""
        rng, d = np.random.default_rng(2), 16
        sides = [value + rng.normal(0, 1, (2 * N, d)) * rng.choice([0.5, 20], (2 * N, 1)) for value in (0.0, 1.0)]
        learned = learned_scores(sides[0][:N], sides[1][:N], np.ones(d))
        certain = [np.mean(learned["boosted trees"](side[N:]) > 2) for side in sides]
        assert certain[0] > 0.4
        assert certain[1] < 0.02

    def test_constant_releases_have_scores(self):
        zeros = np.zeros((200, 2), np.float32)
        learned = learned_scores(zeros, zeros, None)
        assert all(np.isfinite(score(zeros[:3])).all() for score in learned.values())

    @pytest.mark.parametrize("fails", [False, True], ids=["as usual", "if singular values do not converge"])
    def test_the_discriminant_is_fishers(self, fails, monkeypatch):
        """For a known covariance C and difference of means m its weights are along inverse(C) m."""
        solve = linalg.lstsq

        def lstsq(*arguments, lapack_driver=None):
            if fails and lapack_driver is None:
                raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")
            return solve(*arguments, lapack_driver=lapack_driver)

        monkeypatch.setattr(linalg, "lstsq", lstsq)
        rng, means = np.random.default_rng(4), np.array([1.0, 0, 2])
        factor = np.array([[2.0, 0, 0], [1, 1, 0], [0, 3, 1]])
        sides = [rng.normal(size=(N, 3)) @ factor.T + side * means for side in (0, 1)]
        weights, expected = fisher(*sides)(np.eye(3)), np.linalg.solve(factor @ factor.T, means)
        assert weights @ expected > 0.999 * np.linalg.norm(weights) * np.linalg.norm(expected)


class TestCandidates:
    @pytest.mark.parametrize("compared", [choosing.MAX_COMPARED, choosing.MAX_KEPT])
    def test_scores_are_compared_once_more_before_most_are_dropped(self, compared, monkeypatch):
        """With this seed the sum and the projection, here the same, look best on the draws that choose a pair."""
        monkeypatch.setattr(choosing, "MAX_COMPARED", compared)
        laplace = mechanism(lambda rng, shape: rng.laplace(0, 16, shape))
        kept = choosing.choose_candidates(
            laplace, corners(16), np.random.default_rng(42), 10_000, fresh=1_000_000, error=0.05, digits=9
        )
        pairs = choosing.pairs_of(kept)
        assert len(pairs) == choosing.MAX_PAIRS
        for pair in pairs:
            others = [candidate for candidate in kept if candidate.pair is pair and not candidate.of_points]
            assert 0 < len(others) <= choosing.MAX_KEPT
        assert ("density ratio" in kept[0].score_name) == (compared > choosing.MAX_KEPT)

    @pytest.mark.parametrize("known", [True, False])
    def test_infinite_ratios_of_a_known_density_are_finite_scores(self, known):
        """Noise within 3: one of the inputs cannot produce outputs below -2 or above 3."""

        def log_ratio(outputs, first, second):
            sides = (np.where(np.abs(outputs - value).max(1) <= 3, 0.0, -np.inf) for value in (first, second))
            with np.errstate(invalid="ignore"):  # outputs that neither can give
                return np.subtract(*sides) if known else None

        uniform = mechanism(lambda rng, shape: rng.uniform(-3, 3, shape), log_ratio)
        candidates = choosing.choose_candidates(uniform, corners(2)[:1], np.random.default_rng(0), 4000, 4000, 0.05, 9)
        assert ("likelihood ratio" in {candidate.score_name for candidate in candidates}) == known
        assert np.isfinite(candidates[0].first_scores).all()


class TestThresholds:
    """The best event is found on either side; luck is not mistaken for it."""

    def test_of_normal_scores_close_to_the_optimum(self):
        rng, fresh = np.random.default_rng(3), 100_000
        threshold = best_threshold(rng.normal(1, 1, N), rng.normal(0, 1, N), fresh, 0.0, 0.05)
        grid = np.linspace(0, 6, 500)
        p, q = special.ndtr(1 - grid), special.ndtr(-grid)
        z = 1.645 * np.sqrt(1 / (p * fresh) + 1 / (q * fresh))
        reached = np.interp(threshold.value, grid, np.log(p / q) - z)
        assert threshold.side == ">="
        assert reached > 0.85 * np.max((np.log(p / q) - z)[q * fresh > 20])
        assert best_threshold(rng.normal(-1, 1, N), rng.normal(0, 1, N), fresh, 0.0, 0.05).side == "<"

    def test_an_atom_is_separated_from_the_values_next_to_it(self):
        rng = np.random.default_rng(4)
        second = rng.integers(1, 40, N).astype(float)
        first = np.where(rng.random(N) < 0.01, 0.0, rng.integers(1, 40, N))
        threshold = best_threshold(first, second, N, 0.0, 0.05)
        assert threshold.holds(np.array([0.0, 1.0])).tolist() == [True, False]

    def test_equal_scores_promise_nothing(self):
        rng = np.random.default_rng(5)
        promises = [best_threshold(*rng.normal(size=(2, 2000)), 10**6, 0.0, 0.05).promise for _ in range(50)]
        assert np.mean(np.array(promises) > 0.3) < 0.2


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_scores_of_the_largest_numbers_are_finite():
    first, second = (
        LARGEST_NUMBER * np.random.default_rng(i).choice([-1.0, 1.0], (400, 1)).repeat(1000, axis=1) for i in (0, 1)
    )
    scores, points = scores_of(mechanism(None), corners(1000)[0], first, second)
    assert all(np.isfinite(score(first)).all() for score in (scores | points).values())
