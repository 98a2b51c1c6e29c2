"""Test the candidates of attacks on training data: members and non-members differ in nothing but membership."""

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
from leakboard.threats.candidates import draw_candidates, training_unit, why_no_candidates, without_candidates
from leakboard.threats.published import Publications


def draw(corpus, unit, most=100, share=1.0, seed=0):
    return draw_candidates(corpus, unit, most, np.random.default_rng(seed), share)


class TestCandidates:
    @pytest.fixture(scope="class")
    @classmethod
    def corpus(cls, make_corpus):
        splits = {
            "train": {"text": ["a b c", "a b d", "e f", "g"], "user": ["u", "u", "v", "w"]},
            "dev": {"text": ["x"], "user": ["x"]},
            "test": {"text": ["e f", "b a", "f h", "h i j"], "user": ["y", "y", "z", "z"]},
        }
        return make_corpus(splits, [])

    @staticmethod
    def both_sides(corpus, unit, most=100):
        """Return the members and the non-members, sorted."""
        drawn = draw(corpus, unit, most)
        pairs = list(zip(drawn.units, drawn.members, strict=True))
        return tuple(sorted(list(unit) for unit, member in pairs if member == side) for side in (True, False))

    def test_documents_of_test_that_are_in_train_are_no_candidates(self, corpus):
        members, others = self.both_sides(corpus, "document")
        assert others == [["b a"], ["f h"], ["h i j"]]
        assert len(members) == 3
        assert {text for (text,) in members} <= set(corpus.texts("train"))

    def test_users_have_all_their_texts(self, corpus):
        members, others = self.both_sides(corpus, "user")
        assert others == [["e f", "b a"], ["f h", "h i j"]]
        assert all(texts in (["a b c", "a b d"], ["e f"], ["g"]) for texts in members)

    def test_pairs_occur_once_in_train_and_test_together(self, corpus):
        members, others = self.both_sides(corpus, "pair")
        assert members == [["b c"], ["b d"]]  # "a b" occurs three times, "e f" in both
        assert all(pair in (["f h"], ["h i"], ["i j"]) for pair in others)
        assert list(without_candidates(corpus, draw(corpus, "pair")).texts("train")) == ["e f", "g"]

    def test_overlapping_texts_of_the_attacker_hold_no_candidate_pair(self):
        victims, attackers = victim_and_attacker_corpus(GeneratedReviews(users=100).load(), "overlap", 0)
        drawn = draw(victims, "pair", 1000)
        texts = without_candidates(attackers, drawn).texts("train")
        known = {tuple(pair) for text in texts for pair in itertools.pairwise(words(text))}
        pairs = [tuple(unit[0].split()) for unit in drawn.units]
        assert not any(pair in known or pair[::-1] in known for pair in pairs)

    def test_as_many_members_as_non_members_are_drawn(self, corpus):
        assert [len(side) for side in self.both_sides(corpus, "document", most=2)] == [1, 1]

    def test_authors_are_users_or_else_texts(self, corpus, make_corpus):
        drawn = draw(corpus, "pair")
        author_of = {unit[0]: author for unit, author in zip(drawn.units, drawn.authors, strict=True)}
        assert (author_of["b c"], author_of["b d"]) == ("u", "u")
        numbers = dict(zip(drawn.authors, drawn.owners.tolist(), strict=True))
        assert sorted(numbers.values()) == list(range(len(numbers)))
        assert [numbers[author] for author in drawn.authors] == drawn.owners.tolist()
        splits = {split: {"text": [f"{split} a b", f"{split} c d"]} for split in ("train", "dev", "test")}
        without_users = draw(make_corpus(splits, []), "pair")
        assert set(without_users.authors) == {"train a b", "train c d", "test a b", "test c d"}

    @pytest.mark.slow
    @pytest.mark.parametrize("regime", get_args(AuxiliaryRegime))
    def test_the_number_of_a_users_texts_does_not_reveal_membership(self, regime):
        """The victim has a share of each member's texts, and a candidate it never saw has an equal share."""
        victims, attackers = victim_and_attacker_corpus(GeneratedReviews(users=1500, test_share=0.4).load(), regime, 0)
        drawn = draw(victims, "user", 4000, VICTIMS_SHARE[regime])
        counts = np.array([len(unit) for unit in drawn.units])
        members, others = counts[drawn.members], counts[~drawn.members]
        assert len(members) > 500
        assert stats.mannwhitneyu(members, others).pvalue > 0.01
        assert members.max() == others.max() == 5
        whole = draw(victims, "user", 4000)
        assert (np.mean([len(unit) for unit in whole.units]) > 1.2 * counts.mean()) == (regime != "within")
        kept = without_candidates(attackers, drawn).splits["train"]
        kept_external = without_candidates(attackers, drawn, external=True).splits["train"]
        assert (len(kept_external) > len(kept)) == (regime != "within")
        assert set(drawn.authors).isdisjoint(kept["user"][:])
        assert len(kept) > 0

    def test_copied_texts_are_as_frequent_among_members_as_among_others(self, make_corpus):
        """Test must be thinned like train: else a test text whose copy in train the attacker got is no candidate."""
        texts = [f"once {i}" for i in range(2000)] + [f"thrice {i}" for i in range(1000) for _ in range(3)]
        split_of = np.random.default_rng(0).choice(["train", "dev", "test"], len(texts), p=[0.5, 0.1, 0.4])
        splits = {
            name: {"text": [text for text, split in zip(texts, split_of, strict=True) if split == name]}
            for name in ("train", "dev", "test")
        }
        victims, _ = victim_and_attacker_corpus(make_corpus(splits, []), "disjoint", 0)
        drawn = draw(victims, "document", 4000, 0.5)
        copied = np.array([unit[0].startswith("thrice") for unit in drawn.units])
        counts = [[np.sum(copied & side), np.sum(~copied & side)] for side in (drawn.members, ~drawn.members)]
        assert stats.fisher_exact(counts).pvalue > 0.01

    def test_the_order_does_not_reveal_membership(self):
        members = draw(GeneratedReviews(users=100).load(), "document", 200, seed=1).members
        assert abs(members[:100].sum() - 50) < 4 * 5

    @pytest.mark.parametrize("unit", ["pair", "document", "user"])
    def test_the_attackers_texts_hold_no_candidate(self, unit, make_corpus):
        splits = {
            "train": {"text": ["a b", "d e"], "user": ["u", "v"]},
            "dev": {"text": ["a b", "p q", "d e"], "user": ["u", "w", "v"]},
            "test": {"text": ["f g", "h i"], "user": ["y", "z"]},
        }
        made = make_corpus(splits, [])
        drawn = draw(made, unit, 4)
        assert drawn.members.sum() == 2
        attackers = without_candidates(made.only("train", "dev"), drawn)
        assert [list(attackers.texts(split)) for split in ("train", "dev")] == [[], ["p q"]]

    def test_a_corpus_without_members_is_refused(self, corpus):
        with pytest.raises(NotApplicable, match="no document that is in train or in test alone"):
            draw(corpus.with_rows("train", []), "document", 0)


@pytest.fixture
def nameless(make_corpus):
    """Return a corpus of three texts without users."""
    return make_corpus({split: {"text": [split]} for split in ("train", "dev", "test")}, [])


USER = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")
RELEASE = ReleaseClaim(1.0, 0.0, "document", "noise", "L1")
STATIC = PublishedWords(["a"], np.zeros((1, 2), np.float32))
CONTEXTUAL = PublishedWords(["a"], np.zeros((1, 2), np.float32), np.zeros(1, np.int64))


def published(claim=None, words=STATIC):
    return Publications({}, None, words, claim)


class TestUnit:
    """The attacked unit, and why there may be none."""

    def test_the_unit_is_the_attacks_or_else_the_claims_or_else_the_author(self, reviews, nameless):
        assert training_unit(None, USER, reviews) == "user"
        assert training_unit("pair", USER, reviews) == "pair"
        assert training_unit(None, None, reviews) == training_unit(None, RELEASE, reviews) == "user"
        assert training_unit(None, None, nameless) == training_unit(None, RELEASE, nameless) == "document"
        for unit, claim in (("user", None), (None, USER)):
            with pytest.raises(NotApplicable, match=r"'user' is not allowed \(pair, document\): made names no users"):
                training_unit(unit, claim, nameless)

    def test_users_are_no_unit_of_a_corpus_without_users(self, reviews, nameless):
        assert why_no_candidates("user", nameless, None) == "made names no users"
        for unit, corpus in (("user", reviews), ("document", nameless), (None, nameless)):
            assert why_no_candidates(unit, corpus, None) == why_no_candidates(unit, corpus, published()) == ""

    def test_words_in_context_are_no_table(self, reviews):
        for unit in (None, "document"):
            assert "word vectors depend on context" in why_no_candidates(unit, reviews, published(words=CONTEXTUAL))
            assert why_no_candidates(unit, reviews, published(words=None)) == ""

    @pytest.mark.parametrize("attack", [MembershipInference, CanaryAudit])
    def test_both_threats_to_training_data_give_these_reasons(self, attack, reviews, nameless):
        def why(unit, corpus, publications):
            return attack.threat.why_not_applicable(attack(unit=unit), corpus, publications)

        assert why("user", nameless, None) == "made names no users"
        assert "word vectors depend on context" in why(None, reviews, published(words=CONTEXTUAL))
        assert why(None, reviews, published(USER)) == why("user", reviews, published()) == ""

    def test_only_audits_are_restricted_to_the_claims_unit_and_kind(self, reviews):
        def why(attack, claim):
            return attack.threat.why_not_applicable(attack, reviews, published(claim))

        assert why(CanaryAudit(unit="pair"), USER) == "unit: 'pair' is not allowed: the claim is about one user"
        assert why(CanaryAudit(unit="user"), USER) == why(CanaryAudit(unit="pair"), None) == ""
        assert why(MembershipInference(unit="pair"), USER) == ""
        assert "not about training data" in why(CanaryAudit(), RELEASE)
        assert why(MembershipInference(), RELEASE) == ""
