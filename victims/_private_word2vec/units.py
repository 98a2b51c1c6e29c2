"""The texts of train by unit of privacy, users' budgets, and the vocabulary that is counted in these texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leakboard.data.tokens import words
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Integers
from leakboard.models.skip_gram import vocabulary
from leakboard.models.skip_gram.vocabulary import Vocabulary
from leakboard.privacy.accounting.training_budget import TrainingBudget
from leakboard.randomness import stream

if TYPE_CHECKING:
    from leakboard.victims._private_word2vec.skip_gram import PrivateSkipGram


@dataclass(frozen=True)
class Units:
    """The texts of train by unit."""

    texts: list[list[str]]
    """The words of each."""
    owners: Integers | None
    """int64 (texts,), the unit of each text; None where every pair is one."""
    names: list[str]
    """Of the users; empty for other units."""
    budgets: np.ndarray | None = None
    """float64 (users,), the epsilon of each user; None where all share one."""


def units_of(options: PrivateSkipGram, corpus: Corpus, seed: int) -> Units:
    """Return the units of a corpus.

    Raises:
        RequestError: the corpus names no users, or no budgets, where they are asked for.
    """
    texts = [words(text) for text in corpus.texts("train")]
    if options.unit == "pair":
        return Units(texts, None, [])
    if options.unit == "document":
        return Units(texts, np.arange(len(texts)), [])
    train = corpus.splits["train"]
    if "user" not in train.features:
        raise RequestError(f"dp_word2vec: unit: 'user' is not allowed (pair, document): {corpus.name} names no users")
    names, owners = np.unique(train["user"][:], return_inverse=True)
    return Units(texts, owners, names.tolist(), _budgets(options, corpus, owners, names.tolist(), seed))


def _budgets(
    options: PrivateSkipGram, corpus: Corpus, owners: Integers, names: list[str], seed: int
) -> np.ndarray | None:
    if options.budgets is None:
        return None
    if not isinstance(options.budgets, str):  # by name, so that another user changes nobody's
        return np.array([stream(seed, "budget", name).choice(options.budgets) for name in names])
    if options.budgets not in corpus.numeric_targets:
        columns = ", ".join(corpus.numeric_targets) or "there are none"
        raise RequestError(
            f"dp_word2vec: budgets: {options.budgets!r} is no numeric column of {corpus.name} ({columns})"
        )
    values = np.asarray(corpus.splits["train"][options.budgets][:], np.float64)
    lowest, highest = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    np.minimum.at(lowest, owners, values)
    np.maximum.at(highest, owners, values)
    for low, high in zip(lowest, highest, strict=True):
        if not 0 < low == high:
            raise RequestError(f"dp_word2vec: budgets: a user has {low:g} to {high:g}; allowed: one, above 0")
    return lowest


def vocabulary_of(options: PrivateSkipGram, cost: TrainingBudget, units: Units, rng: np.random.Generator) -> Vocabulary:
    """Return the vocabulary; a user whose budget does not pay for being counted is not counted.

    Args:
        options: say how it is made.
        cost: of being counted.
        units: what is counted.
        rng: of the noise on the counts.
    """
    if options.exact_vocabulary:
        return vocabulary.exact(units.texts, options.min_count, options.max_words)
    if not options.noisy_vocabulary:
        return vocabulary.read(Path(options.vocabulary.located))
    texts, owners = units.texts, units.owners
    if units.budgets is not None and owners is not None:
        counted = (units.budgets >= cost.epsilon(0))[owners]
        texts, owners = [text for text, kept in zip(texts, counted, strict=True) if kept], owners[counted]
    return vocabulary.counted(
        texts,
        None if owners is None else owners.tolist(),
        options.window,
        noise_multiplier=options.vocabulary_noise,
        failure=cost.failure,
        most=options.max_words,
        generator=rng,
    )


def too_little(
    options: PrivateSkipGram, corpus: Corpus, cost: TrainingBudget, words: int, budgets: np.ndarray | None
) -> str:
    """Return what to say of a vocabulary of so many words that leaves no pair to train on."""
    message = (
        f"dp_word2vec: {corpus.name} has no two known words within window={options.window}; the vocabulary has {words}"
    )
    if not options.noisy_vocabulary:
        return message
    least = vocabulary.threshold(options.vocabulary_noise, cost.failure)
    share = "pairs" if options.unit == "pair" else f"{options.unit}s (of which each adds at most 1 to all words)"
    unpaid = "" if budgets is None else f"; {int((budgets < cost.epsilon(0)).sum())} budgets do not pay for counting"
    advice = "lower vocabulary_noise, or give a list"
    return f"{message}; a word is kept above a noisy count of {least:.0f} {share}; {advice}{unpaid}"
