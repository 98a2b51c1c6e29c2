"""What private training costs one unit, and how long it may go on.

Neighbours: one unit's contribution is replaced by nothing, the number of units stays (zero-out adjacency; Kairouz et
al. 2021, definition 1.1), which is therefore public.

Theorem (Abadi et al. 2016; Mironov, Talwar and Zhang 2019). If every unit takes part in a step with probability q,
independently of everything, and its contribution has 2-norm at most C, then a step that adds N(0, (s C)**2 I) to the
sum of the contributions is a Poisson-sampled Gaussian release with noise multiplier s, and steps compose, each choosing
its gradients by what came out before. RDP and PLD (`leakboard.privacy.accounting.accountant`) both bound the
composition.

What sampling adds is lost where the sample is known: batches that follow each other (`visited`) are charged as k whole
Gaussian releases, k the number of batches that hold the unit.
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
"""Beyond it (epsilon by RDP) privacy loss distributions take minutes, for a number that protects nobody."""
FAILURE_SHARE = 0.1
"""Share of delta for the words of one unit alone that a counted vocabulary may let out."""


@dataclass(frozen=True)
class TrainingBudget:
    """The privacy loss of a unit after so many steps, the counting of the vocabulary included."""

    noise_multiplier: float
    """s, above 0."""
    sampling_probability: float
    """q, in (0, 1]."""
    delta: float
    vocabulary_noise: float | None = None
    """Noise multiplier of the counted vocabulary; None where it is public."""

    @property
    def failure(self) -> float:
        """Probability p that the vocabulary lets out a word of one unit alone."""
        return 0.0 if self.vocabulary_noise is None else FAILURE_SHARE * self.delta

    def epsilon(self, steps: int, method: Method = "rdp") -> float:
        """Return the epsilon at ``delta`` after so many sampled steps: an upper bound, by PLD the tighter of both."""
        if not steps and self.vocabulary_noise is None:
            return 0.0
        delta = self.delta - self.failure
        epsilon = accountant.epsilon_of(np.add(self._counting, steps * self._step if steps else 0.0), delta)
        if method == "pld" and epsilon < TIGHT_BELOW:
            # Both are upper bounds; for a tiny epsilon the grid of the tight one is too coarse.
            epsilon = min(epsilon, accountant.epsilon_at(self._releases(self.noise_multiplier, steps), delta, "pld"))
        return epsilon - math.log1p(-self.failure)

    @property
    def _step(self) -> NDArray[np.float64]:
        return _divergences(self.noise_multiplier, self.sampling_probability)

    @property
    def _counting(self) -> NDArray[np.float64] | float:
        return 0.0 if self.vocabulary_noise is None else _divergences(self.vocabulary_noise, 1.0)

    def visited(self, visits: int) -> float:
        """Return the epsilon at ``delta`` of a unit that is known to take part ``visits`` times.

        Gaussian releases with multipliers s_i are together one with multiplier 1 / sqrt(sum of 1 / s_i**2).
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
        """Return the largest number of steps, up to ``limit``, that cost at most ``epsilon`` by RDP; -1 for none."""
        if self.epsilon(0) > epsilon:
            return -1
        low, high = 0, limit + 1  # low is affordable, high is not or is out of the question
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.epsilon(middle) <= epsilon else (low, middle)
        return low

    def check(self, epsilon: float) -> None:
        """Refuse a target that the vocabulary alone exceeds.

        Raises:
            RequestError: says what it costs.
        """
        if (counting := self.epsilon(0)) >= epsilon:
            raise RequestError(
                f"epsilon {epsilon:g} cannot be reached: counting the vocabulary with vocabulary_noise "
                f"{self.vocabulary_noise:g} alone costs {counting:.4g} at delta {self.delta:g}; "
                "raise vocabulary_noise, or give a public vocabulary"
            )

    def calibrated(self, epsilon: float, steps: int) -> TrainingBudget:
        """Return the budget with the least noise multiplier for which so many steps cost at most ``epsilon`` by RDP.

        Raises:
            RequestError: counting the vocabulary alone costs more.
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
    """Return the Renyi divergences of one step; working them out takes long where many units are sampled."""
    return accountant.renyi_divergences(accountant.gaussian_releases(noise_multiplier, 1, sampling_probability))
