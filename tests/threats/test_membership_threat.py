"""Test the membership threat: what the attacker is shown, and how its scores are evaluated."""

import dataclasses

import numpy as np
import pytest
from answers import answering, values_of

from leakboard.claims import TrainingClaim
from leakboard.errors import NotApplicable
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.membership import MembershipAttack
from leakboard.threats.threat import VictimSide


def membership(answer, **options):
    """Return an attack on at most 40 candidates; ``answer`` gets their number."""
    attack = answering(MembershipAttack, lambda table: answer(len(attack.view.candidates)), candidates=40, **options)
    return attack


def test_the_attacker_sees_the_whole_table_and_at_most_the_asked_number_of_candidates(plain):
    attack = membership(np.arange)
    result = evaluate_attack(attack, plain)
    assert attack.shown.words == plain.published.words.words
    assert np.array_equal(attack.shown.vectors, plain.published.words.vectors)
    assert (result.test_size, len(attack.view.candidates)) == (40, 40)
    assert sum("onlytrain" in unit[0] for unit in attack.view.candidates) == 20
    assert result.details == "the attacker has 70 of 90 texts of its own left"


def test_scores_are_compared_with_the_true_membership(plain):
    first = membership(np.arange)
    evaluate_attack(first, plain)
    members = np.array(["onlytrain" in unit[0] for unit in first.view.candidates], float)
    for scores, area in ((members, 1.0), (-members, 0.0), (np.zeros(40), 0.5)):
        attack = membership(lambda n, scores=scores: scores)
        assert values_of(evaluate_attack(attack, plain))["attack_auc"] == area


def test_users_are_no_unit_of_a_corpus_without_users(plain):
    with pytest.raises(NotApplicable, match="made names no users"):
        evaluate_attack(membership(np.arange, unit="user"), plain)


@pytest.mark.parametrize("external", [False, True])
def test_the_claims_unit_is_attacked_and_users_of_another_dataset_are_other_users(external, plain, make_corpus):
    """The attacker keeps the texts of a user with a candidate's name only if they are of another dataset."""
    texts = {split: [f"{split} {i}" for i in range(4)] for split in ("train", "dev", "test")}
    splits = {split: {"text": written, "user": ["u", "u", "v", split]} for split, written in texts.items()}
    corpus = make_corpus(splits, [])
    attackers = make_corpus({split: {"text": ["a b", "c d"], "user": ["u", "x"]} for split in texts}, [])
    claim = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")
    published = dataclasses.replace(plain.published, documents={}, claim=claim)
    streams = plain.streams
    side = VictimSide(corpus, attackers, plain.victim, plain.fitted, published, streams, external_auxiliary=external)
    attack = membership(np.arange)
    result = evaluate_attack(attack, side)
    assert (attack.view.unit, result.claim) == ("user", claim)
    for split in ("train", "dev"):
        assert list(attack.view.auxiliary.texts(split)) == (["a b", "c d"] if external else ["c d"])
