"""Test the noise samplers of figure 2 of Habernal (2022): the moments of Laplace noise and of DPText's mixture."""

import numpy as np
import pytest

from leakboard.site.samplers import DRAWS, draws, histograms, inverse


def test_inverse_distribution_function_by_hand():
    assert inverse(np.array([0.25, -0.25, 0.0])) == pytest.approx([np.log(2), -np.log(2), 0.0])
    assert np.isnan(inverse(np.array([0.75]))).all()


def test_correct_samplers_have_laplace_moments_and_dptext_does_not():
    ours, uniform, correct, kept, replaced = draws().values()
    error = 5 / np.sqrt(DRAWS)  # five standard errors of a mean, in standard deviations
    for values in (ours, correct):
        assert values.mean() == pytest.approx(0, abs=error * np.sqrt(2))
        assert values.var() == pytest.approx(2, abs=error * np.sqrt(20))  # the fourth moment is 24, minus 2 squared
    assert uniform.mean() == pytest.approx(0.5, abs=error)
    assert np.isnan(kept).mean() == pytest.approx(0.5, abs=error)
    assert np.nanmin(kept) >= 0
    assert replaced.min() == 0
    assert replaced.mean() == pytest.approx(0.5, abs=error * np.sqrt(0.75))  # half zeros, half exponential
    assert replaced.var() == pytest.approx(0.75, abs=0.05)


def test_histograms_have_titles_and_hold_almost_all_draws():
    labels, figures = zip(*histograms(), strict=True)
    assert len(figures) == 5
    assert "50 % NaN" in labels[3]
    counts = [sum(figure["data"][0]["y"]) for figure in figures]
    assert counts[1] == DRAWS
    assert min(counts[0], counts[2]) > 0.999 * DRAWS  # a share of e^-8 is outside
