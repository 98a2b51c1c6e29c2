"""Mechanisms: laws of the noise, closed forms and their inverses, and each theorem on both sides."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy import integrate, stats

from leakboard.privacy.mechanisms import broken
from leakboard.privacy.mechanisms.textbook import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    WordDropout,
    gaussian_delta,
    gaussian_scale,
)

DRAWS = 200_000


def generators():
    return [np.random.default_rng(5), torch.Generator().manual_seed(5)]


def zeros(generator, shape=(DRAWS, 1), dtype="float32"):
    if isinstance(generator, torch.Generator):
        return torch.zeros(shape, dtype=getattr(torch, dtype))
    return np.zeros(shape, dtype)


class TestLaws:
    """The noise has the law of the theorem."""

    @pytest.mark.parametrize("generator", generators(), ids=["numpy", "torch"])
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize(
        ("mechanism", "law"),
        [
            (Laplace(epsilon=0.5, sensitivity=2.0), stats.laplace(3, 4)),
            (Gaussian(1.0, 1e-5, 2.0), stats.norm(3, gaussian_scale(1.0, 1e-5, 2.0))),
        ],
        ids=["laplace", "gaussian"],
    )
    def test_by_kolmogorov_and_smirnov(self, mechanism, law, generator, dtype):
        values = zeros(generator, dtype=dtype) + 3
        released = mechanism.release(values, generator)
        assert released.dtype == values.dtype
        assert stats.kstest(np.asarray(released)[:, 0], law.cdf).pvalue > 1e-3

    @pytest.mark.parametrize("generator", generators(), ids=["numpy", "torch"])
    @pytest.mark.parametrize("mechanism", [Laplace(epsilon=1.0, sensitivity=1.0), Gaussian(1.0, 0.1, 1.0)])
    def test_coordinates_and_rows_have_independent_noise(self, mechanism, generator):
        released = np.asarray(mechanism.release(zeros(generator, (40_000, 2)), generator), np.float64)
        assert abs(stats.pearsonr(released[:, 0], released[:, 1]).statistic) < 4 / math.sqrt(40_000)
        assert abs(stats.pearsonr(released[:-1, 0], released[1:, 0]).statistic) < 4 / math.sqrt(40_000)

    @pytest.mark.parametrize("mechanism", [Laplace(epsilon=1.0, sensitivity=1.0), Gaussian(1.0, 0.1, 1.0)])
    def test_the_generator_decides_the_noise(self, mechanism):
        for first, again in zip(generators(), generators(), strict=True):
            released = [np.asarray(mechanism.release(zeros(g, (3, 4)), g)) for g in (first, again, first)]
            assert np.array_equal(released[0], released[1])
            assert not np.array_equal(released[0], released[2])

    def test_tails_of_float32_are_not_cut(self):
        generator = torch.Generator().manual_seed(0)
        noise = Laplace(epsilon=1.0, sensitivity=1.0).release(torch.zeros(5_000_000, 1), generator).abs()
        low, high = stats.binom(5_000_000, math.exp(-12)).interval(0.9999)
        assert low <= int((noise > 12).sum()) <= high

    def test_discrete_laplace(self):
        mechanism = DiscreteLaplace(epsilon=0.7, sensitivity=1.0, grid=0.25)
        released = mechanism.release(np.full((DRAWS, 2), 0.3), np.random.default_rng(0))
        steps = np.rint((released - 0.25) / 0.25).astype(int)
        assert (steps * 0.25 + 0.25 == released).all()
        b = mechanism.scale(2)
        assert b == pytest.approx(1.5 / (0.25 * 0.7))
        edges = np.arange(-20, 21)
        expected = np.tanh(1 / (2 * b)) * np.exp(-np.abs(edges) / b) * steps.size
        counts = np.array([(steps == k).sum() for k in edges])
        rest = steps.size - counts.sum(), steps.size - expected.sum()
        assert stats.chisquare([*counts, rest[0]], [*expected, rest[1]]).pvalue > 1e-3

    @pytest.mark.parametrize("generator", generators(), ids=["numpy", "torch"])
    @pytest.mark.parametrize("rate", [0.0, 0.1, 0.3, 0.8, 1.0])
    def test_dropout_hides_its_share_of_words(self, generator, rate):
        kept = np.asarray(WordDropout(rate).keep(50_000, generator))
        low, high = stats.binom(50_000, 1 - rate).interval(0.9999)
        assert low <= kept.sum() <= high


class TestGaussianCalibration:
    """Balle and Wang's condition against integration of the hockey-stick divergence."""

    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 5.0])
    @pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
    def test_delta_is_the_hockey_stick_divergence(self, epsilon, scale):
        def excess(x):
            return max(0.0, stats.norm.pdf(x, 1, scale) - math.exp(epsilon) * stats.norm.pdf(x, 0, scale))

        crossing = 0.5 + epsilon * scale**2
        expected = integrate.quad(excess, crossing, crossing + 40 * scale, limit=500)[0]
        assert gaussian_delta(epsilon, scale, 1.0) == pytest.approx(expected, rel=1e-6, abs=1e-12)

    @pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 50.0])
    @pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-3, 0.3])
    def test_the_scale_is_the_inverse_and_the_least(self, epsilon, delta):
        scale = gaussian_scale(epsilon, delta, 1.0)
        assert gaussian_delta(epsilon, scale, 1.0) == pytest.approx(delta, rel=1e-6)
        assert gaussian_delta(epsilon, 0.999 * scale, 1.0) > delta
        assert gaussian_scale(epsilon, delta, 7.0) == pytest.approx(7 * scale)

    def test_it_needs_less_noise_than_the_classical_bound(self):
        assert gaussian_scale(0.5, 1e-5, 1.0) < math.sqrt(2 * math.log(1.25 / 1e-5)) / 0.5


class TestLoss:
    """The loss is within epsilon, and is not if an assumption is broken."""

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
    @pytest.mark.parametrize("d", [1, 3, 30])
    def test_laplace_loss_is_bounded_by_epsilon(self, epsilon, d):
        rng = np.random.default_rng(d)
        first, second = np.zeros(d), np.ones(d)
        sound = Laplace(epsilon=epsilon, sensitivity=float(d))
        loss = sound.log_ratio(sound.release(np.tile(first, (20_000, 1)), rng), first, second)
        assert np.abs(loss).max() <= epsilon * (1 + 1e-9)
        assert loss.max() == pytest.approx(epsilon) if d == 1 else loss.max() > 0
        short = Laplace(epsilon=epsilon, sensitivity=d / 2)
        assert short.log_ratio(first[None] - 1, first, second)[0] == pytest.approx(2 * epsilon)

    @pytest.mark.parametrize(
        ("mechanism", "law"),
        [
            (Laplace(epsilon=2.0, sensitivity=3.0), lambda x: stats.laplace(x, 1.5)),
            (Gaussian(1.0, 1e-3, 2.0), lambda x: stats.norm(x, gaussian_scale(1.0, 1e-3, 2.0))),
        ],
        ids=["laplace", "gaussian"],
    )
    def test_log_ratios_are_those_of_the_densities(self, mechanism, law):
        first, second, outputs = np.random.default_rng(0).normal(size=(3, 5))
        logs = [law(x).logpdf(outputs).sum() for x in (first, second)]
        assert mechanism.log_ratio(outputs[None], first, second)[0] == pytest.approx(logs[0] - logs[1])

    @pytest.mark.parametrize("d", [1, 2, 5])
    def test_discrete_laplace_pays_for_its_rounding(self, d):
        """Neighbours 1.2 steps of the grid apart are rounded 2 steps apart."""
        mechanism = DiscreteLaplace(epsilon=1.0, sensitivity=0.6 * d, grid=0.5)
        first, second = np.full(d, 0.2), np.full(d, 0.8)
        assert np.abs(first - second).sum() == pytest.approx(mechanism.sensitivity)
        steps = np.abs(np.rint(first / 0.5) - np.rint(second / 0.5)).sum()
        assert steps == 2 * d
        assert steps / mechanism.scale(d) <= mechanism.epsilon
        without_rounding = mechanism.sensitivity / (mechanism.grid * mechanism.epsilon)
        assert steps / without_rounding > 1.5 * mechanism.epsilon


class TestAmplification:
    """Word dropout: ln((1 - rate) e**epsilon + rate), if the sentence with the word hidden is a neighbour too."""

    @pytest.mark.parametrize(
        ("epsilon", "by_rate"),
        [
            (1, {0.1: 0.9347, 0.3: 0.7897, 0.5: 0.6201, 0.8: 0.2954}),
            (4, {0.1: 3.8967, 0.3: 3.6511, 0.5: 3.3250, 0.8: 2.4613}),
            (2, {0: 2, 1: 0}),
            (800, {0.5: 800 + math.log(0.5)}),
        ],
    )
    def test_by_formula(self, epsilon, by_rate):
        amplified = {rate: WordDropout(rate).amplified(epsilon) for rate in by_rate}
        assert amplified == pytest.approx(by_rate, abs=5e-5)

    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
    def test_it_holds_if_the_masked_sentence_is_a_neighbour(self, seed, rate):
        rng = np.random.default_rng(seed)
        epsilon = rng.uniform(0.2, 3)
        base = rng.dirichlet(np.ones(6))
        laws = [base * np.exp(rng.uniform(-epsilon / 4, epsilon / 4, 6)) for _ in range(3)]
        hidden, first, second = (law / law.sum() for law in laws)
        true = max(np.abs(np.log(a / b)).max() for a, b in ((first, second), (first, hidden), (second, hidden)))
        mixed = [rate * hidden + (1 - rate) * law for law in (first, second)]
        assert np.abs(np.log(mixed[0] / mixed[1])).max() <= WordDropout(rate).amplified(true) + 1e-12

    def test_it_fails_if_the_masked_sentence_is_no_neighbour(self):
        """The masked sentence gives outputs that the others never give (REPORT and DPNR leave this out)."""
        first, second = np.array([0.7, 0.3, 0.0]), np.array([0.3, 0.7, 0.0])
        hidden = np.array([0.0, 0.0, 1.0])
        epsilon = math.log(0.7 / 0.3)
        mixed = [0.5 * hidden + 0.5 * law for law in (first, second)]
        loss = np.log(mixed[0][:2] / mixed[1][:2]).max()
        assert loss == pytest.approx(epsilon)
        assert loss > WordDropout(0.5).amplified(epsilon)


class TestControls:
    """Controls do what their names say."""

    def test_dptexts_sampler_is_the_published_formula(self):
        u = np.random.default_rng(1).random(400_000)
        with np.errstate(invalid="ignore"):
            published = -np.sign(u) * np.log(1 - 2 * np.abs(u))
        assert np.isnan(published).mean() == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(400_000))
        published = np.nan_to_num(published, nan=0.0)
        rng = np.random.default_rng(2)
        noise = broken.DpTextSampler(1.0).release(np.zeros((400_000, 1)), rng)[:, 0]
        assert stats.ks_2samp(noise, published).pvalue > 1e-3
        assert noise.min() >= 0
        assert noise.mean() == pytest.approx(0.5, abs=4 * math.sqrt(0.75 / 400_000))
        assert noise.var() == pytest.approx(0.75, abs=0.02)
        without_nan = broken.DpTextSamplerWithoutNan(1.0).release(np.zeros((100_000, 1)), rng)[:, 0]
        assert stats.kstest(without_nan, stats.expon.cdf).pvalue > 1e-3

    def test_a_shared_draw_is_removed_by_a_subtraction(self):
        rows = np.random.default_rng(0).random((50, 20))
        rows -= rows.min(1, keepdims=True)
        released = broken.SharedDraw(0.05).release(rows, np.random.default_rng(1))
        assert np.abs(released - rows).mean() > 1
        assert released - released.min(1, keepdims=True) == pytest.approx(rows, abs=1e-9)

    def test_noise_from_a_fixed_seed_is_known(self):
        control = broken.FixedSeed(0.1)
        rows = np.random.default_rng(0).random((4, 8))
        noise = control.release(rows, np.random.default_rng(1)) - rows
        assert noise == pytest.approx(np.tile(noise[0], (4, 1)))
        assert control.release(rows, np.random.default_rng(2)) - rows == pytest.approx(noise)

    @pytest.mark.parametrize(
        ("control", "law"),
        [
            (broken.AdeptSensitivity, stats.laplace(1, 2)),
            (broken.HalfScale, stats.laplace(1, 4)),
            (broken.HalvedOutput, stats.laplace(0.5, 4)),
        ],
    )
    def test_scales(self, control, law):
        released = control(0.5).release(np.ones((50_000, 4)), np.random.default_rng(0))
        assert stats.kstest(released[:, 1], law.cdf).pvalue > 1e-3

    def test_the_likelihood_ratio_of_a_halved_output_by_hand(self):
        """Released 0.3, so 0.6 before halving: from 0 it is 0.6 away, from 1 it is 0.4, in units of d/epsilon = 1/2."""
        ratio = broken.HalvedOutput(2.0).log_ratio(np.array([[0.3]]), np.array([0.0]), np.array([1.0]))
        assert ratio == pytest.approx([(0.4 - 0.6) * 2])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Laplace, (0.0, 1.0)),
        (Laplace, (1.0, math.inf)),
        (Gaussian, (1.0, 0.0, 1.0)),
        (Gaussian, (math.nan, 0.1, 1.0)),
        (DiscreteLaplace, (1.0, -1.0)),
        (WordDropout, (1.5,)),
        (broken.Copy, (-1.0,)),
    ],
)
def test_impossible_parameters_are_refused(kind, values):
    with pytest.raises(ValidationError):
        kind(*values)
