"""Test attacks on training data: they find planted members, and nothing in tables that never saw the data."""

import dataclasses
from collections import Counter
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from leakboard.attacks._membership.learned import LearnedScore, UnitPairs
from leakboard.attacks._membership.training_data import FeatureExtractor, LikelihoodRatio, mean_places
from leakboard.attacks.canary_audit import CanaryAudit, pairs_with_partners
from leakboard.attacks.membership_inference import MembershipInference
from leakboard.data.tokens import words
from leakboard.datasets.generated_reviews import GeneratedReviews
from leakboard.errors import NotApplicable
from leakboard.interfaces import FittedVictim, PublishedWords, Texts, Victim
from leakboard.models.skip_gram.noisy_tables import NoisyTables
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.publications import victim_and_attacker_corpus
from leakboard.privacy.auditing.one_run_curve import best_one_run_bound
from leakboard.randomness import Streams
from leakboard.threats import membership
from leakboard.threats.published import Publications
from leakboard.threats.threat import VictimSide
from leakboard.victims.dp_word2vec import DPWord2Vec

TWIN = {"noise_multiplier": 0, "vocabulary": "exact", "min_count": 1, "vector_size": 32, "expected_batch_size": 1024}
TRAINED = DPWord2Vec(**TWIN, steps=300, learning_rate=0.1)
UNTRAINED = DPWord2Vec(**TWIN, steps=0)


@pytest.fixture(scope="module")
def corpora():
    whole = GeneratedReviews(users=240, leak=1.0, test_share=0.4).load()
    return victim_and_attacker_corpus(whole, "disjoint", 0)


def evaluated(attack, victim, corpora):
    """Return an attack's metrics by name, and its result."""
    corpus, auxiliary = corpora
    streams = Streams(0, corpus.name, "victim", "attack", "label")
    fitted = victim.fit(corpus.only("train", "dev"), 3)
    table = fitted.publish_words(Texts([]), np.random.default_rng(0))
    published = Publications({}, None, table, fitted.claim)
    side = VictimSide(corpus, auxiliary, victim, lambda: fitted, published, streams, victim_share=0.5)
    result = evaluate_attack(attack, side)
    return {m.name: m for m in result.metrics if not m.variable}, result


@pytest.mark.parametrize("score", ["loss", "likelihood_ratio", "learned"])
class TestMembership:
    OPTIONS: ClassVar = {"unit": "document", "shadows": 4}

    @pytest.mark.slow
    def test_members_of_a_trained_table_are_found(self, score, corpora):
        metrics, result = evaluated(MembershipInference(score=score, **self.OPTIONS), TRAINED, corpora)
        assert metrics["attack_auc"].low > 0.6
        assert result.secrets == ("membership",)
        assert result.test_size == metrics["attack_auc"].n >= 450

    def test_a_random_start_gives_nothing_away(self, score, corpora):
        metrics, _ = evaluated(MembershipInference(score=score, **self.OPTIONS), UNTRAINED, corpora)
        assert metrics["attack_auc"].low < 0.5 + 0.02
        assert metrics["attack_auc"].high > 0.5 - 0.02


@pytest.mark.parametrize("score", ["likelihood_ratio", "learned"])
def test_the_order_of_a_random_start_gives_members_away(score, corpora):
    """The vectors tell nothing, and the words are in the order of their counts in the training data."""
    metrics, _ = evaluated(MembershipInference(score=score, unit="document", shadows=4, ranks=True), UNTRAINED, corpora)
    assert metrics["attack_auc"].low > 0.52


class TestLearnedScore:
    """Pairs are summed by hand, and planted traces of rare words are learned."""

    UNITS: ClassVar = [Texts(["a b"]), Texts(["b c d"]), Texts(["e"])]

    def test_sums_of_pairs(self):
        found = UnitPairs.of(["a b", "a d"], self.UNITS, 1e-3)
        assert found.vocabulary == ["a", "b", "c", "d", "e"]
        assert np.allclose(found.rarity, 1 / np.sqrt([3, 2, 1, 2, 1]))
        assert [len(pairs.centres) for pairs in found.pairs] == [6, 8, 8]
        assert found.owners[0].tolist() == [0, 0, 1, 1, 1, 1]
        values = [np.ones((3, len(pairs.centres))) for pairs in found.pairs]
        features = found.summed(values, 3)
        means = np.array([2 / 3, 4 / 5, 0])  # of pairs within a distance of 1, with one pair of value 0 besides
        assert np.allclose(features[:, 0], (means - means.mean()) / means.std())
        # centres: a, b; b, c, c, d
        sums = np.array([3**-0.5 + 2**-0.5, 2**-0.5 + 1 + 1 + 2**-0.5, 0])
        assert np.allclose(features[:, 1], (sums - sums.mean()) / sums.std())

    def test_words_that_a_table_lacks_have_its_mean_vector(self):
        found = UnitPairs.of(["a b"], self.UNITS, 1e-3)
        table = PublishedWords(["a", "b", "z"], np.array([[1.0, 0], [0, 1], [2, 2]], np.float32))
        lengths = found.values(table)[0][2]  # centres: a, b; b, c, c, d
        missing = np.log(np.sqrt(2))
        assert np.allclose(lengths, [0, 0, 0, missing, missing, missing], atol=1e-6)

    def test_it_is_calibrated_by_models_without_the_unit(self):
        """Of four models two were trained on a unit. The reference of each is the mean of others without the unit."""
        found = UnitPairs.of(["a b"], [Texts(["a b"])], 1e-3)
        included = np.array([[True], [True], [False], [False]])
        shadows = [[np.full((3, 2), value)] * 3 for value in (9.0, 9.0, 1.0, 3.0)]
        seen = []
        recording = SimpleNamespace(owners=found.owners, summed=lambda differences, units: seen.append(differences))
        score = LearnedScore(recording, shadows, included)
        score._features(shadows[0], leave_out=0)
        score._features(shadows[2], leave_out=2)
        assert np.allclose(seen[0][0], 9 - 2)
        assert np.allclose(seen[1][0], 1 - 3)


def test_mean_places_by_hand():
    units = [Texts(["a c a", "A"]), Texts(["b"]), Texts(["unknown"]), Texts([""])]
    places = [(1 + 3) / 2 / 3, 2 / 3, 4 / 3]
    assert mean_places(["a", "b", "c"], units) == pytest.approx([*places, np.mean(places)])
    assert mean_places(["a"], [Texts([""])]).tolist() == [0]


def test_likelihood_ratios_are_those_of_normal_features():
    """Both features have 0 outside and 2 inside, with errors of 1 and 8."""
    rng = np.random.default_rng(0)
    included = rng.random((2000, 50)) < 0.5
    ratio = LikelihoodRatio.of(2.0 * included[:, :, None] + rng.normal(size=(2000, 50, 2)) * [1, 8], included)
    table = 2.0 * (rng.random(50) < 0.5)[:, None] + rng.normal(size=(50, 2)) * [1, 8]
    exact = (table - 1) @ [2 / 1**2, 2 / 8**2]
    assert np.abs(ratio(table) - exact).mean() < 0.1 * np.abs(exact).mean()


def test_the_rise_of_words_since_an_earlier_table_is_a_feature():
    table = PublishedWords(["a", "b", "c"], np.eye(3, dtype=np.float32))
    units = [Texts(["b a"]), Texts(["c"]), Texts(["d"])]
    earlier = FeatureExtractor(["a b"], 1, 1e-3, earlier=["c", "b", "a", "d"])
    features = earlier(table, units)
    assert np.array_equal(features[:, :2], replace(earlier, earlier=None)(table, units))
    rises = [(2 + 3) / 2 / 4 - (1 + 2) / 2 / 3, 1 / 4 - 3 / 3, 4 / 4 - 4 / 3]
    assert np.allclose(features[:, 2], rises)


def test_others_are_drawn_from_the_share_of_test_that_members_are_of_train(corpora, monkeypatch):
    """The victim was given half of the distinct texts of train, so half of those of test may be candidates."""
    shares = []
    draw = membership.draw_candidates
    monkeypatch.setattr(membership, "draw_candidates", lambda *given: shares.append(given[-1]) or draw(*given))
    metrics, _ = evaluated(MembershipInference(unit="document", candidates=100_000), UNTRAINED, corpora)
    assert shares == [0.5]
    assert metrics["attack_auc"].n <= 2 * (len(set(corpora[0].texts("test"))) // 2)


@pytest.mark.slow
def test_candidates_are_users_where_there_are_any(corpora):
    metrics, _ = evaluated(MembershipInference(), TRAINED, corpora)
    fewest = min(len(set(corpora[0].splits[split]["user"][:])) for split in ("train", "test"))
    assert 1.6 * fewest < metrics["attack_auc"].n <= 2 * fewest  # of whom a few keep no text
    assert metrics["attack_auc"].value > 0.6


@pytest.fixture(scope="module")
def overlapping():
    whole = GeneratedReviews(users=1200, leak=1.0, test_share=0.4).load()
    return victim_and_attacker_corpus(whole, "overlap", 0)


@dataclass(frozen=True)
class TrainedOnOtherTexts(Victim):
    """Publishes a table that was trained on other texts: no candidate is a member."""

    publishes: ClassVar = ("words",)

    def fit(self, corpus, seed):
        """The victim's seed is 3; an attacker's own models are of its own texts."""
        return TRAINED.fit(GeneratedReviews(users=240, leak=1.0, seed=7).load() if seed == 3 else corpus, seed)


@pytest.mark.slow
@pytest.mark.parametrize("score", ["loss", "likelihood_ratio", "learned"])
@pytest.mark.parametrize("unit", ["document", *(pytest.param(u, marks=pytest.mark.slow) for u in ("pair", "user"))])
def test_a_table_of_other_texts_reveals_no_member(score, unit, overlapping):
    """Candidates differ in nothing but membership, and the attacker's own texts tell nothing of it."""
    metrics, _ = evaluated(MembershipInference(score=score, unit=unit, shadows=4), TrainedOnOtherTexts(), overlapping)
    area, n = metrics["attack_auc"].value, metrics["attack_auc"].n
    assert abs(area - 0.5) < 4 * np.sqrt(1 / (3 * n)) + 0.01


class TestCanaries:
    def test_training_without_noise_is_caught(self, corpora):
        metrics, result = evaluated(CanaryAudit(unit="document", shadows=4, repeats=10), TRAINED, corpora)
        assert metrics["attack_score"].value > 1.5
        assert metrics["canaries"].value == result.test_size >= 50

    @pytest.mark.slow
    def test_training_without_noise_is_caught_by_more_canaries_with_partners(self, corpora):
        audit = CanaryAudit(unit="document", canaries=300, shadows=4, repeats=10, partners=5)
        metrics, _ = evaluated(audit, TRAINED, corpora)
        assert metrics["canaries"].value == 300  # of pairs of rare words there are 123
        assert metrics["attack_score"].value > 1.5

    @pytest.mark.parametrize("partners", [0, pytest.param(5, marks=pytest.mark.slow)])
    def test_a_table_that_never_saw_them_proves_nothing(self, partners, corpora):
        metrics, _ = evaluated(CanaryAudit(unit="document", shadows=4, partners=partners), UNTRAINED, corpora)
        assert metrics["attack_score"].value < 0.5

    def test_places_in_a_table_that_is_sorted_by_frequency_give_canaries_away(self, corpora, tmp_path):
        """The vectors are of a random start, and tell nothing. Places in a public list of words tell nothing either."""
        audit = CanaryAudit(unit="document", shadows=4, ranks=True)
        by_places, _ = evaluated(audit, UNTRAINED, corpora)
        assert by_places["attack_score"].value > 1.5
        listed = tmp_path / "words.txt"
        listed.write_text("\n".join(sorted({w for t in corpora[0].texts("train") for w in words(t)})), encoding="utf-8")
        public = dataclasses.replace(UNTRAINED, vocabulary=str(listed))
        by_list, _ = evaluated(audit, public, corpora)
        assert by_list["attack_score"].value < 0.5

    @pytest.mark.slow
    def test_a_private_table_keeps_its_claim_and_one_with_little_noise_does_not(self, corpora, tmp_path, monkeypatch):
        """The claim is far below what so many canaries could refute. The mutant has a thousandth of the noise."""
        counts = Counter(word for text in corpora[0].texts("train") for word in words(text))
        listed = tmp_path / "words.txt"
        listed.write_text("\n".join(word for word, _ in counts.most_common(400)), encoding="utf-8")
        options = {"vector_size": 32, "expected_batch_size": 40, "steps": 20, "learning_rate": 0.5}
        private = DPWord2Vec(unit="user", epsilon=0.5, delta=1e-6, vocabulary=str(listed), **options)
        metrics, result = evaluated(CanaryAudit(shadows=4), private, corpora)
        assert (result.claim.unit, metrics["audit_delta"].value) == ("user", 1e-6)
        assert metrics["attack_score"].value <= result.claim.proved <= 0.5 < metrics["audit_largest_bound"].value / 2
        descend = NoisyTables.descend

        def with_little_noise(tables, centres, targets, starts, descent, noise):
            little = dataclasses.replace(descent, deviation=descent.deviation / 1e3)
            return descend(tables, centres, targets, starts, little, noise)

        monkeypatch.setattr(NoisyTables, "descend", with_little_noise)
        broken, _ = evaluated(CanaryAudit(shadows=4), private, corpora)
        assert broken["attack_score"].value > result.claim.epsilon

    @pytest.mark.slow
    def test_the_published_checkpoint_is_audited(self, corpora):
        """The last table gives every canary away; the first step gives none away."""
        recipe = dataclasses.replace(TRAINED, checkpoints=(1,), learning_rate=0.1)
        audit = CanaryAudit(unit="document", shadows=4, repeats=10)
        first, _ = evaluated(audit, dataclasses.replace(recipe, published_step=1), corpora)
        last, _ = evaluated(audit, recipe, corpora)
        assert first["attack_score"].value < 0.5 < 1.5 < last["attack_score"].value

    @pytest.mark.slow
    def test_a_pair_is_a_group_of_two(self, corpora):
        _, result = evaluated(CanaryAudit(unit="pair", shadows=4, canaries=40), TRAINED, corpora)
        group = next(m for m in result.metrics if m.name == "canary_group")
        assert (group.value, result.audited.unit) == (2, "pair")


@dataclass(frozen=True)
class Memory(FittedVictim):
    """Publishes vectors that count each word in train."""

    vocabulary: tuple
    counts: dict = field(default_factory=dict)
    trainable: ClassVar = True

    def fit(self, corpus, seed):
        texts = [word for text in corpus.texts("train") for word in words(text)]
        return Memory(self.vocabulary, {word: texts.count(word) for word in self.vocabulary})

    def publish_words(self, texts, rng):
        vectors = np.array([[1 + self.counts[word], 1.0] for word in self.vocabulary], np.float32)
        return PublishedWords(list(self.vocabulary), vectors)


class TestPartners:
    WORDS: ClassVar = [f"word{i}" for i in range(40)]

    def pairs(self, partners, canaries):
        return pairs_with_partners(self.WORDS, partners, canaries, np.random.default_rng(0))

    def test_the_rarest_words_are_paired_with_the_most_frequent(self):
        pairs = self.pairs(5, 20)
        assert {word for word, _ in pairs} == set(self.WORDS[:20])
        assert Counter(partner for _, partner in pairs) == dict.fromkeys(self.WORDS[-5:], 4)

    def test_few_words_are_used_again_with_other_partners(self):
        pairs = self.pairs(5, 100)
        assert len(set(pairs)) == 100
        assert {word for word, _ in pairs[:35]} == {word for word, _ in pairs[35:70]} == set(self.WORDS[:35])
        assert len(self.pairs(5, 1000)) == len(set(self.pairs(5, 1000))) == 35 * 5

    @pytest.mark.parametrize("partners", [40, 100])
    def test_no_word_is_left_if_all_are_partners(self, partners):
        with pytest.raises(NotApplicable, match=f"40 published words make no 10 pairs with {partners} of them"):
            self.pairs(partners, 1000)

    @pytest.mark.slow
    def test_partners_make_canaries_enough_to_refute_an_epsilon_above_2(self, make_corpus):
        splits = {split: {"text": [" ".join(self.WORDS)] * 2, "s": [0] * 2} for split in ("train", "dev", "test")}
        corpus = make_corpus(splits, [("s", ("a",), "attribute")])
        largest = {}
        for partners in (0, 5):
            audit = CanaryAudit(shadows=4, partners=partners)
            metrics, _ = evaluated(audit, Memory(tuple(self.WORDS)), (corpus, corpus))
            largest[partners] = metrics["audit_largest_bound"].value
        assert largest[0] < 0.5 < 2 < largest[5]


def test_canaries_in_a_perfect_memory_prove_the_largest_bound(make_corpus):
    vocabulary = tuple(f"word{i}" for i in range(400))
    texts = [" ".join(vocabulary[i : i + 20]) for i in range(0, 400, 20)]
    splits = {split: {"text": texts, "s": [0] * 20} for split in ("train", "dev", "test")}
    corpus = make_corpus(splits, [("s", ("a",), "attribute")])
    metrics, _ = evaluated(CanaryAudit(canaries=200, shadows=4), Memory(vocabulary), (corpus, corpus))
    assert metrics["canaries"].value == 100  # half of the words, two each
    assert metrics["canary_right"].value == metrics["canary_guesses"].value
    guesses, tried = int(metrics["canary_guesses"].value), int(metrics["canary_tried"].value)
    assert metrics["attack_score"].value == best_one_run_bound(100, guesses, guesses, 1e-6, 0.05 / tried) > 2.5
    assert metrics["attack_score"].value == metrics["audit_largest_bound"].value
