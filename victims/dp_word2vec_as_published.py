"""Train DP-Embedding with the flaws of its release and of its accounting (broken control; Vu, Tran and Jiang 2019).

Model and training are those of ``dp_word2vec``, except for the flaws below. The claim is the authors' claim.

``released_code`` (pairs) treats gradients as the paper's code does:

- It clips the mean gradient of a whole batch (each table's part to C), not the gradient of each pair.
- Its noise on this mean is s C**2, so a smaller C leaves less noise than promised.
- Batches are in the order of the text, but the accountant assumes random samples.
- The accountant takes the number of words for the number of pairs, and leaves the vocabulary out.

The model in the released code is another one: sampled softmax with 64 negatives shared by a batch, three tensors, 300
dimensions, an exact vocabulary.

``paper_accounting`` (users) trains soundly, but counts personal budgets as the text of Algorithm 1-b does. It charges
only the sampled users: each pays a share 1/L of the step's cost. Users leave when their shares reach their budget. But
every user who could have been sampled has the full loss of the step, so users lose more than their budgets. The text
charges shares of (epsilon_t, delta_t). Here the cost of a step is what it adds to the accountant's epsilon at the fixed
``delta``. No delta is charged, and counting the vocabulary is not charged either. So budgets are epsilons at ``delta``.

The theorems below prove the true cost of such steps; with ``vocabulary: exact`` nothing is proved.

Theorem (``released_code``). Each batch that holds a pair costs the pair at most a whole Gaussian release with noise
multiplier s C / sqrt(8). A batch without the pair costs nothing.

Proof. One pair can turn each table's clipped mean around: by 2 C in each table, so by sqrt(8) C in both together. The
noise on the mean is s C**2. The order of the batches is known, so sampling hides nothing.

Theorem (``paper_accounting``). Let a user's draws at the steps be independent. Let only the user's own earlier draws
decide when the user leaves. Then the steps cost the user at most as much as if the user stayed for all steps. They also
cost at most as many whole Gaussian releases as the user can take part in before leaving.

Proof. The draw of a step does not depend on earlier draws. So, given all earlier results, the user takes part with a
probability of at most q. The law of a step with a smaller probability is a mixture of the law at q and of the law
without the user. Its divergences are no larger (joint convexity). The second bound counts each participation as a
release without sampling.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.claims import TrainingUnit
from leakboard.errors import RequestError
from leakboard.models.skip_gram.noisy_tables import Descent
from leakboard.models.skip_gram.sampling import PaperAccounting, SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.suite.options import victim
from leakboard.victims._private_word2vec.private_recipe import EXAMPLE, MIN_NOISE_MULTIPLIER, Epsilons, PrivateSkipGram
from leakboard.victims._private_word2vec.private_training import Plan
from leakboard.victims.dp_word2vec import DPWord2Vec, non_private_recipe


class ReleasedCodePlan(Plan):
    """Train and claim as the released code does."""

    stream_mark = True

    @cached_property
    def sampler(self) -> SequentialBatches:
        """Batches in the order of the text."""
        return SequentialBatches(self.pairs.units, self.batch_size)

    @property
    def descent(self) -> Descent:
        """The code's rule for the mean of a batch (clipped to C, noise s C**2), times the batch size for the sum."""
        clipping_norm, size = self.options.clipping_norm, self.batch_size
        deviation = self.cost.noise_multiplier * clipping_norm**2 * size
        return Descent(self.options.learning_rate, clipping_norm * size, deviation, of_batch=True)

    def claimed(self, steps: int) -> float:
        """Return the epsilon of an accountant that takes the number of words for the number of pairs."""
        probability = min(1.0, self.batch_size / len(self.vocabulary.words))
        return replace(self.cost, sampling_probability=probability, vocabulary_noise=None).epsilon(steps)

    def proved_at(self, cost: TrainingBudget, steps: int) -> float:
        """Return the epsilon of the first theorem."""
        true = replace(cost, noise_multiplier=cost.noise_multiplier * self.options.clipping_norm / math.sqrt(8))
        return true.epsilon_of_visits(self.sampler.visits(steps))

    def details(self, steps: int) -> list[str]:
        """Return the flaws of the code, in words."""
        return [
            f"the batch's mean gradient is clipped, and a pair taken to change it by {self.options.clipping_norm:g}",
            "noise on the mean is the multiplier times the clipping norm squared",
        ]


class PaperAccountingPlan(Plan):
    """Charge and claim personal budgets as the paper does."""

    accounting = "paper"
    budgets: np.ndarray

    @cached_property
    def participation(self) -> PaperAccounting:
        """Rule for leaving: a user leaves when the shares of the steps' costs reach the user's budget."""
        spent = np.array([self.cost.epsilon(step) for step in range(self.steps + 1)])
        return PaperAccounting(self.budgets, np.diff(spent), self.batch_size)

    def claimed(self, steps: int) -> float:
        """Return the largest budget."""
        return float(self.budgets.max())

    def proved(self, steps: int) -> float:
        """Return the epsilon that is proved for all users; infinite if some users lose more than their budget."""
        by_budget = self._proved_by_budget(steps)
        exceeded = any(proved > budget for budget, proved in by_budget.items())
        return math.inf if exceeded else max(by_budget.values())

    def details(self, steps: int) -> list[str]:
        """Return the usual details, and the proved epsilon by budget."""
        if self.options.vocabulary == "exact":
            return super().details(steps)
        return [*super().details(steps), f"proved of users by budget: {_in_words(self._proved_by_budget(steps))}"]

    def _proved_by_budget(self, steps: int) -> dict[float, float]:
        """Return the epsilon of the second theorem by budget; users who cannot pay for the count are left out of it."""
        not_counted = replace(self.cost, vocabulary_noise=None)
        staying = {cost: self.proved_at(cost, steps) for cost in (self.cost, not_counted)}
        proved = {}
        for budget in map(float, np.unique(self.budgets)):
            cost = self.cost if budget >= self.cost.epsilon(0) else not_counted
            proved[budget] = min(staying[cost], cost.epsilon_of_visits(min(steps, self.participation.visits(budget))))
        return proved


def _in_words(by_budget: Mapping[float, float]) -> str:
    """Return the proved epsilon of each budget; for more than five budgets, the range and how many are exceeded."""
    if len(by_budget) <= 5:
        return ", ".join(f"{budget:g}: {epsilon:.3g}" for budget, epsilon in by_budget.items())
    exceeded = sum(proved > budget for budget, proved in by_budget.items())
    range_ = f"{min(by_budget.values()):.3g} to {max(by_budget.values()):.3g}"
    return f"{range_}, which exceeds {exceeded} of {len(by_budget)} budgets"


Variant = Literal["released_code", "paper_accounting"]
VARIANTS: Mapping[Variant, tuple[TrainingUnit, type[Plan]]] = {
    "released_code": ("pair", ReleasedCodePlan),
    "paper_accounting": ("user", PaperAccountingPlan),
}


@victim(revision=1)
class DPWord2VecAsPublished(PrivateSkipGram):
    variant: Variant
    """released_code: the code's gradients, batches and claim for pairs; paper_accounting: its accounting of budgets."""
    noise_multiplier: Annotated[float, Field(ge=MIN_NOISE_MULTIPLIER, allow_inf_nan=False)]
    """s: standard deviation of the noise / clipping norm; 5 in the released code."""
    budgets: Epsilons | str | None = None
    """paper_accounting: personal epsilons, a list from which each user draws one at random, or the name of a column."""

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
            RequestError: ``budgets`` does not go with the variant.
        """
        if self.variant == "paper_accounting" and self.budgets is None:
            raise RequestError("budgets: variant: paper_accounting needs budgets")
        if self.variant == "released_code" and self.budgets is not None:
            raise RequestError(
                "budgets: users have budgets, but variant: released_code is about pairs; leave budgets out"
            )
        super().__post_init__()

    @property
    def unit(self) -> TrainingUnit:
        """The variant's unit."""
        return VARIANTS[self.variant][0]

    @property
    def plan_type(self) -> type[Plan]:
        """The variant's training and claims."""
        return VARIANTS[self.variant][1]

    def non_private(self) -> DPWord2Vec:
        """Return the recipe without its protection: ``dp_word2vec`` without noise."""
        return non_private_recipe(self)
