"""Differences of advantages: by hand, their coverage, few texts, authors and seeds."""

import numpy as np
import pytest
from marks import with_slow
from scipy import stats

from leakboard.metrics.areas import Area, Ranking
from leakboard.metrics.paired import advantage_difference


def ranking(scores, inside):
    return [Ranking(np.asarray(scores, np.float64), np.asarray(inside, bool))]


def test_by_hand():
    """Areas 3/4 and 1: the difference of the advantages is 1/2. Without a text it is 1, 0, 0 and 1."""
    truth = np.array([1, 1, 0, 0])
    first, second = ranking([3, 1, 2, 0], truth), ranking([3, 2, 1, 0], truth)
    found = advantage_difference([first], [second], truth)
    assert found.value == pytest.approx(0.5)
    deviation = np.sqrt(3 * np.var([1, 0, 1, 0]))
    own = 1 - Area.of(second).interval()[0]  # all texts are ranked right: its own interval is added
    reach = stats.t.ppf(0.975, 2) * deviation + 2 * own
    assert found[1:] == pytest.approx((max(-2, 0.5 - reach), min(2, 0.5 + reach)))


def test_the_same_guesses_differ_in_nothing():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=50)
    same = ranking(rng.normal(size=50) + truth, truth)
    assert advantage_difference([same] * 2, [same] * 2, truth) == (0, 0, 0)


def draw(rng, n, share, strengths, shared, seeds=1, of_training=0.0):
    """Return rankings of two attacks on the same texts; their noise has a shared part, and each seed its own fit."""
    truth = (rng.random(n) < share).astype(int)
    base, own = rng.normal(size=n), rng.normal(size=(2, n))
    noise = np.sqrt(shared) * base + np.sqrt(1 - shared) * own
    fits = strengths + of_training * rng.normal(size=(seeds, 2))
    attacks = [[ranking(fit[side] * truth + noise[side], truth) for fit in fits] for side in (0, 1)]
    return truth, attacks


CASES = [  # texts, share of the value, strengths of both attacks, shared noise, seeds, chance in training
    (200, 0.5, (1.0, 1.0), 0.5, 1, 0.0),
    (200, 0.05, (1.0, 1.0), 0.5, 1, 0.0),
    (60, 0.1, (1.0, 1.0), 0.5, 1, 0.0),
    (200, 0.5, (1.0, 0.5), 0.5, 1, 0.0),
    (200, 0.5, (3.0, 0.1), 0.2, 1, 0.0),
    (200, 0.5, (1.0, 1.0), 0.9, 3, 0.1),
]


@pytest.mark.parametrize("case", with_slow(CASES, *CASES[1:]))
def test_intervals_cover_the_true_difference(case):
    n, share, strengths, shared, seeds, of_training = case
    rng, trials = np.random.default_rng(1), 60
    first, second = stats.norm.cdf(np.array(strengths) / np.sqrt(2))
    missed = 0
    for _ in range(trials):
        truth, attacks = draw(rng, n, share, strengths, shared, seeds, of_training)
        low, high = advantage_difference(*attacks, truth)[1:]
        missed += not low <= 2 * (second - first) <= high
    assert missed <= stats.binom.ppf(0.999, trials, 0.06)


@pytest.mark.slow
def test_chance_in_training_is_counted_only_with_several_seeds():
    """The true difference is 0; seeds differ by more than the texts' errors."""
    rng, trials = np.random.default_rng(2), 40
    wrong = {1: 0, 3: 0}
    for seeds in wrong:
        for _ in range(trials):
            truth, attacks = draw(rng, 200, 0.5, (1.0, 1.0), 0.95, seeds, 0.15)
            low, high = advantage_difference(*attacks, truth)[1:]
            wrong[seeds] += low > 0 or high < 0
    assert wrong[1] > trials / 3
    assert wrong[3] <= stats.binom.ppf(0.999, trials, 0.06)


def test_a_pair_is_sharper_than_two_samples():
    rng = np.random.default_rng(3)
    truth, attacks = draw(rng, 300, 0.5, (1.0, 1.0), 0.95)
    _, low, high = advantage_difference(*attacks, truth)
    widths = [2 * np.diff(Area.of(attack[0]).interval())[0] for attack in attacks]
    assert high - low < min(widths) / 2


def test_authors_with_alike_texts_widen_it():
    """Each text is there ten times: as independent texts the interval would be far too narrow."""
    rng = np.random.default_rng(4)
    truth, attacks = draw(rng, 60, 0.5, (1.0, 0.6), 0.5)
    tenfold = [[[Ranking(np.repeat(r.scores, 10), np.repeat(r.inside, 10)) for r in of] for of in a] for a in attacks]
    many, units = np.repeat(truth, 10), np.repeat(np.arange(60), 10)
    once, naive, by_author = (
        np.diff(advantage_difference(*given)[1:])[0]
        for given in ((*attacks, truth), (*tenfold, many), (*tenfold, many, units))
    )
    assert naive < once / 2
    assert by_author == pytest.approx(once, rel=0.15)


@pytest.mark.slow
def test_a_value_with_three_texts_rarely_shows_a_difference_that_is_none():
    rng, trials, wrong = np.random.default_rng(5), 200, 0
    truth = np.r_[np.ones(3, int), np.zeros(97, int)]
    for _ in range(trials):
        first, second = (ranking(rng.normal(size=100) + truth, truth) for _ in range(2))
        low, high = advantage_difference([first], [second], truth)[1:]
        wrong += low > 0 or high < 0
    assert wrong <= stats.binom.ppf(0.999, trials, 0.06)


def test_more_comparisons_make_it_wider():
    rng = np.random.default_rng(6)
    truth, attacks = draw(rng, 200, 0.5, (1.0, 0.6), 0.5)
    one, ten = (advantage_difference(*attacks, truth, None, 1 - 0.05 / count) for count in (1, 10))
    assert (ten.high - ten.low) / (one.high - one.low) == pytest.approx(2.807 / 1.960, rel=0.02)
