"""What many releases cost together: composition and subsampling by ``dp-accounting``, in two ways.

Privacy loss distributions (PLD; Koskela, Jälkö and Honkela 2020, as Google's library discretises them,
pessimistically) are tight; Renyi differential privacy (RDP; Mironov 2017, for Poisson sampling Mironov, Talwar and
Zhang 2019) is an upper bound that is cheap for many steps. Both are for neighbours that differ by adding or removing
one record where there is sampling, and assume that every step samples by itself (Poisson), not batches in a row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakboard.privacy.mechanisms.textbook import Gaussian, Laplace

Method = Literal["pld", "rdp"]
MOST_NOISE = 1e6
"""Noise multiplier beyond which none is looked for."""


def composition(mechanism: Laplace | Gaussian, times: int = 1, sampling_probability: float = 1.0) -> Any:
    """Return what is accounted for: ``times`` releases by one mechanism, each of a Poisson sample of the records.

    Args:
        mechanism: Laplace or Gaussian; the ratio of its scale to its sensitivity counts.
        times: releases, each of which may depend on what came out before.
        sampling_probability: with which a record takes part in a release; 1 takes all.

    Raises:
        ValueError: a number is out of range.
    """
    import dp_accounting

    kind = dp_accounting.GaussianDpEvent if isinstance(mechanism, Gaussian) else dp_accounting.LaplaceDpEvent
    return _repeated(kind(mechanism.scale / mechanism.sensitivity), times, sampling_probability)


def gaussian_releases(noise_multiplier: float, times: int = 1, sampling_probability: float = 1.0) -> Any:
    """Return what is accounted for: releases with Gaussian noise of so many times the sensitivity (`composition`).

    Raises:
        ValueError: a number is out of range.
    """
    import dp_accounting

    if not noise_multiplier > 0:
        raise ValueError(f"noise multiplier {noise_multiplier!r} is not allowed: above 0")
    return _repeated(dp_accounting.GaussianDpEvent(noise_multiplier), times, sampling_probability)


def together(*events: Any) -> Any:
    """Return several kinds of releases as one."""
    import dp_accounting

    return dp_accounting.ComposedDpEvent(list(events))


def _repeated(event: Any, times: int, sampling_probability: float) -> Any:
    import dp_accounting

    if times < 1 or not 0 < sampling_probability <= 1:
        raise ValueError(
            f"{times} releases with sampling probability {sampling_probability}; allowed: >= 1, and (0, 1]"
        )
    if sampling_probability < 1:
        event = dp_accounting.PoissonSampledDpEvent(sampling_probability, event)
    return dp_accounting.SelfComposedDpEvent(event, times)


def least_noise(make_event: Callable[[float], Any], epsilon: float, delta: float) -> float:
    """Return the least noise multiplier, to 1e-4, whose releases are (epsilon, delta)-private by RDP.

    Args:
        make_event: maps a noise multiplier to what is released with it; more noise is more private.
        epsilon: target.
        delta: target.

    Raises:
        ValueError: no noise multiplier below a million does it.
    """
    import dp_accounting
    from dp_accounting import rdp

    if epsilon_at(make_event(MOST_NOISE), delta, "rdp") > epsilon:
        raise ValueError(f"no noise gives epsilon {epsilon:g} at delta {delta:g}")
    bracket = dp_accounting.LowerEndpointAndGuess(1e-3, 1.0)
    with _without_remarks():
        noise = dp_accounting.calibrate_dp_mechanism(rdp.RdpAccountant, make_event, epsilon, delta, bracket, tol=1e-4)
    return float(noise)


def epsilon_at(event: Any, delta: float, method: Method = "pld") -> float:
    """Return the epsilon that the releases give at this delta: an upper bound.

    Raises:
        ValueError: delta is not above 0 (pure privacy composes by summing epsilons) and below 1, or the method does not
            know these releases (RDP: sampled Laplace noise).
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} is not allowed: above 0 and below 1; without delta sum the epsilons")
    return float(_accountant(event, method).get_epsilon(delta))


def renyi_divergences(event: Any) -> NDArray[np.float64]:
    """Return the Renyi divergence of the releases at each order of the cheap accountant: n times them n times as much.

    Raises:
        ValueError: the accountant does not know these releases (sampled Laplace noise).
    """
    return np.asarray(_accountant(event, "rdp").rdp)


def epsilon_of(divergences: NDArray[np.float64], delta: float) -> float:
    """Return the epsilon at delta that `renyi_divergences`, or a sum of several, give: an upper bound."""
    from dp_accounting import rdp

    return float(rdp.compute_epsilon(rdp.RdpAccountant().orders, divergences, delta)[0])


def delta_at(event: Any, epsilon: float, method: Method = "pld") -> float:
    """Return the delta that the releases give at this epsilon: an upper bound.

    Raises:
        ValueError: epsilon is negative, or the method does not know these releases (RDP: sampled Laplace noise).
    """
    if not epsilon >= 0:
        raise ValueError(f"epsilon={epsilon!r} is not allowed: a number from 0")
    return float(_accountant(event, method).get_delta(epsilon))


def _accountant(event: Any, method: Method) -> Any:
    from dp_accounting import pld, rdp

    accountant = pld.PLDAccountant() if method == "pld" else rdp.RdpAccountant()
    if not accountant.supports(event):
        raise ValueError(f"method: {method!r} is not allowed for sampled Laplace noise (allowed: pld)")
    with _without_remarks():
        return accountant.compose(event)


@contextmanager
def _without_remarks() -> Iterator[None]:
    """Keep the library from telling which orders its series did not converge for: leaving them out is sound."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
