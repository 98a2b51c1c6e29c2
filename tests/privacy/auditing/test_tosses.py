"""Bounds by coins: as tight as the theorem allows, and valid where releases of a call depend on each other."""

import math

import numpy as np
import pytest
from scipy import special, stats

from leakboard.privacy.auditing import trials
from leakboard.privacy.auditing.bound import bound_of_tosses, bounds_of_tosses, logs_of_tosses
from leakboard.privacy.auditing.choosing import confirmed
from leakboard.privacy.auditing.events import Event, corners
from leakboard.privacy.auditing.thresholds import Threshold
from leakboard.privacy.auditing.trials import counts_of_tosses, releases, tosses
from leakboard.privacy.mechanisms.broken import Copy
from leakboard.privacy.mechanisms.broken_calls import SharedAndOwn, SharedByRows

INPUTS = np.zeros(1), np.ones(1)


@pytest.mark.parametrize(("right", "wrong"), [(40, 3), (1, 0), (700, 300), (1000, 0)])
def test_so_many_right_guesses_have_just_the_probability_of_the_error(right, wrong):
    bound = float(bounds_of_tosses(np.array(right), np.array(wrong), (1000, 1000), 0.0, 0.05))
    if bound > 0:
        assert stats.binom(right + wrong, special.expit(bound)).sf(right - 1) == pytest.approx(0.05)
    else:
        assert stats.binom(right + wrong, 0.5).sf(right - 1) >= 0.05


@pytest.mark.parametrize("together", [True, False])
def test_with_a_delta_rows_of_a_call_have_to_be_independent(together):
    """A row is shown with probability delta and else a uniform number, which is (0, delta)-private for each row.

    Shown one by one rows raise no more alarms than the error; a call that shows all or none of them raises more.
    """
    rng, delta, audits, alarms = np.random.default_rng(6), 0.04, 200, 0

    def release(values, generator):
        shown = generator.random((1 if together else len(values), 1)) < delta
        return np.where(shown, values, generator.uniform(0.1, 0.9, values.shape))

    for _ in range(audits):
        counted, sizes = counts_of_tosses(release, INPUTS, lambda outputs: outputs[:, 0] == 0, 2000, rng)
        alarms += bound_of_tosses(*counted, sizes, delta, 0.05) > 0
    assert (alarms > stats.binom(audits, 0.05).ppf(0.999)) == together


def test_events_that_prove_nothing_can_be_compared():
    logs = logs_of_tosses(np.array([50, 500]), np.array([50, 500]), (1000, 1000), 0.0, 0.05)
    assert (logs < 0).all()
    assert logs[0] < logs[1]
    assert (bounds_of_tosses(np.array([0, 50]), np.array([0, 50]), (1000, 1000), 0.0, 0.05) == 0).all()


def test_coins_are_fair_independent_and_decide():
    chunks = list(tosses(Copy(1.0).release, INPUTS, 600_000, np.random.default_rng(0)))
    outputs, coins = (np.concatenate(part) for part in zip(*chunks, strict=True))
    assert len(chunks) > 1
    assert (outputs[:, 0] == ~coins).all()
    assert abs(coins.mean() - 0.5) < 4 * 0.5 / math.sqrt(600_000)
    assert abs(np.mean(coins[1:] == coins[:-1]) - 0.5) < 4 * 0.5 / math.sqrt(600_000)


def test_what_all_rows_of_a_call_share_is_no_false_alarm():
    """Of a sound mechanism whose rows depend on each other; two samples, each of a call of its own, raise alarms."""
    mechanism, rng, n, alarms = SharedAndOwn(0.5), np.random.default_rng(1), 500, {"coins": 0, "samples": 0}

    def holds(outputs):
        return outputs[:, 0] < 0.5

    for _ in range(200):
        samples = [np.concatenate(list(releases(mechanism.release, value, n, rng))) for value in INPUTS]
        hits, misses = (int(holds(sample).sum()) for sample in samples)
        alarms["samples"] += bound_of_tosses(hits, misses, (n, n), 1e-9, 0.05) > 0.5  # with a delta of two samples
        chunks = tosses(mechanism.release, INPUTS, 2 * n, rng)
        outputs, coins = (np.concatenate(part) for part in zip(*chunks, strict=True))
        shown = holds(outputs)
        counted = np.array((shown & coins).sum()), np.array((shown & ~coins).sum())
        alarms["coins"] += float(bounds_of_tosses(*counted, (n, n), 0.0, 0.05)) > 0.5
    assert alarms["coins"] <= stats.binom(200, 0.05).ppf(0.999)
    assert alarms["samples"] > 40


@pytest.mark.parametrize("most", [trials.MOST_CALLS, trials.FEWEST_CALLS])
def test_tosses_are_of_many_calls(most, monkeypatch):
    """Each row of a call with shared noise is sound by itself, and so proves at most epsilon; in few calls one lucky
    draw of the noise proves anything.
    """
    monkeypatch.setattr(trials, "MOST_CALLS", most)
    event = Event(
        corners(2)[0].swapped(), "sum", lambda outputs: outputs.sum(1), Threshold(6.0, above=True, promise=5.0)
    )
    found = [confirmed(SharedByRows(1.0), event, 30_000, np.random.default_rng(seed), 0.05) for seed in range(10)]
    assert (max(found) > 5) == (most == trials.FEWEST_CALLS)
    assert most == trials.FEWEST_CALLS or max(found) <= 1.2


@pytest.mark.parametrize(
    ("draws", "calls"),
    [(32, 16), (500, 16), (10_000, 39 * 16), (600_000, 250 * 16)],
    ids=["few", "some", "more", "most"],
)
def test_how_many_calls(draws, calls):
    sizes = []

    def release(values, rng):
        sizes.append(len(values))
        return values

    outputs, coins = (
        np.concatenate(part) for part in zip(*tosses(release, INPUTS, draws, np.random.default_rng(0)), strict=True)
    )
    assert len(outputs) == len(coins) == sum(sizes) == draws
    assert len(set(sizes[:-1])) == 1
    assert 0.9 * calls <= len(sizes) <= calls


def test_texts_are_encoded_many_at_once():
    sizes = []

    def release(values, rng):
        sizes.append(len(values))
        return np.zeros((len(values), 1))

    texts = np.array(["a"], object), np.array(["b"], object)
    list(tosses(release, texts, 6_400, np.random.default_rng(0)))
    assert sizes == [400] * trials.FEWEST_CALLS
