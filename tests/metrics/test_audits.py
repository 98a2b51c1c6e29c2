"""Test the bounds of audits: from counts, corrected for several audits, and verdicts on three epsilons."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from majority_vote import exact_loss, laplace_chances, sampling_error
from scipy import stats

from leakboard.metrics.audits import (
    bound_metrics,
    canary_metrics,
    corrected_bound,
    rounded_down,
    sanity_metric,
    verdict,
)
from leakboard.metrics.measures import Metric
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.privacy.mechanisms.cube import CubeRelease


def test_counts_and_delta_are_reported_and_enter_the_bound():
    metrics = bound_metrics(640, 250, (1010, 990), 0.1)
    names = ["attack_score", "true_positives", "false_positives", "audit_tosses", "audit_delta"]
    assert [metric.name for metric in metrics] == names
    assert [metric.n for metric in metrics[1:4]] == [1010, 990, 2000]
    assert [metric.value for metric in metrics[1:]] == [640, 250, 2000, 0.1]
    assert [metric.n for metric in bound_metrics(640, 250, (1000, 1000), 0.1)] == [1000, 1000, 1000, 2000, 1000]
    assert metrics[0].value == bound_from_counts(640, 250, (1010, 990), 0.1, 0.05)
    assert 0 < metrics[0].value < bound_from_counts(640, 250, (1010, 990), 0.0, 0.05)


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_the_bound_follows_again_from_the_reported_counts(delta):
    metrics = bound_metrics(640, 250, (1010, 990), delta)
    expected = bound_from_counts(640, 250, (1010, 990), delta, 0.05)
    assert metrics[0].value == corrected_bound([metrics]) == pytest.approx(expected)
    assert 0 < corrected_bound([metrics, metrics]) < expected


@pytest.mark.parametrize(
    ("bound", "shown"),
    [(11.97, "11.9"), (9.7, "9.7"), (9.996, "9.99"), (12.0, "12"), (0.05359, "0.0535"), (0.0, "0"), (math.inf, "inf")],
)
def test_a_shown_bound_is_never_larger_than_the_proved_one(bound, shown):
    """9.7 is not shown as 9.69, although the nearest float is 9.699999999999999289."""
    assert rounded_down(bound) == rounded_down(np.float64(bound)) == shown
    assert rounded_down(11.979, 4) == "11.97"


def test_the_interval_of_the_plug_in_estimate_holds_the_exact_loss():
    estimate, chances = sanity_metric(CubeRelease(1, 1.0), 20_000, np.random.default_rng(0)), laplace_chances(1.0)
    assert estimate.name == "plug_in_loss"
    assert estimate.low < exact_loss(chances, 1) < estimate.high
    width = 2 * stats.norm.isf(0.025) * sampling_error(chances, 1, 20_000)
    assert estimate.high - estimate.low == pytest.approx(width, rel=0.05)
    assert estimate.value == pytest.approx((estimate.low + estimate.high) / 2)
    assert estimate.n == 20_000


def test_a_plug_in_estimate_without_errors_is_infinite_and_has_a_status():
    copy = SimpleNamespace(dimension=1, release=lambda values, rng: values)
    estimate = sanity_metric(copy, 50, np.random.default_rng(0))
    assert (estimate.value, estimate.n) == (math.inf, 50)
    assert estimate.low is estimate.high is None
    assert "never seen" in estimate.status


def test_several_audits_share_the_error():
    def cell(hits, misses):
        return bound_metrics(hits, misses, (1000, 1000), 0.0)

    cells = [cell(500, 100), cell(900, 90), cell(10, 10)]
    assert corrected_bound(cells) == pytest.approx(bound_from_counts(900, 90, (1000, 1000), 0.0, 0.05 / 3))
    assert corrected_bound(cells[:1]) == pytest.approx(bound_from_counts(500, 100, (1000, 1000), 0.0, 0.05))
    assert corrected_bound([[Metric("attack_score", 1.0)]]) is None


@pytest.mark.parametrize(
    ("claimed", "proved", "audited", "expected"),
    [
        (1.0, 1.0, 0.9, "holds"),
        (1.0, 0.0, None, "holds, not audited"),
        (1.0, 64.0, 0.9, "unproven"),
        (1.0, math.inf, None, "unproven"),
        (1.0, 64.0, 1.1, "violated"),
        (1.0, 1.0, 1.1, "violated"),
        (1.0, 1.0, 1.0, "holds"),
        (0.3, 0.1 + 0.2, None, "holds, not audited"),  # 0.1 + 0.2 exceeds 0.3 only by rounding
        (1.0, 1.001, None, "unproven"),
        (5.0, 1.0, 2.0, "unproven"),  # the proof is refuted, the claim is not
    ],
)
def test_verdict(claimed, proved, audited, expected):
    assert verdict(claimed, proved, audited) == expected


def test_bounds_of_several_runs_share_the_error():
    rng = np.random.default_rng(0)
    planted = rng.random(400) < 0.5
    cells = [canary_metrics(planted + rng.normal(0, spread, 400), planted, 1e-6, 1) for spread in (0.5, 0.3)]
    alone = [corrected_bound([cell]) for cell in cells]
    assert alone == [next(m.value for m in cell if m.name == "attack_score") for cell in cells]
    assert 0 < corrected_bound(cells) < max(alone)


def test_a_bound_of_one_run_has_its_counts():
    planted = np.arange(100) % 2 == 0
    metrics = canary_metrics(planted.astype(float), planted, 1e-6, 2)
    values = {metric.name: metric.value for metric in metrics}
    counted = ["canaries", "canary_group", "canary_guesses", "canary_right", "canary_tried", "audit_delta"]
    assert list(values) == ["attack_score", "audit_largest_bound", *counted]
    assert {metric.n for metric in metrics} == {100}
    assert (values["canaries"], values["canary_group"], values["audit_delta"]) == (100, 2, 1e-6)
    assert values["canary_right"] == values["canary_guesses"]
    assert values["attack_score"] == values["audit_largest_bound"] == corrected_bound([metrics]) > 0
    guessing = np.random.default_rng(0).normal(size=100)
    blind = {metric.name: metric.value for metric in canary_metrics(guessing, planted, 1e-6, 2)}
    assert blind["attack_score"] < blind["audit_largest_bound"] == values["audit_largest_bound"]
