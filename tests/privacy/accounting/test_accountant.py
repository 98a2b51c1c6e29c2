"""Composition and subsampling against closed forms, and the two accountants against each other."""

import math

import pytest
from scipy import special

from leakboard.privacy.accounting.accountant import epsilon_at, gaussian_releases, renyi_divergences
from leakboard.privacy.mechanisms.textbook import gaussian_delta, gaussian_epsilon


@pytest.mark.parametrize(("noise", "times"), [(1.0, 1), (2.0, 4), (10.0, 100)])
def test_gaussian_releases_in_closed_form(noise, times):
    """T releases of deviation s equal one of deviation s / sqrt(T) (the sum of their likelihood ratios)."""
    exact = gaussian_epsilon(1e-6, noise / math.sqrt(times), 1.0)
    assert exact - 1e-6 <= epsilon_at(gaussian_releases(noise, times), 1e-6) <= exact * 1.001 + 1e-3


@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_rdp_is_an_upper_bound_of_pld(rate):
    event = gaussian_releases(3.73, 20, rate)
    tight, cheap = (epsilon_at(event, 1e-5, method) for method in ("pld", "rdp"))
    assert tight <= cheap <= 2 * tight + 1


class TestSubsampling:
    """A record takes part with probability q: one release has the divergence of a mixture."""

    @pytest.mark.parametrize("rate", [0.01, pytest.param(0.2, marks=pytest.mark.slow)])
    def test_one_sampled_release_by_integration(self, rate):
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
        assert epsilon_at(gaussian_releases(1.0, 1, rate), max(added, removed)) == pytest.approx(e, abs=2e-3)

    @pytest.mark.slow
    def test_sampling_costs_less(self):
        whole, sampled = (epsilon_at(gaussian_releases(3.73, 100, rate), 1e-5) for rate in (1.0, 0.01))
        assert sampled < whole / 10

    @pytest.mark.parametrize(
        ("steps", "published"),
        [
            *((20, 0.0184), (200, 0.0189), (500, 0.0197), (1000, 0.0211), (5000, 0.0372), (10_000, 0.0755)),
            *((50_000, 0.5929), (90_000, 0.7681), (100_000, 0.7926)),
        ],
    )
    def test_published_deltas_come_from_32_moments(self, steps, published):
        """Vu, Tran and Jiang (2019), table 3: q = 128/50,000, noise 5, epsilon 0.125.

        Moments of Abadi et al. (2016): delta = min over l = 1, ..., 32 of exp(l (D - epsilon)), with D of order l + 1.
        """
        from dp_accounting import rdp

        event = gaussian_releases(5.0, steps, 128 / 50_000)
        divergences = dict(zip(rdp.RdpAccountant().orders, renyi_divergences(event), strict=True))
        delta = min(math.exp(n * (divergences[n + 1] - 0.125)) for n in range(1, 33))
        assert delta == pytest.approx(published, abs=1e-4)

    def test_published_deltas_are_upper_bounds(self):
        """The 32 moments end at delta = exp(-32 * 0.125) = 0.0183; with more of them, delta is far below 1e-6."""
        event = gaussian_releases(5.0, 20, 128 / 50_000)
        assert epsilon_at(event, 0.0183) <= epsilon_at(event, 1e-6) < 0.125


def test_the_analytic_gaussian_is_inverted():
    assert gaussian_delta(gaussian_epsilon(1e-3, 2.0, 5.0), 2.0, 5.0) == pytest.approx(1e-3, rel=1e-9)
    assert gaussian_epsilon(0.99, 2.0, 1.0) == 0.0


@pytest.mark.parametrize(("noise", "times", "rate"), [(0.0, 1, 1.0), (1.0, 0, 1.0), (1.0, 1, 0.0), (1.0, 1, 1.5)])
def test_impossible_releases_are_refused(noise, times, rate):
    with pytest.raises(ValueError, match="allowed"):
        gaussian_releases(noise, times, rate)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_an_impossible_delta_is_refused(delta):
    with pytest.raises(ValueError, match=r"delta=.* is not allowed"):
        epsilon_at(gaussian_releases(1.0), delta)
