"""Personal budgets: users leave when theirs is spent (Algorithm 1-b of Vu, Tran and Jiang 2019), counted in two ways.

`Filtered` is an individual Renyi filter (Feldman and Zrnic 2021): a user takes part as long as the divergences charged
to that user stay within its own budget. Charged at each step, whether or not the user is drawn, is the divergence of
the Poisson-sampled Gaussian at the clipping norm, an upper bound of the user's own: then whether a user still takes
part depends on its budget and the step alone, and each user has the guarantee of as many steps. Charging a user's true
norm would need every user's gradient at every step, and gains nothing where contributions reach the clipping norm.

`AsInThePaper` charges the users of a lot alone, and each a share 1/L of what the step costs. Neither is sound: whoever
could have been drawn is exposed in full. What is proved all the same stands in ``victims/_private_claims.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from leakboard.interfaces import Integers
from leakboard.privacy.accounting.training_budget import TrainingBudget


@dataclass(frozen=True)
class Filtered:
    """Users who leave after as many steps as their budget pays for."""

    last: Integers
    """int64 (users,), how many steps each user takes part in."""
    spent: np.ndarray = field(default_factory=lambda: np.empty(0))
    """Nothing: what is spent follows from the step."""

    @classmethod
    def within(cls, budgets: np.ndarray, cost: TrainingBudget, steps: int) -> Filtered:
        """Return for how long each user stays.

        Args:
            budgets: float64 (users,), epsilon of each user at the cost's delta.
            cost: of a step.
            steps: how many there are at most.
        """
        distinct, places = np.unique(budgets, return_inverse=True)
        paid = np.array([max(cost.steps_within(float(epsilon), steps), 0) for epsilon in distinct], np.int64)
        return cls(paid[places])

    def __call__(self, units: Integers, step: int) -> np.ndarray:
        """Return whether each of these users (units) takes part in step 0, 1, ..., bool."""
        return step < self.last[units]


@dataclass
class AsInThePaper:
    """Users who leave when the shares charged to them exceed their budget."""

    budgets: np.ndarray
    """float64 (users,), epsilon of each."""
    prices: np.ndarray
    """float64 (steps,), the epsilon that the accountant adds at each step."""
    lot_size: float
    """L, the expected size of a lot."""
    spent: np.ndarray = field(init=False)
    """float64 (users,)."""

    def __post_init__(self) -> None:
        self.spent = np.zeros(len(self.budgets))

    def __call__(self, units: Integers, step: int) -> np.ndarray:
        """Return who of a lot takes part, bool, and charge them."""
        present = self.spent[units] < self.budgets[units]
        self.spent[units[present]] += self.prices[step] / self.lot_size
        return present

    def visits(self, budget: float) -> int:
        """Return how often a user with this budget can take part at most before it leaves."""
        cheapest = float(self.prices.min(initial=math.inf)) / self.lot_size
        return len(self.prices) if cheapest <= 0 else min(len(self.prices), int(budget / cheapest) + 1)
