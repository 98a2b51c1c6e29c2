"""Membership: the candidates are hidden from the attacker's own texts, and odd answers are refused."""

import numpy as np
import pytest

from leakboard.claims import TrainingClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.membership import MembershipAttack
from leakboard.threats.threat import VictimSide


class Answers(MembershipAttack):
    """Answers as it is told to, by the number of candidates."""

    candidates = 40

    def __init__(self, answer=lambda n: np.arange(n), unit=None):
        self.answer, self.unit, self.view, self.seed, self.published = answer, unit, None, None, None

    def fit(self, view, seed):
        self.view, self.seed = view, seed

        def score(published):
            self.published = published
            return self.answer(len(view.candidates))

        return score


def test_the_table_is_shown_whole_with_its_words(plain):
    attack = Answers()
    evaluate_attack(attack, plain)
    assert attack.published.words == plain.published.words.words
    assert np.array_equal(attack.published.vectors, plain.published.words.vectors)
    assert attack.seed == plain.streams.seed_for("attack")


def test_there_are_at_most_as_many_candidates_as_the_attack_says(plain):
    attack = Answers()
    result = evaluate_attack(attack, plain)
    assert (result.test_size, len(attack.view.candidates)) == (40, 40)
    members = sum("onlytrain" in unit[0] for unit in attack.view.candidates)
    assert members == 20
    assert result.details == "the attacker has 70 of 90 texts of its own left"


def test_who_is_told_apart_is_scored(plain):
    def area(answer):
        metrics = evaluate_attack(Answers(answer), plain).metrics
        return next(m.value for m in metrics if m.name == "attack_auc")

    drawn = Answers()
    evaluate_attack(drawn, plain)
    members = np.array(["onlytrain" in unit[0] for unit in drawn.view.candidates], float)
    assert area(lambda n: members) == 1.0
    assert area(lambda n: -members) == 0.0
    assert area(np.zeros) == 0.5


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda n: {"scores": np.zeros(n)}, "an attack on membership returns ndarray, not dict"),
        (lambda n: None, "an attack on membership returns ndarray, not NoneType"),
        (lambda n: np.zeros(n - 1), r"scores of membership have shape \(39,\), not \(40,\)"),
        (lambda n: np.zeros((n, 1)), r"scores of membership have shape \(40, 1\), not \(40,\)"),
        (lambda n: np.full(n, np.nan), "scores of membership are not finite"),
    ],
)
def test_odd_answers_are_refused(answer, complaint, plain):
    with pytest.raises(RequestError, match=complaint):
        evaluate_attack(Answers(answer), plain)


def test_users_are_asked_for_where_there_are_none(plain):
    with pytest.raises(NotApplicable, match="made names no users"):
        evaluate_attack(Answers(unit="user"), plain)


@pytest.mark.parametrize("external", [False, True])
def test_the_victims_claim_stands_beside_the_result_and_another_datasets_users_are_others(external, plain, make_corpus):
    """A text of a candidate's namesake stays where it is somebody else's."""
    texts = {split: [f"{split} {i}" for i in range(4)] for split in ("train", "dev", "test")}
    splits = {split: {"text": written, "user": ["u", "u", "v", split]} for split, written in texts.items()}
    corpus = make_corpus(splits, [])
    own = make_corpus({split: {"text": ["a b", "c d"], "user": ["u", "x"]} for split in texts}, [])
    claim = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")
    published = type(plain.published)({}, None, plain.published.words, claim)
    side = VictimSide(corpus, own, plain.victim, plain.fitted, published, plain.streams, external_auxiliary=external)
    attack = Answers()
    result = evaluate_attack(attack, side)
    assert (attack.view.unit, result.claim) == ("user", claim)
    for split in ("train", "dev"):
        assert list(attack.view.auxiliary.texts(split)) == (["a b", "c d"] if external else ["c d"])
