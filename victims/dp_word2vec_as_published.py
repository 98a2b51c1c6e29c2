"""Broken control: DP-Embedding as its authors released and accounted for it (Vu, Tran and Jiang 2019).

The model and the training are those of ``dp_word2vec``; what follows is done as published, and claims what it claims.

``released_code`` (pairs) does what the paper's code does to the gradients:

- It clips the mean of a whole batch, each table's part to C, not each pair's gradient. One pair can turn each table's
  clipped mean around: 2 C apart in each, sqrt(8) C together, and not C over the batch size.
- Its noise is s C**2 on that mean, so a smaller C leaves less noise than it promises.
- Batches follow each other in the order of the text, yet the accountant assumes random samples.
- The accountant takes the number of words for that of pairs, and leaves the vocabulary out.

(The code's model differs: sampled softmax with 64 negatives shared by a batch, three tensors, 300 dimensions, an exact
vocabulary.)

``paper_accounting`` (users) trains soundly, but counts personal budgets as Algorithm 1-b is described: the users of a
batch alone are charged, each a share 1/L of what the step costs, and leave when the shares exceed their budget. Every
user who could have been sampled is exposed in full, so users lose more than their budgets.

What is proved is the true cost of such steps, by the theorems beside the code; with ``vocabulary: exact`` nothing is.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.claims import TrainingUnit
from leakboard.errors import RequestError
from leakboard.models.skip_gram.descent import Descent
from leakboard.models.skip_gram.participation import PaperAccounting
from leakboard.models.skip_gram.sampling import SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.suite.options import victim
from leakboard.victims._private_word2vec.claims import Claims
from leakboard.victims._private_word2vec.skip_gram import EXAMPLE, LEAST_NOISE, Epsilons, PrivateSkipGram
from leakboard.victims._private_word2vec.training import Method
from leakboard.victims.dp_word2vec import DPWord2Vec, non_private_recipe


class ReleasedCodeClaims(Claims):
    """What the released code's accountant says, and what is proved of batches whose mean is clipped."""

    def claimed(self, steps: int) -> float:
        """Return what an accountant says that takes the number of words for that of pairs."""
        believed = replace(self.cost, sampling_probability=min(1.0, self.size / self.words), vocabulary_noise=None)
        return believed.epsilon(steps)

    def of_steps(self, steps: int) -> float:
        """Return what is proved: a pair moves the clipped means by sqrt(8) C at most, whenever its batch comes."""
        assert isinstance(self.sampler, SequentialBatches), "the released code takes batches in order"
        true = self.cost.noise_multiplier * self.options.clipping_norm / math.sqrt(8)
        return replace(self.cost, noise_multiplier=true).visited(self.sampler.visits(steps))

    def details(self, steps: int) -> list[str]:
        """Return what the code does otherwise, in words."""
        return [
            *super().details(steps),
            f"the batch's mean gradient is clipped, and a pair taken to change it by {self.options.clipping_norm:g}",
            "noise on the mean is the multiplier times the clipping norm squared",
        ]


class PaperAccountingClaims(Claims):
    """What users with budgets of their own are promised, and what is proved of them."""

    accounting = "paper"

    def claimed(self, steps: int) -> float:
        """Return the largest budget."""
        assert self.budgets is not None, "the accounting is of budgets"
        return float(self.budgets.max())

    def proved(self, steps: int) -> float:
        """Return what is proved of all users, infinite where those of some budget lose more than it."""
        by_budget = self._by_budget(steps)
        exceeded = any(proved > budget for budget, proved in by_budget.items())
        return math.inf if exceeded else max(by_budget.values())

    def details(self, steps: int) -> list[str]:
        """Return the usual details, and what is proved by budget."""
        if self.options.exact_vocabulary:
            return super().details(steps)
        return [*super().details(steps), f"proved of users by budget: {_listed(self._by_budget(steps))}"]

    def _by_budget(self, steps: int) -> dict[float, float]:
        """Return by budget what is proved of users who leave when the paper's shares are spent.

        Theorem. Let a unit's draws at each step be independent, and let it leave by its own earlier draws alone. Given
        all that came out before, it takes part with a probability of at most q, since the draw of this step depends on
        nothing before it; and a mixture in which it takes part more rarely is a mixture of the one at q and of the
        neighbour's, whose divergences are no larger (joint convexity). So the steps cost no more than if it stayed; nor
        more than as many whole releases as it can take part in. A user whose budget does not pay for being counted is
        not counted.
        """
        assert isinstance(self.participation, PaperAccounting), "users leave by the paper's shares"
        uncounted = replace(self, cost=replace(self.cost, vocabulary_noise=None))
        stayed = {claims: claims.of_steps(steps) for claims in (self, uncounted)}
        proved = {}
        for budget in map(float, np.unique(self.participation.budgets)):
            paying = self if budget >= self.cost.epsilon(0) else uncounted
            visited = paying.cost.visited(min(steps, self.participation.visits(budget)))
            proved[budget] = min(stayed[paying], visited)
        return proved


def _listed(by_budget: Mapping[float, float]) -> str:
    """Return each budget with what is proved of its users; of many budgets the range, and how many are exceeded."""
    if len(by_budget) <= 5:
        return ", ".join(f"{budget:g}: {epsilon:.3g}" for budget, epsilon in by_budget.items())
    exceeded = sum(proved > budget for budget, proved in by_budget.items())
    range_ = f"{min(by_budget.values()):.3g} to {max(by_budget.values()):.3g}"
    return f"{range_}, which exceeds {exceeded} of {len(by_budget)} budgets"


class ReleasedCode(Method):
    claims = ReleasedCodeClaims
    stream_names = ("filter", True)

    def sampler(self, options: PrivateSkipGram, units: int, size: int) -> SequentialBatches:
        """Return batches in the order of the text."""
        return SequentialBatches(units, size)

    def descent(self, options: PrivateSkipGram, noise_multiplier: float, size: int) -> Descent:
        """Return what is done to the mean of a batch, clipped to C with noise s C**2; here of its sum."""
        clipping_norm = options.clipping_norm
        deviation = noise_multiplier * clipping_norm**2 * size
        return Descent(options.learning_rate, clipping_norm * size, deviation, of_batch=True)


class SharedCosts(Method):
    claims = PaperAccountingClaims
    stream_names = ("paper", False)

    def participation(
        self, options: PrivateSkipGram, cost: TrainingBudget, budgets: np.ndarray | None, size: int, steps: int
    ) -> PaperAccounting:
        """Return what lets users leave whose shares of the batches' costs exceed their budget."""
        assert budgets is not None, "the accounting is of budgets"
        spent = np.array([cost.epsilon(step) for step in range(steps + 1)])
        return PaperAccounting(budgets, np.diff(spent), size)


Variant = Literal["released_code", "paper_accounting"]
UNITS: Mapping[Variant, TrainingUnit] = {"released_code": "pair", "paper_accounting": "user"}
METHODS: Mapping[Variant, Method] = {"released_code": ReleasedCode(), "paper_accounting": SharedCosts()}


@victim(revision=1)
class DPWord2VecAsPublished(PrivateSkipGram):
    variant: Variant
    """What is as published: the code's gradients, batches and claim for pairs, or the accounting of users' budgets."""
    noise_multiplier: Annotated[float, Field(ge=LEAST_NOISE, allow_inf_nan=False)]
    """s; the released code's is 5."""
    budgets: Epsilons | str | None = None
    """paper_accounting: users' own epsilons: each draws one of these, all as likely, or a column has it."""

    epsilon: ClassVar[None] = None
    sampling: ClassVar[Literal["poisson"]] = "poisson"
    streams_of: ClassVar[str] = "dp_word2vec"

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a few steps of the released code."""
        return cls(variant="released_code", noise_multiplier=5.0, **EXAMPLE)

    def __post_init__(self) -> None:
        """Refuse options that do not go together.

        Raises:
            RequestError: names the first such option.
        """
        if self.variant == "paper_accounting" and self.budgets is None:
            raise RequestError("budgets: variant: paper_accounting is about them; give them")
        if self.variant == "released_code" and self.budgets is not None:
            raise RequestError("budgets: they are of users, and variant: released_code is about pairs; leave them out")
        super().__post_init__()

    @property
    def unit(self) -> TrainingUnit:
        """What is protected as one."""
        return UNITS[self.variant]

    @property
    def method(self) -> Method:
        """How it departs from ``dp_word2vec``."""
        return METHODS[self.variant]

    def non_private(self) -> DPWord2Vec:
        """Return the recipe less what is to protect the training data: ``dp_word2vec`` without noise."""
        return non_private_recipe(self)
