"""Let users leave when their personal budget is spent (Algorithm 1-b of Vu, Tran and Jiang 2019).

`RenyiFilter` (sound) is an individual Renyi filter (Feldman and Zrnic 2021): a user takes part as long as the
divergences charged to that user stay within the user's budget. Each step charges the divergence of the Poisson-sampled
Gaussian at the clipping norm, whether or not the user is sampled. That is an upper bound of the user's own divergence.
So whether a user still takes part depends on the budget and the step alone, and the user has the guarantee of that
many steps. To charge a user's true norm would need every user's gradient at every step. It gains nothing
where contributions reach the clipping norm.

`PaperAccounting` (broken) charges the sampled users alone, each a share 1/L of the step's cost. Both are unsound:
every user who could have been sampled is exposed in full. ``victims/dp_word2vec_as_published.py`` has the theorem on
what is proved all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.accounting.training_budget import TrainingBudget


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


Participation = RenyiFilter | PaperAccounting
