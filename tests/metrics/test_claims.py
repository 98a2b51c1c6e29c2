"""The judge of audits and of claims: it draws for itself, corrects for many, and compares three epsilons."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from leakboard.interfaces import Distinguisher, PrivacyClaim
from leakboard.metrics.claims import canary_metrics, composed, corrected_bound, judge_claim, verdict
from leakboard.metrics.measures import Metric
from leakboard.privacy.audit import lower_bound
from leakboard.privacy.releases import CubeRelease
from leakboard.privacy.sanity import exact_loss, laplace_chances, sampling_error


class TestReferee:
    """Counts, corrections and verdicts by hand."""

    CLAIM = PrivacyClaim(1.0, 0.0, "vector", "made", "1 in L1")

    @staticmethod
    def judged(event, claim=CLAIM, mechanism=None, publish=None, repeats=0):
        audit = SimpleNamespace(distinguisher=event, repeats=repeats)
        return {m.name: m for m in judge_claim(audit, claim, mechanism, publish, np.random.default_rng(0))}

    def test_the_referee_draws_for_itself(self):
        """An event of which the attack says it always holds proves nothing, whatever the attack saw."""
        always = Distinguisher(np.zeros(2), np.ones(2), lambda outputs: np.ones(len(outputs), bool), 500)
        found = self.judged(always, mechanism=CubeRelease(2, 1.0, calibration="l1"))
        assert (found["audit_hits"].value, found["audit_misses"].value) == (500, 500)
        assert found["attack_score"].value == 0.0

    def test_the_order_of_the_releases_tells_nothing(self):
        """An event that counts its calls, or the place of a row, finds nothing in a mechanism without any loss."""
        calls = []

        def halves(outputs):
            calls.append(len(outputs))
            return np.arange(len(outputs)) < len(outputs) / 2

        found = self.judged(Distinguisher(np.zeros(2), np.ones(2), halves, 5000), mechanism=CubeRelease(2, 1e-6))
        assert sum(calls) == 10_000
        assert found["attack_score"].value < 0.1

    @pytest.mark.parametrize(
        "answer",
        [
            lambda outputs: outputs > 0,
            lambda outputs: np.ones(len(outputs)),
            lambda outputs: np.ones(3, bool),
            lambda outputs: True,
        ],
    )
    def test_an_event_is_one_bool_a_release(self, answer):
        with pytest.raises(ValueError, match="an event is one bool for each release"):
            self.judged(Distinguisher(np.zeros(2), np.ones(2), answer, 100), mechanism=CubeRelease(2, 1.0))

    def test_texts_are_published_whole(self):
        asked = []

        def publish(texts, rng):
            asked.extend(texts)
            return np.array([[len(text)] for text in texts], np.float32)

        claim = PrivacyClaim(1.0, 0.0, "word", "made", "1 in L1")
        found = self.judged(Distinguisher("aa", "b", lambda o: o[:, 0] > 1, 100), claim, publish=publish)
        assert (found["audit_hits"].value, found["audit_misses"].value) == (100, 0)
        assert asked == ["aa"] * 100 + ["b"] * 100

    @pytest.mark.parametrize(
        ("first", "second", "unit", "complaint"),
        [
            (np.full(2, 50.0), np.zeros(2), "vector", "is not one of"),
            (np.zeros(3), np.ones(3), "vector", "is not one of"),
            (np.array([0.0, math.nan]), np.zeros(2), "vector", "is not one of"),
            (np.zeros(2), np.ones(2), "coordinate", "more than the one coordinate"),
            ("a b", "c d", "word", "differ in 2 words"),
            ("a b c", "a", "word", "differ in 2 words"),
            ("a", "a", "word", "differ in 0 words"),
            ("a", "b", "vector", "the claim is about one vector"),
        ],
    )
    def test_inputs_that_are_no_neighbours_are_refused(self, first, second, unit, complaint):
        claim = PrivacyClaim(1.0, 0.0, unit, "made", "1 in L1")
        with pytest.raises(ValueError, match=complaint):
            self.judged(Distinguisher(first, second, lambda o: o[:, 0] > 0, 100), claim, CubeRelease(2, 1.0))

    def test_delta_and_the_counts_are_told_and_enter_the_bound(self):
        claim = dataclasses.replace(self.CLAIM, delta=0.1)
        event = Distinguisher(np.zeros(1), np.ones(1), lambda outputs: outputs[:, 0] < 0.5, 1000)
        found = self.judged(event, claim, CubeRelease(1, 1.0))
        assert list(found) == ["attack_score", "audit_hits", "audit_misses", "audit_delta"]
        assert {metric.n for metric in found.values()} == {1000}
        hits, misses = int(found["audit_hits"].value), int(found["audit_misses"].value)
        assert hits > misses > 0
        assert found["audit_delta"].value == 0.1
        assert found["attack_score"].value == lower_bound(hits, misses, 1000, 0.1, 0.05)
        assert found["attack_score"].value < lower_bound(hits, misses, 1000, 0.0, 0.05)

    def test_the_plug_in_estimate_stands_beside_the_bound_where_it_is_asked_for(self):
        event = Distinguisher(np.zeros(1), np.ones(1), lambda outputs: outputs[:, 0] < 0.5, 100)
        found = self.judged(event, mechanism=CubeRelease(1, 1.0), repeats=20_000)["plug_in_loss"]
        chances = laplace_chances(1.0)
        assert found.low < exact_loss(chances, 1) < found.high
        width = 2 * stats.norm.isf(0.025) * sampling_error(chances, 1, 20_000)
        assert found.high - found.low == pytest.approx(width, rel=0.05)
        assert found.value == pytest.approx((found.low + found.high) / 2)
        assert found.n == 20_000
        assert "plug_in_loss" not in self.judged(event, mechanism=CubeRelease(1, 1.0))
        one = dataclasses.replace(self.CLAIM, unit="coordinate")  # zeros and ones would be no neighbours
        assert "plug_in_loss" not in self.judged(event, one, CubeRelease(1, 1.0), repeats=100)

    def test_a_plug_in_estimate_without_errors_is_infinite_and_says_so(self):
        copy = SimpleNamespace(dimension=1, release=lambda values, rng: values)
        event = Distinguisher(np.zeros(1), np.ones(1), lambda outputs: outputs[:, 0] < 0.5, 100)
        found = self.judged(event, mechanism=copy, repeats=50)["plug_in_loss"]
        assert (found.value, found.n) == (math.inf, 50)
        assert found.low is found.high is None
        assert "never seen" in found.status

    def test_several_audits_share_the_error(self):
        def cell(hits, misses):
            counted = {"attack_score": 9.9, "audit_hits": hits, "audit_misses": misses, "audit_delta": 0.0}
            return [Metric(name, value, n=1000) for name, value in counted.items()]

        cells = [cell(500, 100), cell(900, 90), cell(10, 10)]
        assert corrected_bound(cells) == pytest.approx(lower_bound(900, 90, 1000, 0.0, 0.05 / 3))
        assert corrected_bound(cells[:1]) == pytest.approx(lower_bound(500, 100, 1000, 0.0, 0.05))
        assert corrected_bound([[Metric("attack_score", 1.0)]]) is None

    @pytest.mark.parametrize(
        ("claimed", "proved", "audited", "expected"),
        [
            (1.0, 1.0, 0.9, "holds"),
            (1.0, 0.0, None, "holds"),
            (1.0, 64.0, 0.9, "unproven"),
            (1.0, math.inf, None, "unproven"),
            (1.0, 64.0, 1.1, "violated"),
            (1.0, 1.0, 1.1, "violated"),
            (1.0, 1.0, 1.0, "holds"),
            (0.3, 0.1 + 0.2, None, "holds"),  # a rounding error is no missing proof
            (1.0, 1.001, None, "unproven"),
            (5.0, 1.0, 2.0, "unproven"),  # the proof is refuted, the claim is not
        ],
    )
    def test_verdict(self, claimed, proved, audited, expected):
        assert verdict(claimed, proved, audited) == expected


def test_several_publications_of_a_text_are_composed():
    once = PrivacyClaim(0.5, 1e-3, "word", "Gaussian", "1", 2.0)
    assert composed(once, 16) == PrivacyClaim(8.0, 0.016, "word", "Gaussian", "1", 32.0, releases=16)
    assert composed(PrivacyClaim(0.5, 0.5, "word", "made", "1"), 4).delta < 1


def test_what_is_made_from_a_published_table_costs_nothing_more():
    training = PrivacyClaim(1.0, 1e-6, "user", "noise", "2-norm", protects="training")
    assert composed(training, 5) == training
    text = PrivacyClaim(1.0, 1e-6, "document", "noise", "L1")
    assert (composed(text, 5).epsilon, composed(text, 5).releases) == (5.0, 5)


def test_bounds_of_several_runs_share_the_error():
    rng = np.random.default_rng(0)
    planted = rng.random(400) < 0.5
    cells = [canary_metrics(planted + rng.normal(0, spread, 400), planted, 1e-6, 1, "user") for spread in (0.5, 0.3)]
    alone = [corrected_bound([cell]) for cell in cells]
    assert alone == [next(m.value for m in cell if m.name == "attack_score") for cell in cells]
    assert 0 < corrected_bound(cells) < max(alone)


def test_a_bound_of_one_run_comes_with_what_it_is_worked_out_from():
    planted = np.arange(100) % 2 == 0
    metrics = canary_metrics(planted.astype(float), planted, 1e-6, 2, "pair")
    found = {metric.name: metric.value for metric in metrics}
    counted = ["canaries", "canary_group", "canary_guesses", "canary_right", "canary_tried", "audit_delta"]
    assert list(found) == ["attack_score", "audit_ceiling", *counted]
    assert {metric.n for metric in metrics} == {100}
    assert [metric.variable for metric in metrics if metric.variable] == ["pair"]
    assert (found["canaries"], found["canary_group"], found["audit_delta"]) == (100, 2, 1e-6)
    assert found["canary_right"] == found["canary_guesses"]
    assert found["attack_score"] == found["audit_ceiling"] == corrected_bound([metrics]) > 0
    guessing = np.random.default_rng(0).normal(size=100)
    blind = {metric.name: metric.value for metric in canary_metrics(guessing, planted, 1e-6, 2, "pair")}
    assert blind["attack_score"] < blind["audit_ceiling"] == found["audit_ceiling"]
