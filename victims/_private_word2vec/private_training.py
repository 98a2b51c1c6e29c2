"""Plan the training of private skip-gram, and state the claimed and the proved epsilon after its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from leakboard.claims import TrainingClaim
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus
from leakboard.logs import log_progress
from leakboard.models.skip_gram.descent import Training
from leakboard.models.skip_gram.noisy_tables import Descent
from leakboard.models.skip_gram.pairs import Pairs, pairs_of
from leakboard.models.skip_gram.sampling import Participation, PoissonSampler, RenyiFilter, Sampler, SequentialBatches
from leakboard.models.skip_gram.vocabulary import Vocabulary
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.randomness import derived_seed, stream
from leakboard.victims._private_word2vec.units import explain_no_pairs, units_of, vocabulary_of

if TYPE_CHECKING:
    from leakboard.victims._private_word2vec.private_recipe import PrivateSkipGram


STREAM_OPTIONS = (
    *("unit", "epsilon", "delta", "noise_multiplier", "clipping_norm", "sampling", "expected_batch_size", "steps"),
    *("checkpoints", "published_step", "learning_rate", "vector_size", "window", "negative"),
    *("vocabulary", "vocabulary_noise", "min_count", "max_words", "budgets"),
)
"""Options that name the random streams. Their order is part of every published number."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A training that is ready to start, with its claims. A broken control overrides the parts with its flaws."""

    options: PrivateSkipGram
    seed: int
    vocabulary: Vocabulary
    pairs: Pairs
    budgets: np.ndarray | None
    """float64 (users,), personal budgets."""
    cost: TrainingBudget
    """Privacy cost of a step."""
    steps: int
    """The step after which training ends."""

    accounting: ClassVar[str] = "filter"
    """Accounting of the budgets, in words. Part of the names of the random streams."""
    stream_mark: ClassVar[bool] = False
    """Last part of the names of the random streams."""

    @property
    def batch_size(self) -> int:
        """Expected number of units in a batch."""
        return min(self.options.expected_batch_size, self.pairs.units)

    @cached_property
    def sampler(self) -> Sampler:
        """Sampler of the units of a step."""
        if self.options.sampling == "fixed":
            return SequentialBatches(self.pairs.units, self.batch_size)
        return PoissonSampler(self.pairs.units, self.batch_size / self.pairs.units)

    @property
    def descent(self) -> Descent:
        """Rule of a step: the gradient of each unit is clipped to C; their sum gets noise s C."""
        clipping_norm = self.options.clipping_norm
        deviation = 0.0 if self.options.noise_multiplier == 0 else self.cost.noise_multiplier * clipping_norm
        return Descent(self.options.learning_rate, clipping_norm, deviation)

    @cached_property
    def participation(self) -> Participation | None:
        """Rule that decides when users leave; None: all users stay."""
        return None if self.budgets is None else RenyiFilter.within(self.budgets, self.cost, self.steps)

    @cached_property
    def training(self) -> Training:
        """The training run."""
        return Training(
            self.pairs,
            self.vocabulary.frequencies,
            self.sampler,
            self.descent,
            dimensions=self.options.vector_size,
            negatives=self.options.negative,
            seed=derived_seed(self.seed, "dp_word2vec", *stream_names(self.options)),
            participation=self.participation,
        )

    def claim(self, steps: int) -> TrainingClaim | None:
        """Return the claim for the vectors after this number of steps; None without noise."""
        options = self.options
        if options.noise_multiplier == 0:
            return None
        counting = {
            "noisy": f"counted with {options.vocabulary_noise:g} times the noise of what a unit adds",
            "exact": "counted exactly, which nothing pays for",
        }
        return TrainingClaim(
            epsilon=self.claimed(steps),
            delta=options.delta,
            unit=options.unit,
            steps=steps,
            sampling="poisson" if isinstance(self.sampler, PoissonSampler) else "sequential",
            expected_batch_size=self.batch_size,
            units=self.pairs.units,
            noise_multiplier=self.cost.noise_multiplier,
            clipping_norm=options.clipping_norm,
            vocabulary=counting.get(options.vocabulary, "given"),
            proved=math.inf if options.vocabulary == "exact" else self.proved(steps),
            details="; ".join(self.details(steps)),
            caveat=self._caveat(steps),
        )

    def claimed(self, steps: int) -> float:
        """Return the claimed epsilon: the target if the steps cost at least 99 % of the target, else their cost."""
        spent, target = self.cost.epsilon(self._steps_of_a_unit(steps)), self.options.target
        return target if target is not None and 0.99 * target < spent else spent

    def proved(self, steps: int) -> float:
        """Return the proved epsilon if the vocabulary is public or paid for."""
        return self.proved_at(self.cost, self._steps_of_a_unit(steps))

    def proved_at(self, cost: TrainingBudget, steps: int) -> float:
        """Return the epsilon proved for a unit that may take part in all of these steps at this cost."""
        if isinstance(self.sampler, SequentialBatches):
            return cost.epsilon_of_visits(self.sampler.visits(steps))
        return cost.epsilon(steps, "pld")

    def _steps_of_a_unit(self, steps: int) -> int:
        """Return the largest number of these steps in which a unit may take part."""
        if isinstance(self.participation, RenyiFilter):
            return int(min(steps, self.participation.paid_steps.max()))
        return steps

    def details(self, steps: int) -> list[str]:
        """Return more facts for an accountant, in words."""
        if self.budgets is None:
            return []
        return [f"public budgets {self.budgets.min():g} to {self.budgets.max():g}, {self.accounting}"]

    def _caveat(self, steps: int) -> str:
        parts, options, units = [], self.options, self.pairs.units
        if options.delta >= 1 / units:
            parts.append(f"delta {options.delta:g} is not below 1/{units}: it lets one {options.unit} be given away")
        if steps == self.steps < options.steps:
            parts.append(f"training ended after {steps} of {options.steps} steps: epsilon was spent")
        return "; ".join(parts)


def plan(options: PrivateSkipGram, corpus: Corpus, seed: int) -> Plan:
    """Count the vocabulary, make the pairs, and compute noise and number of steps. Nothing is trained yet.

    Raises:
        RequestError: as for `PrivateSkipGram.fit`.
    """
    units = units_of(options, corpus, seed)
    counting = options.vocabulary_noise if options.vocabulary == "noisy" else None
    cost = TrainingBudget(options.noise_multiplier or 1.0, 1.0, options.delta, counting)
    rng = stream(seed, "dp_word2vec", "vocabulary", *stream_names(options))
    vocabulary = vocabulary_of(options, cost, units, rng)
    pairs = pairs_of(units.texts, units.owners, vocabulary.words, options.window)
    if len(vocabulary.words) < 2 or not len(pairs.centres):
        raise RequestError(explain_no_pairs(options, corpus, cost, len(vocabulary.words), units.budgets))
    size = min(options.expected_batch_size, pairs.units)
    cost, steps = _cost_and_steps(options, replace(cost, sampling_probability=size / pairs.units))
    noise = f"noise {cost.noise_multiplier:.4g} times the clipping norm" if options.noise_multiplier != 0 else None
    log_progress(f"{pairs.units} {options.unit}s, {steps} steps with {noise or 'no noise'}")
    if empty := pairs.units_without_pairs:
        log_progress(
            f"{empty} of {pairs.units} {options.unit}s have no two known words together: they contribute nothing"
        )
    return options.plan_type(options, seed, vocabulary, pairs, units.budgets, cost, steps)


def stream_names(options: PrivateSkipGram) -> tuple[object, ...]:
    """Return the names of the random streams: two recipes that differ must not share their noise.

    Every option is part of the names, except the published step: it is None here.
    """
    recipe, plan_type = options.training_config(), options.plan_type
    return (*(getattr(recipe, name) for name in STREAM_OPTIONS), plan_type.accounting, plan_type.stream_mark)


def _cost_and_steps(options: PrivateSkipGram, cost: TrainingBudget) -> tuple[TrainingBudget, int]:
    """Return cost and number of steps: the noise is chosen for the target, or the steps are as many as it pays for."""
    if options.target is None or options.noise_multiplier == 0:
        return cost, options.steps
    cost.check(options.target)
    if options.noise_multiplier is None:
        return (cost.calibrated(options.target, options.steps) if options.steps else cost), options.steps
    if (steps := cost.steps_within(options.target, options.steps)) < min(1, options.steps):
        raise RequestError(
            f"epsilon {options.target:g} cannot be reached: one step with noise_multiplier "
            f"{options.noise_multiplier:g} costs {cost.epsilon(1):.4g} at delta {options.delta:g}"
        )
    return cost, steps
