"""Test areas under ROC curves: by hand, the variance of the theorem, false claims and coverage."""

import math

import numpy as np
import pytest
from marks import with_slow
from scipy import stats
from sklearn.metrics import roc_auc_score

from leakboard.metrics.areas import Area, Ranking, _variance, left_out


def area_of(scores, inside, units=None):
    return Area.of([Ranking(np.asarray(scores, np.float64), np.asarray(inside, bool))], units)


def drawn(rng, n, prevalence, shift=0.0, users=None, is_of_user=False):
    """Return scores, who has the value, and authors.

    Scores are normal, higher by ``shift`` with the value, and shared in part by the texts of an author.
    """
    units = None if users is None else np.sort(rng.integers(0, users, n))
    inside = rng.random(users)[units] < prevalence if is_of_user else rng.random(n) < prevalence
    scores = rng.normal(size=n) + shift * inside
    return scores + (0 if users is None else rng.normal(size=users)[units]), inside, units


def test_ties_count_half():
    assert area_of([3.0, 2.0, 1.0, 2.0, 1.0, 0.0], [1, 1, 1, 0, 0, 0]).value == pytest.approx(7 / 9)


@pytest.mark.parametrize("users", [None, 8])
def test_values_without_each_unit_are_those_of_the_other_units(users):
    """The fast jackknife equals the area of scikit-learn without each author."""
    rng = np.random.default_rng(0)
    scores, inside = rng.integers(0, 9, 60).astype(float), rng.random(60) < 0.4
    codes = np.arange(60) if users is None else rng.integers(0, users, 60)
    area, left = left_out(Ranking(scores, inside), codes)
    assert area == pytest.approx(roc_auc_score(inside, scores))
    expected = [roc_auc_score(inside[codes != unit], scores[codes != unit]) for unit in range(codes.max() + 1)]
    assert left == pytest.approx(expected)


def test_the_test_against_chance_is_mann_and_whitneys():
    rng = np.random.default_rng(1)
    scores, inside, _ = drawn(rng, 90, 0.3, 0.5)
    p_value = area_of(scores, inside).p_value
    sides = {"alternative": "greater", "method": "asymptotic", "use_continuity": False}
    expected = stats.mannwhitneyu(scores[inside], scores[~inside], **sides).pvalue
    assert p_value == pytest.approx(expected, rel=0.15)  # the jackknife may widen it
    assert p_value >= expected - 1e-12


@pytest.mark.slow
def test_the_variance_is_that_of_exponential_scores():
    rng, runs = np.random.default_rng(2), 500
    inside = np.arange(100) < 40
    areas = [roc_auc_score(inside, rng.exponential(np.where(inside, 2.0, 1.0))) for _ in range(runs)]
    assert np.var(areas) == pytest.approx(_variance(2 / 3, 40, 60), rel=0.25)


@pytest.mark.parametrize("sizes", [(3, 100), (100, 3), (40, 40)])
def test_a_perfect_attack_has_the_exact_interval_of_the_rarer_kind(sizes):
    area = area_of(np.repeat([2.0, 1.0], sizes), np.repeat([1, 0], sizes))
    assert area.value == 1
    exact = stats.binomtest(min(sizes), min(sizes)).proportion_ci(method="exact").low
    assert area.interval() == pytest.approx((exact, 1.0))
    assert area.p_value < 0.01


def test_one_author_of_a_kind_proves_nothing():
    area = area_of([4.0, 3.0, 2.0, 1.0], [1, 1, 0, 0], np.array([0, 0, 1, 2]))
    assert area.value == 1
    assert all(map(math.isnan, area.interval()))
    assert area.p_value == 1


def test_a_constant_guess_gains_nothing():
    area = area_of(np.zeros(20), np.arange(20) < 5)
    low, high = area.interval()
    assert (area.value, area.p_value) == (0.5, 0.5)
    assert low < 0.5 < high


CASES = {
    "balanced": (300, 0.5, None, False),
    "rare": (300, 0.03, None, False),
    "few": (60, 0.3, None, False),
    "authors": (300, 0.5, 40, False),
    "secret of the author": (300, 0.5, 40, True),
    "few authors": (60, 0.5, 8, True),
}


@pytest.mark.parametrize("case", with_slow(CASES, "few authors", "secret of the author"))
def test_false_claims_are_rare_and_intervals_cover(case):
    """By chance at most 2.5 % of p-values are below .025, and 95 % of intervals hold the area, as 600 runs tell."""
    rng, runs, claims, covered, known = np.random.default_rng(3), 600, 0, 0, 0
    n, prevalence, users, is_of_user = CASES[case]
    for _ in range(runs):
        scores, inside, units = drawn(rng, n, prevalence, 0.0, users, is_of_user)
        if inside.all() or not inside.any():
            continue
        area = area_of(scores, inside, units)
        low, high = area.interval()
        claims += area.p_value <= 0.025
        known += not math.isnan(low)
        covered += low <= 0.5 <= high
    assert stats.binomtest(claims, known, 0.025, alternative="greater").pvalue > 1e-3
    assert stats.binomtest(covered, known, 0.95, alternative="less").pvalue > 1e-3


def test_texts_of_authors_taken_for_independent_make_false_claims():
    """The broken variant: without units, far more than 2.5 % of p-values are below .025."""
    rng = np.random.default_rng(4)
    claims = 0
    for _ in range(300):
        scores, inside, _ = drawn(rng, 300, 0.5, 0.0, 20, True)
        claims += area_of(scores, inside).p_value <= 0.025
    assert claims > 0.15 * 300


@pytest.mark.parametrize("shift", [1.0, 3.0])
def test_coverage_of_large_areas(shift):
    rng, runs, covered = np.random.default_rng(5), 400, 0
    for _ in range(runs):
        scores, inside, _ = drawn(rng, 200, 0.1, shift)
        low, high = area_of(scores, inside).interval()
        covered += low <= stats.norm.cdf(shift / math.sqrt(2)) <= high
    assert stats.binomtest(covered, runs, 0.95, alternative="less").pvalue > 1e-3


def test_the_mean_of_independent_areas_varies_less():
    rng = np.random.default_rng(6)
    inside = rng.random(400) < 0.5
    rankings = [Ranking(rng.normal(size=400), inside) for _ in range(9)]
    one, mean = (np.diff(Area.of(some, None).interval())[0] for some in (rankings[:1], rankings))
    copies = np.diff(Area.of(rankings[:1] * 9, None).interval())[0]
    assert mean == pytest.approx(one / 3, rel=0.25)
    assert copies == pytest.approx(one, rel=1e-3)


@pytest.mark.parametrize("count", [6, 7, 9, 11])
def test_a_mean_of_perfect_areas_is_exactly_one(count):
    """Sums of rounded weights are a little below or above 1."""
    inside = np.arange(30) < 10
    area = Area.of([Ranking(inside.astype(float), inside)] * count)
    assert area.value == 1
    assert area.interval() == pytest.approx((0.025 ** (1 / 10), 1.0))


def test_areas_that_cancel_prove_nothing():
    """The mean of a ranking and its reverse is always one half."""
    rng = np.random.default_rng(0)
    scores, inside = rng.normal(size=50), rng.random(50) < 0.4
    area = Area.of([Ranking(scores, inside), Ranking(scores, ~inside)])
    assert area.value == pytest.approx(0.5)
    assert area.p_value == pytest.approx(0.5)
    low, high = area.interval()
    assert low < 0.45 < 0.55 < high
