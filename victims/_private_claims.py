"""What ``dp_word2vec`` claims for a number of steps, and what is proved for what they do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leakboard.interfaces import PrivacyClaim
from leakboard.privacy.training_budget import TrainingBudget
from leakboard.skip_gram.lots import FixedLots
from leakboard.skip_gram.personal import AsInThePaper, Filtered

if TYPE_CHECKING:
    from leakboard.victims.dp_word2vec import DPWord2Vec


@dataclass(frozen=True)
class Claims:
    """What is claimed and what is proved after so many steps."""

    options: DPWord2Vec
    cost: TrainingBudget
    units: int
    words: int
    size: int
    budgets: np.ndarray | None
    stays: Filtered | AsInThePaper | None

    def __call__(self, steps: int) -> PrivacyClaim | None:
        """Return the claim; None without noise."""
        options = self.options
        if options.noise_multiplier == 0:
            return None
        return PrivacyClaim(
            epsilon=self._claimed(steps),
            delta=options.delta,
            unit=options.unit,
            mechanism=self._mechanism(steps),
            sensitivity=self._sensitivity(),
            proved=self._proved(steps),
            protects="training",
        )

    def _claimed(self, steps: int) -> float:
        if isinstance(self.stays, Filtered):
            steps = int(min(steps, self.stays.last.max()))
        elif self.budgets is not None:
            return float(self.budgets.max())
        if self.options.as_released:  # told the number of words for that of pairs
            return replace(self.cost, sampling_probability=min(1.0, self.size / self.words)).epsilon(steps)
        spent = self.cost.epsilon(steps)
        target = self.options.target
        return target if target is not None and 0.99 * target < spent else spent

    def _proved(self, steps: int) -> float:
        if self.options.exact_vocabulary:
            return math.inf
        if isinstance(self.stays, AsInThePaper):
            return self.cost.visited(min(steps, self.stays.visits()))
        if isinstance(self.stays, Filtered):
            steps = int(min(steps, self.stays.last.max()))
        if self.options.fixed:
            cost = self.cost
            if self.options.as_released:
                # One pair can turn each table's clipped mean around: 2 C apart in each, sqrt(8) C together.
                true = cost.noise_multiplier * self.options.clipping_norm / math.sqrt(8)
                cost = replace(cost, noise_multiplier=true)
            return cost.visited(FixedLots(self.units, self.size).visits(steps))
        return self.cost.epsilon(steps, "pld")

    def _sensitivity(self) -> str:
        norm = self.options.clipping_norm
        if self.options.as_released:
            return f"2-norm of what a pair changes in the batch's clipped mean, taken to be {norm:g}"
        return f"2-norm of the gradient of one {self.options.unit} at most {norm:g}, by clipping"

    def _mechanism(self, steps: int) -> str:
        options, noise = self.options, self.cost.noise_multiplier
        lots = f"Poisson samples, q={self.size / self.units:.4g}"
        if options.fixed:
            lots = f"batches of {self.size} in order"
        scale = f"Gaussian noise {noise:.4g} times the clipping norm on the sum"
        if options.as_released:
            scale = f"the mean gradient clipped, Gaussian noise {noise:.4g} times the clipping norm squared on it"
        parts = [f"{steps} steps of gradient descent on {lots}, {scale}", f"{self.units} units, a public number"]
        parts.append(f"vocabulary {self._vocabulary()}")
        if self.budgets is not None:
            parts.append(f"public budgets {self.budgets.min():g} to {self.budgets.max():g}, {options.accounting}")
        if options.delta >= 1 / self.units:
            parts.append("delta is not below 1 over the units")
        return "; ".join(parts)

    def _vocabulary(self) -> str:
        if self.options.noisy_vocabulary:
            return f"counted with {self.options.vocabulary_noise:g} times the noise of what a unit adds"
        return "counted exactly, which nothing pays for" if self.options.exact_vocabulary else "given"
