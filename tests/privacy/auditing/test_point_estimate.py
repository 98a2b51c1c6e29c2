"""Habernal's sanity check: exact values, and estimates within their sampling error."""

import math

import numpy as np
import pytest
from majority_vote import exact_loss, laplace_chances, sampling_error

from leakboard.privacy.auditing.point_estimate import (
    PointEstimate,
    estimate_loss,
    majority_vote,
)
from leakboard.privacy.mechanisms import broken
from leakboard.privacy.mechanisms.textbook import Laplace

DIMENSIONS = (1, 2, 8, 32, 64, 128)
ADEPT = {
    0.1: (0.09762, 0.1952, 0.2940, 0.5096, 0.6931, 0.9576),
    0.2: (0.1909, 0.3818, 0.5757, 1.004, 1.377, 1.936),
    0.5: (0.4498, 0.8997, 1.367, 2.472, 3.558, 5.442),
    1: (0.8318, 1.664, 2.581, 5.114, 8.070, 13.74),
    2: (1.490, 2.980, 4.893, 11.48, 19.93, 36.57),
    5: (3.151, 6.302, 12.04, 34.72, 64.61, 124.1),
    10: (5.690, 11.38, 24.45, 76.68, 146.0, 284.2),
}
LAPLACE = {
    0.1: (0.09762, 0.09878, 0.03752, 0.01626, 0.01103, 0.007570),
    0.2: (0.1909, 0.1952, 0.07481, 0.03249, 0.02204, 0.01514),
    0.5: (0.4498, 0.4722, 0.1854, 0.08105, 0.05505, 0.03782),
    1: (0.8318, 0.8997, 0.3655, 0.1615, 0.1099, 0.07557),
    2: (1.490, 1.664, 0.7126, 0.3208, 0.2190, 0.1509),
    5: (3.151, 3.577, 1.679, 0.7890, 0.5431, 0.3757),
    10: (5.690, 6.302, 3.165, 1.552, 1.078, 0.7485),
}


@pytest.mark.parametrize("epsilon", ADEPT)
def test_exact_values(epsilon):
    for n, adept, laplace in zip(DIMENSIONS, ADEPT[epsilon], LAPLACE[epsilon], strict=True):
        assert exact_loss(laplace_chances(1 / epsilon), n) == pytest.approx(adept, rel=6e-4)
        assert exact_loss(laplace_chances(n / epsilon), n) == pytest.approx(laplace, rel=6e-4)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_closed_forms(epsilon):
    assert exact_loss(laplace_chances(1 / epsilon), 1) == pytest.approx(math.log(2 * math.exp(epsilon / 2) - 1))
    halved = 0.5 * math.exp(-epsilon), 0.5  # half the output is one half or more where the whole is 1 or more
    assert exact_loss(halved, 1) == pytest.approx(epsilon)
    assert exact_loss((0.5, 0.5), 7) == 0


CHANCES = {
    Laplace: lambda epsilon, n: laplace_chances(n / epsilon),
    broken.AdeptSensitivity: lambda epsilon, n: laplace_chances(1 / epsilon),
    broken.HalvedOutput: lambda epsilon, n: (0.5 * math.exp(-epsilon / n), 0.5),
    broken.RandomBits: lambda epsilon, n: (0.5, 0.5),
}


@pytest.mark.parametrize("kind", CHANCES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 1), (1.0, 2), (2.0, 8), (0.2, 33)])
def test_estimates_are_within_their_sampling_error(kind, epsilon, n):
    mechanism = kind(epsilon=epsilon, sensitivity=float(n)) if kind is Laplace else kind(epsilon)
    repeats = 400_000
    chances = CHANCES[kind](epsilon, n)
    estimate = estimate_loss(mechanism, n, repeats, np.random.default_rng(n)).loss
    assert abs(estimate - exact_loss(chances, n)) < 4 * sampling_error(chances, n, repeats)


@pytest.mark.parametrize("kind", [broken.Copy, broken.DpTextSampler])
def test_a_kind_of_error_that_is_never_seen_gives_infinity(kind):
    assert estimate_loss(kind(0.1), 2, 10_000, np.random.default_rng(0)).loss == math.inf


def test_counts_by_hand():
    assert PointEstimate(zeros=25, ones=75, repeats=100).loss == pytest.approx(math.log(3))
    assert PointEstimate(zeros=10, ones=30, repeats=100).loss == pytest.approx(math.log(3))
    assert PointEstimate(zeros=0, ones=0, repeats=100).loss == 0
    assert PointEstimate(zeros=0, ones=1, repeats=100).loss == math.inf


def test_a_bit_is_one_from_one_half_upwards():
    assert majority_vote(np.array([[0.5, 0.5, 0.0], [0.49, 0.49, 1.0]])).tolist() == [True, False]


def test_the_error_of_an_estimate_is_the_spread_of_such_estimates():
    """The spread of ln(k / k') for binomial k and k'; with 1 / p for (1 - p) / p it would be a third too large."""
    repeats, (p, q) = 2000, (0.3, 0.6)
    drawn = np.random.default_rng(0).binomial(repeats, (p, q), (4000, 2))
    spread = np.log(drawn[:, 1] / drawn[:, 0]).std()
    assert sampling_error((p, q), 1, repeats) == pytest.approx(spread, rel=0.05)
    errors = [PointEstimate(int(zeros), int(ones), repeats).standard_error for zeros, ones in drawn[:100]]
    assert np.mean(errors) == pytest.approx(spread, rel=0.05)
    assert math.isnan(PointEstimate(0, 5, 100).standard_error)


def test_a_tie_is_a_zero():
    class HalfOnes(broken.Copy):
        def release(self, values, rng):
            return np.tile([1.0, 0.0], (len(values), values.shape[1] // 2))

    assert estimate_loss(HalfOnes(1.0), 4, 1000, np.random.default_rng(0)) == PointEstimate(
        zeros=0, ones=0, repeats=1000
    )


def test_the_published_spread_of_repeated_estimates():
    """ADePT at epsilon 0.1 in 2 dimensions, 10 million repeats: mean 0.1952, standard deviation 0.0008 (REPARAM)."""
    chances = laplace_chances(10.0)
    assert exact_loss(chances, 2) == pytest.approx(0.1952, abs=5e-5)
    assert sampling_error(chances, 2, 10_000_000) == pytest.approx(0.0008, abs=2e-4)
