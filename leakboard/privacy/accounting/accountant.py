"""Bound the privacy loss of many releases together, by the library ``dp-accounting``.

Two methods give upper bounds on epsilon:

- ``pld``: privacy loss distributions (Koskela, Jälkö and Honkela 2020), usually the tighter bound;
- ``rdp``: Renyi differential privacy (Mironov 2017; sampling: Mironov, Talwar and Zhang 2019), cheap for many steps.

With sampling, neighbours differ by one record, which is added, removed, or contributes zero. Each step must draw its
own Poisson sample. Batches in the order of the data are not covered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Method = Literal["pld", "rdp"]
LARGEST_NOISE = 1e6
"""Largest noise multiplier that `least_noise` tries."""


def gaussian_releases(noise_multiplier: float, times: int = 1, sampling_probability: float = 1.0) -> Any:
    """Return the accounting event of Gaussian releases, an object of ``dp-accounting``.

    Args:
        noise_multiplier: standard deviation of the noise divided by the sensitivity, above 0.
        times: number of releases. A release may depend on earlier releases.
        sampling_probability: probability that a record takes part in a release, in (0, 1]; 1 means no sampling.

    Raises:
        ValueError: a number is out of range.
    """
    import dp_accounting

    if not noise_multiplier > 0:
        raise ValueError(f"noise multiplier {noise_multiplier!r} is not allowed: a number above 0")
    if times < 1 or not 0 < sampling_probability <= 1:
        raise ValueError(
            f"{times} releases with sampling probability {sampling_probability}; allowed: >= 1, and (0, 1]"
        )
    event = dp_accounting.GaussianDpEvent(noise_multiplier)
    if sampling_probability < 1:
        event = dp_accounting.PoissonSampledDpEvent(sampling_probability, event)
    return dp_accounting.SelfComposedDpEvent(event, times)


def together(*events: Any) -> Any:
    """Compose several accounting events into one."""
    import dp_accounting

    return dp_accounting.ComposedDpEvent(list(events))


def least_noise(make_event: Callable[[float], Any], epsilon: float, delta: float) -> float:
    """Return the least noise multiplier, to 1e-4, that makes the releases (epsilon, delta)-private by RDP.

    Args:
        make_event: maps a noise multiplier to the accounting event with this noise.
        epsilon: target.
        delta: target.

    Raises:
        ValueError: even `LARGEST_NOISE` does not reach the target.
    """
    import dp_accounting
    from dp_accounting import rdp

    if (least := epsilon_at(make_event(LARGEST_NOISE), delta, "rdp")) > epsilon:
        raise ValueError(
            f"at delta {delta:g} RDP proves no epsilon below {least:.3g} with a noise multiplier up to "
            f"{LARGEST_NOISE:g}; {epsilon:g} was asked"
        )
    bracket = dp_accounting.LowerEndpointAndGuess(1e-3, 1.0)
    with _quiet_library():
        noise = dp_accounting.calibrate_dp_mechanism(rdp.RdpAccountant, make_event, epsilon, delta, bracket, tol=1e-4)
    return float(noise)


def epsilon_at(event: Any, delta: float, method: Method = "pld") -> float:
    """Return an upper bound on the epsilon of an accounting event at this delta.

    Raises:
        ValueError: delta is not between 0 and 1.
    """
    if not 0 < delta < 1:
        raise ValueError(
            f"delta={delta!r} is not allowed: a number above 0 and below 1; at delta 0, add up the epsilons"
        )
    accountant = _accountant(event, method)
    with _quiet_library():
        return float(accountant.get_epsilon(delta))


def renyi_divergences(event: Any) -> NDArray[np.float64]:
    """Return the Renyi divergence of an event at each order of the RDP accountant, float64 (orders,)."""
    return np.asarray(_accountant(event, "rdp").rdp)


def epsilon_of(divergences: NDArray[np.float64], delta: float) -> float:
    """Return an upper bound on epsilon from `renyi_divergences`, or from their sum over releases."""
    from dp_accounting import rdp

    with _quiet_library():
        return float(rdp.compute_epsilon(rdp.RdpAccountant().orders, divergences, delta)[0])


def _accountant(event: Any, method: Method) -> Any:
    from dp_accounting import pld, rdp

    accountant = pld.PLDAccountant() if method == "pld" else rdp.RdpAccountant()
    with _quiet_library():
        return accountant.compose(event)


@contextmanager
def _quiet_library() -> Iterator[None]:
    # the warnings are about orders that the accountant leaves out, which is sound
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
