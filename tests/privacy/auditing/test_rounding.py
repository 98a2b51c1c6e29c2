"""Rounding of releases: the noise hides rounding errors wherever the borders are, and the digits above stay."""

import numpy as np
import pytest

from leakboard.privacy.auditing import rounding
from leakboard.privacy.auditing.events import Pair
from leakboard.privacy.auditing.rounding import BORDERS, DECADE, DIGITS, MAX_CENTERS, Center, Rounded, round_releases
from leakboard.privacy.mechanisms.textbook import Laplace

N = 10_000
OFFSETS = [0, 7.3333, 37.0553, 141.27, 1000.37, 31415.9]
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


def learned(numbers):
    """Return the rounding that is learned from numbers, float (n, d)."""
    inputs = np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
    return round_releases(Releasing(numbers), [Pair("given", *inputs)], rng())


def rounding_of(numbers):
    return learned(numbers).rounded


def given(border):
    """Return rounding of distances from 0, at least 1, with one border."""
    return Rounded(None, [Center(np.zeros(1), np.ones(1))], np.array([border]), rng())


def largest_error(numbers, multiples):
    """Return the largest difference of numbers that stand for one multiple, as a share of the noise's scale."""
    scale, numbers = learned(numbers).scale(numbers.astype(float)), numbers.astype(float)
    groups = [multiples == whole for whole in np.unique(multiples)]
    return max(np.ptp(numbers[group]) / scale[group].min() for group in groups)


ERRORS = {np.float64: 1e-5, np.float32: 0.4}
"""Largest rounding error, as a share of the scale: the probability of one number changes by a factor of 1.5 at most."""


@pytest.mark.parametrize("dtype", ERRORS)
@pytest.mark.parametrize("step", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("scale", [1, 16])
@pytest.mark.parametrize("unit", [1, 1e9, 2**24, 1 / 3, 1e-9])
def test_the_noise_is_larger_than_the_errors_of_multiples(dtype, step, scale, unit):
    values = steps(step, dtype, scale, unit)
    assert len(np.unique(values)) > len(np.unique(np.rint(values / unit / step)))  # there are errors
    assert largest_error(values, np.rint(values / unit / step)) < ERRORS[dtype]


@pytest.mark.parametrize(
    ("dtype", "offset", "subtracted"),
    [(dtype, offset, False) for dtype in ERRORS for offset in OFFSETS]
    + [(np.float64, offset, True) for offset in OFFSETS]
    + [(np.float32, offset, True) for offset in OFFSETS if offset < 100],  # larger ones leave too few digits
)
def test_the_noise_is_larger_than_the_errors_of_offsets(dtype, offset, subtracted):
    base, whole = rng().integers(8, size=(N, 1)), np.rint(rng().laplace(0, 10, (N, 1)))
    values = (base * 0.05).astype(dtype) + dtype(offset) + (whole * 0.05).astype(dtype)
    if subtracted:
        values -= dtype(offset)
    assert largest_error(values, base + whole) < ERRORS[dtype]


@pytest.mark.parametrize("unit", np.random.default_rng(1).uniform(1, 10, 100))
def test_the_noise_is_larger_than_the_errors_of_any_unit_in_single_precision(unit):
    values = steps(0.05, np.float32, 1, unit)
    assert largest_error(values, np.rint(values / unit / 0.05)) < ERRORS[np.float32]


AT_BORDER = {"half of a step": (0.5, 100.5), "decade": (BORDERS[0], 10 ** (2 - DECADE))}


@pytest.mark.parametrize("border", AT_BORDER)
@pytest.mark.parametrize("with_noise", [True, False])
def test_the_noise_hides_last_bits_at_a_border(border, with_noise, monkeypatch):
    if not with_noise:
        monkeypatch.setattr(rounding, "DISTANCE_SPREAD", 0.0)
        monkeypatch.setattr(rounding, "NUMBER_SPREAD", 0.0)
    share, number = AT_BORDER[border]
    rounded = given(share).rounded
    below, above = (rounded(np.full((N, 1), number + error)) < number for error in (-1e-12, 1e-12))
    if with_noise:
        # five standard errors of two independent shares
        assert abs(below.mean() - above.mean()) < 5 * np.sqrt(0.5 / N)
    else:
        assert abs(below.mean() - above.mean()) == 1


@pytest.mark.parametrize("change", [1.0, 3.0])
def test_the_noise_has_the_law_of_laplace(change):
    """At distance t, the share of numbers beyond the border is that of the theorem: half of exp(-t / s)."""
    scale = given(0.5).scale(np.array([[100.5]]))[0, 0]
    rounded = given(0.5).rounded(np.full((100_000, 1), 100.5 - change * scale))
    share = np.exp(-change) / 2
    assert (rounded > 100.25).mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 100_000))


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
    values = rng().laplace(0, [1e-4, 1.0, 1e4], (N, 3))
    values[:: N // 200] = 1e30
    sizes = learned(values).centers[0].sizes
    # a fifth of the distances is below -ln 0.8 of the scale
    assert np.allclose(sizes, -np.log(0.8) * np.array([1e-4, 1.0, 1e4]), rtol=0.15)


@pytest.mark.parametrize("number", [0.0, np.nan, np.inf, 1e-305, 0.25])
def test_coordinates_of_one_number_have_the_digits_of_1(number):
    assert rounding_of(np.full((20, 1), number))(np.array([[0.12344]])) == pytest.approx(0.12, abs=0.011)


@pytest.mark.parametrize("size", [1e-17, 1e-12, 1e-7])
def test_rounding_errors_of_zero_become_zero(size):
    values = np.stack([rng().normal(0, size, N), rng().normal(0, 1, N)], axis=1)
    assert (rounding_of(values)(values)[:, 0] == 0).all()


def test_most_whole_numbers_of_three_digits_stay():
    values = rng().integers(-900, 900, (N, 1))
    assert (rounding_of(values)(values) == values).mean() > 0.98


def test_numbers_that_stand_for_nan_do_not_count_however_many():
    values = np.where(rng().random((N, 1)) < 0.6, 1e30, rng().laplace(0, 1, (N, 1)))
    (center, size), *others = learned(values).centers
    assert np.abs(center) < 1
    assert size < 1
    assert not others


@pytest.mark.parametrize("marks", [[-99_999.0], [-9_999.0, -8_888.0]])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("scale", [0, 0.25])
def test_marks_for_missing_numbers_cost_no_digits(marks, share, scale):
    numbers = 0.37 + rng().laplace(0, scale, (N, 1)) if scale else np.resize([[0.3], [0.9]], (N, 1))
    values = np.where(rng().random((N, 1)) < share, np.resize(marks, (N, 1)), numbers)
    change = np.abs(rounding_of(values)(values) - values)[values > -100]
    assert np.median(change) < 0.005


def test_each_pair_has_its_own_digits():
    """The first inputs have noise of scale 1, and the others of scale 0.01 at 50,000."""

    class TwoSizes(Laplace):
        def release(self, values, generator):
            return values + generator.laplace(0, np.where(values < 100, 1, 0.01))

    pairs = [Pair("small", np.array([5.0]), np.array([6.0])), Pair("large", np.array([5e4]), np.array([5e4 + 1]))]
    rounded = round_releases(TwoSizes(1.0, 1.0), pairs, rng()).rounded
    for start, digit in ((5.0, 0.005), (5e4, 0.1)):
        values = start + np.resize([[0.0], [1.0]], (N, 1))
        assert np.abs(rounded(values) - values).mean() < digit


@pytest.mark.parametrize(("size", "error"), [(1.0, 3e-7), (255.0, 3e-14)])
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_rounding_errors_beside_noise_are_far_below_the_added_noise(size, error, share):
    """A residual is 0 but for rounding errors, and some of the rows have noise."""
    errors = error * rng().integers(-2, 3, (N, 1))
    values = np.where(rng().random((N, 1)) < share, rng().laplace(0, size, (N, 1)), errors)
    assert (rounding_of(values)(errors) == 0).mean() > 0.98


@pytest.mark.parametrize("number", [9.1, 910.0, 9e-5])
def test_rounding_errors_of_a_constant_become_one_number(number):
    """Its errors, of up to ten times those of single precision, are far below the noise."""
    values = number * (1 + rng().uniform(-6e-7, 6e-7, (N, 1)))
    assert largest_error(values, np.zeros((N, 1))) < ERRORS[np.float32]
    rounded = rounding_of(values)(values)
    assert (rounded == np.median(rounded)).mean() > 0.98


def test_large_numbers_elsewhere_cost_no_digits():
    """They are in another coordinate, or in the releases of another pair."""
    values = np.stack([rng().laplace(0, 1e12, N), rng().random(N)], axis=1)
    assert np.abs(rounding_of(values)(values) - values)[:, 1].max() < 0.01

    class OfTwoSizes(Laplace):
        def release(self, values, generator):
            return values * generator.random(values.shape)

    pairs = [Pair("one", np.zeros(1), np.ones(1)), Pair("large", np.zeros(1), np.array([1e25]))]
    rounded = round_releases(OfTwoSizes(1.0, 1.0), pairs, rng()).rounded
    assert np.abs(rounded(values[:, 1:]) - values[:, 1:]).max() < 0.01


def test_the_number_of_centers_is_limited():
    pairs = [Pair("next", np.array([i]), np.array([i + 1.0])) for i in range(100)]
    assert len(round_releases(Releasing(np.zeros((1, 1))), pairs, rng()).centers) == 1
    noise = Laplace(1000.0, 1000.0)
    assert len(round_releases(noise, pairs, rng()).centers) == MAX_CENTERS


def test_releases_are_rounded():
    values = np.resize([0.0, 1.0], (20, 1))
    mechanism, noise = Laplace(1.0, 1.0), rng()
    released = round_releases(mechanism, [PAIR], rng()).release(values, noise)
    assert (released == round_releases(mechanism, [PAIR], rng()).rounded(mechanism.release(values, rng()))).all()


def test_zero_has_no_sign():
    assert not np.signbit(rounding_of(np.ones((N, 1)))(np.zeros((2, 1)))).any()
