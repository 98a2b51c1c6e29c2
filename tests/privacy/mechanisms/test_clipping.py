"""Clipping before noise: hand-worked distances, and the epsilon that each scale of the noise gives."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from leakboard.privacy.mechanisms.clipping import ClippedRelease, clipped
from leakboard.privacy.mechanisms.textbook import gaussian_delta

ONES, ZEROS = np.ones(4), np.zeros(4)
"""The states (1, 1, 1, 1) and (-1, -1, -1, -1) in the unit cube."""


def release(calibration="as_published", family="laplace", epsilon=1.0, dimension=4, norm=1.0):
    delta = 1e-3 if family == "gaussian" else 0.0
    return ClippedRelease(dimension, epsilon, norm, family, calibration, delta)


def states(mechanism, *vectors):
    """Return clipped states in (-1, 1)^d of vectors of the cube."""
    return 2 * mechanism.vector_of(np.array(vectors)) - 1


class TestDistances:
    def test_opposite_corners_of_four_dimensions(self):
        """The corner (1, 1, 1, 1) has norm 2. Clipped to norm 1 it is (1/2, 1/2, 1/2, 1/2)."""
        first, second = states(release(), ONES, ZEROS)
        assert first.tolist() == [0.5] * 4
        assert second.tolist() == [-0.5] * 4
        assert np.abs(first - second).sum() == 2 * 1.0 * math.sqrt(4) == 4
        assert np.linalg.norm(first - second) == 2 * 1.0

    def test_no_two_vectors_are_farther_apart(self):
        mechanism = release(norm=0.7, dimension=6)
        drawn = states(mechanism, *np.random.default_rng(0).random((500, 6)), *np.eye(6), np.zeros(6), np.ones(6))
        apart = np.abs(drawn[:, None] - drawn).sum(-1)
        assert apart.max() == pytest.approx(2 * 0.7 * math.sqrt(6))
        assert 2 * mechanism.largest_distance == pytest.approx(apart.max())

    @pytest.mark.parametrize("of", [np.array, torch.tensor])
    def test_short_vectors_stay_and_long_ones_are_shortened(self, of):
        vectors = of([[0.0, 0.0], [0.3, 0.4], [3.0, 4.0]])
        assert clipped(vectors, 1.0).tolist() == [[0.0, 0.0], pytest.approx([0.3, 0.4]), pytest.approx([0.6, 0.8])]

    def test_a_norm_that_clips_nothing_is_refused(self):
        with pytest.raises(ValueError, match=r"clipping_norm: 2.1 is not allowed with dimension 4: at most 2, "):
            release(norm=2.1)
        assert release(norm=2.0).largest_distance == 4


class TestEpsilon:
    @pytest.mark.parametrize(("calibration", "loss"), [("as_published", 2.0), ("corrected", 1.0)])
    def test_the_worst_output_of_laplace_noise_shows_the_proved_epsilon(self, calibration, loss):
        """An output far out in the direction of the first corner: ln p/p' is the L1 distance over the scale."""
        mechanism = release(calibration)
        far = np.full((1, 4), 9.0)
        assert mechanism.log_ratio(far, ONES, ZEROS) == pytest.approx(loss)
        assert mechanism.proved == pytest.approx(loss)
        assert mechanism.claim.epsilon == 1.0

    @pytest.mark.parametrize(
        ("calibration", "scale"), [("as_published", 2 * 1.5 / 0.5), ("corrected", 2 * 1.5 * math.sqrt(9) / 0.5)]
    )
    def test_the_noise_on_states_has_the_paper_s_scale_or_the_right_one(self, calibration, scale):
        mechanism = release(calibration, epsilon=0.5, dimension=9, norm=1.5)
        drawn = 2 * mechanism.release(np.full((20_000, 9), 0.5), np.random.default_rng(0)) - 1
        assert stats.kstest(drawn.ravel(), stats.laplace(0, scale).cdf).pvalue > 1e-3

    @pytest.mark.parametrize(("epsilon", "holds"), [(0.1, True), (1.0, True), (10.0, False)])
    def test_the_textbook_formula_of_gaussian_noise_holds_for_small_epsilons_only(self, epsilon, holds):
        mechanism = release("as_published", "gaussian", epsilon)
        assert (gaussian_delta(epsilon, mechanism.scale, 1.0) <= 1e-3) == holds
        assert (mechanism.proved <= epsilon) == holds

    @pytest.mark.parametrize("epsilon", [0.1, 10.0])
    def test_corrected_gaussian_noise_has_the_claim_exactly(self, epsilon):
        mechanism = release("corrected", "gaussian", epsilon)
        assert gaussian_delta(epsilon, mechanism.scale, 1.0) == pytest.approx(1e-3)
        assert mechanism.proved == mechanism.claim.epsilon == epsilon

    @pytest.mark.parametrize(("family", "delta"), [("laplace", 0.1), ("gaussian", 0.0)])
    def test_only_gaussian_noise_has_a_delta(self, family, delta):
        with pytest.raises(ValueError, match=f"delta: {delta:g} is not allowed with noise '{family}'"):
            ClippedRelease(4, 1.0, 1.0, family, delta=delta)

    @pytest.mark.parametrize("family", ["laplace", "gaussian"])
    def test_log_ratios_are_those_of_the_densities(self, family):
        mechanism = release("corrected", family)
        outputs = np.random.default_rng(0).normal(size=(5, 4))
        law = (stats.laplace if family == "laplace" else stats.norm)(0, mechanism.scale)
        logs = [law.logpdf(outputs - mechanism.vector_of(corner)).sum(1) for corner in (ONES, ZEROS)]
        assert mechanism.log_ratio(outputs, ONES, ZEROS) == pytest.approx(logs[0] - logs[1])

    def test_the_claim_names_both_bounds(self):
        assert release().claim.sensitivity == "2, the bound in L2, for noise that needs 4 in L1"
        assert release("corrected").claim.sensitivity == "4 in L1"
        assert release("corrected", "gaussian").claim.sensitivity == "2 in L2"
        assert release().claim.mechanism == "Laplace noise after clipping to the L2 norm 1"
