"""Rounds: the budget is kept, the error is shared, and audits end when the claim is refuted."""

import numpy as np
import pytest
from scipy import stats

from leakboard.privacy.auditing import audit as auditing
from leakboard.privacy.auditing import curve
from leakboard.privacy.auditing.audit import MOST, audit, rounds
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.mechanisms.broken import Averaged, Copy, HalvedOutput
from leakboard.privacy.mechanisms.textbook import Laplace

PAIRS = corners(1)


@pytest.fixture
def short(monkeypatch):
    """Let the first event be chosen on few draws, so that small budgets have several rounds."""
    monkeypatch.setattr(auditing, "CHOSEN", 1000)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("dimension", [1, 8, 768])
@pytest.mark.parametrize("budget", [10**5, 10**7, 10**8])
def test_rounds_grow_and_spend_the_budget(dimension, budget):
    sizes = rounds(None, budget, dimension)
    assert len(sizes) > 1
    assert sum(sizes) == min(budget // (2 * dimension), MOST)
    assert all(later >= 3 * sum(sizes[: i + 1]) for i, later in enumerate(sizes[1:-1]))
    assert rounds(1001, budget, dimension) == [500, 501]


@pytest.mark.parametrize("budget", range(20))
def test_the_least_budgets_have_rounds_too(budget):
    assert sum(rounds(None, budget, 2)) == budget // 4


@pytest.mark.usefixtures("short")
class TestError:
    """All bounds of an audit share the error that is stated."""

    @pytest.fixture
    def spent(self, monkeypatch):
        """The errors of the bounds of rows, of calls, and of curves."""
        spent = {"rows": [], "calls": [], "curves": []}
        originals = auditing.bound_of_tosses, auditing.audit_calls, curve.trade_off_bound

        def rows(hits, misses, sizes, delta, error):
            spent["rows"].append(error)
            return originals[0](hits, misses, sizes, delta, error)

        def calls(mechanism, pairs, generator, calls, error, digits):
            spent["calls"].append(error)
            return originals[1](mechanism, pairs, generator, calls, error, digits)

        def curves(first, second, thresholds, error):
            spent["curves"].append(error)
            return originals[2](first, second, thresholds, error)

        for name, function in {"bound_of_tosses": rows, "audit_calls": calls}.items():
            monkeypatch.setattr(auditing, name, function)
        monkeypatch.setattr(curve, "trade_off_bound", curves)
        return spent

    @pytest.mark.parametrize("calls", [0, 40])
    def test_it_is_shared_by_rounds_and_calls(self, spent, calls):
        audit(HalvedOutput(9.0), PAIRS, rng(), confidence=0.9, budget=40_000, calls=calls)
        assert len(spent["rows"]) > 1
        assert len(spent["calls"]) == (calls > 0)
        assert sum(spent["rows"]) + sum(spent["calls"]) == pytest.approx(0.1)

    def test_the_curve_is_of_one_round_and_holds_with_the_confidence_of_all(self, spent):
        found = audit(HalvedOutput(9.0), PAIRS, rng(), confidence=0.9, budget=40_000)
        assert spent["curves"] == [pytest.approx(0.05)]  # the last round's half of the error
        assert found.trade_off.confidence == found.confidence == 0.9

    def test_the_curve_of_an_early_round_has_the_share_of_that_round(self, spent):
        audit(Copy(1.0), PAIRS, rng(), confidence=0.9, budget=400_000)
        assert spent["curves"] == [pytest.approx(0.1 / 2 / 3)]

    def test_calls_keep_their_share_where_rows_refute_the_claim_alone(self, spent):
        audit(Copy(1.0), PAIRS, rng(), confidence=0.9, budget=40_000, calls=40)
        assert not spent["calls"]
        assert sum(spent["rows"]) < 0.08


@pytest.mark.usefixtures("short")
class TestEnds:
    """An audit ends early when the claim is refuted."""

    @staticmethod
    def numbers(control):
        counted = 0

        class Counting(control):
            def release(self, values, rng):
                nonlocal counted
                counted += values.size
                return super().release(values, rng)

        audit(Counting(1.0), PAIRS, rng(), budget=400_000)
        return counted

    def test_early(self):
        assert self.numbers(Copy) < 100_000

    def test_at_the_end_of_the_budget(self):
        learned = 2 * 500
        assert self.numbers(HalvedOutput) == 400_000 + learned


def test_more_draws_show_more():
    """Two releases averaged in four dimensions: unseen with few draws, seen with more."""
    few, more = (audit(Averaged(1.0), corners(4)[:1], rng(), budget=budget).epsilon for budget in (20_000, 3_000_000))
    assert few <= 1 < more <= 2


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_of_audits_in_rounds_no_more_than_the_error_is_wrong():
    """All rounds are drawn: an epsilon of 1 is attained, and 3 are claimed."""

    class Modest(HalvedOutput):
        def release(self, values, rng):
            return Laplace(epsilon=1.0, sensitivity=1.0).release(values, rng)

        def log_ratio(self, outputs, first, second):
            return None

    generator, audits = rng(5), 300
    bounds = [audit(Modest(3.0), PAIRS, generator, budget=40_000, confidence=0.8).epsilon for _ in range(audits)]
    assert sum(bound > 1 for bound in bounds) <= stats.binom(audits, 0.2).ppf(0.999)
    assert np.mean(bounds) > 0.8
