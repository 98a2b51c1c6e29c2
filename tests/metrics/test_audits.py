"""What audits prove: bounds from counts, the correction for several of them, and verdicts on three epsilons."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
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
from leakboard.privacy.auditing.sanity import exact_loss, laplace_chances, sampling_error
from leakboard.privacy.mechanisms.cube import CubeRelease


def test_delta_and_the_counts_are_told_and_enter_the_bound():
    found = {metric.name: metric for metric in bound_metrics(640, 250, (1000, 1000), 0.1)}
    assert list(found) == ["attack_score", "true_positives", "false_positives", "audit_tosses", "audit_delta"]
    assert [metric.n for metric in found.values()] == [1000, 1000, 1000, 2000, 1000]
    assert [found[name].value for name in list(found)[1:]] == [640, 250, 2000, 0.1]
    assert found["attack_score"].value == bound_from_counts(640, 250, (1000, 1000), 0.1, 0.05)
    assert 0 < found["attack_score"].value < bound_from_counts(640, 250, (1000, 1000), 0.0, 0.05)


@pytest.mark.parametrize(
    ("bound", "shown"),
    [(11.97, "11.9"), (9.7, "9.7"), (9.996, "9.99"), (12.0, "12"), (0.05359, "0.0535"), (0.0, "0"), (math.inf, "inf")],
)
def test_no_more_is_shown_than_is_proved(bound, shown):
    """9.7 is shown whole, though the float next to it is 9.699999999999999289."""
    assert rounded_down(bound) == rounded_down(np.float64(bound)) == shown
    assert rounded_down(11.979, 4) == "11.97"


def test_tossed_rows_are_bounded_again_from_what_is_told():
    found = bound_metrics(640, 250, (1010, 990), 0.0)
    sizes = {metric.name: metric.n for metric in found}
    assert (sizes["true_positives"], sizes["false_positives"], sizes["audit_tosses"]) == (1010, 990, 2000)
    expected = bound_from_counts(640, 250, (1010, 990), 0.0, 0.05)
    assert found[0].value == corrected_bound([found]) == pytest.approx(expected)
    assert 0 < corrected_bound([found, found]) < expected
    with_delta = bound_metrics(640, 250, (1010, 990), 0.1)
    assert corrected_bound([with_delta]) == with_delta[0].value < expected


def test_the_plug_in_estimate_holds_the_exact_loss_and_its_width_is_the_sampling_error():
    found, chances = sanity_metric(CubeRelease(1, 1.0), 20_000, np.random.default_rng(0)), laplace_chances(1.0)
    assert found.name == "plug_in_loss"
    assert found.low < exact_loss(chances, 1) < found.high
    width = 2 * stats.norm.isf(0.025) * sampling_error(chances, 1, 20_000)
    assert found.high - found.low == pytest.approx(width, rel=0.05)
    assert found.value == pytest.approx((found.low + found.high) / 2)
    assert found.n == 20_000


def test_a_plug_in_estimate_without_errors_is_infinite_and_says_so():
    copy = SimpleNamespace(dimension=1, release=lambda values, rng: values)
    found = sanity_metric(copy, 50, np.random.default_rng(0))
    assert (found.value, found.n) == (math.inf, 50)
    assert found.low is found.high is None
    assert "never seen" in found.status


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
def test_verdict(claimed, proved, audited, expected):
    assert verdict(claimed, proved, audited) == expected


def test_bounds_of_several_runs_share_the_error():
    rng = np.random.default_rng(0)
    planted = rng.random(400) < 0.5
    cells = [canary_metrics(planted + rng.normal(0, spread, 400), planted, 1e-6, 1) for spread in (0.5, 0.3)]
    alone = [corrected_bound([cell]) for cell in cells]
    assert alone == [next(m.value for m in cell if m.name == "attack_score") for cell in cells]
    assert 0 < corrected_bound(cells) < max(alone)


def test_a_bound_of_one_run_comes_with_what_it_is_worked_out_from():
    planted = np.arange(100) % 2 == 0
    metrics = canary_metrics(planted.astype(float), planted, 1e-6, 2)
    found = {metric.name: metric.value for metric in metrics}
    counted = ["canaries", "canary_group", "canary_guesses", "canary_right", "canary_tried", "audit_delta"]
    assert list(found) == ["attack_score", "audit_largest_bound", *counted]
    assert {metric.n for metric in metrics} == {100}
    assert (found["canaries"], found["canary_group"], found["audit_delta"]) == (100, 2, 1e-6)
    assert found["canary_right"] == found["canary_guesses"]
    assert found["attack_score"] == found["audit_largest_bound"] == corrected_bound([metrics]) > 0
    guessing = np.random.default_rng(0).normal(size=100)
    blind = {metric.name: metric.value for metric in canary_metrics(guessing, planted, 1e-6, 2)}
    assert blind["attack_score"] < blind["audit_largest_bound"] == found["audit_largest_bound"]
