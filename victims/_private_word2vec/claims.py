"""What private skip-gram claims for a number of steps, and what is proved for what they do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from leakboard.claims import TrainingClaim
from leakboard.models.skip_gram.participation import Participation, RenyiFilter
from leakboard.models.skip_gram.sampling import PoissonSampler, SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget

if TYPE_CHECKING:
    from leakboard.victims._private_word2vec.skip_gram import PrivateSkipGram


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

    def __call__(self, steps: int) -> TrainingClaim | None:
        """Return the claim; None without noise."""
        options = self.options
        if options.noise_multiplier == 0:
            return None
        return TrainingClaim(
            epsilon=self.claimed(steps),
            delta=options.delta,
            unit=options.unit,
            steps=steps,
            sampling="poisson" if isinstance(self.sampler, PoissonSampler) else "sequential",
            expected_batch_size=self.size,
            units=self.sampler.units,
            noise_multiplier=self.cost.noise_multiplier,
            clipping_norm=options.clipping_norm,
            vocabulary=self._vocabulary(),
            proved=math.inf if options.exact_vocabulary else self.proved(steps),
            details="; ".join(self.details(steps)),
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

    def details(self, steps: int) -> list[str]:
        """Return what else an accountant must know, in words."""
        if self.budgets is None:
            return []
        return [f"public budgets {self.budgets.min():g} to {self.budgets.max():g}, {self.accounting}"]

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
