"""Secrets of documents: guesses come back in order, several observations cost more, and odd answers are refused."""

import dataclasses
import math

import numpy as np
import pytest

from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.secrets import SecretGuesses, SecretsAttack
from leakboard.threats.texts import TextGuesses
from leakboard.threats.threat import release_claim


class Answers(SecretsAttack):
    """Answers as it is told to, by the vectors that it is shown."""

    def __init__(self, answer, observations=1):
        self.answer, self.observations = answer, observations

    def fit(self, view, seed):
        return self.answer


def zeros(shown, columns=2):
    return np.zeros((len(shown), columns), np.float32)


def score(result):
    return next(m.value for m in result.metrics if m.name == "attack_score")


def test_guesses_are_put_back_into_their_order(plain):
    """An attack that knows every vector's secret is right everywhere, whatever the order it is shown."""
    vectors, truth = plain.published.documents["test"], plain.corpus.column("test", "colour")
    known = {vector.tobytes(): int(value) for vector, value in zip(vectors, truth, strict=True)}
    sure = np.eye(2, dtype=np.float32)
    by_vector = Answers(lambda shown: {"colour": sure[[known[v.tobytes()] for v in shown]]})
    by_place = Answers(lambda shown: {"colour": sure[truth]})
    assert score(evaluate_attack(by_vector, plain)) == 1.0
    assert score(evaluate_attack(by_place, plain)) < 0.8


def test_scores_may_come_with_a_word_on_how_they_came_about(plain):
    plainly = evaluate_attack(Answers(lambda shown: {"colour": zeros(shown)}), plain)
    told = evaluate_attack(Answers(lambda shown: SecretGuesses({"colour": zeros(shown)}, "blindly")), plain)
    assert told.metrics == plainly.metrics
    assert (plainly.details, told.details) == ("", "blindly")


def test_guesses_on_dev_are_measured_as_those_on_test(plain):
    truth = plain.corpus.column("dev", "colour")
    guessed = np.eye(2, dtype=np.float32)[np.where(np.arange(len(truth)) % 4 == 0, 1 - truth, truth)]
    guesses = Answers(lambda shown: SecretGuesses({"colour": zeros(shown)}, on_dev={"colour": guessed}))
    found = {m.variable: m.value for m in evaluate_attack(guesses, plain).metrics if m.name == "attack_score_dev"}
    right = 1 - len(truth[::4]) / len(truth)
    assert found == {"": pytest.approx(right), "colour": pytest.approx(right)}
    short = Answers(lambda shown: SecretGuesses({"colour": zeros(shown)}, on_dev={"colour": guessed[1:]}))
    with pytest.raises(RequestError, match="guesses of 'colour' on dev have shape"):
        evaluate_attack(short, plain)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda shown: TextGuesses(["x"] * len(shown)), "an attack on secrets returns SecretGuesses, not TextGuesses"),
        (lambda shown: zeros(shown), "an attack on secrets returns SecretGuesses, not ndarray"),
        (lambda shown: None, "an attack on secrets returns SecretGuesses, not NoneType"),
        (lambda shown: {}, "the attack guesses nothing for 'colour'"),
        (lambda shown: {"colour": zeros(shown[:-1])}, r"guesses of 'colour' have shape \(39, 2\), not \(40, 2\)"),
        (lambda shown: {"colour": zeros(shown, 3)}, r"guesses of 'colour' have shape \(40, 3\), not \(40, 2\)"),
        (lambda shown: {"colour": 0.5}, r"guesses of 'colour' have shape \(\), not \(40, 2\)"),
        (lambda shown: {"colour": zeros(shown) + math.nan}, "guesses of 'colour' are not finite"),
    ],
)
def test_odd_answers_are_refused(answer, complaint, plain):
    with pytest.raises(RequestError, match=complaint):
        evaluate_attack(Answers(answer), plain)


def test_a_corpus_without_secrets_of_the_kind_is_not_attacked(plain):
    class Entities(Answers):
        kind = "entity"

    attribute, entity = (kind(lambda shown: {"colour": zeros(shown)}) for kind in (Answers, Entities))
    assert attribute.threat.why_not_applicable(attribute, plain.corpus, None) == ""
    assert entity.threat.why_not_applicable(entity, plain.corpus, None) == "made has no entity secrets"
    with pytest.raises(NotApplicable, match="made has no entity secrets"):
        evaluate_attack(entity, plain)


class TestObservations:
    """Several publications of the same text."""

    def test_they_stand_in_one_row_beside_the_claim_for_as_many(self, private):
        seen = []
        attack = Answers(lambda shown: seen.append(shown) or {"colour": zeros(shown)}, observations=3)
        result = evaluate_attack(attack, private)
        assert seen[0].shape == (40, 3, 4)
        assert np.ptp(seen[0], axis=1).max() > 0  # noise is fresh
        single = private.published.claim
        assert (result.claim.observations, result.claim.epsilon) == (3, pytest.approx(3 * single.epsilon))
        assert result.claim.proved == pytest.approx(3 * single.proved)

    @staticmethod
    def claimed(side, claim, times):
        published = dataclasses.replace(side.published, claim=claim)
        return release_claim(dataclasses.replace(side, published=published), times)

    def test_they_are_composed(self, plain):
        once = ReleaseClaim(0.5, 1e-3, "word", "Gaussian", "1", 2.0)
        composed = ReleaseClaim(8.0, 0.016, "word", "Gaussian", "1", 32.0, observations=16)
        assert self.claimed(plain, once, 16) == composed
        assert self.claimed(plain, dataclasses.replace(once, delta=0.5), 4).delta < 1

    def test_claims_about_training_data_say_nothing_of_them(self, plain):
        training = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")
        assert self.claimed(plain, training, 5) is None
        assert self.claimed(plain, None, 5) is None
