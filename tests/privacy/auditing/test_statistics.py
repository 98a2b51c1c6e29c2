"""Learned statistics and thresholds: they find what the sum does not, and no lucky threshold wins."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import linalg, special

from leakboard.privacy.auditing import choosing
from leakboard.privacy.auditing.densities import learned_scores
from leakboard.privacy.auditing.events import corners, fisher
from leakboard.privacy.auditing.thresholds import best_threshold

N = 20_000


def auc(first, second):
    ranks = np.argsort(np.argsort(np.concatenate([first, second])))
    return (ranks[: len(first)].mean() - (len(first) - 1) / 2) / len(second)


def test_values_that_many_releases_share_have_ratios_of_their_own():
    rng, shares = np.random.default_rng(9), np.array([[0.1, 0.8, 0.1], [0.45, 0.1, 0.45]])
    sides = [rng.choice(3, (N, 1), p=share).astype(float) for share in shares]
    score = learned_scores(*sides, np.ones(1))["density ratios of the coordinates"]
    found = score(np.array([[0.0], [1.0], [2.0]]))
    np.testing.assert_allclose(found, np.log(shares[0] / shares[1]), atol=0.15)


def test_tables_come_close_to_the_exact_ratio():
    """Of Laplace noise in eight dimensions, where the sum does not."""
    rng, d = np.random.default_rng(0), 8
    sides = [rng.laplace(value, 2, (2 * N, d)) for value in (0.0, 1.0)]
    learned = learned_scores(sides[0][:N], sides[1][:N], np.ones(d))

    def exact(outputs):
        return (np.abs(outputs - 1) - np.abs(outputs)).sum(1)

    best = auc(*(exact(side[N:]) for side in sides))
    for name, score in learned.items():
        assert best - 0.012 < auc(*(score(side[N:]) for side in sides)) < best + 0.005, name
    assert auc(*(-side[N:].sum(1) for side in sides)) < best - 0.015


def test_coordinates_of_different_noise_have_tables_of_their_own():
    rng = np.random.default_rng(1)
    sides = [rng.normal(value, [1, 4, 4, 4], (2 * N, 4)) for value in (0.0, 1.0)]
    learned = learned_scores(sides[0][:N], sides[1][:N], None)
    apart, together = (
        auc(*(learned[name](side[N:]) for side in sides))
        for name in ("density ratios of the coordinates", "density ratio of all coordinates")
    )
    assert apart > together + 0.02


@pytest.mark.parametrize("fails", [False, True], ids=["as usual", "where singular values do not converge"])
def test_the_discriminant_is_fishers(fails, monkeypatch):
    """Of a known covariance C and difference of means m its weights are along inverse(C) m."""
    solve = linalg.lstsq

    def lstsq(*given, lapack_driver=None):
        if fails and lapack_driver is None:
            raise np.linalg.LinAlgError("SVD did not converge in Linear Least Squares")
        return solve(*given, lapack_driver=lapack_driver)

    monkeypatch.setattr(linalg, "lstsq", lstsq)
    rng, factor, means = np.random.default_rng(4), np.array([[2.0, 0, 0], [1, 1, 0], [0, 3, 1]]), np.array([1.0, 0, 2])
    sides = [rng.normal(size=(N, 3)) @ factor.T + side * means for side in (0, 1)]
    found, expected = fisher(*sides)(np.eye(3)), np.linalg.solve(factor @ factor.T, means)
    assert found @ expected > 0.999 * np.linalg.norm(found) * np.linalg.norm(expected)


@pytest.mark.parametrize("compared", [choosing.COMPARED, choosing.KEPT])
def test_statistics_are_compared_once_more_before_most_are_dropped(compared, monkeypatch):
    """With this seed the sum and the projection, here the same, look best on the draws that choose a pair."""
    monkeypatch.setattr(choosing, "COMPARED", compared)
    mechanism = SimpleNamespace(
        delta=0.0,
        release=lambda values, rng: values + rng.laplace(0, 16, values.shape),
        log_ratio=lambda *given: None,
        vector_of=lambda values: values,
    )
    rng = np.random.default_rng(0)
    kept = choosing.candidates(mechanism, corners(16), rng, 10_000, fresh=1_000_000, error=0.05, digits=9)
    assert len(kept) == choosing.KEPT
    assert ("density ratio" in kept[0].statistic) == (compared > choosing.KEPT)


@pytest.mark.parametrize("known", [True, False])
def test_what_one_input_alone_can_give_counts_in_a_known_density(known):
    """Noise within 3: of outputs beyond -2 and 3 one input cannot be the reason."""

    def log_ratio(outputs, first, second):
        sides = (np.where(np.abs(outputs - value).max(1) <= 3, 0.0, -np.inf) for value in (first, second))
        with np.errstate(invalid="ignore"):  # outputs that neither can give
            return np.subtract(*sides) if known else None

    mechanism = SimpleNamespace(
        delta=0.0,
        release=lambda values, rng: values + rng.uniform(-3, 3, values.shape),
        log_ratio=log_ratio,
        vector_of=lambda values: values,
    )
    found = choosing.candidates(mechanism, corners(2)[:1], np.random.default_rng(0), 4000, 4000, 0.05, 9)
    assert ("likelihood ratio" in {candidate.statistic for candidate in found}) == known
    assert np.isfinite(found[0].first).all()


def test_trees_find_a_scale_that_a_row_shares():
    """Rows that are noisy by turns: how far a row lies out says how much its sum tells."""
    rng, d = np.random.default_rng(2), 16
    sides = [value + rng.normal(0, 1, (2 * N, d)) * rng.choice([0.5, 20], (2 * N, 1)) for value in (0.0, 1.0)]
    learned = learned_scores(sides[0][:N], sides[1][:N], np.ones(d))
    certain = [np.mean(learned["boosted trees"](side[N:]) > 2) for side in sides]
    assert certain[0] > 0.4
    assert certain[1] < 0.02


def test_releases_that_do_not_vary_have_scores():
    zeros = np.zeros((200, 2), np.float32)
    learned = learned_scores(zeros, zeros, None)
    assert all(np.isfinite(score(zeros[:3])).all() for score in learned.values())


class TestThresholds:
    """The best event is found on either side; luck is not taken for it."""

    def test_of_normal_scores_close_to_the_best_there_is(self):
        rng, fresh = np.random.default_rng(3), 100_000
        found = best_threshold(rng.normal(1, 1, N), rng.normal(0, 1, N), fresh, 0.0, 0.05)
        grid = np.linspace(0, 6, 500)
        p, q = special.ndtr(1 - grid), special.ndtr(-grid)
        z = 1.645 * np.sqrt(1 / (p * fresh) + 1 / (q * fresh))
        reached = np.interp(found.value, grid, np.log(p / q) - z)
        assert found.above
        assert reached > 0.85 * np.max((np.log(p / q) - z)[q * fresh > 20])
        assert best_threshold(rng.normal(-1, 1, N), rng.normal(0, 1, N), fresh, 0.0, 0.05).above is False

    def test_an_atom_is_parted_from_what_lies_next_to_it(self):
        rng = np.random.default_rng(4)
        second = rng.integers(1, 40, N).astype(float)
        first = np.where(rng.random(N) < 0.01, 0.0, rng.integers(1, 40, N))
        found = best_threshold(first, second, N, 0.0, 0.05)
        assert found.holds(np.array([0.0, 1.0])).tolist() == [True, False]

    def test_scores_that_tell_nothing_promise_nothing(self):
        rng = np.random.default_rng(5)
        promises = [best_threshold(*rng.normal(size=(2, 2000)), 10**6, 0.0, 0.05).promise for _ in range(50)]
        assert np.mean(np.array(promises) > 0.3) < 0.2
