"""Candidates of attacks on training data: members and others differ in nothing but membership."""

import itertools
from typing import get_args

import numpy as np
import pytest
from scipy import stats

from leakboard.attacks.canary_audit import CanaryAudit
from leakboard.attacks.membership_inference import MembershipInference
from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.data.auxiliary import VICTIMS_SHARE
from leakboard.data.tokens import words
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.errors import NotApplicable
from leakboard.interfaces import AuxiliaryRegime, PublishedWords
from leakboard.pipeline.publications import victim_and_attacker_corpus
from leakboard.threats.candidates import draw_candidates, training_unit, why_no_unit, without_candidates
from leakboard.threats.published import Publications


class TestCandidates:
    @pytest.fixture(scope="class")
    @classmethod
    def corpus(cls, make_corpus):
        splits = {
            "train": {"text": ["a b c", "a b d", "e f", "g"], "user": ["u", "u", "v", "w"]},
            "dev": {"text": ["x"], "user": ["x"]},
            "test": {"text": ["e f", "b a", "f h", "h i j"], "user": ["y", "y", "z", "z"]},
        }
        return make_corpus(
            {k: v | {"s": [0] * len(v["text"])} for k, v in splits.items()}, [("s", ("a",), "attribute")]
        )

    def drawn(self, corpus, unit, most=100):
        found = draw_candidates(corpus, unit, most, np.random.default_rng(0), 1.0)
        sides = (
            [list(u) for u, m in zip(found.units, found.members, strict=True) if m == side] for side in (True, False)
        )
        return tuple(sorted(side) for side in sides)

    def test_documents(self, corpus):
        members, others = self.drawn(corpus, "document")
        assert others == [["b a"], ["f h"], ["h i j"]]  # "e f" stands in train
        assert len(members) == 3
        assert {text for (text,) in members} <= set(corpus.texts("train"))

    def test_users_come_with_all_their_texts(self, corpus):
        members, others = self.drawn(corpus, "user")
        assert others == [["e f", "b a"], ["f h", "h i j"]]
        assert all(texts in (["a b c", "a b d"], ["e f"], ["g"]) for texts in members)

    def test_pairs_stand_once_in_both_splits_together(self, corpus):
        members, others = self.drawn(corpus, "pair")
        assert members == [["b c"], ["b d"]]  # "a b" is there three times, "e f" in both
        assert all(pair in (["f h"], ["h i"], ["i j"]) for pair in others)

    def test_the_attackers_texts_hold_no_candidate_pair_either(self, corpus):
        found = draw_candidates(corpus, "pair", 100, np.random.default_rng(0), 1.0)
        assert list(without_candidates(corpus, found).texts("train")) == ["e f", "g"]

    def test_the_attackers_texts_alone_tell_nothing_about_pairs(self):
        """Whether a pair stands in texts that overlap with the victim's: it never does."""
        whole = GeneratedReviews(users=100).load()
        own, other = victim_and_attacker_corpus(whole, "overlap", 0)
        found = draw_candidates(own, "pair", 1000, np.random.default_rng(0), 1.0)
        known = {
            tuple(pair)
            for text in without_candidates(other, found).texts("train")
            for pair in itertools.pairwise(words(text))
        }
        pairs = [tuple(unit[0].split()) for unit in found.units]
        assert not any(pair in known or pair[::-1] in known for pair in pairs)

    def test_as_many_of_either_kind_as_asked_for(self, corpus):
        assert [len(side) for side in self.drawn(corpus, "document", most=2)] == [1, 1]

    def test_who_wrote_them(self, corpus, make_corpus):
        found = draw_candidates(corpus, "pair", 100, np.random.default_rng(0), 1.0)
        wrote = {unit[0]: author for unit, author in zip(found.units, found.authors, strict=True)}
        assert (wrote["b c"], wrote["b d"]) == ("u", "u")
        numbers = dict(zip(found.authors, found.owners.tolist(), strict=True))
        assert sorted(numbers.values()) == list(range(len(numbers)))
        assert [numbers[author] for author in found.authors] == found.owners.tolist()
        plain = {split: {"text": [f"{split} a b", f"{split} c d"], "s": [0, 0]} for split in ("train", "dev", "test")}
        nobody = draw_candidates(
            make_corpus(plain, [("s", ("a",), "attribute")]), "pair", 100, np.random.default_rng(0), 1.0
        )
        assert set(nobody.authors) == {"train a b", "train c d", "test a b", "test c d"}

    @pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
    def test_how_many_texts_a_user_has_tells_nothing(self, regime):
        """The victim has a part of its users' texts; users it never saw are candidates with as large a part."""
        own, other = victim_and_attacker_corpus(GeneratedReviews(users=1500, test_share=0.4).load(), regime, 0)
        found = draw_candidates(own, "user", 4000, np.random.default_rng(0), VICTIMS_SHARE[regime])
        numbers = np.array([len(unit) for unit in found.units])
        members, others = numbers[found.members], numbers[~found.members]
        assert len(members) > 500
        assert stats.mannwhitneyu(members, others).pvalue > 0.01
        assert members.max() == others.max() == 5
        whole = draw_candidates(own, "user", 4000, np.random.default_rng(0), 1.0)
        assert (np.mean([len(unit) for unit in whole.units]) > 1.2 * numbers.mean()) == (regime != "within")
        of_others = len(without_candidates(other, found, external=True).splits["train"])
        assert (of_others > len(without_candidates(other, found).splits["train"])) == (regime != "within")
        kept = without_candidates(other, found).splits["train"]
        assert set(found.authors).isdisjoint(kept["user"][:])
        assert len(kept) > 0

    def test_copied_texts_are_candidates_alike(self, make_corpus):
        """A text of test whose copy in train fell to the attacker is no other unless test is thinned too."""
        texts = [f"once {i}" for i in range(2000)] + [f"thrice {i}" for i in range(1000) for _ in range(3)]
        split = np.random.default_rng(0).choice(["train", "dev", "test"], len(texts), p=[0.5, 0.1, 0.4])
        splits = {
            name: [text for text, where in zip(texts, split, strict=True) if where == name] for name in set(split)
        }
        filled = {name: {"text": found, "s": [0] * len(found)} for name, found in splits.items()}
        whole = make_corpus({name: filled[name] for name in ("train", "dev", "test")}, [("s", ("a",), "attribute")])
        own, _ = victim_and_attacker_corpus(whole, "disjoint", 0)
        found = draw_candidates(own, "document", 4000, np.random.default_rng(0), 0.5)
        copied = np.array([unit[0].startswith("thrice") for unit in found.units])
        counts = [[np.sum(copied & side), np.sum(~copied & side)] for side in (found.members, ~found.members)]
        assert stats.fisher_exact(counts).pvalue > 0.01

    def test_order_tells_nothing(self):
        corpus = GeneratedReviews(users=100).load()
        members = draw_candidates(corpus, "document", 200, np.random.default_rng(1), 1.0).members
        assert abs(members[:100].sum() - 50) < 4 * 5

    def test_the_attackers_texts_hold_none_of_them(self, corpus):
        found = draw_candidates(corpus, "document", 2, np.random.default_rng(0), 1.0)
        drawn = {text for unit in found.units for text in unit}
        assert drawn.isdisjoint(without_candidates(corpus, found).texts("train"))

    @pytest.mark.parametrize("unit", ["pair", "document", "user"])
    def test_nor_do_their_texts_of_dev(self, unit, make_corpus):
        """A copy of a member in dev would tell on it; what is no candidate's stays."""
        splits = {
            "train": {"text": ["a b", "d e"], "user": ["u", "v"]},
            "dev": {"text": ["a b", "p q", "d e"], "user": ["u", "w", "v"]},
            "test": {"text": ["f g", "h i"], "user": ["y", "z"]},
        }
        filled = {name: columns | {"s": [0] * len(columns["text"])} for name, columns in splits.items()}
        made = make_corpus(filled, [("s", ("a",), "attribute")])
        found = draw_candidates(made, unit, 4, np.random.default_rng(0), 1.0)
        assert found.members.sum() == 2
        assert list(without_candidates(made.only("train", "dev"), found).texts("dev")) == ["p q"]

    def test_nobody_is_left(self, corpus):
        with pytest.raises(NotApplicable, match="no document that is in train or in test alone"):
            draw_candidates(corpus.with_rows("train", []), "document", 0, np.random.default_rng(0), 1.0)


@pytest.fixture
def nameless(make_corpus):
    """Return a corpus that names no users."""
    splits = {split: {"text": [split], "s": [0]} for split in ("train", "dev", "test")}
    return make_corpus(splits, [("s", ("a",), "attribute")])


USER = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")
RELEASE = ReleaseClaim(1.0, 0.0, "document", "noise", "L1")
STATIC = PublishedWords(["a"], np.zeros((1, 2), np.float32))
CONTEXTUAL = PublishedWords(["a"], np.zeros((1, 2), np.float32), np.zeros(1, np.int64))


def published(claim=None, words=STATIC):
    return Publications({}, None, words, claim)


class TestUnit:
    """What is attacked, and why there may be nothing."""

    def test_what_an_attack_asks_for_else_what_the_claim_protects_else_whoever_wrote(self, reviews, nameless):
        assert training_unit(None, USER, reviews) == "user"
        assert training_unit("pair", USER, reviews) == "pair"
        assert training_unit(None, None, reviews) == training_unit(None, RELEASE, reviews) == "user"
        assert training_unit(None, None, nameless) == training_unit(None, RELEASE, nameless) == "document"
        for asked, claim in (("user", None), (None, USER)):
            with pytest.raises(NotApplicable, match=r"'user' is not allowed \(pair, document\): made names no users"):
                training_unit(asked, claim, nameless)

    def test_users_are_no_unit_of_a_corpus_that_names_none(self, reviews, nameless):
        assert why_no_unit("user", nameless, None) == "made names no users"
        for unit, corpus in (("user", reviews), ("document", nameless), (None, nameless)):
            assert why_no_unit(unit, corpus, None) == why_no_unit(unit, corpus, published()) == ""

    def test_words_that_depend_on_their_context_are_no_table(self, reviews):
        for unit in (None, "document"):
            assert "depend on their context" in why_no_unit(unit, reviews, published(words=CONTEXTUAL))
            assert why_no_unit(unit, reviews, published(words=None)) == ""

    @pytest.mark.parametrize("attack", [MembershipInference, CanaryAudit])
    def test_both_threats_to_training_data_say_so(self, attack, reviews, nameless):
        def why(unit, corpus, given):
            return attack.threat.why_not_applicable(attack(unit=unit), corpus, given)

        assert why("user", nameless, None) == "made names no users"
        assert "depend on their context" in why(None, reviews, published(words=CONTEXTUAL))
        assert why(None, reviews, published(USER)) == why("user", reviews, published()) == ""

    def test_audits_are_of_the_claims_unit_alone_and_membership_of_any(self, reviews):
        def why(attack, claim):
            return attack.threat.why_not_applicable(attack, reviews, published(claim))

        assert why(CanaryAudit(unit="pair"), USER) == "unit: 'pair' is not allowed: the claim is about one user"
        assert why(CanaryAudit(unit="user"), USER) == why(CanaryAudit(unit="pair"), None) == ""
        assert why(MembershipInference(unit="pair"), USER) == ""

    def test_claims_about_what_is_published_are_another_audits(self, reviews):
        def why(attack, claim):
            return attack.threat.why_not_applicable(attack, reviews, published(claim))

        assert "not about training data" in why(CanaryAudit(), RELEASE)
        assert why(MembershipInference(), RELEASE) == ""
