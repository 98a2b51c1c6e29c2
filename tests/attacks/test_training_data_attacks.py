"""Attacks on training data: planted memories are found, tables that never saw the data give nothing away."""

import dataclasses
import itertools
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import ClassVar, get_args

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leakboard.attacks.canary_audit import CanaryAudit
from leakboard.attacks.membership_inference import MembershipInference
from leakboard.data.auxiliary import VICTIMS_SHARE
from leakboard.data.corpora import build_corpus, one_user_a_text, with_texts
from leakboard.data.words import words
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.errors import NotApplicable
from leakboard.interfaces import AuxiliaryRegime, PrivacyClaim, PublishedWords, Texts
from leakboard.models.skip_gram.tables import Workspace
from leakboard.pipeline.cell import mount, unclaimed
from leakboard.pipeline.fitting import Names, victim_and_attacker_corpus
from leakboard.pipeline.publications import Publications
from leakboard.pipeline.scene import Scene
from leakboard.pipeline.training_data import draw_candidates, training_unit, units_in, without
from leakboard.privacy.auditing.one_run import one_run_bound
from leakboard.victims.dp_word2vec import DPWord2Vec

CLAIM = PrivacyClaim(1.0, 1e-6, "user", "noise", "2-norm", protects="training")
TWIN = {"noise_multiplier": 0, "vocabulary": "exact", "min_count": 1, "vector_size": 32, "expected_batch_size": 1024}
TRAINED = DPWord2Vec(**TWIN, steps=300, learning_rate=0.1)
UNTRAINED = DPWord2Vec(**TWIN, steps=0)


@pytest.fixture(scope="module")
def corpora():
    whole = GeneratedReviews(users=240, leak=1.0, test_share=0.4).load()
    return victim_and_attacker_corpus(whole, "disjoint", 0)


def mounted(attack, victim, corpora, seed=0):
    own, other = corpora
    names = Names(seed, own.name, "victim", "attack", "label")
    fitted = victim.fit(own.only("train", "dev"), 3)
    table = fitted.publish_words(Texts([]), np.random.default_rng(0))
    scene = Scene(own, other, victim, lambda: fitted, Publications({}, None, table, fitted.claim), None, 0.5)
    judged = mount(attack, scene, names, None)
    return {m.name: m for m in judged.metrics if not m.variable}, judged


@pytest.mark.parametrize("score", ["loss", "likelihood_ratio"])
class TestMembership:
    OPTIONS: ClassVar = {"unit": "document", "shadows": 4}

    def test_members_of_a_trained_table_are_found(self, score, corpora):
        found, judged = mounted(MembershipInference(score=score, **self.OPTIONS), TRAINED, corpora)
        assert found["attack_auc"].low > 0.6
        assert judged.secrets == ("membership",)
        assert judged.attack_metric == "auc"
        assert judged.test_size == found["attack_auc"].n >= 450

    def test_a_random_start_gives_nothing_away(self, score, corpora):
        found, _ = mounted(MembershipInference(score=score, **self.OPTIONS), UNTRAINED, corpora)
        assert found["attack_auc"].low < 0.5 + 0.02
        assert found["attack_auc"].high > 0.5 - 0.02


def test_users_are_asked_about_where_there_are_any(corpora):
    found, _ = mounted(MembershipInference(), TRAINED, corpora)
    fewest = min(len(set(corpora[0].splits[split]["user"][:])) for split in ("train", "test"))
    assert 1.6 * fewest < found["attack_auc"].n <= 2 * fewest  # of whom a few keep no text
    assert found["attack_auc"].value > 0.6


@pytest.fixture(scope="module")
def strangers():
    whole = GeneratedReviews(users=1200, leak=1.0, test_share=0.4).load()
    return victim_and_attacker_corpus(whole, "overlap", 0)


@dataclass(frozen=True)
class Stranger:
    """Publishes a table that was trained on texts of somebody else: nobody asked about is a member."""

    publishes: ClassVar = ("words",)

    def fit(self, corpus, seed):
        """The victim's seed is 3; an attacker's own models are of its own texts."""
        return TRAINED.fit(GeneratedReviews(users=240, leak=1.0, seed=7).load() if seed == 3 else corpus, seed)


@pytest.mark.parametrize("score", ["loss", "likelihood_ratio"])
@pytest.mark.parametrize("unit", ["pair", "document", "user"])
def test_a_table_of_strangers_gives_nobody_away(score, unit, strangers):
    """Candidates differ in nothing but membership, and the attacker's own texts tell nothing of it."""
    found, _ = mounted(MembershipInference(score=score, unit=unit, shadows=4), Stranger(), strangers)
    area, n = found["attack_auc"].value, found["attack_auc"].n
    assert abs(area - 0.5) < 4 * np.sqrt(1 / (3 * n)) + 0.01


class TestCanaries:
    def test_training_without_noise_is_caught(self, corpora):
        found, judged = mounted(CanaryAudit(unit="document", shadows=4, repeats=10), TRAINED, corpora)
        assert found["attack_score"].value > 1.5
        assert judged.attack_metric == "epsilon"
        assert found["canaries"].value == judged.test_size >= 50

    def test_a_table_that_never_saw_them_proves_nothing(self, corpora):
        found, _ = mounted(CanaryAudit(unit="document", shadows=4), UNTRAINED, corpora)
        assert found["attack_score"].value < 0.5

    def test_a_private_table_does_not_exceed_its_claim_and_one_without_its_noise_does(
        self, corpora, tmp_path, monkeypatch
    ):
        """The claim is far below what so many canaries could refute; the mutant has a thousandth of the noise."""
        counts = Counter(word for text in corpora[0].texts("train") for word in words(text))
        listed = tmp_path / "words.txt"
        listed.write_text("\n".join(word for word, _ in counts.most_common(400)), encoding="utf-8")
        how = {
            "vector_size": 32,
            "expected_batch_size": 40,
            "steps": 20,
            "learning_rate": 0.5,
            "vocabulary": str(listed),
        }
        private = DPWord2Vec(unit="user", epsilon=0.5, delta=1e-6, **how)
        found, judged = mounted(CanaryAudit(shadows=4), private, corpora)
        assert (judged.claim.unit, found["audit_delta"].value) == ("user", 1e-6)
        assert found["attack_score"].value <= judged.claim.proved <= 0.5 < found["audit_ceiling"].value / 2
        descend = Workspace.descend
        monkeypatch.setattr(
            Workspace, "descend", lambda *a, deviation, **o: descend(*a, deviation=deviation / 1e3, **o)
        )
        broken, _ = mounted(CanaryAudit(shadows=4), private, corpora)
        assert broken["attack_score"].value > judged.claim.epsilon

    def test_what_is_audited_is_the_checkpoint_that_is_published(self, corpora):
        """The last table gives every canary away, the random start none."""
        recipe = dataclasses.replace(TRAINED, checkpoints=(1,), learning_rate=0.1)
        audit = CanaryAudit(unit="document", shadows=4, repeats=10)
        first, _ = mounted(audit, dataclasses.replace(recipe, published_step=1), corpora)
        last, _ = mounted(audit, recipe, corpora)
        assert first["attack_score"].value < 0.5 < 1.5 < last["attack_score"].value

    def test_a_pair_is_a_group_of_two(self, corpora):
        _, judged = mounted(CanaryAudit(unit="pair", shadows=4, canaries=40), TRAINED, corpora)
        group = next(m for m in judged.metrics if m.name == "canary_group")
        assert (group.value, group.variable) == (2, "pair")


@dataclass(frozen=True)
class Memory:
    """Publishes vectors that say of each word how often it stood in train."""

    vocabulary: tuple
    counts: dict = field(default_factory=dict)
    publishes = ("words",)
    claim = None

    def fit(self, corpus, seed):
        texts = [word for text in corpus.texts("train") for word in words(text)]
        return Memory(self.vocabulary, {word: texts.count(word) for word in self.vocabulary})

    def publish_words(self, texts, rng):
        vectors = np.array([[1 + self.counts[word], 1.0] for word in self.vocabulary], np.float32)
        return PublishedWords(list(self.vocabulary), vectors)


def test_canaries_in_a_perfect_memory_prove_as_much_as_their_number_can(make_corpus):
    vocabulary = tuple(f"word{i}" for i in range(400))
    texts = [" ".join(vocabulary[i : i + 20]) for i in range(0, 400, 20)]
    splits = {split: {"text": texts, "s": [0] * 20} for split in ("train", "dev", "test")}
    corpus = make_corpus(splits, [("s", ("a",), "attribute")])
    found, _ = mounted(CanaryAudit(canaries=200, shadows=4), Memory(vocabulary), (corpus, corpus))
    assert found["canaries"].value == 100  # half of the words, two each
    assert found["canary_right"].value == found["canary_guesses"].value
    guesses, tried = int(found["canary_guesses"].value), int(found["canary_tried"].value)
    assert found["attack_score"].value == one_run_bound(100, guesses, guesses, 1e-6, 0.05 / tried) > 2.5
    assert found["attack_score"].value == found["audit_ceiling"].value


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
        found = draw_candidates(corpus, unit, most, np.random.default_rng(0))
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

    def test_the_attackers_texts_hold_no_asked_pair_either(self, corpus):
        found = draw_candidates(corpus, "pair", 100, np.random.default_rng(0))
        assert list(without(corpus, found).texts("train")) == ["e f", "g"]

    def test_the_attackers_texts_alone_tell_nothing_about_pairs(self):
        """Whether a pair stands in texts that overlap with the victim's: it never does."""
        whole = GeneratedReviews(users=100).load()
        own, other = victim_and_attacker_corpus(whole, "overlap", 0)
        found = draw_candidates(own, "pair", 1000, np.random.default_rng(0))
        known = {
            tuple(pair) for text in without(other, found).texts("train") for pair in itertools.pairwise(words(text))
        }
        asked = [tuple(unit[0].split()) for unit in found.units]
        assert not any(pair in known or pair[::-1] in known for pair in asked)

    def test_as_many_of_either_kind_as_asked_for(self, corpus):
        assert [len(side) for side in self.drawn(corpus, "document", most=2)] == [1, 1]

    def test_who_wrote_them(self, corpus, make_corpus):
        found = draw_candidates(corpus, "pair", 100, np.random.default_rng(0))
        wrote = {unit[0]: author for unit, author in zip(found.units, found.authors, strict=True)}
        assert (wrote["b c"], wrote["b d"]) == ("u", "u")
        numbers = dict(zip(found.authors, found.owners.tolist(), strict=True))
        assert sorted(numbers.values()) == list(range(len(numbers)))
        assert [numbers[author] for author in found.authors] == found.owners.tolist()
        plain = {split: {"text": [f"{split} a b", f"{split} c d"], "s": [0, 0]} for split in ("train", "dev", "test")}
        nobody = draw_candidates(
            make_corpus(plain, [("s", ("a",), "attribute")]), "pair", 100, np.random.default_rng(0)
        )
        assert set(nobody.authors) == {"train a b", "train c d", "test a b", "test c d"}

    @pytest.mark.parametrize("situation", get_args(AuxiliaryRegime))
    def test_how_many_texts_a_user_has_tells_nothing(self, situation):
        """The victim has a part of its users' texts; users it never saw are asked about with as large a part."""
        own, other = victim_and_attacker_corpus(GeneratedReviews(users=1500, test_share=0.4).load(), situation, 0)
        found = draw_candidates(own, "user", 4000, np.random.default_rng(0), VICTIMS_SHARE[situation])
        numbers = np.array([len(unit) for unit in found.units])
        members, others = numbers[found.members], numbers[~found.members]
        assert len(members) > 500
        assert stats.mannwhitneyu(members, others).pvalue > 0.01
        assert members.max() == others.max() == 5
        whole = draw_candidates(own, "user", 4000, np.random.default_rng(0))
        assert (np.mean([len(unit) for unit in whole.units]) > 1.2 * numbers.mean()) == (situation != "within")
        of_others = len(without(other, found, strangers=True).splits["train"])
        assert (of_others > len(without(other, found).splits["train"])) == (situation != "within")
        kept = without(other, found).splits["train"]
        assert set(found.authors).isdisjoint(kept["user"][:])
        assert len(kept) > 0

    def test_copied_texts_are_asked_about_alike(self, make_corpus):
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
        members = draw_candidates(corpus, "document", 200, np.random.default_rng(1)).members
        assert abs(members[:100].sum() - 50) < 4 * 5

    def test_the_attackers_texts_hold_none_of_them(self, corpus):
        found = draw_candidates(corpus, "document", 2, np.random.default_rng(0))
        asked = {text for unit in found.units for text in unit}
        assert asked.isdisjoint(without(corpus, found).texts("train"))

    def test_nobody_is_left(self, corpus):
        with pytest.raises(NotApplicable, match="no document that is in train or in test alone"):
            draw_candidates(corpus.with_rows("train", []), "document", 0, np.random.default_rng(0))

    def test_planted_units_are_users_of_their_own_and_empty_where_they_are_not_there(self, corpus):
        planted = with_texts(corpus, [Texts(["p q", "r"]), Texts(["s"])], [False, True]).splits["train"]
        assert planted["text"][-3:] == ["", "", "s"]
        assert planted["user"][-3:] == ["added 0", "added 0", "added 1"]
        assert len(planted) == 7

    def test_how_many_units_a_canary_is_the_referee_counts(self):
        assert [units_in(Texts(["a b"]), unit) for unit in ("pair", "document", "user")] == [2, 1, 1]
        assert [units_in(Texts(["a b a", "c"]), unit) for unit in ("pair", "document", "user")] == [6, 2, 1]

    def test_planted_units_have_numbers_and_users_are_made_where_they_are_needed(self):
        frame = pd.DataFrame({"text": ["a", "b"], "row": [0, 1], "joy": [1.0, 2.0]})
        splits = dict.fromkeys(("train", "dev", "test"), frame)
        scored = build_corpus("scored", splits, [], None, numeric_targets=["joy"])
        planted = with_texts(scored, [Texts(["p", "q"]), Texts(["r"])], [True, True]).splits["train"]
        assert planted["joy"][-3:] == [1.0, 1.0, 2.0]
        assert len(set(one_user_a_text(scored).splits["train"]["user"][:])) == 2


class TestUnit:
    def test_what_the_claim_protects_else_whoever_wrote(self, corpora, make_corpus):
        attack = MembershipInference()
        assert training_unit(attack, CLAIM, corpora[0]) == "user"
        assert training_unit(MembershipInference(unit="pair"), CLAIM, corpora[0]) == "pair"
        assert training_unit(attack, None, corpora[0]) == "user"
        plain = {split: {"text": [split], "s": [0]} for split in ("train", "dev", "test")}
        made = make_corpus(plain, [("s", ("a",), "attribute")])
        assert training_unit(attack, None, made) == "document"
        with pytest.raises(NotApplicable, match="names no users"):
            training_unit(attack, CLAIM, made)

    def test_an_audit_is_of_the_claims_unit(self, corpora):
        with pytest.raises(NotApplicable, match="the claim is about one user"):
            training_unit(CanaryAudit(unit="pair"), CLAIM, corpora[0])

    def test_claims_about_what_is_published_are_another_audits(self):
        text = PrivacyClaim(1.0, 0.0, "document", "noise", "L1")
        static = PublishedWords(["a"], np.zeros((1, 2), np.float32))
        contextual = PublishedWords(["a"], np.zeros((1, 2), np.float32), np.zeros(1, np.int64))
        assert "not about training data" in unclaimed(CanaryAudit(), SimpleNamespace(claim=text, words=static))
        assert unclaimed(CanaryAudit(), SimpleNamespace(claim=CLAIM, words=static)) == ""
        assert unclaimed(CanaryAudit(), SimpleNamespace(claim=None, words=static)) == ""
        assert "context" in unclaimed(MembershipInference(), SimpleNamespace(claim=None, words=contextual))
        audit = SimpleNamespace(target="claim")
        assert "not about what is published" in unclaimed(audit, SimpleNamespace(claim=CLAIM, words=static))
