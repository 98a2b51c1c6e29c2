"""Probabilities of guesses: calibrated whatever the scale of an attack's scores, and careful where dev is small."""

import numpy as np
import pytest

from leakboard.interfaces import Secret
from leakboard.metrics.row_guesses import RowGuesses, SecretScores

SECRET = Secret("ill", ("no", "yes"), "attribute")


def drawn(n, rng, odds=-1.0, spread=2.0):
    """Return the log-odds of the second value of n rows, and values drawn from them."""
    logits = rng.normal(odds, spread, n)
    return logits, (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(int)


@pytest.fixture(scope="module")
def both():
    rng = np.random.default_rng(4)
    return drawn(4000, rng), drawn(4000, rng)


def scored(of_test, of_dev, change):
    def scores(logits):
        return change(np.stack([np.zeros(len(logits)), logits], 1))

    return SecretScores(SECRET, scores(of_test[0]), of_test[1], scores(of_dev[0]), of_dev[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s,
        lambda s: 50 * s,
        lambda s: 0.01 * s + 7,
        lambda s: s + np.array([0, 3]),
    ],
    ids=["log-odds", "too sure", "unsure", "favours one value"],
)
def test_probabilities_are_those_that_drew_the_values(both, change):
    given = scored(*both, change)
    truth = 1 / (1 + np.exp(-both[0][0]))
    probabilities = given.probabilities()
    assert probabilities.sum(1) == pytest.approx(np.ones(4000))
    assert np.abs(probabilities[:, 1] - truth).max() < 0.04  # 4,000 dev rows: errors of the logit below 0.15
    raw = np.exp(given.scores) / np.exp(given.scores).sum(1, keepdims=True)
    is_calibrated = np.abs(raw[:, 1] - truth).max() < 1e-6
    assert is_calibrated == np.allclose(given.scores, scored(*both, lambda s: s).scores)


def test_a_constant_guess_has_the_share_of_the_value(both):
    constant = scored(*both, lambda s: np.tile([1.0, 0.0], (len(s), 1)))
    share = both[1][1].mean()
    assert constant.probabilities()[:, 1] == pytest.approx(np.full(4000, share), abs=1e-3)


def test_few_dev_rows_that_are_all_right_make_nobody_sure():
    codes = np.array([0, 1] * 5)
    perfect = SecretScores(SECRET, 99.0 * np.eye(2)[codes], codes, 99.0 * np.eye(2)[codes], codes)
    most = perfect.probabilities().max()
    assert 0.8 < most < 0.99
    many = np.tile(codes, 200)
    sure = SecretScores(SECRET, np.eye(2)[many], many, np.eye(2)[many], many)
    assert sure.probabilities().max() > 0.99


def test_rows_are_named_by_their_ids_or_else_their_numbers():
    rows = np.array([4, 2])
    assert RowGuesses(rows).names() == ["4", "2"]
    assert RowGuesses(rows, ["b", "a"]).names() == ["b", "a"]
