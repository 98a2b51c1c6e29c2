"""The first rows that a mechanism releases are tested, and sound mechanisms are not accused."""

import numpy as np
import pytest
from scipy import stats

from leakboard.privacy.auditing.events import Pair, corners
from leakboard.privacy.auditing.first_rows import FEW_ROWS, audit_first_rows
from leakboard.privacy.mechanisms.broken import RandomBits
from leakboard.privacy.mechanisms.textbook import DiscreteLaplace, Gaussian, Laplace


class Starting(Laplace):
    """Laplace noise, but none on the first rows of a call."""

    def release(self, values, generator):
        released = super().release(values, generator)
        released[:FEW_ROWS] = values[:FEW_ROWS]
        return released


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_rows_without_noise_are_caught(delta, monkeypatch):
    monkeypatch.setattr(Starting, "delta", delta)
    result = audit_first_rows(Starting(1.0, 2.0), corners(2)[0], np.random.default_rng(0), 0.005)
    # all of 50 guesses are right, at half of the error
    assert result.epsilon == pytest.approx(-np.log(0.0025 ** (-1 / FEW_ROWS) - 1), abs=0.01)
    assert "50 of 50 guesses right" in result.event


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(1.0, 1.0),
        DiscreteLaplace(1.0, 1.0, 0.25),
        Gaussian(1.0, 1e-5, 1.0),
        RandomBits(1.0),
    ],
    ids=["laplace", "discrete laplace", "gaussian", "random"],
)
def test_sound_mechanisms_are_accused_no_more_often_than_stated(mechanism):
    rng, audits = np.random.default_rng(1), 60
    bounds = [audit_first_rows(mechanism, corners(1)[0], rng, 0.2).epsilon for _ in range(audits)]
    assert sum(bound > mechanism.epsilon for bound in bounds) <= stats.binom(audits, 0.2).ppf(0.999)


def test_last_bits_break_no_ties():
    """0.15 is as far from 0 as from 0.3; one last bit less is nearer 0."""

    class Tied(Laplace):
        def release(self, values, generator):
            return np.where(values == 0, np.nextafter(0.15, 0), 0.15)

    pair = Pair("given", np.zeros(1), np.full(1, 0.3))
    assert audit_first_rows(Tied(1.0, 1.0), pair, np.random.default_rng(0), 0.005).epsilon == 0
