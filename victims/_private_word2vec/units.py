"""Group the texts of train by unit of privacy, read users' budgets, and count the vocabulary in these texts."""

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
    from leakboard.victims._private_word2vec.private_recipe import PrivateSkipGram


@dataclass(frozen=True)
class Units:
    """The texts of train, grouped by unit."""

    texts: list[list[str]]
    """The words of each text."""
    owners: Integers | None = None
    """int64 (texts,), the unit of each text; None if every pair is a unit."""
    budgets: np.ndarray | None = None
    """float64 (users,), the epsilon of each user; None if all users have the same epsilon."""


def units_of(options: PrivateSkipGram, corpus: Corpus, seed: int) -> Units:
    """Return the units of a corpus.

    Raises:
        RequestError: the options need users or budgets, but the corpus names none.
    """
    texts = [words(text) for text in corpus.texts("train")]
    if options.unit == "pair":
        return Units(texts)
    if options.unit == "document":
        return Units(texts, np.arange(len(texts)))
    train = corpus.splits["train"]
    if "user" not in train.features:
        raise RequestError(f"dp_word2vec: unit: 'user' is not allowed (pair, document): {corpus.name} names no users")
    users, owners = np.unique(np.array(train["user"][:], object), return_inverse=True)
    if options.budgets is None:
        return Units(texts, owners)
    if isinstance(options.budgets, str):
        return Units(texts, owners, _budgets_in_column(options.budgets, corpus, owners))
    # a draw depends on the user's name alone, so that other users do not change it
    budgets = [stream(seed, "budget", user).choice(options.budgets) for user in users.tolist()]
    return Units(texts, owners, np.array(budgets))


def _budgets_in_column(column: str, corpus: Corpus, owners: Integers) -> np.ndarray:
    if column not in corpus.numeric_targets:
        columns = ", ".join(corpus.numeric_targets) or "there are none"
        raise RequestError(f"dp_word2vec: budgets: {column!r} is no numeric column of {corpus.name} ({columns})")
    values = np.asarray(corpus.splits["train"][column][:], np.float64)
    lowest, highest = np.full(owners.max() + 1, np.inf), np.full(owners.max() + 1, -np.inf)
    np.minimum.at(lowest, owners, values)
    np.maximum.at(highest, owners, values)
    for low, high in zip(lowest, highest, strict=True):
        if not 0 < low == high:
            raise RequestError(f"dp_word2vec: budgets: a user has {low:g} to {high:g}; allowed: one, above 0")
    return lowest


def vocabulary_of(options: PrivateSkipGram, cost: TrainingBudget, units: Units, rng: np.random.Generator) -> Vocabulary:
    """Return the vocabulary. Users whose budget is smaller than the cost of the count are not counted.

    Args:
        options: the kind of vocabulary.
        cost: cost of the count.
        units: the texts to count in.
        rng: source of the noise on the counts.
    """
    if options.vocabulary == "exact":
        return vocabulary.exact(units.texts, options.min_count, options.max_words)
    if options.vocabulary != "noisy":
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
        max_words=options.max_words,
        generator=rng,
    )


def explain_no_pairs(
    options: PrivateSkipGram, corpus: Corpus, cost: TrainingBudget, words: int, budgets: np.ndarray | None
) -> str:
    """Return the error message for a vocabulary of this size, if no pair of its words is left to train on."""
    message = (
        f"dp_word2vec: {corpus.name} has no two known words within window={options.window}; the vocabulary has {words}"
    )
    if options.vocabulary != "noisy":
        return message
    least = vocabulary.threshold(options.vocabulary_noise, cost.failure)
    share = "pairs" if options.unit == "pair" else f"{options.unit}s (each adds at most 1 to all words)"
    unpaid = "" if budgets is None else f"; {int((budgets < cost.epsilon(0)).sum())} budgets do not pay for counting"
    return (
        f"{message}; a word is kept above a noisy count of {least:.0f} {share}; "
        f"lower vocabulary_noise, or give a list{unpaid}"
    )
