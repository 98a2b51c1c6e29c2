"""Composition and subsampling against closed forms, and the two accountants against each other."""

import math

import pytest
from scipy import special

from leakboard.privacy.accounting import accountant
from leakboard.privacy.mechanisms.textbook import Gaussian, Laplace, gaussian_delta, gaussian_epsilon

ONE = Gaussian(1.0, 1e-5, 1.0)


def of_scale(scale):
    """Return a Gaussian mechanism of sensitivity 1 with this standard deviation."""
    return Gaussian(gaussian_epsilon(1e-5, scale, 1.0), 1e-5, 1.0)


class TestComposition:
    @pytest.mark.parametrize(("scale", "times"), [(1.0, 1), (2.0, 4), (10.0, 100)])
    def test_gaussian_releases_in_closed_form(self, scale, times):
        """T releases of deviation s equal one of deviation s / sqrt(T) (the sum of their likelihood ratios)."""
        exact = gaussian_epsilon(1e-6, scale / math.sqrt(times), 1.0)
        epsilon = accountant.epsilon_at(accountant.composition(of_scale(scale), times), 1e-6)
        assert exact - 1e-6 <= epsilon <= exact * 1.001 + 1e-3

    @pytest.mark.parametrize("sensitivity", [0.1, 1.0, 30.0])
    @pytest.mark.parametrize("kind", [Gaussian, Laplace])
    def test_one_release_has_the_epsilon_it_was_calibrated_for(self, kind, sensitivity):
        mechanism = Gaussian(1.0, 1e-4, sensitivity) if kind is Gaussian else Laplace(1.0, sensitivity)
        assert accountant.epsilon_at(accountant.composition(mechanism), 1e-4) == pytest.approx(1.0, abs=2e-3)

    @pytest.mark.parametrize("times", [1, 10])
    def test_laplace_releases_never_cost_more_than_the_sum(self, times):
        event = accountant.composition(Laplace(0.5, 1.0), times)
        assert 0.4 * times < accountant.epsilon_at(event, 1e-9) <= 0.5 * times + 1e-3

    @pytest.mark.parametrize("e", [0.1, 0.3, 0.9])
    def test_one_laplace_release_in_closed_form(self, e):
        """Its hockey-stick divergence is 1 - exp((e - epsilon) / 2) for e below epsilon."""
        delta = -math.expm1((e - 1.0) / 2)
        assert accountant.epsilon_at(accountant.composition(Laplace(1.0, 1.0)), delta) == pytest.approx(e, abs=2e-3)

    @pytest.mark.parametrize(("mechanism", "rate"), [(ONE, 1.0), (ONE, 0.05), (Laplace(1.0, 3.0), 1.0)])
    def test_rdp_is_an_upper_bound_of_pld(self, mechanism, rate):
        event = accountant.composition(mechanism, 20, rate)
        tight, cheap = (accountant.epsilon_at(event, 1e-5, method) for method in ("pld", "rdp"))
        assert tight <= cheap <= 2 * tight + 1


class TestSubsampling:
    """A record takes part with probability q: one release has the divergence of a mixture."""

    @pytest.mark.parametrize("rate", [0.01, 0.2])
    def test_one_sampled_gaussian_release_by_integration(self, rate):
        """delta(e) = sup over both directions of E[(1 - e**e / L)+], where L = 1 - q + q exp(x - 1/2), x the output."""
        e = 0.05
        threshold = math.log((math.exp(e) - (1 - rate)) / rate) + 0.5  # L > e**e above it
        inside = (1 - rate) * special.ndtr(-threshold) + rate * special.ndtr(-(threshold - 1))
        added = inside - math.exp(e) * special.ndtr(-threshold)
        low = math.exp(-e) - (1 - rate)
        removed = 0.0
        if low > 0:
            below = math.log(low / rate) + 0.5
            mixed = (1 - rate) * special.ndtr(below) + rate * special.ndtr(below - 1)
            removed = special.ndtr(below) - math.exp(e) * mixed
        event = accountant.composition(of_scale(1.0), 1, rate)
        assert accountant.epsilon_at(event, max(added, removed)) == pytest.approx(e, abs=2e-3)

    def test_sampling_costs_less(self):
        whole, sampled = (accountant.epsilon_at(accountant.composition(ONE, 100, rate), 1e-5) for rate in (1.0, 0.01))
        assert sampled < whole / 10

    def test_published_deltas_are_upper_bounds(self):
        """dpUGC's table 3 (q = 128/50,000, noise 5, epsilon 0.125): moments up to order 32 end at exp(-4) = 0.0183."""
        event = accountant.composition(of_scale(5.0), 20, 128 / 50_000)
        assert accountant.epsilon_at(event, 0.0183) <= accountant.epsilon_at(event, 1e-6) < 0.125


def test_the_analytic_gaussian_is_inverted_in_both_directions():
    assert gaussian_delta(gaussian_epsilon(1e-3, 2.0, 5.0), 2.0, 5.0) == pytest.approx(1e-3, rel=1e-9)
    assert gaussian_epsilon(0.99, 2.0, 1.0) == 0.0


@pytest.mark.parametrize(("times", "rate"), [(0, 1.0), (1, 0.0), (1, 1.5)])
def test_impossible_compositions_are_refused(times, rate):
    with pytest.raises(ValueError, match="allowed"):
        accountant.composition(ONE, times, rate)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_an_impossible_delta_is_refused(delta):
    with pytest.raises(ValueError, match=r"delta=.* is not allowed"):
        accountant.epsilon_at(accountant.composition(ONE), delta)


def test_sampled_laplace_noise_is_refused_by_rdp():
    event = accountant.composition(Laplace(1.0, 1.0), 10, 0.1)
    assert accountant.epsilon_at(event, 1e-5) > 0
    with pytest.raises(ValueError, match="method: 'rdp' is not allowed for sampled Laplace noise"):
        accountant.epsilon_at(event, 1e-5, "rdp")
