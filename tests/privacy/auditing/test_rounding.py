"""Rounding of releases: equal values that differ in their last bits become one value, each coordinate by its size."""

import numpy as np
import pytest

from leakboard.privacy.auditing.events import Pair
from leakboard.privacy.auditing.rounding import DIGITS, SINGLE_DIGITS, Rounded, decimals_of, sample
from leakboard.privacy.mechanisms.textbook import Laplace

N = 10_000


def rng():
    return np.random.default_rng(0)


def steps(step, dtype, scale):
    """Return sums of a multiple of a step and another, float (n,), as floating-point arithmetic gives them."""
    whole = np.rint(rng().laplace(0, scale / step, N))
    offsets = rng().integers(2, size=N)
    return (dtype(1) * offsets).astype(dtype) + (dtype(step) * (whole - offsets / step)).astype(dtype)


def rounded(values):
    """Return one coordinate rounded."""
    return Rounded(None, decimals_of(values[:, None])).rounded(values[:, None])[:, 0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("scale", [1, 16])
def test_multiples_of_a_step_become_one_value_each(dtype, step, scale):
    values = steps(step, dtype, scale)
    assert rounded(values).dtype == dtype
    assert len(np.unique(rounded(values))) == len(np.unique(np.rint(values / step))) < len(np.unique(values))
    assert np.abs(rounded(values) - values).max() < step / 10


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, DIGITS), (np.float32, SINGLE_DIGITS)])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
def test_digits_are_counted_from_those_of_large_numbers(dtype, digits, size):
    values = rng().laplace(0, size, N).astype(dtype)
    change = np.abs(rounded(values).astype(np.float64) - values).max() / np.quantile(np.abs(values), 0.99)
    assert 10.0**-digits / 20 < change < 10.0 ** (1 - digits)


def test_each_coordinate_has_its_own_digits():
    sizes = np.array([1e-6, 1.0, 1e6])
    values = rng().laplace(0, sizes, (N, 3))
    assert (np.diff(decimals_of(values)) == -6).all()


def test_a_coordinate_of_zeros_has_the_digits_of_1():
    assert decimals_of(np.zeros((20, 2))).tolist() == [DIGITS - 1] * 2


def test_whole_numbers_stay():
    """They are exact in single precision, too."""
    values = np.rint(rng().laplace(0, 1e6, N))
    assert (rounded(values) == values).all()


def test_releases_on_a_grid_are_rounded():
    class Grid(Laplace):
        def release(self, values, generator):
            return values + 0.1 * np.rint(10 * super().release(0 * values, generator))

    grid, pair = Grid(1.0, 2.0), Pair("given", np.array([0.0]), np.array([0.3]))
    mechanism = Rounded(grid, decimals_of(sample(grid, pair, rng())))
    released = mechanism.release(np.resize([0.0, 0.3], (N, 1)), rng())
    assert len(np.unique(released)) == len(np.unique(np.rint(10 * released))) > 20
