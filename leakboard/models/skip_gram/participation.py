"""Personal budgets: users leave when theirs is spent (Algorithm 1-b of Vu, Tran and Jiang 2019), counted in two ways.

`RenyiFilter` is an individual Renyi filter (Feldman and Zrnic 2021): a user takes part as long as the divergences
charged to that user stay within the user's own budget. Charged at each step, whether or not the user is sampled, is the
divergence of the Poisson-sampled Gaussian at the clipping norm, an upper bound of the user's own: then whether a user
still takes part depends on the budget and the step alone, and each user has the guarantee of as many steps. Charging a
user's true norm would need every user's gradient at every step, and gains nothing where contributions reach the
clipping norm.

`PaperAccounting` (broken) charges the sampled users alone, and each of them a share 1/L of what the step costs. Neither
of both is sound: everyone who could have been sampled is exposed in full. What is proved all the same stands in
``victims/_private_word2vec/claims.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.accounting.training_budget import TrainingBudget


class Participation(Protocol):
    """Says which units still take part."""

    @property
    def spent(self) -> np.ndarray:
        """What it remembers, float64; saved with the state of a run."""

    def __call__(self, units: Integers, step: int) -> np.ndarray:
        """Return whether each unit of a batch takes part in a step, bool."""


@dataclass(frozen=True)
class RenyiFilter:
    """Users leave after as many steps as their budget pays for."""

    paid_steps: Integers
    """int64 (users,), how many steps each user takes part in."""
    spent: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Nothing: what is spent follows from the step."""

    @classmethod
    def within(cls, budgets: np.ndarray, cost: TrainingBudget, steps: int) -> RenyiFilter:
        """Return the filter that keeps every user within its budget.

        Args:
            budgets: float64 (users,), epsilon of each user at the cost's delta.
            cost: of a step.
            steps: how many there are at most.
        """
        distinct, position = np.unique(budgets, return_inverse=True)
        paid = np.array([max(cost.steps_within(float(epsilon), steps), 0) for epsilon in distinct], np.int64)
        return cls(paid[position])

    def __call__(self, units: Integers, step: int) -> np.ndarray:
        """Return whether each of these users (units) takes part in step 0, 1, ..., bool."""
        return step < self.paid_steps[units]


@dataclass
class PaperAccounting:
    """Users leave when the shares charged to them exceed their budget."""

    budgets: np.ndarray
    """float64 (users,), epsilon of each."""
    prices: np.ndarray
    """float64 (steps,), the epsilon that the accountant adds at each step."""
    expected_batch_size: float
    """L, the expected number of users in a batch."""
    spent: np.ndarray = field(init=False)
    """float64 (users,)."""

    def __post_init__(self) -> None:
        self.spent = np.zeros(len(self.budgets))

    def __call__(self, units: Integers, step: int) -> np.ndarray:
        """Return which users of a batch take part, bool, and charge them."""
        present = self.spent[units] < self.budgets[units]
        self.spent[units[present]] += self.prices[step] / self.expected_batch_size
        return present

    def visits(self, budget: float) -> int:
        """Return how often a user with this budget can take part at most before it leaves."""
        cheapest = float(self.prices.min(initial=math.inf)) / self.expected_batch_size
        return len(self.prices) if cheapest <= 0 else min(len(self.prices), int(budget / cheapest) + 1)
