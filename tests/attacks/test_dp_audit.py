"""Audits as attacks: what the referee makes of them, false alarms, power, and the verdict."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from leakboard.attacks.dp_audit import PAIRS, DpAudit, _neighbours
from leakboard.datasets.zeros_and_ones import ZerosAndOnes
from leakboard.interfaces import PrivacyClaim
from leakboard.metrics.claims import verdict
from leakboard.pipeline.cell import mount, unclaimed
from leakboard.pipeline.fitting import Names, fit
from leakboard.pipeline.publications import publish, publisher
from leakboard.pipeline.scene import Scene, view
from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.mechanisms.releases import CubeRelease
from leakboard.victims.dpnr import Dpnr
from leakboard.victims.mechanism import CONTROLS, Mechanism

BAG = {"embedding_bag": {"dimension": 16, "epochs": 1}}
SOUND = {"laplace", "discrete_laplace", "gaussian", "random", "halved_output"}


def scene_of(victim, corpus, seed=0):
    names = Names(seed, corpus.name, "victim", "dp_audit")
    fitted = fit(victim, corpus, names)
    return Scene(corpus, corpus, victim, lambda: fitted, publish(victim, fitted, corpus, names)), names


def audited(victim, corpus, seed=0, **options):
    """Return the metrics of an audit by name, and its note."""
    judged = mount(DpAudit(**options), *scene_of(victim, corpus, seed), None)
    return {m.name: m for m in judged.metrics if not m.variable}, judged.note


def of_mechanism(name, epsilon=1.0, dimension=2, seed=0, **options):
    corpus = ZerosAndOnes(dimension=dimension).load()
    return audited(Mechanism(name=name, epsilon=epsilon), corpus, seed, **{"pairs": "corners", **options})[0]


class TestControls:
    """Every broken mechanism is caught at the default number of draws, and no sound one is flagged."""

    @pytest.mark.parametrize("name", ["laplace", "discrete_laplace", "gaussian", *CONTROLS])
    def test_in_two_dimensions(self, name):
        found = of_mechanism(name)["attack_score"].value
        assert (found > 1.0) == (name not in SOUND)

    def test_copy_exceeds_any_claim_that_the_draws_can_refute(self):
        assert of_mechanism("copy", epsilon=9.0, dimension=1)["attack_score"].value > 9.0

    def test_a_correct_laplace_reaches_four_fifths_of_its_epsilon(self):
        assert of_mechanism("laplace", dimension=1)["attack_score"].value >= 0.8

    def test_claims_beside_proofs(self):
        fitted = Mechanism(name="adept", epsilon=0.5).fit(ZerosAndOnes(dimension=8).load(), 0)
        assert (fitted.claim.epsilon, fitted.claim.proved) == (0.5, 4.0)
        for name, proved in [("half_scale", 1.0), ("random", 0.0), ("copy", math.inf), ("laplace", 0.5)]:
            assert Mechanism(name=name, epsilon=0.5).fit(ZerosAndOnes(dimension=8).load(), 0).claim.proved == proved


@pytest.mark.slow
def test_false_alarms_end_to_end():
    """Of 300 audits of correct mechanisms at 95 %, no more exceed epsilon than chance allows, yet the bound bites."""
    corpus, epsilon = ZerosAndOnes(dimension=1).load(), 1.0
    found = []
    for name in ("laplace", "halved_output", "discrete_laplace"):
        scene, _ = scene_of(Mechanism(name=name, epsilon=epsilon), corpus)
        for seed in range(100):
            names = Names(seed, corpus.name, name, "dp_audit")
            judged = mount(DpAudit(pairs="corners", draws=400), scene, names, None)
            found.append(next(m.value for m in judged.metrics if m.name == "attack_score"))
    alarms = sum(value > epsilon for value in found)
    assert stats.binomtest(alarms, len(found), 0.05, alternative="greater").pvalue > 1e-3
    assert np.mean(found) > 0.2 * epsilon


class TestSanityCheck:
    """Habernal's estimate beside the bound."""

    def test_both_are_counted(self):
        found = of_mechanism("laplace", repeats=50_000)
        assert found["plug_in_loss"].low < 0.8997 < found["plug_in_loss"].high  # the exact value for two dimensions
        assert found["plug_in_loss"].n == 50_000
        assert found["audit_hits"].n == 50_000

    def test_it_may_be_infinite_and_says_why_the_bound_never_is(self):
        found = of_mechanism("copy", repeats=1000)
        assert found["plug_in_loss"].value == math.inf
        assert "never seen" in found["plug_in_loss"].status
        assert found["attack_score"].value < math.inf

    def test_the_published_number_of_repeats(self):
        fitted = DpAudit(pairs="corners", draws=1000, repeats="published")
        for dimension, repeats in [(16, 10_000_000), (32, 1_000_000)]:
            corpus = ZerosAndOnes(dimension=dimension).load()
            scene, names = scene_of(Mechanism(name="copy", epsilon=1.0), corpus)
            found = fitted.fit(view(fitted, scene, names, set()), 0)
            assert (found.distinguisher.draws, found.repeats) == (500, repeats)


class TestDpnr:
    """As released violated, the paper's variant violated too, correctly calibrated it holds."""

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"sampling": "shared"}, "violated"),
            ({}, "violated"),
            ({"calibration": "l1"}, "holds"),
            ({"calibration": "l1", "mu": 0.5}, "holds"),
            ({"mechanism": "gaussian", "calibration": "l2"}, "holds"),
            ({"mechanism": "gaussian"}, "violated"),
        ],
    )
    def test_verdicts(self, given, expected, reviews):
        victim = Dpnr(encoder=BAG, epsilon=1.0, training="standard", **given)
        found, _ = audited(victim, reviews, pairs="corners", draws=40_000)
        claim = scene_of(victim, reviews)[0].published.claim
        assert verdict(claim.epsilon, claim.proved, found["attack_score"].value) == expected

    def test_sentences_that_differ_in_one_word(self, reviews):
        released = Dpnr(encoder=BAG, epsilon=0.05, training="standard", sampling="shared")
        found, note = audited(released, reviews, pairs="sentences", draws=2000, sentences=30)
        assert found["attack_score"].value > 1
        assert note.startswith("sentences that differ in one word")
        correct = Dpnr(encoder=BAG, epsilon=0.05, training="standard", calibration="l1")
        assert audited(correct, reviews, pairs="sentences", draws=2000, sentences=30)[0]["attack_score"].value < 0.05

    def test_under_word_dropout_texts_are_released_one_by_one(self, reviews):
        victim = Dpnr(encoder=BAG, epsilon=1.0, training="standard", sampling="shared", mu=0.5)
        found, _ = audited(victim, reviews, pairs="sentences", draws=2000, sentences=5)
        assert found["audit_hits"].n == 1000


class TestUnits:
    """Neighbours are what the claim's unit says."""

    def test_a_claim_about_one_coordinate_is_not_audited_on_whole_vectors(self):
        """Lap(1/epsilon) a coordinate is epsilon-private for changing one of them."""
        claim = PrivacyClaim(1.0, 0.0, "coordinate", "Laplace", "1 in one coordinate", 1.0)
        pairs = PAIRS["coordinate"](8, np.float32)
        assert [np.count_nonzero(pair.first != pair.second) for pair in pairs] == [1]
        found = audit(CubeRelease(8, 1.0), pairs, np.random.default_rng(0), 20_000).epsilon
        assert 0.5 < found <= claim.epsilon
        assert audit(CubeRelease(8, 1.0), corners(8), np.random.default_rng(0), 20_000).epsilon > claim.epsilon

    @pytest.mark.parametrize("dimension", [2, 3, 8])
    def test_texts_are_audited_on_corners_that_normalising_can_give(self, dimension):
        for pair in PAIRS["word"](dimension, np.float32):
            for vector in (pair.first, pair.second):
                assert (vector.min(), vector.max()) == (0, 1)

    @pytest.mark.parametrize("unit", ["user", "pair"])
    def test_other_units_are_skipped_with_a_reason(self, unit):
        claim = PrivacyClaim(1.0, 0.0, unit, "made", "1")
        reason = unclaimed(DpAudit(), SimpleNamespace(claim=claim))
        assert reason == f"the claim is about one {unit}; audited are word, document, vector, coordinate"


def test_neighbours_differ_in_one_word():
    texts = [f"{a} b c {a} d" for a in "xyzuvw"]
    pairs = _neighbours(texts, 200, np.random.default_rng(0))
    assert len(pairs) > 100
    for first, second in pairs:
        differing = [1 for a, b in zip(first.split(), second.split(), strict=True) if a != b]
        assert len(differing) == 1
        assert first in texts


class TestClaims:
    """What a claim must say."""

    @pytest.mark.parametrize(
        ("changes", "complaint"),
        [
            ({"sensitivity": " "}, "claim: sensitivity is empty"),
            ({"mechanism": ""}, "claim: mechanism is empty"),
            ({"epsilon": -1.0}, "claim: epsilon=-1.0 is not allowed"),
            ({"epsilon": math.inf}, "claim: epsilon=inf is not allowed"),
            ({"delta": 1.0}, "claim: delta=1.0 is not allowed"),
            ({"proved": math.nan}, "claim: proved=nan is not allowed"),
            ({"unit": "wrod"}, "claim: unit='wrod' is not allowed: one of word, pair"),
        ],
    )
    def test_what_is_missing_is_named(self, changes, complaint):
        given = {"epsilon": 1.0, "delta": 0.0, "unit": "word", "mechanism": "Laplace", "sensitivity": "1 in L1"}
        with pytest.raises(ValueError, match=complaint):
            PrivacyClaim(**{**given, **changes})


def test_texts_asked_for_again_are_not_encoded_again(reviews):
    scene, _ = scene_of(Dpnr(encoder=BAG, epsilon=1.0, training="standard"), reviews)
    fitted, encoded = scene.fitted(), []
    inner = fitted.model.encoder.documents
    fitted.model.encoder.documents = lambda texts: encoded.append(len(texts)) or inner(texts)
    ask, texts = publisher(scene.victim, scene.fitted), reviews.texts("test")
    first, second = ask(texts, np.random.default_rng(0)), ask(texts, np.random.default_rng(1))
    assert encoded == [len(set(texts))]
    assert not np.array_equal(first, second)
    assert np.array_equal(first, fitted.publish_documents(texts, np.random.default_rng(0)))
