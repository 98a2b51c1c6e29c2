"""Test the words threat: words that the attacker queried are not scored."""

import dataclasses

import numpy as np
import pytest
from answers import values_of

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.words import WordGuesses, WordsAttack


class KnowsTable(WordsAttack):
    """An attack that knows the table, and queries words before and after it is shown the vectors."""

    def __init__(self, table, before=(), after=()):
        self.by_vector = {vector.tobytes(): word for vector, word in zip(table.vectors, table.words, strict=True)}
        self.before, self.after, self.answered, self.shown = before, after, None, None

    def fit(self, view, seed):
        if self.before:
            self.answered = view.oracle.words(Texts(self.before))

        def name(vectors):
            if self.after:
                self.answered = view.oracle.words(Texts(self.after))
            self.shown = [self.by_vector[vector.tobytes()] for vector in vectors]
            ranked = np.tile(np.arange(len(vectors))[:, None], (1, 5))
            return WordGuesses(self.shown, ranked, np.ones(ranked.shape, np.float32))

        return name


@pytest.fixture
def queried(plain):
    return [word for word in plain.published.words.words if word.startswith("w")][:5]


@pytest.mark.parametrize("queries", [False, True])
def test_queried_words_are_not_scored(queries, plain, queried):
    table = plain.published.words
    attack = KnowsTable(table, before=queried if queries else ())
    result = evaluate_attack(attack, plain)
    assert not queries or set(attack.answered.words) == set(queried)  # only these rows of the table
    assert values_of(result)["recall@1"] == 1.0
    assert result.test_size == len(table.words) - queries * len(queried)
    assert set(attack.shown).isdisjoint(queried) is queries


def test_a_static_table_cannot_be_queried_after_it_is_shown(plain, queried):
    with pytest.raises(RequestError, match="must query the victim before it sees the table, not afterwards"):
        evaluate_attack(KnowsTable(plain.published.words, after=queried), plain)
    repeated = evaluate_attack(KnowsTable(plain.published.words, before=queried, after=queried), plain)
    assert repeated.test_size == len(plain.published.words.words) - len(queried)


def test_all_words_in_context_are_scored_despite_queries(plain, queried):
    """Each occurrence has its own vector, so a query reveals no other occurrence."""
    table = plain.published.words
    contextual = dataclasses.replace(table, text_index=np.arange(len(table.words)) % 40)
    side = dataclasses.replace(plain, published=dataclasses.replace(plain.published, words=contextual))
    assert evaluate_attack(KnowsTable(table, before=queried, after=queried), side).test_size == len(table.words)
