"""Canaries: what is planted and trained on, of which unit, and which answers are refused."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.data.corpora import build_corpus, one_user_a_text, with_texts
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Texts
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.threats.canaries import Canaries, CanaryAttack, units_in
from leakboard.threats.threat import Audited
from leakboard.victims.word2vec import Word2Vec


class Plants(CanaryAttack):
    """Plants units of two words, and scores them as it is told to."""

    def __init__(self, score=lambda table: np.arange(12.0), unit=None, units=12):
        self.score, self.unit = score, unit
        self.units = [Texts([f"canary{i} bird{i}"]) for i in range(units)]

    def fit(self, view, seed):
        self.view = view
        return Canaries(self.units, self.score, 1e-6)


@pytest.fixture
def trained(monkeypatch):
    """Return the corpora that the victim is trained on."""
    seen, real = [], Word2Vec.fit
    monkeypatch.setattr(Word2Vec, "fit", lambda self, corpus, seed: seen.append(corpus) or real(self, corpus, seed))
    return seen


def test_half_of_them_by_coin_tosses_are_planted_beside_train_without_the_test_split(plain, trained):
    evaluate_attack(Plants(), plain)
    (corpus,) = trained
    assert set(corpus.splits) == {"train", "dev"}
    own, added = corpus.texts("train")[:90], corpus.texts("train")[90:]
    assert own == plain.corpus.texts("train")[:]
    assert [text in ("", f"canary{i} bird{i}") for i, text in enumerate(added)] == [True] * 12
    assert 0 < sum(text == "" for text in added) < 12


@pytest.mark.parametrize("unit", ["pair", "document"])
def test_the_result_says_of_what_unit_and_at_what_delta_it_is_a_bound(unit, plain):
    result = evaluate_attack(Plants(unit=unit), plain)
    assert result.audited == Audited(unit, 1e-6)
    assert next(m.value for m in result.metrics if m.name == "canary_group") == {"pair": 2, "document": 1}[unit]


def claiming(side, claim):
    return dataclasses.replace(side, published=dataclasses.replace(side.published, claim=claim))


class TestUnit:
    CLAIM = TrainingClaim(1.0, 1e-5, "document", 10, "poisson", 5, 100, 1.0, 0.1, "is public")

    def test_a_claim_is_audited_about_its_own_unit_at_its_own_delta(self, plain):
        for unit in (None, "document"):
            attack = Plants(unit=unit)
            assert evaluate_attack(attack, claiming(plain, self.CLAIM)).audited == Audited("document", 1e-5)
            assert attack.view.unit == "document"

    def test_of_another_unit_it_is_refused(self, plain, trained):
        with pytest.raises(NotApplicable, match="unit: 'pair' is not allowed: the claim is about one document"):
            evaluate_attack(Plants(unit="pair"), claiming(plain, self.CLAIM))
        with pytest.raises(NotApplicable, match="made names no users"):
            evaluate_attack(Plants(unit="user"), plain)
        with pytest.raises(NotApplicable, match="not about training data"):
            evaluate_attack(Plants(), claiming(plain, ReleaseClaim(1.0, 0.0, "word", "noise", "L1")))
        assert trained == []

    def test_how_many_units_a_canary_is_the_scoring_counts(self):
        assert [units_in(Texts(["a b"]), unit) for unit in ("pair", "document", "user")] == [2, 1, 1]
        assert [units_in(Texts(["a b a", "c"]), unit) for unit in ("pair", "document", "user")] == [6, 2, 1]


class TestOddAnswers:
    @pytest.mark.parametrize(
        "score",
        [
            lambda table: np.zeros(11),
            lambda table: np.zeros((12, 1)),
            lambda table: 0.0,
            lambda table: np.full(12, math.nan),
            lambda table: np.full(12, math.inf),
        ],
    )
    def test_scores_are_one_finite_number_a_canary(self, score, plain):
        with pytest.raises(ValueError, match="are not one finite number for each of 12 canaries"):
            evaluate_attack(Plants(score), plain)

    def test_there_are_canaries(self, plain, trained):
        with pytest.raises(RequestError, match="the attack chose no canaries"):
            evaluate_attack(Plants(units=0), plain)
        assert trained == []

    def test_they_come_with_what_scores_them(self, plain):
        class Bare(Plants):
            def fit(self, view, seed):
                return self.units

        with pytest.raises(RequestError, match="an attack on canaries returns Canaries, not list"):
            evaluate_attack(Bare(), plain)


class TestPlanting:
    def test_planted_units_are_users_of_their_own_and_empty_where_they_are_not_there(self, make_corpus):
        splits = {split: {"text": ["a b", "c", "d", "e"], "user": ["u", "u", "v", "w"]} for split in ("train", "dev")}
        corpus = make_corpus(splits | {"test": splits["dev"]}, [])
        planted = with_texts(corpus, [Texts(["p q", "r"]), Texts(["s"])], [False, True]).splits["train"]
        assert planted["text"][-3:] == ["", "", "s"]
        assert planted["user"][-3:] == ["added 0", "added 0", "added 1"]
        assert len(planted) == 7

    def test_planted_units_have_numbers_and_users_are_made_where_they_are_needed(self):
        frame = pd.DataFrame({"text": ["a", "b"], "row": [0, 1], "joy": [1.0, 2.0]})
        splits = dict.fromkeys(("train", "dev", "test"), frame)
        scored = build_corpus("scored", splits, [], None, numeric_targets=["joy"])
        planted = with_texts(scored, [Texts(["p", "q"]), Texts(["r"])], [True, True]).splits["train"]
        assert planted["joy"][-3:] == [1.0, 1.0, 2.0]
        assert len(set(one_user_a_text(scored).splits["train"]["user"][:])) == 2


def test_an_attack_cannot_make_its_canaries_smaller_once_it_sees_the_table(plain):
    """The bound counts the units of a canary as it was planted: fewer would make the bound larger than is true."""

    class Shrinks(CanaryAttack):
        unit = "document"

        def fit(self, view, seed):
            units = [Texts([f"w{i} w{i}", f"w{i}"]) for i in range(12)]

            def score(table):
                for texts in units:
                    del texts[1:]
                return np.arange(12.0)

            return Canaries(units, score, 1e-6)

    result = evaluate_attack(Shrinks(), plain)
    assert next(metric.value for metric in result.metrics if metric.name == "canary_group") == 2
