"""Rounding of releases: equal values that differ in their last bits become one value, and other releases stay."""

import numpy as np
import pytest

from leakboard.privacy.auditing.rounding import SAMPLE, Rounded, decimals_of
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


def test_the_first_releases_decide():
    class Grid(Laplace):
        def release(self, values, generator):
            return values + 0.1 * np.rint(10 * super().release(0 * values, generator))

    mechanism = Rounded(Grid(1.0, 2.0))
    generator, inputs = rng(), np.resize([0.0, 0.3], (100, 1))
    for _ in range(SAMPLE // 100):
        mechanism.release(inputs, generator)
    assert mechanism.decimals is not None
    later = mechanism.release(np.resize(inputs, (N, 1)), generator)
    assert len(np.unique(later)) == len(np.unique(np.rint(10 * later))) > 20


def test_continuous_releases_are_handed_on_as_they_are():
    values = np.zeros((N, 2))
    assert np.array_equal(Rounded(Laplace(1.0, 2.0)).release(values, rng()), Laplace(1.0, 2.0).release(values, rng()))
