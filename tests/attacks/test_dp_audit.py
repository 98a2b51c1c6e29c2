"""Audits of releases as attacks: false alarms, power, and the verdict."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from leakboard.attacks import dp_audit
from leakboard.attacks.dp_audit import PAIRS, DpAudit, _neighbours
from leakboard.claims import RELEASE_UNITS, ReleaseClaim
from leakboard.datasets.zeros_and_ones import ZerosAndOnes
from leakboard.errors import RequestError
from leakboard.metrics.audits import corrected_bound, verdict, verdict_error
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.publications import fit, publish
from leakboard.privacy.auditing.audit import audit
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.mechanisms.cube import CubeRelease
from leakboard.randomness import Streams
from leakboard.threats.oracle import Oracle
from leakboard.threats.releases import ReleasesView
from leakboard.threats.threat import VictimSide
from leakboard.victims.dpnr import Dpnr
from leakboard.victims.mechanism import CONTROLS, FittedMechanism, Mechanism

BAG = {"embedding_bag": {"dimension": 16, "epochs": 1}}
OF_CALLS = {"shared_by_rows", "few_seeds", "scaled_by_rows", "shared_and_own"}
SOUND = {"laplace", "discrete_laplace", "gaussian", "random", "halved_output"}


def side_of(victim, corpus, seed=0):
    streams = Streams(seed, corpus.name, "victim", "dp_audit")
    fitted = fit(victim, corpus, streams)
    published = publish(victim, fitted, corpus, streams)
    return VictimSide(corpus, corpus, victim, lambda: fitted, published, streams)


def audited(victim, corpus, seed=0, **options):
    """Return the metrics of an audit by name, and its result."""
    result = evaluate_attack(DpAudit(**options), side_of(victim, corpus, seed))
    return {m.name: m for m in result.metrics if not m.variable}, result


def of_mechanism(name, epsilon=1.0, dimension=2, seed=0, **options):
    corpus = ZerosAndOnes(dimension=dimension).load()
    options = {"pairs": "corners", "budget": 400_000, "batches": False} | options
    return audited(Mechanism(name=name, epsilon=epsilon), corpus, seed, **options)[0]


class TestControls:
    """Every mechanism whose single rows are broken is caught with a small budget, and no sound one is flagged."""

    @pytest.mark.parametrize("name", ["laplace", "discrete_laplace", "gaussian", *sorted(CONTROLS.keys() - OF_CALLS)])
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
        side = side_of(Mechanism(name=name, epsilon=epsilon), corpus)
        for seed in range(100):
            drawn = dataclasses.replace(side, streams=Streams(seed, corpus.name, name, "dp_audit"))
            result = evaluate_attack(DpAudit(pairs="corners", budget=100_000, batches=False), drawn)
            found.append(next(m.value for m in result.metrics if m.name == "attack_score"))
    alarms = sum(value > epsilon for value in found)
    assert stats.binomtest(alarms, len(found), 0.05, alternative="greater").pvalue > 1e-3
    assert np.mean(found) > 0.2 * epsilon


class TestSanityCheck:
    """Habernal's estimate beside the bound."""

    def test_both_are_counted(self):
        found = of_mechanism("laplace", repeats=50_000)
        assert found["plug_in_loss"].low < 0.8997 < found["plug_in_loss"].high  # the exact value for two dimensions
        assert found["plug_in_loss"].n == 50_000

    def test_it_may_be_infinite_and_says_why_the_bound_never_is(self):
        found = of_mechanism("copy", repeats=1000)
        assert found["plug_in_loss"].value == math.inf
        assert "never seen" in found["plug_in_loss"].status
        assert found["attack_score"].value < math.inf

    def test_the_published_number_of_repeats(self):
        attack = DpAudit(pairs="corners", budget=100_000, batches=False, repeats="published")
        for dimension, repeats in [(16, 10_000_000), (32, 1_000_000)]:
            corpus = ZerosAndOnes(dimension=dimension).load()
            side = side_of(Mechanism(name="copy", epsilon=1.0), corpus)
            own = corpus.only("train", "dev")
            found = attack.fit(ReleasesView(side.published.claim, own, Oracle(side, own)), 0)
            assert found.repeats == repeats


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
        found, result = audited(victim, reviews, pairs="corners", budget=1_280_000)
        claim = result.claim
        assert verdict(claim.epsilon, claim.proved, found["attack_score"].value) == expected

    def test_sentences_that_differ_in_one_word(self, reviews):
        released = Dpnr(encoder=BAG, epsilon=0.05, training="standard", sampling="shared")
        found, result = audited(released, reviews, pairs="sentences", budget=100_000, sentences=30)
        assert found["attack_score"].value > 1
        assert result.details.startswith("sentences that differ in one word")
        correct = Dpnr(encoder=BAG, epsilon=0.05, training="standard", calibration="l1")
        assert (
            audited(correct, reviews, pairs="sentences", budget=100_000, sentences=30)[0]["attack_score"].value < 0.05
        )

    def test_under_word_dropout_texts_are_released_one_by_one(self, reviews):
        victim = Dpnr(encoder=BAG, epsilon=1.0, training="standard", sampling="shared", mu=0.5)
        found, _ = audited(victim, reviews, pairs="sentences", budget=400_000, sentences=5)
        assert found["audit_tosses"].value == dp_audit.RANDOM_SENTENCE_DRAWS

    def test_sentences_keep_to_the_budget(self, reviews):
        """100,000 numbers are 6,250 releases in 16 dimensions, half to choose and half to test."""
        victim = Dpnr(encoder=BAG, epsilon=1.0, training="standard", calibration="l1")
        found, _ = audited(victim, reviews, pairs="sentences", budget=100_000, sentences=5)
        assert found["audit_tosses"].value == 2 * 1563


class TestUnits:
    """Neighbours are what the claim's unit says."""

    def test_a_claim_about_one_coordinate_is_not_audited_on_whole_vectors(self):
        """Lap(1/epsilon) a coordinate is epsilon-private for changing one of them."""
        claim = ReleaseClaim(1.0, 0.0, "coordinate", "Laplace", "1 in one coordinate", 1.0)
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

    def test_there_are_neighbours_for_every_unit_of_a_claim(self):
        assert set(PAIRS) == set(RELEASE_UNITS)


def test_neighbours_differ_in_one_word():
    texts = [f"{a} b c {a} d" for a in "xyzuvw"]
    pairs = _neighbours(texts, 200, np.random.default_rng(0))
    assert len(pairs) > 100
    for first, second in pairs:
        differing = [1 for a, b in zip(first.split(), second.split(), strict=True) if a != b]
        assert len(differing) == 1
        assert first in texts


class TestBudget:
    """The more is drawn, the more is proved."""

    def test_two_releases_averaged_are_bounded_better(self):
        found = of_mechanism("averaged", dimension=4, budget=16_000_000)["attack_score"]
        assert of_mechanism("averaged", dimension=4)["attack_score"].value < found.value <= 2
        assert found.value > 1

    def test_the_budget_is_what_is_drawn(self):
        found = of_mechanism("laplace", dimension=4, budget=400_000)
        assert found["audit_tosses"].value == 2 * 25_000
        assert found["true_positives"].n + found["false_positives"].n == 2 * 25_000
        assert corrected_bound([list(found.values())]) == pytest.approx(found["attack_score"].value)

    def test_one_that_is_too_small_for_the_width_is_refused(self):
        allowed = "at least 1200000 numbers for 3 pairs in 2000 dimensions"
        with pytest.raises(RequestError, match=f"dp_audit: budget: 100000 is not allowed: {allowed}"):
            of_mechanism("laplace", dimension=2000, budget=100_000)

    def test_one_that_is_too_small_for_the_sentences_is_refused(self, reviews):
        victim = Dpnr(encoder=BAG, epsilon=1.0, training="standard")
        with pytest.raises(RequestError, match="at least 160000 numbers for 50 pairs in 16 dimensions"):
            audited(victim, reviews, budget=100_000, worst=50)
        assert "audit_tosses" in audited(victim, reviews, pairs="corners", budget=100_000, worst=50, batches=False)[0]

    @pytest.mark.slow
    def test_what_rows_of_a_call_share_raises_no_false_alarm(self):
        runs = 40
        found = [of_mechanism("shared_and_own", dimension=1, seed=seed, budget=100_000) for seed in range(runs)]
        assert sum(m["attack_score"].value > 1 for m in found) <= stats.binom(runs, 0.05).ppf(0.999)


class TestBatches:
    """Rows of one call that give each other away are caught where calls are audited too."""

    @pytest.mark.parametrize("name", ["shared_by_rows", "few_seeds", "scaled_by_rows"])
    def test_the_flaws_of_calls(self, name):
        found = of_mechanism(name, budget=100_000, batches=True)
        assert found["attack_score"].value > 1.0
        assert found["canaries"].n == 4000
        assert corrected_bound([list(found.values())]) == pytest.approx(found["attack_score"].value)

    def test_a_claim_near_what_calls_can_prove_is_refuted(self):
        """4,000 calls prove 6.62, and the statistic is chosen from 1,000, which prove 5.2; so few rows prove less."""
        assert (
            of_mechanism("few_seeds", epsilon=5.5, dimension=32, budget=100_000, batches=True)["attack_score"].value
            > 5.5
        )

    @pytest.mark.parametrize("name", ["averaged", "laplace"])
    def test_what_calls_do_not_refute_is_tested_by_single_rows(self, name):
        """Whatever calls promise: rare events of single rows show among millions of releases only."""
        for seed in range(4):
            assert "audit_tosses" in of_mechanism(name, dimension=8, budget=100_000, batches=True, seed=seed)

    @pytest.mark.parametrize("name", ["laplace", "shared_and_own"])
    def test_sound_ones_are_left_alone(self, name):
        corpus = ZerosAndOnes(dimension=2).load()
        found, result = audited(
            Mechanism(name=name, epsilon=1.0), corpus, pairs="corners", budget=100_000, batches=True
        )
        assert found["attack_score"].value <= 1.0
        assert (result.claim.epsilon, result.audited.unit) == (1.0, "vector")

    def test_the_sanity_check_stands_beside_the_bound_of_calls(self):
        found = of_mechanism("shared_by_rows", budget=100_000, batches=True, repeats=500)
        assert found["plug_in_loss"].n == 500
        assert "canaries" in found

    def test_with_a_delta_calls_refute_at_the_confidence_of_a_verdict(self, monkeypatch):
        """Two audits leave each number of guesses an error of 8e-5, which is more than delta, not one of 8e-6."""
        monkeypatch.setattr(FittedMechanism, "delta", 3e-5)
        metrics = list(of_mechanism("shared_by_rows", budget=100_000, batches=True).values())
        assert "canaries" in {metric.name for metric in metrics}
        assert corrected_bound([metrics, metrics], verdict_error(3e-5)) > 1
        assert corrected_bound([metrics, metrics], verdict_error(0.0)) == 0

    @pytest.mark.parametrize("batches", [False, True])
    def test_corners_and_sentences_are_compared(self, batches, reviews):
        """Corners lie further apart than any sentences."""
        victim = Dpnr(encoder=BAG, epsilon=1.0, training="standard", calibration="l1")
        found, result = audited(victim, reviews, budget=400_000, batches=batches, sentences=20)
        assert "audit_tosses" in found
        assert "sentences" not in result.details

    @pytest.mark.parametrize(("corners", "expected"), [(0.5, True), (2.0, False)])
    def test_they_are_compared_by_as_many_fresh_tosses_as_test_them(self, corners, expected, reviews, monkeypatch):
        bounds, asked = iter([corners, 1.0]), []
        monkeypatch.setattr(dp_audit, "confirm", lambda *given: asked.append(given[2::2]) or next(bounds))
        monkeypatch.setattr(dp_audit, "SENTENCE_DRAWS", 4_000)
        victim = Dpnr(encoder=BAG, epsilon=1.0, training="standard", calibration="l1")
        found, result = audited(victim, reviews, budget=400_000, batches=False, sentences=20)
        draws = [6_250, 2_000]
        assert asked == [(size, verdict_error(0.0)) for size in draws]
        assert ("sentences" in result.details) == expected
        assert found["audit_tosses"].value == 2 * draws[expected]

    @pytest.mark.parametrize(
        ("rows", "by_calls"), [([0.5], True), ([2.0], True), ([7.0, 7.0], False), ([9.0, 3.0], True)]
    )
    def test_whichever_proves_more_is_tested(self, rows, by_calls, monkeypatch):
        """Rows and calls, each beforehand; calls prove 6.6 of noise that rows share, and rows by luck once."""
        confirmed = iter(rows)
        monkeypatch.setattr(dp_audit, "confirm", lambda *given: next(confirmed))
        assert ("canaries" in of_mechanism("shared_by_rows", budget=100_000, batches=True)) == by_calls

    def test_what_single_rows_refute_is_said_of_single_rows(self):
        assert "true_positives" in of_mechanism("copy", budget=100_000, batches=True)
