"""Bound the epsilon that private training costs one unit, and the steps that a target epsilon allows.

Neighbours: the contribution of one unit is replaced by nothing, and the number of units stays the same (zero-out
adjacency; Kairouz et al. 2021, definition 1.1). The number of units is therefore public.

Theorem (Abadi et al. 2016; Mironov, Talwar and Zhang 2019). Let every unit take part in a step with probability q,
independently of everything, and let its contribution have 2-norm at most C. Then a step that adds N(0, (s C)**2 I) to
the sum of the contributions is a Poisson-sampled Gaussian release with noise multiplier s. Steps compose, and each may
choose its gradients by the results before it. RDP and PLD (`leakboard.privacy.accounting.accountant`) both bound the
composition.

Sampling helps only while the sample is secret. Batches in a known order (`TrainingBudget.visited`) are charged as k
full Gaussian releases, where k is the number of batches that contain the unit.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakboard.errors import RequestError
from leakboard.privacy.accounting import accountant
from leakboard.privacy.accounting.accountant import Method
from leakboard.privacy.mechanisms.textbook import gaussian_epsilon

TIGHT_BELOW = 100.0
"""Largest epsilon by RDP for which PLD is computed: beyond it PLD takes minutes, and the epsilon protects nothing."""
FAILURE_SHARE = 0.1
"""Share of delta reserved for the event that a counted vocabulary releases a word that only one unit uses."""


@dataclass(frozen=True)
class TrainingBudget:
    """The privacy loss of a unit by number of steps, including the counting of the vocabulary."""

    noise_multiplier: float
    """s, above 0."""
    sampling_probability: float
    """q, in (0, 1]."""
    delta: float
    vocabulary_noise: float | None = None
    """Noise multiplier of the word counts; None for a public vocabulary."""

    @property
    def failure(self) -> float:
        """Probability p that the vocabulary releases a word that only one unit uses."""
        return 0.0 if self.vocabulary_noise is None else FAILURE_SHARE * self.delta

    def epsilon(self, steps: int, method: Method = "rdp") -> float:
        """Return an upper bound on epsilon at ``delta`` after sampled steps; ``pld``: the smaller of both methods."""
        if not steps and self.vocabulary_noise is None:
            return 0.0
        delta = self.delta - self.failure
        epsilon = accountant.epsilon_of(np.add(self._counting, steps * self._step if steps else 0.0), delta)
        if method == "pld" and epsilon < TIGHT_BELOW:
            # Both are upper bounds; for a tiny epsilon the grid of PLD is too coarse.
            epsilon = min(epsilon, accountant.epsilon_at(self._releases(self.noise_multiplier, steps), delta, "pld"))
        return epsilon - math.log1p(-self.failure)

    @property
    def _step(self) -> NDArray[np.float64]:
        return _divergences(self.noise_multiplier, self.sampling_probability)

    @property
    def _counting(self) -> NDArray[np.float64] | float:
        return 0.0 if self.vocabulary_noise is None else _divergences(self.vocabulary_noise, 1.0)

    def visited(self, visits: int) -> float:
        """Return the epsilon at ``delta`` of a unit that is known to take part in ``visits`` steps.

        Gaussian releases with multipliers s_i equal one release with multiplier 1 / sqrt(sum of 1 / s_i**2).
        """
        precision = visits / self.noise_multiplier**2 + (self.vocabulary_noise or math.inf) ** -2
        if not precision:
            return 0.0
        return gaussian_epsilon(self.delta - self.failure, precision**-0.5, 1.0) - math.log1p(-self.failure)

    def _releases(self, noise_multiplier: float, steps: int) -> Any:
        counting = [accountant.gaussian_releases(self.vocabulary_noise)] if self.vocabulary_noise else []
        probability = self.sampling_probability
        training = [accountant.gaussian_releases(noise_multiplier, steps, probability)] if steps else []
        return accountant.together(*counting, *training)

    def steps_within(self, epsilon: float, limit: int) -> int:
        """Return the most steps, up to ``limit``, that cost at most ``epsilon`` by RDP; -1 if 0 steps cost more."""
        if self.epsilon(0) > epsilon:
            return -1
        low, high = 0, limit + 1  # low is affordable; high is not, or exceeds the limit
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.epsilon(middle) <= epsilon else (low, middle)
        return low

    def check(self, epsilon: float) -> None:
        """Refuse a target epsilon that counting the vocabulary already uses up.

        Raises:
            RequestError: counting the vocabulary costs at least ``epsilon``.
        """
        if (counting := self.epsilon(0)) >= epsilon:
            raise RequestError(
                f"epsilon {epsilon:g} cannot be reached: counting the vocabulary with vocabulary_noise "
                f"{self.vocabulary_noise:g} alone costs {counting:.4g} at delta {self.delta:g}; "
                "raise vocabulary_noise, or give a public vocabulary"
            )

    def calibrated(self, epsilon: float, steps: int) -> TrainingBudget:
        """Return the budget with the least noise for which ``steps`` steps cost at most ``epsilon`` by RDP.

        Raises:
            RequestError: counting the vocabulary costs at least ``epsilon``, or no noise reaches it.
        """
        self.check(epsilon)
        target, delta = epsilon + math.log1p(-self.failure), self.delta - self.failure
        try:
            least = accountant.least_noise(lambda noise: self._releases(noise, steps), target, delta)
        except ValueError as error:
            raise RequestError(f"epsilon {epsilon:g} cannot be reached: {error}") from None
        return dataclasses.replace(self, noise_multiplier=least)


@lru_cache(maxsize=256)
def _divergences(noise_multiplier: float, sampling_probability: float) -> NDArray[np.float64]:
    """Return the Renyi divergences of one step, cached because sampled steps take long to compute."""
    return accountant.renyi_divergences(accountant.gaussian_releases(noise_multiplier, 1, sampling_probability))
