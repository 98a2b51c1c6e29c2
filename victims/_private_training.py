"""From the options of ``dp_word2vec`` and a corpus to a run that is ready to start, and what it may claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leakboard.data.words import words
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Integers, PrivacyClaim
from leakboard.logs import log_progress
from leakboard.models.skip_gram import vocabulary
from leakboard.models.skip_gram.pairs import Pairs, pairs_of
from leakboard.models.skip_gram.participation import PaperAccounting, RenyiFilter
from leakboard.models.skip_gram.sampling import PoissonSampler, SequentialBatches
from leakboard.models.skip_gram.training import Descent, Training
from leakboard.models.skip_gram.vocabulary import Vocabulary
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.randomness import derived_seed, stream
from leakboard.victims._private_claims import Claims

if TYPE_CHECKING:
    from leakboard.victims.dp_word2vec import DPWord2Vec


@dataclass(frozen=True)
class Planned:
    """A run, and what is claimed after so many of its steps."""

    words: list[str]
    training: Training
    steps: int
    claim: Callable[[int], PrivacyClaim | None]


@dataclass(frozen=True)
class _Units:
    """The texts of train by unit."""

    texts: list[list[str]]
    owners: Integers | None
    """int64 (texts,), the unit of each text; None where every pair is one."""
    names: list[str]
    """Of the users; empty for other units."""


def plan(options: DPWord2Vec, corpus: Corpus, seed: int) -> Planned:
    """Count the vocabulary, make the pairs, and work out noise and steps; nothing is trained yet.

    Raises:
        RequestError: as `DPWord2Vec.fit` says.
    """
    units = _units(options, corpus)
    counting = options.vocabulary_noise if options.noisy_vocabulary else None
    cost = TrainingBudget(options.noise_multiplier or 1.0, 1.0, options.delta, counting)
    budgets = _budgets(options, corpus, units, seed)
    found = _vocabulary(options, cost, units, budgets, seed)
    pairs = pairs_of(units.texts, units.owners, found.words, options.window)
    if len(found.words) < 2 or not len(pairs.centres):
        raise RequestError(_too_little(options, corpus, cost, found, budgets))
    size = min(options.expected_batch_size, pairs.units)
    cost, steps = _cost_and_steps(options, replace(cost, sampling_probability=size / pairs.units))
    sampler = SequentialBatches(pairs.units, size) if options.fixed else PoissonSampler(pairs.units, size / pairs.units)
    participation = _participation(options, cost, budgets, size, steps)
    training = Training(
        pairs,
        found.frequencies,
        sampler,
        _descent(options, cost.noise_multiplier, size),
        dimensions=options.vector_size,
        negatives=options.negative,
        seed=derived_seed(seed, "dp_word2vec", *_named(options)),
        participation=participation,
    )
    claims = Claims(options, cost, pairs.units, len(found.words), size, steps, budgets, participation)
    _tell(options, pairs, cost, steps)
    return Planned(found.words, training, steps, claims)


def _too_little(
    options: DPWord2Vec, corpus: Corpus, cost: TrainingBudget, found: Vocabulary, budgets: np.ndarray | None
) -> str:
    told = (
        f"dp_word2vec: {corpus.name} has no two known words within window={options.window}; the vocabulary has "
        f"{len(found.words)}"
    )
    if not options.noisy_vocabulary:
        return told
    least = vocabulary.threshold(options.vocabulary_noise, cost.failure)
    share = "pairs" if options.unit == "pair" else f"{options.unit}s (of which each adds at most 1 to all words)"
    left = "" if budgets is None else f"; {int((budgets < cost.epsilon(0)).sum())} budgets do not pay for counting"
    advice = "lower vocabulary_noise, or give a list"
    return f"{told}; a word is kept above a noisy count of {least:.0f} {share}; {advice}{left}"


def _named(options: DPWord2Vec) -> tuple[object, ...]:
    """Return what random streams are named after: two recipes that differ must not share their noise."""
    return dataclasses.astuple(options.trained_as())


def _units(options: DPWord2Vec, corpus: Corpus) -> _Units:
    texts = [words(text) for text in corpus.texts("train")]
    if options.unit == "pair":
        return _Units(texts, None, [])
    if options.unit == "document":
        return _Units(texts, np.arange(len(texts)), [])
    train = corpus.splits["train"]
    if "user" not in train.features:
        raise RequestError(f"dp_word2vec: unit: 'user' is not allowed (pair, document): {corpus.name} names no users")
    names, owners = np.unique(train["user"][:], return_inverse=True)
    return _Units(texts, owners, names.tolist())


def _budgets(options: DPWord2Vec, corpus: Corpus, units: _Units, seed: int) -> np.ndarray | None:
    """Return the epsilon of each user, float64 (users,); None where all share one."""
    if options.budgets is None:
        return None
    if not isinstance(options.budgets, str):  # by name, so that another user changes nobody's
        return np.array([stream(seed, "budget", name).choice(options.budgets) for name in units.names])
    if options.budgets not in corpus.numeric_targets:
        there = ", ".join(corpus.numeric_targets) or "there are none"
        raise RequestError(f"dp_word2vec: budgets: {options.budgets!r} is no numeric column of {corpus.name} ({there})")
    values = np.asarray(corpus.splits["train"][options.budgets][:], np.float64)
    lowest, highest = np.full(len(units.names), np.inf), np.full(len(units.names), -np.inf)
    assert units.owners is not None, "budgets are of users"
    np.minimum.at(lowest, units.owners, values)
    np.maximum.at(highest, units.owners, values)
    for low, high in zip(lowest, highest, strict=True):
        if not 0 < low == high:
            raise RequestError(f"dp_word2vec: budgets: a user has {low:g} to {high:g}; allowed: one, above 0")
    return lowest


def _vocabulary(
    options: DPWord2Vec, cost: TrainingBudget, units: _Units, budgets: np.ndarray | None, seed: int
) -> Vocabulary:
    """Return the vocabulary; a user whose budget does not pay for being counted is not counted."""
    if not options.noisy_vocabulary:
        if options.exact_vocabulary:
            return vocabulary.exact(units.texts, options.min_count, options.max_words)
        return vocabulary.given(Path(options.vocabulary))
    texts, owners = units.texts, units.owners
    if budgets is not None and owners is not None:
        counted = (budgets >= cost.epsilon(0))[owners]
        texts, owners = [text for text, kept in zip(texts, counted, strict=True) if kept], owners[counted]
    return vocabulary.counted(
        texts,
        None if owners is None else owners.tolist(),
        options.window,
        noise_multiplier=options.vocabulary_noise,
        failure=cost.failure,
        most=options.max_words,
        generator=stream(seed, "dp_word2vec", "vocabulary", *_named(options)),
    )


def _cost_and_steps(options: DPWord2Vec, cost: TrainingBudget) -> tuple[TrainingBudget, int]:
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


def _descent(options: DPWord2Vec, noise_multiplier: float, size: int) -> Descent:
    rate, clipping_norm = options.learning_rate, options.clipping_norm
    if options.as_released:  # of the mean of a batch: clipped to C, noise s C**2; here of its sum
        return Descent(rate, clipping_norm * size, noise_multiplier * clipping_norm**2 * size, of_batch=True)
    deviation = 0.0 if options.noise_multiplier == 0 else noise_multiplier * clipping_norm
    return Descent(rate, clipping_norm, deviation)


def _participation(
    options: DPWord2Vec, cost: TrainingBudget, budgets: np.ndarray | None, size: int, steps: int
) -> RenyiFilter | PaperAccounting | None:
    if budgets is None:
        return None
    if options.accounting == "filter":
        return RenyiFilter.within(budgets, cost, steps)
    spent = np.array([cost.epsilon(step) for step in range(steps + 1)])
    return PaperAccounting(budgets, np.diff(spent), size)


def _tell(options: DPWord2Vec, pairs: Pairs, cost: TrainingBudget, steps: int) -> None:
    noise = (
        "no noise" if options.noise_multiplier == 0 else f"noise {cost.noise_multiplier:.4g} times the clipping norm"
    )
    log_progress(f"{pairs.units} {options.unit}s, {steps} steps with {noise}")
    if empty := pairs.units_without_pairs:
        log_progress(
            f"{empty} of {pairs.units} {options.unit}s have no two known words together: they contribute nothing"
        )
