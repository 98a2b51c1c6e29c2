"""Bound the epsilon of private training for one unit, and the number of steps within a target epsilon.

A unit is what the claim protects, for instance a document. Two neighbours differ in one unit, which contributes nothing
in one of them (zero-out adjacency; Kairouz et al. 2021, definition 1.1). Neighbours have the same number of units, so
this number is public.

Theorem (Abadi et al. 2016; Mironov, Talwar and Zhang 2019). Let every unit take part in a step with probability q,
independently of everything else, and let its contribution have 2-norm at most C. Let a step add N(0, (s C)**2 I) to the
sum of the contributions. Then the step is a Poisson-sampled Gaussian release with noise multiplier s. Steps compose,
even if the gradients of a step depend on the results of earlier steps. RDP and PLD
(`leakboard.privacy.accounting.accountant`) both bound the composition.

Sampling helps only while the sample is secret. If batches come in a known order, a unit in k batches pays for k full
Gaussian releases (`TrainingBudget.epsilon_of_visits`).

A private vocabulary has the words whose count with Gaussian noise exceeds a threshold. Counting is one more Gaussian
release, without sampling. But a released word reveals a unit if no other unit has the word.

Theorem (noisy vocabulary; the argument of Korolova et al. 2009 and Gopi et al. 2020). Let two neighbours differ in one
unit. Call a word unique if only this unit has it. Let p bound the probability that a unique word is released. Let
counting and training be (epsilon, delta - p)-private if unique words are never released. Then they are
(epsilon - ln(1 - p), delta)-private.

Proof. Let M be the result with the unit, and M' the result without the unit. Let A be the event that no unique word
is released. Let G be the result with the unit if unique words are never released. P(A) >= 1 - p, and M = G under A. A
depends only on the noise on the counts of unique words. G does not use this noise, so A is independent of G. So for any
set S, P(M in S) <= P(G in S) + p, and (1 - p) P(G in S) <= P(M in S). Therefore

    P(M in S) <= e**epsilon P(M' in S) + (delta - p) + p
    P(M' in S) <= e**epsilon P(M in S) / (1 - p) + (delta - p).

`leakboard.models.skip_gram.vocabulary` chooses the threshold for this p (`TrainingBudget.failure`).
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
"""PLD is computed only if the epsilon by RDP is below this. Above, PLD takes minutes."""
FAILURE_SHARE = 0.1
"""Share of delta for the event that the vocabulary releases a word that only one unit has."""


@dataclass(frozen=True)
class TrainingBudget:
    """The privacy loss of a unit after a number of steps, the counting of the vocabulary included."""

    noise_multiplier: float
    """Noise multiplier s of a step, above 0."""
    sampling_probability: float
    """Probability q that a unit takes part in a step, in (0, 1]."""
    delta: float
    vocabulary_noise: float | None = None
    """Noise multiplier of the word counts; None for a public vocabulary."""

    @property
    def failure(self) -> float:
        """Largest probability p of releasing a word that only one unit has; 0 for a public vocabulary."""
        return 0.0 if self.vocabulary_noise is None else FAILURE_SHARE * self.delta

    def epsilon(self, steps: int, method: Method = "rdp") -> float:
        """Return an upper bound on epsilon at ``delta`` after sampled steps.

        With ``pld``, the smaller bound of both methods is returned, unless the bound by RDP is `TIGHT_BELOW` or more.
        """
        if not steps and self.vocabulary_noise is None:
            return 0.0
        delta = self.delta - self.failure
        epsilon = accountant.epsilon_of(np.add(self._counting, steps * self._step if steps else 0.0), delta)
        if method == "pld" and epsilon < TIGHT_BELOW:
            # for a tiny epsilon, RDP is tighter than the coarse grid of PLD
            epsilon = min(epsilon, accountant.epsilon_at(self._releases(self.noise_multiplier, steps), delta, "pld"))
        return epsilon - math.log1p(-self.failure)

    @property
    def _step(self) -> NDArray[np.float64]:
        return _divergences(self.noise_multiplier, self.sampling_probability)

    @property
    def _counting(self) -> NDArray[np.float64] | float:
        return 0.0 if self.vocabulary_noise is None else _divergences(self.vocabulary_noise, 1.0)

    def epsilon_of_visits(self, visits: int) -> float:
        """Return the epsilon at ``delta`` of a unit that takes part in ``visits`` known steps.

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
        """Return the largest number of steps, up to ``limit``, that cost at most ``epsilon`` by RDP.

        -1 if counting the vocabulary alone costs more.
        """
        if self.epsilon(0) > epsilon:
            return -1
        low, high = 0, limit + 1  # low steps cost at most epsilon; high steps cost more, or exceed the limit
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.epsilon(middle) <= epsilon else (low, middle)
        return low

    def check(self, epsilon: float) -> None:
        """Refuse an epsilon that counting a private vocabulary uses up.

        Raises:
            RequestError: counting the vocabulary costs at least ``epsilon``.
        """
        if self.vocabulary_noise is not None and (counting := self.epsilon(0)) >= epsilon:
            raise RequestError(
                f"epsilon {epsilon:g} cannot be reached: counting the vocabulary with vocabulary_noise "
                f"{self.vocabulary_noise:g} alone costs {counting:.4g} at delta {self.delta:g}; "
                "raise vocabulary_noise, or give a public vocabulary"
            )

    def calibrated(self, epsilon: float, steps: int) -> TrainingBudget:
        """Return the budget with the least noise at which ``steps`` steps cost at most ``epsilon`` by RDP.

        Raises:
            RequestError: `check` refuses ``epsilon``, or no noise up to
                `leakboard.privacy.accounting.accountant.LARGEST_NOISE` reaches ``epsilon``.
        """
        self.check(epsilon)
        target, delta = epsilon + math.log1p(-self.failure), self.delta - self.failure
        try:
            least = accountant.least_noise(lambda noise: self._releases(noise, steps), target, delta)
        except ValueError as error:
            raise RequestError(f"epsilon {epsilon:g} cannot be reached: {error}") from None
        return dataclasses.replace(self, noise_multiplier=least)


@lru_cache(maxsize=256)  # sampled steps take long to compute
def _divergences(noise_multiplier: float, sampling_probability: float) -> NDArray[np.float64]:
    return accountant.renyi_divergences(accountant.gaussian_releases(noise_multiplier, 1, sampling_probability))
