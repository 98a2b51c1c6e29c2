"""Rounding of releases: numbers that differ in their last bits become equal, and no grid lies at a border."""

import numpy as np
import pytest

from leakboard.privacy.auditing.events import Pair
from leakboard.privacy.auditing.rounding import BORDERS, DIGITS, Rounded, round_releases
from leakboard.privacy.mechanisms.textbook import Laplace

N = 10_000
PAIR = Pair("given", np.array([0.0]), np.array([1.0]))


def rng():
    return np.random.default_rng(0)


def steps(step, dtype, scale, unit=1):
    """Return sums of a multiple of a step and another, float (n, 1), as floating-point arithmetic gives them."""
    whole = np.rint(rng().laplace(0, scale / step, (N, 1)))
    offsets = rng().integers(2, size=(N, 1))
    return dtype(unit) * (offsets.astype(dtype) + (dtype(step) * (whole - offsets / step)).astype(dtype))


class Releasing(Laplace):
    """Releases given numbers, whatever the inputs."""

    def __init__(self, numbers):
        super().__init__(1.0, 1.0)
        self.numbers = numbers

    def release(self, values, generator):
        return np.resize(self.numbers, (len(values), self.numbers.shape[1]))


def rounding_of(numbers):
    """Return the rounding that is learned from numbers, float (n, d)."""
    return learned(numbers).rounded


def learned(numbers):
    inputs = np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
    return round_releases(Releasing(numbers), Pair("given", *inputs), rng())


def assert_one_value_each(values, multiples):
    """Numbers of the same multiple become equal; large multiples may also become equal to the next."""
    released = rounding_of(values)(values)
    assert len(np.unique(released)) < len(np.unique(values))
    for whole in np.unique(multiples):
        assert len(np.unique(released[multiples == whole])) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("scale", [1, 16])
@pytest.mark.parametrize("unit", [1, 1e9, 2**24, 1 / 3, 1e-9])
def test_multiples_of_a_step_become_one_value_each(dtype, step, scale, unit):
    values = steps(step, dtype, scale, unit)
    assert_one_value_each(values, np.rint(values / unit / step))


@pytest.mark.parametrize("unit", np.random.default_rng(1).uniform(1, 10, 100))
def test_so_do_those_in_single_precision_of_any_unit(unit):
    values = steps(0.05, np.float32, 1, unit)
    assert_one_value_each(values, np.rint(values / unit / 0.05))


@pytest.mark.parametrize(("border", "splits"), [(0.5, True), (BORDERS[0], False)])
def test_halves_of_steps_are_no_border(border, splits):
    """100.5 and the next number in double precision become one number."""
    numbers = np.array([[100.5], [np.nextafter(100.5, 200)]])
    released = Rounded(None, np.zeros(1), np.ones(1), np.array([border])).rounded(numbers)
    assert (released[0] != released[1]) == splits


def test_the_border_is_where_no_number_is():
    for border in BORDERS:
        assert learned(np.resize([[1 + border / 100], [-2.0]], (N, 1))).borders != border


@pytest.mark.parametrize("power", [1.0, 1e8, 1e9, 1e12, 1e18])
def test_numbers_below_a_power_of_ten_become_the_power(power):
    released = rounding_of(steps(0.1, float, 1))(np.array([[power], [np.nextafter(power, 0)], [power * (1 - 1e-7)]]))
    assert (released == released[0]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
def test_digits_are_kept_of_large_numbers_and_of_the_median(dtype, size):
    values = rng().laplace(0, size, (N, 1)).astype(dtype)
    change = np.abs(rounding_of(values)(values) - values)
    assert 10.0**-DIGITS / 20 < change.max() / np.abs(values).max() < 10.0 ** (1 - DIGITS)
    assert change[np.abs(values) < size / 100].max() < size * 10.0 ** (1 - DIGITS)


def test_an_offset_costs_no_digits_until_a_thousand_times_the_noise():
    values = 1000 + rng().laplace(0, 1, (N, 1))
    assert np.median(np.abs(rounding_of(values)(values) - values)) < 0.01


def test_each_coordinate_has_its_own_digits_and_rare_large_numbers_do_not_count():
    values = rng().laplace(0, [1e-6, 1.0, 1e6], (N, 3))
    values[:: N // 200] = 1e30
    assert (np.abs(np.log10(learned(values).sizes) - [-6.2, -0.2, 5.8]) < 0.1).all()


@pytest.mark.parametrize("number", [0.0, np.nan, np.inf, 1e-305, 0.25])
def test_coordinates_of_one_number_have_the_digits_of_1(number):
    assert rounding_of(np.full((20, 1), number))(np.array([[0.12344]])) == pytest.approx(0.12, abs=0.011)


def test_whole_numbers_of_three_digits_stay():
    values = rng().integers(-900, 900, (N, 1))
    assert (rounding_of(values)(values) == values).all()


def test_numbers_that_stand_for_nan_do_not_count_however_many():
    values = np.where(rng().random((N, 1)) < 0.6, 1e30, rng().laplace(0, 1, (N, 1)))
    assert np.abs(learned(values).centers) < 1
    assert learned(values).sizes < 1


def test_zero_has_no_sign():
    assert not np.signbit(rounding_of(np.ones((N, 1)))(np.zeros((2, 1)))).any()


def test_releases_on_a_grid_are_rounded():
    class Grid(Laplace):
        def release(self, values, generator):
            return values + 0.1 * np.rint(10 * super().release(0 * values, generator))

    grid, pair = Grid(1.0, 2.0), Pair("given", np.array([0.0]), np.array([0.3]))
    released = round_releases(grid, pair, rng()).release(np.resize([0.0, 0.3], (N, 1)), rng())
    assert len(np.unique(released)) == len(np.unique(np.rint(10 * released))) > 20
