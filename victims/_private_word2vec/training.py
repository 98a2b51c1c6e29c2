"""From the options of a private skip-gram and a corpus to a run that is ready to start, and what it may claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from leakboard.claims import TrainingClaim
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus
from leakboard.logs import log_progress
from leakboard.models.skip_gram.descent import Descent, Training
from leakboard.models.skip_gram.pairs import Pairs, pairs_of
from leakboard.models.skip_gram.participation import Participation, RenyiFilter
from leakboard.models.skip_gram.sampling import PoissonSampler, SequentialBatches
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.randomness import derived_seed, stream
from leakboard.victims._private_word2vec.claims import Claims
from leakboard.victims._private_word2vec.units import too_little, units_of, vocabulary_of

if TYPE_CHECKING:
    from leakboard.victims._private_word2vec.skip_gram import PrivateSkipGram


class Method:
    """How the sound recipe samples, clips, adds noise and lets users leave; a broken control does otherwise."""

    claims: ClassVar[type[Claims]] = Claims
    stream_names: ClassVar[tuple[object, ...]] = ("filter", False)
    """The last two names of its random streams."""

    def sampler(self, options: PrivateSkipGram, units: int, size: int) -> PoissonSampler | SequentialBatches:
        """Return what chooses the units of a step."""
        return SequentialBatches(units, size) if options.sampling == "fixed" else PoissonSampler(units, size / units)

    def descent(self, options: PrivateSkipGram, noise_multiplier: float, size: int) -> Descent:
        """Return what a step does: the gradient of each unit clipped to C, and noise s C on their sum."""
        deviation = 0.0 if options.noise_multiplier == 0 else noise_multiplier * options.clipping_norm
        return Descent(options.learning_rate, options.clipping_norm, deviation)

    def participation(
        self, options: PrivateSkipGram, cost: TrainingBudget, budgets: np.ndarray | None, size: int, steps: int
    ) -> Participation | None:
        """Return which users still take part in a step; None for all."""
        return None if budgets is None else RenyiFilter.within(budgets, cost, steps)


@dataclass(frozen=True)
class Planned:
    """A run, and what is claimed after so many of its steps."""

    words: list[str]
    training: Training
    steps: int
    claim: Callable[[int], TrainingClaim | None]


def plan(options: PrivateSkipGram, corpus: Corpus, seed: int) -> Planned:
    """Count the vocabulary, make the pairs, and work out noise and steps; nothing is trained yet.

    Raises:
        RequestError: as `PrivateSkipGram.fit` says.
    """
    method, names = options.method, stream_names(options)
    units = units_of(options, corpus, seed)
    counting = options.vocabulary_noise if options.noisy_vocabulary else None
    cost = TrainingBudget(options.noise_multiplier or 1.0, 1.0, options.delta, counting)
    vocabulary = vocabulary_of(options, cost, units, stream(seed, "dp_word2vec", "vocabulary", *names))
    pairs = pairs_of(units.texts, units.owners, vocabulary.words, options.window)
    if len(vocabulary.words) < 2 or not len(pairs.centres):
        raise RequestError(too_little(options, corpus, cost, len(vocabulary.words), units.budgets))
    size = min(options.expected_batch_size, pairs.units)
    cost, steps = _cost_and_steps(options, replace(cost, sampling_probability=size / pairs.units))
    sampler = method.sampler(options, pairs.units, size)
    participation = method.participation(options, cost, units.budgets, size, steps)
    training = Training(
        pairs,
        vocabulary.frequencies,
        sampler,
        method.descent(options, cost.noise_multiplier, size),
        dimensions=options.vector_size,
        negatives=options.negative,
        seed=derived_seed(seed, "dp_word2vec", *names),
        participation=participation,
    )
    claims = method.claims(options, cost, sampler, len(vocabulary.words), size, steps, units.budgets, participation)
    _log(options, pairs, cost, steps)
    return Planned(vocabulary.words, training, steps, claims)


def stream_names(options: PrivateSkipGram) -> tuple[object, ...]:
    """Return what random streams are named after: two recipes that differ must not share their noise.

    Every option counts but the published step. Order and spelling are part of every published number.
    """
    return (
        options.unit,
        options.epsilon,
        options.delta,
        options.noise_multiplier,
        options.clipping_norm,
        options.sampling,
        options.expected_batch_size,
        options.steps,
        options.checkpoints,
        None,
        options.learning_rate,
        options.vector_size,
        options.window,
        options.negative,
        options.vocabulary,
        options.vocabulary_noise,
        options.min_count,
        options.max_words,
        options.budgets,
        *options.method.stream_names,
    )


def _cost_and_steps(options: PrivateSkipGram, cost: TrainingBudget) -> tuple[TrainingBudget, int]:
    """Return what a step costs, and how many there are: the noise for the target, or the steps that it pays for."""
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


def _log(options: PrivateSkipGram, pairs: Pairs, cost: TrainingBudget, steps: int) -> None:
    noise = (
        "no noise" if options.noise_multiplier == 0 else f"noise {cost.noise_multiplier:.4g} times the clipping norm"
    )
    log_progress(f"{pairs.units} {options.unit}s, {steps} steps with {noise}")
    if empty := pairs.units_without_pairs:
        log_progress(
            f"{empty} of {pairs.units} {options.unit}s have no two known words together: they contribute nothing"
        )
