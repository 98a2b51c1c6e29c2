"""Trade-off curves: against those of Gaussian releases, which are known."""

import numpy as np
import pytest
from scipy import special, stats

from leakboard.privacy.auditing.curve import curve_thresholds, trade_off_bound

MU, ERROR = 1.0, 0.05


def scores(rng, n, mu=MU):
    """Return scores of x, of N(mu, 1), and of x', of N(0, 1): a mu-Gaussian mechanism."""
    return rng.normal(mu, 1, n), rng.normal(0, 1, n)


def curve(rng, n, mu=MU, error=ERROR):
    return trade_off_bound(*scores(rng, n, mu), curve_thresholds(*scores(rng, n, mu)), error)


def test_a_gaussian_release_is_bounded_closely():
    found = curve(np.random.default_rng(0), 200_000)
    assert 0.97 * MU < found.mu <= MU
    for order, divergence in found.renyi:
        assert divergence <= order * MU**2 / 2
    assert dict(found.renyi)[2.0] > 0.8
    assert found.confidence == 1 - ERROR


def test_the_curve_is_convex_falls_and_lies_above_the_mechanisms_own():
    found = curve(np.random.default_rng(1), 20_000)
    a, b = np.array(found.false_positives), np.array(found.false_negatives)
    assert ((a[0], b[0]), (a[-1], b[-1])) == ((0, 1), (1, 0))
    slopes = np.diff(b) / np.diff(a)
    assert (slopes < 0).all()
    assert (np.diff(slopes) > 0).all()
    own = special.ndtr(special.ndtri(1 - a) - MU)
    assert (b >= own).all()
    assert np.abs(b - own).max() < 0.05


def test_what_tells_nothing_proves_nothing():
    found = curve(np.random.default_rng(2), 1000, mu=0)
    assert found.mu == 0
    assert max(divergence for _, divergence in found.renyi) < 1e-9
    constant = trade_off_bound(np.zeros(100), np.zeros(100), np.zeros(1), ERROR)
    assert (constant.false_positives, constant.false_negatives, constant.mu) == ((0, 1), (1, 0), 0)


@pytest.mark.parametrize(("error", "valid"), [(0.05, True), (24.0, False)])
def test_its_numbers_hold_together_with_the_stated_confidence(error, valid):
    """The broken side: each rate bounded with the error of 0.5 that all would have to share."""
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(200):
        found = curve(rng, 400, error=error)
        a, b = np.array(found.false_positives), np.array(found.false_negatives)
        below = (b < special.ndtr(special.ndtri(1 - a) - MU) - 1e-12).any()
        wrong += found.mu > MU or below or dict(found.renyi)[2.0] > MU**2
    assert (wrong <= stats.binom(200, 0.05).ppf(0.999)) == valid
