"""What private skip-gram claims for a number of steps, and what is proved for what they do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from leakboard.interfaces import PrivacyClaim
from leakboard.models.skip_gram.participation import Participation, RenyiFilter
from leakboard.models.skip_gram.sampling import PoissonSampler, SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget

if TYPE_CHECKING:
    from leakboard.victims._private_skip_gram import PrivateSkipGram


@dataclass(frozen=True, eq=False)
class Claims:
    """What is claimed and what is proved after so many steps of the sound recipe."""

    options: PrivateSkipGram
    cost: TrainingBudget
    sampler: PoissonSampler | SequentialBatches
    words: int
    """Of the vocabulary."""
    size: int
    """Expected number of units in a batch."""
    last: int
    """The step after which training ends."""
    budgets: np.ndarray | None
    """float64 (units,), of users who have budgets of their own."""
    participation: Participation | None
    """Says which users still take part; None: all do."""

    accounting: ClassVar[str] = "filter"
    """Of budgets, in words."""

    def __call__(self, steps: int) -> PrivacyClaim | None:
        """Return the claim; None without noise."""
        options = self.options
        if options.noise_multiplier == 0:
            return None
        return PrivacyClaim(
            epsilon=self.claimed(steps),
            delta=options.delta,
            unit=options.unit,
            mechanism="; ".join(self.parts(steps)),
            sensitivity=self.sensitivity(),
            proved=math.inf if options.exact_vocabulary else self.proved(steps),
            protects="training",
            caveat=self._caveat(steps),
        )

    def claimed(self, steps: int) -> float:
        """Return the epsilon that is claimed: the target where the steps nearly cost it, else what they cost."""
        spent, target = self.cost.epsilon(self._taken(steps)), self.options.target
        return target if target is not None and 0.99 * target < spent else spent

    def proved(self, steps: int) -> float:
        """Return the epsilon that is proved where the vocabulary is paid for."""
        return self.of_steps(self._taken(steps))

    def of_steps(self, steps: int) -> float:
        """Return what is proved of a unit that may take part in all steps."""
        if isinstance(self.sampler, SequentialBatches):
            return self.cost.visited(self.sampler.visits(steps))
        return self.cost.epsilon(steps, "pld")

    def _taken(self, steps: int) -> int:
        """Return in how many of these steps a unit may take part at most."""
        if isinstance(self.participation, RenyiFilter):
            return int(min(steps, self.participation.paid_steps.max()))
        return steps

    def sensitivity(self) -> str:
        """Return what bounds a unit's contribution, in words."""
        return f"2-norm of the gradient of one {self.options.unit} at most {self.options.clipping_norm:g}, by clipping"

    def noise(self) -> str:
        """Return where noise of which scale is added, in words."""
        return f"Gaussian noise {self.cost.noise_multiplier:.4g} times the clipping norm on the sum"

    def parts(self, steps: int) -> list[str]:
        """Return what is released and what is public, in words."""
        batches = f"batches of {self.size} in order"
        if isinstance(self.sampler, PoissonSampler):
            batches = f"Poisson samples, q={self.sampler.probability:.4g}"
        parts = [f"{steps} steps of gradient descent on {batches}, {self.noise()}"]
        parts.append(f"{self.sampler.units} units, a public number")
        parts.append(f"vocabulary {self._vocabulary()}")
        if self.budgets is not None:
            parts.append(f"public budgets {self.budgets.min():g} to {self.budgets.max():g}, {self.accounting}")
        return parts

    def _caveat(self, steps: int) -> str:
        parts, units = [], self.sampler.units
        if self.options.delta >= 1 / units:
            unit = self.options.unit
            parts.append(f"delta {self.options.delta:g} is not below 1/{units}: it lets one {unit} be given away")
        if steps == self.last < self.options.steps:
            parts.append(f"training ended after {steps} of {self.options.steps} steps: epsilon was spent")
        return "; ".join(parts)

    def _vocabulary(self) -> str:
        if self.options.noisy_vocabulary:
            return f"counted with {self.options.vocabulary_noise:g} times the noise of what a unit adds"
        return "counted exactly, which nothing pays for" if self.options.exact_vocabulary else "given"
