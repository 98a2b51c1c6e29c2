"""Choose the units that take part in a step: sample them, and let users leave when their personal budget is spent.

A Poisson sample is the one that the accountant assumes. Batches in the order of the data hide nothing.

Personal budgets (Algorithm 1-b of Vu, Tran and Jiang 2019) are counted in two ways.

`RenyiFilter` (sound) is an individual Renyi filter (Feldman and Zrnic 2021): a user takes part as long as the
divergences charged to that user stay within the user's budget. Each step charges the divergence of the Poisson-sampled
Gaussian at the clipping norm, whether or not the user is sampled. That is an upper bound of the user's own divergence.
So whether a user still takes part depends on the budget and the step alone, and the user has the guarantee of that
many steps. To charge a user's true norm would need every user's gradient at every step. It gains nothing if
contributions reach the clipping norm.

`PaperAccounting` (broken) charges the sampled users alone, and only a share 1/L of the step's cost each: of what the
step adds to epsilon at a fixed delta. Both rules are unsound: every user who could have been sampled is exposed in
full. ``victims/dp_word2vec_as_published.py`` has the theorem for the true cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.accounting.training_budget import TrainingBudget


@dataclass(frozen=True)
class PoissonSampler:
    """Every unit takes part with the same probability, independently of other units and of other steps."""

    units: int
    probability: float

    def draw(self, step: int, generator: np.random.Generator) -> Integers:
        """Return the units of a step in increasing order, int64; their number is binomial.

        The gaps between these units are geometric, so the time is proportional to the size of the sample.
        """
        runs, last = [], -1
        expected = self.units * self.probability
        while last < self.units:
            gaps = generator.geometric(self.probability, int(expected + 5 * expected**0.5) + 5)
            runs.append(last + np.cumsum(gaps))
            last = int(runs[-1][-1])
        units = np.concatenate(runs)
        return units[: np.searchsorted(units, self.units)]


@dataclass(frozen=True)
class SequentialBatches:
    """Batches of fixed size in the order of the data, again and again: sampling hides nothing."""

    units: int
    size: int

    def draw(self, step: int, generator: np.random.Generator) -> Integers:
        """Return the units of step 0, 1, ..., int64 (size,)."""
        return (step * self.size + np.arange(min(self.size, self.units))) % self.units

    def visits(self, steps: int) -> int:
        """Return in how many of the first ``steps`` a unit takes part at most."""
        return -(-steps * min(self.size, self.units) // self.units)


@dataclass(frozen=True)
class RenyiFilter:
    """Users leave after as many steps as their budget pays for."""

    paid_steps: Integers
    """int64 (users,), how many steps each user takes part in."""

    @classmethod
    def within(cls, budgets: np.ndarray, cost: TrainingBudget, steps: int) -> RenyiFilter:
        """Return the filter that keeps every user within its budget.

        Args:
            budgets: float64 (users,), epsilon of each user at the cost's delta.
            cost: of a step.
            steps: largest number of steps.
        """
        distinct, position = np.unique(budgets, return_inverse=True)
        paid = np.array([max(cost.steps_within(float(epsilon), steps), 0) for epsilon in distinct], np.int64)
        return cls(paid[position])

    def __call__(self, users: Integers, step: int) -> np.ndarray:
        """Return whether each of these users takes part in step 0, 1, ..., bool."""
        return step < self.paid_steps[users]


@dataclass
class PaperAccounting:
    """Users leave when the shares charged to them reach their budget."""

    budgets: np.ndarray
    """float64 (users,), epsilon of each."""
    prices: np.ndarray
    """float64 (steps,), the epsilon that the accountant adds at each step."""
    expected_batch_size: float
    """L, the expected number of users in a batch."""
    spent: np.ndarray = field(init=False)
    """float64 (users,), the shares charged so far."""

    def __post_init__(self) -> None:
        self.spent = np.zeros(len(self.budgets))

    def __call__(self, users: Integers, step: int) -> np.ndarray:
        """Return whether each user of a batch takes part, bool, and charge these users."""
        present = self.spent[users] < self.budgets[users]
        self.spent[users[present]] += self.prices[step] / self.expected_batch_size
        return present

    def visits(self, budget: float) -> int:
        """Return in how many steps a user with this budget takes part at most before it leaves."""
        cheapest = float(self.prices.min(initial=math.inf)) / self.expected_batch_size
        return len(self.prices) if cheapest <= 0 else min(len(self.prices), int(budget / cheapest) + 1)


Sampler = PoissonSampler | SequentialBatches
Participation = RenyiFilter | PaperAccounting
