"""What ``dp_word2vec`` claims for a number of steps, and what is proved for what they do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leakboard.interfaces import PrivacyClaim
from leakboard.models.skip_gram.participation import PaperAccounting, RenyiFilter
from leakboard.models.skip_gram.sampling import SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget

if TYPE_CHECKING:
    from leakboard.victims.dp_word2vec import DPWord2Vec


def _listed(by_budget: Mapping[float, float]) -> str:
    """Return each budget with what is proved of its users; of many budgets the range, and how many are exceeded."""
    if len(by_budget) <= 5:
        return ", ".join(f"{budget:g}: {epsilon:.3g}" for budget, epsilon in by_budget.items())
    exceeded = sum(proved > budget for budget, proved in by_budget.items())
    range_ = f"{min(by_budget.values()):.3g} to {max(by_budget.values()):.3g}"
    return f"{range_}, which exceeds {exceeded} of {len(by_budget)} budgets"


@dataclass(frozen=True, eq=False)
class Claims:
    """What is claimed and what is proved after so many steps."""

    options: DPWord2Vec
    cost: TrainingBudget
    units: int
    """How many there are."""
    words: int
    """Of the vocabulary."""
    size: int
    """Expected number of units in a batch."""
    last: int
    """The step after which training ends."""
    budgets: np.ndarray | None
    """float64 (units,), of users who have budgets of their own."""
    participation: RenyiFilter | PaperAccounting | None
    """Says which users still take part; None: all do."""

    def __call__(self, steps: int) -> PrivacyClaim | None:
        """Return the claim; None without noise."""
        options = self.options
        if options.noise_multiplier == 0:
            return None
        by_budget = self._by_budget(steps)
        return PrivacyClaim(
            epsilon=self._claimed(steps),
            delta=options.delta,
            unit=options.unit,
            mechanism=self._mechanism(steps, by_budget),
            sensitivity=self._sensitivity(),
            proved=self._proved(steps, by_budget),
            protects="training",
            caveat=self._caveat(steps),
        )

    def _claimed(self, steps: int) -> float:
        if isinstance(self.participation, RenyiFilter):
            steps = int(min(steps, self.participation.paid_steps.max()))
        elif self.budgets is not None:
            return float(self.budgets.max())
        if self.options.as_released:  # told the number of words for that of pairs; nothing is said of the vocabulary
            told = replace(self.cost, sampling_probability=min(1.0, self.size / self.words), vocabulary_noise=None)
            return told.epsilon(steps)
        spent = self.cost.epsilon(steps)
        target = self.options.target
        return target if target is not None and 0.99 * target < spent else spent

    def _proved(self, steps: int, by_budget: Mapping[float, float]) -> float:
        if self.options.exact_vocabulary or any(proved > budget for budget, proved in by_budget.items()):
            return math.inf
        if by_budget:
            return max(by_budget.values())
        if isinstance(self.participation, RenyiFilter):
            steps = int(min(steps, self.participation.paid_steps.max()))
        return self._of_steps(steps)

    def _of_steps(self, steps: int) -> float:
        """Return what is proved of a unit that may take part in all steps."""
        if self.options.fixed:
            cost = self.cost
            if self.options.as_released:
                # One pair can turn each table's clipped mean around: 2 C apart in each, sqrt(8) C together.
                true = cost.noise_multiplier * self.options.clipping_norm / math.sqrt(8)
                cost = replace(cost, noise_multiplier=true)
            return cost.visited(SequentialBatches(self.units, self.size).visits(steps))
        return self.cost.epsilon(steps, "pld")

    def _by_budget(self, steps: int) -> dict[float, float]:
        """Return by budget what is proved of users who leave when the paper's shares are spent; empty for others.

        Theorem. Let a unit's draws at each step be independent, and let it leave by its own earlier draws alone. Given
        all that came out before, it takes part with a probability of at most q, since the draw of this step depends on
        nothing before it; and a mixture in which it takes part more rarely is a mixture of the one at q and of the
        neighbour's, whose divergences are no larger (joint convexity). So the steps cost no more than if it stayed; nor
        more than as many whole releases as it can take part in. Whoever does not pay for being counted is not.
        """
        if not isinstance(self.participation, PaperAccounting):
            return {}
        uncounted = replace(self, cost=replace(self.cost, vocabulary_noise=None))
        stayed = {claims: claims._of_steps(steps) for claims in (self, uncounted)}
        found = {}
        for budget in map(float, np.unique(self.participation.budgets)):
            paying = self if budget >= self.cost.epsilon(0) else uncounted
            found[budget] = min(stayed[paying], paying.cost.visited(min(steps, self.participation.visits(budget))))
        return found

    def _sensitivity(self) -> str:
        norm = self.options.clipping_norm
        if self.options.as_released:
            return f"2-norm of what a pair changes in the batch's clipped mean, taken to be {norm:g}"
        return f"2-norm of the gradient of one {self.options.unit} at most {norm:g}, by clipping"

    def _mechanism(self, steps: int, by_budget: Mapping[float, float]) -> str:
        options, noise = self.options, self.cost.noise_multiplier
        batches = f"Poisson samples, q={self.size / self.units:.4g}"
        if options.fixed:
            batches = f"batches of {self.size} in order"
        scale = f"Gaussian noise {noise:.4g} times the clipping norm on the sum"
        if options.as_released:
            scale = f"the mean gradient clipped, Gaussian noise {noise:.4g} times the clipping norm squared on it"
        parts = [f"{steps} steps of gradient descent on {batches}, {scale}", f"{self.units} units, a public number"]
        parts.append(f"vocabulary {self._vocabulary()}")
        if self.budgets is not None:
            parts.append(f"public budgets {self.budgets.min():g} to {self.budgets.max():g}, {options.accounting}")
        if by_budget and not options.exact_vocabulary:
            parts.append(f"proved of users by budget: {_listed(by_budget)}")
        return "; ".join(parts)

    def _caveat(self, steps: int) -> str:
        parts = []
        if self.options.delta >= 1 / self.units:
            unit = self.options.unit
            parts.append(f"delta {self.options.delta:g} is not below 1/{self.units}: it lets one {unit} be given away")
        if steps == self.last < self.options.steps:
            parts.append(f"training ended after {steps} of {self.options.steps} steps: epsilon was spent")
        return "; ".join(parts)

    def _vocabulary(self) -> str:
        if self.options.noisy_vocabulary:
            return f"counted with {self.options.vocabulary_noise:g} times the noise of what a unit adds"
        return "counted exactly, which nothing pays for" if self.options.exact_vocabulary else "given"
