"""Words: those that the attacker queried are not scored, and odd answers are refused."""

import dataclasses

import numpy as np
import pytest

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.words import WordGuesses, WordsAttack


class Knows(WordsAttack):
    """Knows the table by heart, and may ask all the same, before it is shown the vectors or afterwards."""

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
def asked(plain):
    return [word for word in plain.published.words.words if word.startswith("w")][:5]


def score(result):
    return next(m.value for m in result.metrics if m.name == "recall@1")


@pytest.mark.parametrize("asks", [False, True])
def test_words_that_the_attacker_asked_about_are_not_scored(asks, plain, asked):
    table = plain.published.words
    attack = Knows(table, before=asked if asks else ())
    result = evaluate_attack(attack, plain)
    assert not asks or set(attack.answered.words) == set(asked)  # of the table, these rows alone
    assert score(result) == 1.0
    assert result.test_size == len(table.words) - asks * len(asked)
    assert set(attack.shown).isdisjoint(asked) is asks


def test_a_static_table_cannot_be_asked_about_once_it_is_shown(plain, asked):
    with pytest.raises(RequestError, match="asks the victim before it sees the table, not afterwards"):
        evaluate_attack(Knows(plain.published.words, after=asked), plain)
    again = evaluate_attack(Knows(plain.published.words, before=asked, after=asked), plain)
    assert again.test_size == len(plain.published.words.words) - len(asked)


def test_what_was_asked_about_words_in_context_gives_no_other_occurrence_away(plain, asked):
    """Each occurrence has a vector of its own, so all are scored."""
    table = plain.published.words
    contextual = dataclasses.replace(table, text_index=np.arange(len(table.words)) % 40)
    side = dataclasses.replace(plain, published=dataclasses.replace(plain.published, words=contextual))
    assert evaluate_attack(Knows(table, before=asked, after=asked), side).test_size == len(table.words)


def guesses(vectors, rows=0, code=0, similarity=1.0):
    shape = (len(vectors) + rows, 5)
    return WordGuesses(["x"], np.full(shape, code), np.full(shape, similarity, np.float32))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda vectors: {"colour": vectors}, "an attack on words returns WordGuesses, not dict"),
        (lambda vectors: guesses(vectors, rows=-1), r"the attack ranked \d+ vectors, \d+ were published"),
        (lambda vectors: guesses(vectors, code=1), "the attack ranked words outside its vocabulary of 1"),
        (lambda vectors: guesses(vectors, similarity=np.nan), "similarities are not one finite number a candidate"),
    ],
)
def test_odd_answers_are_refused(answer, complaint, plain):
    class Odd(WordsAttack):
        def fit(self, view, seed):
            return answer

    with pytest.raises(RequestError, match=complaint):
        evaluate_attack(Odd(), plain)
