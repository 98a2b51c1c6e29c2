"""Compute the exact loss of the majority vote over independent bits, which Habernal's sanity check estimates."""

import math

import numpy as np
from scipy import stats


def exact_loss(chances: tuple[float, float], dimensions: int) -> float:
    """Return the true value of the estimate: the loss of the majority vote over independent bits.

    Args:
        chances: probability that a bit is 1, for an input of 0 and of 1.
        dimensions: number of bits n; the guess is 1 if more than n/2 of them are.
    """
    return max(abs(p - q) for p, q in _log_chances(chances, dimensions))


def laplace_chances(scale: float) -> tuple[float, float]:
    """Return the probability that 0, and that 1, with Lap(scale) noise is one half or more."""
    low = 0.5 * math.exp(-0.5 / scale)
    return low, 1 - low


def sampling_error(chances: tuple[float, float], dimensions: int, repeats: int) -> float:
    """Return the standard deviation of the plug-in estimate for the guess that decides the loss (delta method).

    For counts k of R with probability p, ln(k / R) has variance (1 - p) / (p R) to first order.
    """
    p, q = np.exp(max(_log_chances(chances, dimensions), key=lambda pair: abs(pair[0] - pair[1])))
    return math.sqrt(((1 - p) / p + (1 - q) / q) / repeats)


def _log_chances(chances: tuple[float, float], dimensions: int) -> list[tuple[float, float]]:
    """Return for the guesses 0 and 1 their log probabilities given zeros and given ones."""
    half = dimensions // 2
    zeros, ones = (stats.binom(dimensions, chance) for chance in chances)
    return [(zeros.logcdf(half), ones.logcdf(half)), (zeros.logsf(half), ones.logsf(half))]
