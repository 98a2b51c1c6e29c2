"""Test the canaries threat: what is planted, the unit and delta of the bound, and refused scores."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from answers import answering, values_of

from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.data.corpora import build_corpus, one_user_a_text, with_texts
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.canaries import Canaries, CanaryAttack, privacy_units_in
from leakboard.threats.threat import Audited
from leakboard.victims.word2vec import Word2Vec


def planting(score=lambda table: np.arange(12.0), unit=None):
    """Return an attack with twelve canaries of two words at a delta of 1e-6."""
    canaries = Canaries([Texts([f"canary{i} bird{i}"]) for i in range(12)], score, 1e-6)
    return answering(CanaryAttack, prepared=lambda view: canaries, unit=unit)


@pytest.fixture
def trained(monkeypatch):
    """Return the list of corpora that the victim is trained on."""
    corpora, fit = [], Word2Vec.fit
    monkeypatch.setattr(Word2Vec, "fit", lambda self, corpus, seed: corpora.append(corpus) or fit(self, corpus, seed))
    return corpora


def test_coin_flips_plant_about_half_of_the_canaries_next_to_train_without_test(plain, trained):
    evaluate_attack(planting(), plain)
    (corpus,) = trained
    assert set(corpus.splits) == {"train", "dev"}
    train, added = corpus.texts("train")[:90], corpus.texts("train")[90:]
    assert train == plain.corpus.texts("train")[:]
    assert [text in ("", f"canary{i} bird{i}") for i, text in enumerate(added)] == [True] * 12
    assert 0 < sum(text == "" for text in added) < 12


class TestUnit:
    CLAIM = TrainingClaim(1.0, 1e-5, "document", 10, "poisson", 5, 100, 1.0, 0.1, "is public")

    @staticmethod
    def claiming(side, claim):
        return dataclasses.replace(side, published=dataclasses.replace(side.published, claim=claim))

    @pytest.mark.parametrize(("unit", "group"), [("pair", 2), ("document", 1)])
    def test_without_a_claim_the_attack_chooses_unit_and_delta(self, unit, group, plain):
        result = evaluate_attack(planting(unit=unit), plain)
        assert result.audited == Audited(unit, 1e-6)
        assert values_of(result)["canary_group"] == group

    @pytest.mark.parametrize("unit", [None, "document"])
    def test_a_claim_is_audited_with_its_unit_and_delta(self, unit, plain):
        attack = planting(unit=unit)
        assert evaluate_attack(attack, self.claiming(plain, self.CLAIM)).audited == Audited("document", 1e-5)
        assert attack.view.unit == "document"

    @pytest.mark.parametrize(
        ("unit", "claim", "message"),
        [
            ("pair", CLAIM, "unit: 'pair' is not allowed: the claim is about one document"),
            ("user", None, "made names no users"),
            (None, ReleaseClaim(1.0, 0.0, "word", "noise", "L1"), "not about training data"),
        ],
    )
    def test_other_units_and_claims_are_refused(self, unit, claim, message, plain, trained):
        with pytest.raises(NotApplicable, match=message):
            evaluate_attack(planting(unit=unit), self.claiming(plain, claim))
        assert trained == []

    def test_units_of_a_canary_by_hand(self):
        assert [privacy_units_in(Texts(["a b"]), unit) for unit in ("pair", "document", "user")] == [2, 1, 1]
        assert [privacy_units_in(Texts(["a b a", "c"]), unit) for unit in ("pair", "document", "user")] == [6, 2, 1]

    def test_an_attack_cannot_shrink_its_canaries_after_planting(self, plain):
        """The bound counts the planted units of a canary: fewer units would make the bound too large."""
        units = [Texts([f"w{i} w{i}", f"w{i}"]) for i in range(12)]

        def shrink(table):
            for texts in units:
                del texts[1:]
            return np.arange(12.0)

        attack = answering(CanaryAttack, prepared=lambda view: Canaries(units, shrink, 1e-6), unit="document")
        assert values_of(evaluate_attack(attack, plain))["canary_group"] == 2


@pytest.mark.parametrize("scores", [np.zeros(11), np.zeros((12, 1)), 0.0, np.full(12, math.nan), np.full(12, math.inf)])
def test_scores_are_one_finite_number_for_each_canary(scores, plain):
    with pytest.raises(RequestError, match="are not one finite number for each of 12 canaries"):
        evaluate_attack(planting(lambda table: scores), plain)


class TestPlanting:
    def test_planted_units_are_new_users_and_unplanted_ones_are_empty_texts(self, make_corpus):
        splits = {split: {"text": ["a b", "c", "d", "e"], "user": ["u", "u", "v", "w"]} for split in ("train", "dev")}
        corpus = make_corpus(splits | {"test": splits["dev"]}, [])
        planted = with_texts(corpus, [Texts(["p q", "r"]), Texts(["s"])], [False, True]).splits["train"]
        assert planted["text"][-3:] == ["", "", "s"]
        assert planted["user"][-3:] == ["added 0", "added 0", "added 1"]
        assert len(planted) == 7

    def test_planted_units_have_numeric_targets_and_missing_users_are_made(self):
        frame = pd.DataFrame({"text": ["a", "b"], "row": [0, 1], "joy": [1.0, 2.0]})
        splits = dict.fromkeys(("train", "dev", "test"), frame)
        scored = build_corpus("scored", splits, [], None, numeric_targets=["joy"])
        planted = with_texts(scored, [Texts(["p", "q"]), Texts(["r"])], [True, True]).splits["train"]
        assert planted["joy"][-3:] == [1.0, 1.0, 2.0]
        assert len(set(one_user_a_text(scored).splits["train"]["user"][:])) == 2
