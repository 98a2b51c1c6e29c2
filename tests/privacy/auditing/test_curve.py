"""Trade-off curves against the known ones of Gaussian releases."""

import numpy as np
import pytest
from scipy import special, stats

from leakboard.privacy.auditing.curve import curve_thresholds, trade_off_bound

MU, ERROR = 1.0, 0.05


def scores(rng, n, mu=MU):
    """Return scores of x, N(mu, 1), and of x', N(0, 1): a mu-Gaussian mechanism."""
    return rng.normal(mu, 1, n), rng.normal(0, 1, n)


def bound(rng, n, mu=MU, error=ERROR):
    return trade_off_bound(*scores(rng, n, mu), curve_thresholds(*scores(rng, n, mu)), error)


def true_curve(false_positives):
    return special.ndtr(special.ndtri(1 - false_positives) - MU)


def test_a_gaussian_release_is_bounded_closely():
    curve = bound(np.random.default_rng(0), 200_000)
    assert 0.97 * MU < curve.mu <= MU
    assert all(divergence <= order * MU**2 / 2 for order, divergence in curve.renyi)
    assert dict(curve.renyi)[2.0] > 0.8
    assert curve.joint_confidence == 1 - ERROR


def test_the_curve_is_convex_decreasing_and_above_the_true_one():
    curve = bound(np.random.default_rng(1), 20_000)
    a, b = np.array(curve.false_positives), np.array(curve.false_negatives)
    assert ((a[0], b[0]), (a[-1], b[-1])) == ((0, 1), (1, 0))
    slopes = np.diff(b) / np.diff(a)
    assert (slopes < 0).all()
    assert (np.diff(slopes) > 0).all()
    assert (b >= true_curve(a)).all()
    assert np.abs(b - true_curve(a)).max() < 0.05


def test_equal_inputs_prove_nothing():
    curve = bound(np.random.default_rng(2), 1000, mu=0)
    assert curve.mu == 0
    assert max(divergence for _, divergence in curve.renyi) < 1e-9
    constant = trade_off_bound(np.zeros(100), np.zeros(100), np.zeros(1), ERROR)
    assert (constant.false_positives, constant.false_negatives, constant.mu) == ((0, 1), (1, 0), 0)


@pytest.mark.parametrize(("error", "valid"), [(0.05, True), (24.0, False)])
def test_its_numbers_hold_together_with_the_stated_confidence(error, valid):
    """The broken side bounds each rate with an error of 0.5, which all rates should share."""
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(200):
        curve = bound(rng, 400, error=error)
        a, b = np.array(curve.false_positives), np.array(curve.false_negatives)
        wrong += curve.mu > MU or (b < true_curve(a) - 1e-12).any() or dict(curve.renyi)[2.0] > MU**2
    assert (wrong <= stats.binom(200, 0.05).ppf(0.999)) == valid
