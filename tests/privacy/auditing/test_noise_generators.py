"""A mechanism that starts its generator again does not learn the coins of an audit."""

import numpy as np
import pytest
from scipy import stats

from leakboard.mechanism import MechanismDefaults
from leakboard.privacy.auditing import calls, first_rows, trials
from leakboard.privacy.auditing.calls import run_calls
from leakboard.privacy.auditing.events import Pair
from leakboard.privacy.auditing.first_rows import audit_first_rows
from leakboard.privacy.auditing.trials import coin_flip_releases

N = 400
PAIR = Pair("given", np.zeros(1), np.ones(1))


class Restarting(MechanismDefaults):
    """Releases the numbers that its generator drew first, whatever the inputs."""

    epsilon, delta = 1.0, 0.0

    def release(self, values, generator):
        return np.random.default_rng(generator.bit_generator.seed_seq).random(values.shape)


@pytest.fixture(params=[False, True], ids=["as it is", "with the generator of the coins"])
def agree_by_chance(request, monkeypatch):
    """Return a check that draws below one half agree with coins by chance alone, or always in the broken variant."""
    if request.param:
        for module in (trials, calls, first_rows):
            monkeypatch.setattr(module, "noise_generator", lambda generator: generator)

    def check(coins, draws):
        agree = np.count_nonzero(coins == (draws < 0.5))
        chance = stats.binomtest(agree, len(coins)).pvalue
        assert (agree == len(coins) and chance < 1e-6) if request.param else chance > 1e-3

    return check


def test_single_rows(agree_by_chance):
    inputs, draws = (np.zeros(1), np.ones(1)), 200_000
    released, coins = next(coin_flip_releases(Restarting().release, inputs, draws, 0.0, np.random.default_rng(0)))
    rows = np.flatnonzero(released[:, 0] == released[0, 0])[1]  # each call starts again
    agree_by_chance(coins[:rows], released[:rows, 0])


def test_calls(agree_by_chance):
    seen = []

    class Drawing(Restarting):
        def release(self, values, generator):
            seen[:] = np.random.default_rng(generator.bit_generator.seed_seq).random(N)
            return values

    _, coins = run_calls(Drawing(), PAIR, N, np.random.default_rng(0))
    agree_by_chance(coins, np.array(seen))


def test_first_rows(agree_by_chance):
    seen = []

    class Drawing(Restarting):
        def release(self, values, generator):
            seen[:] = [values[:, 0] == 0, np.random.default_rng(generator.bit_generator.seed_seq).random(len(values))]
            return values

    audit_first_rows(Drawing(), PAIR, np.random.default_rng(0), 0.1)
    agree_by_chance(*seen)
