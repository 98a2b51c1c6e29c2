"""Rounding of releases: equal values that differ in their last bits become one value, and other releases stay."""

import numpy as np
import pytest

from leakboard.privacy.auditing.events import Pair
from leakboard.privacy.auditing.rounding import Rounded, decimals_of, kept_decimals
from leakboard.privacy.mechanisms.textbook import Laplace

N = 10_000


def rng():
    return np.random.default_rng(0)


def steps(step, dtype, scale):
    """Return sums of a multiple of a step and another, as floating-point arithmetic gives them."""
    whole = np.rint(rng().laplace(0, scale / step, N))
    offsets = rng().integers(2, size=N)
    return (dtype(1) * offsets).astype(dtype) + (dtype(step) * (whole - offsets / step)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("scale", [1, 16])
def test_multiples_of_a_step_become_one_value_each(dtype, step, scale):
    values = steps(step, dtype, scale)
    rounded = np.round(values, decimals_of(values))
    assert len(np.unique(rounded)) == len(np.unique(np.rint(values / step))) < len(np.unique(values))
    assert np.abs(rounded - values).max() < step / 100


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "values",
    [
        rng().laplace(0, 1, N),
        rng().normal(0, 1e-12, N),
        rng().standard_cauchy(N),
        rng().integers(2, size=N),
        rng().integers(1000, size=N) / 64,
        np.clip(rng().laplace(0, 1, N), 0, 1),
        np.zeros(N),
        np.full(N, np.inf),
    ],
    ids=["laplace", "small", "cauchy", "bits", "binary grid", "clipped", "zeros", "infinite"],
)
def test_other_values_stay(dtype, values):
    assert decimals_of(values.astype(dtype)) is None


@pytest.mark.parametrize("large", [1e6, 1e13])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_numbers_beside_large_ones_stay(large, dtype):
    """Rounding to the digits of the large numbers would erase the small ones."""
    values = np.where(rng().random(N) < 0.5, rng().laplace(0, large, N), rng().laplace(0.5, 0.05, N))
    assert decimals_of(values.astype(dtype)) is None


def test_releases_on_a_grid_are_rounded():
    class Grid(Laplace):
        def release(self, values, generator):
            return values + 0.1 * np.rint(10 * super().release(0 * values, generator))

    grid, pair = Grid(1.0, 2.0), Pair("given", np.array([0.0]), np.array([0.3]))
    mechanism = Rounded(grid, kept_decimals(grid, pair, rng()))
    released = mechanism.release(np.resize([0.0, 0.3], (N, 1)), rng())
    assert len(np.unique(released)) == len(np.unique(np.rint(10 * released))) > 20


def test_continuous_releases_stay_as_they_are():
    laplace, pair = Laplace(1.0, 2.0), Pair("given", np.zeros(2), np.ones(2))
    assert kept_decimals(laplace, pair, rng()) is None
    values = np.zeros((N, 2))
    assert np.array_equal(Rounded(laplace, None).release(values, rng()), laplace.release(values, rng()))
