"""What many releases cost together: composition and subsampling by ``dp-accounting``, in two ways.

Privacy loss distributions (PLD; Koskela, Jälkö and Honkela 2020, as Google's library discretises them,
pessimistically) are tight; Renyi differential privacy (RDP; Mironov 2017, for Poisson sampling Mironov, Talwar and
Zhang 2019) is an upper bound that is cheap for many steps. Both are for neighbours that differ by adding or removing
one record where there is sampling, and assume that every step samples by itself (Poisson), not batches in a row.
"""

from __future__ import annotations

from typing import Any, Literal

from leakboard.privacy.mechanisms import Gaussian, Laplace

Method = Literal["pld", "rdp"]


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

    if times < 1 or not 0 < sampling_probability <= 1:
        raise ValueError(
            f"{times} releases with sampling probability {sampling_probability}; allowed: >= 1, and (0, 1]"
        )
    kind = dp_accounting.GaussianDpEvent if isinstance(mechanism, Gaussian) else dp_accounting.LaplaceDpEvent
    event = kind(mechanism.scale / mechanism.sensitivity)
    if sampling_probability < 1:
        event = dp_accounting.PoissonSampledDpEvent(sampling_probability, event)
    return dp_accounting.SelfComposedDpEvent(event, times)


def epsilon_at(event: Any, delta: float, method: Method = "pld") -> float:
    """Return the epsilon that the releases give at this delta: an upper bound.

    Raises:
        ValueError: delta is not above 0 (pure privacy composes by summing epsilons) and below 1, or the method does not
            know these releases (RDP: sampled Laplace noise).
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} is not allowed: above 0 and below 1; without delta sum the epsilons")
    return float(_accountant(event, method).get_epsilon(delta))


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
    return accountant.compose(event)
