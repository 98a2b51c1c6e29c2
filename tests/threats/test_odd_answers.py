"""Test that each threat refuses answers of a wrong type, shape or range."""

import math

import numpy as np
import pytest
from answers import answering

from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.canaries import Canaries, CanaryAttack
from leakboard.threats.membership import MembershipAttack
from leakboard.threats.releases import ReleaseAudit
from leakboard.threats.secrets import SecretGuesses, SecretsAttack
from leakboard.threats.texts import TextGuesses, TextsAttack
from leakboard.threats.words import WordGuesses, WordsAttack


def guess(rows, columns=2):
    return np.zeros((rows, columns), np.float32)


def words(vectors, rows=0, code=0, similarity=1.0):
    shape = (len(vectors) + rows, 5)
    return WordGuesses(["x"], np.full(shape, code), np.full(shape, similarity, np.float32))


@pytest.mark.parametrize(
    ("kind", "answer", "message"),
    [
        (SecretsAttack, lambda v: TextGuesses(["x"]), "an attack on secrets returns SecretGuesses, not TextGuesses"),
        (SecretsAttack, lambda v: guess(40), "an attack on secrets returns SecretGuesses, not ndarray"),
        (SecretsAttack, lambda v: None, "an attack on secrets returns SecretGuesses, not NoneType"),
        (SecretsAttack, lambda v: {}, "the attack guesses nothing for 'colour'"),
        (SecretsAttack, lambda v: {"colour": guess(39)}, r"'colour' have shape \(39, 2\), not \(40, 2\)"),
        (SecretsAttack, lambda v: {"colour": guess(40, 3)}, r"'colour' have shape \(40, 3\), not \(40, 2\)"),
        (SecretsAttack, lambda v: {"colour": 0.5}, r"guesses of 'colour' have shape \(\), not \(40, 2\)"),
        (SecretsAttack, lambda v: {"colour": guess(40) + math.nan}, "guesses of 'colour' are not finite"),
        (TextsAttack, lambda v: TextGuesses(["x"] * 39), "the attack wrote 39 texts for 40 vectors"),
        (TextsAttack, lambda v: TextGuesses(["x"] * 41), "the attack wrote 41 texts for 40 vectors"),
        (TextsAttack, lambda v: SecretGuesses({}), "an attack on texts returns TextGuesses, not SecretGuesses"),
        (TextsAttack, lambda v: ["x"] * 40, "an attack on texts returns TextGuesses, not list"),
        (WordsAttack, lambda v: {"colour": v}, "an attack on words returns WordGuesses, not dict"),
        (WordsAttack, lambda v: words(v, rows=-1), r"the attack ranked \d+ vectors, \d+ were published"),
        (WordsAttack, lambda v: words(v, code=1), "the attack ranked words outside its vocabulary of 1"),
        (
            WordsAttack,
            lambda v: words(v, similarity=math.nan),
            "similarities are not one finite number for each candidate",
        ),
        (MembershipAttack, lambda t: {"scores": np.zeros(40)}, "an attack on membership returns ndarray, not dict"),
        (MembershipAttack, lambda t: None, "an attack on membership returns ndarray, not NoneType"),
        (MembershipAttack, lambda t: np.zeros(39), r"scores of membership have shape \(39,\), not \(40,\)"),
        (MembershipAttack, lambda t: np.zeros((40, 1)), r"scores of membership have shape \(40, 1\), not \(40,\)"),
        (MembershipAttack, lambda t: np.full(40, math.nan), "scores of membership are not finite"),
    ],
)
def test_odd_answers_about_vectors_are_refused(kind, answer, message, plain):
    with pytest.raises(RequestError, match=message):
        evaluate_attack(answering(kind, answer, candidates=40), plain)


@pytest.mark.parametrize(
    ("kind", "prepared", "message"),
    [
        (CanaryAttack, Canaries([], lambda table: np.zeros(0), 1e-6), "the attack chose no canaries"),
        (CanaryAttack, [Texts(["a b"])], "an attack on canaries returns Canaries, not list"),
        (ReleaseAudit, (np.zeros(4), np.ones(4)), "an attack on releases returns Distinguisher, not tuple"),
    ],
)
def test_odd_audits_are_refused(kind, prepared, message, plain, private, monkeypatch):
    side = plain if kind is CanaryAttack else private
    monkeypatch.setattr(type(side.victim), "fit", None)  # no victim is trained
    with pytest.raises(RequestError, match=message):
        evaluate_attack(answering(kind, prepared=lambda view: prepared), side)
