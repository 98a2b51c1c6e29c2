"""Rounds: the budget is kept, the error is shared, and audits end when the claim is refuted."""

import numpy as np
import pytest
from scipy import stats

from leakboard.privacy.auditing import audit as auditing
from leakboard.privacy.auditing import curve
from leakboard.privacy.auditing.audit import MAX_DRAWS, audit, rounds
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.mechanisms.broken import Averaged, Copy, HalvedOutput
from leakboard.privacy.mechanisms.textbook import Laplace

PAIRS = corners(1)


@pytest.fixture
def short(monkeypatch):
    """Choose the first event on few draws, so that small budgets have several rounds."""
    monkeypatch.setattr(auditing, "FIRST_DRAWS", 1000)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("dimension", [1, 8, 768])
@pytest.mark.parametrize("budget", [10**5, 10**7, 10**8])
def test_rounds_grow_and_spend_the_budget(dimension, budget):
    sizes = rounds(None, budget, dimension)
    assert len(sizes) > 1
    assert sum(sizes) == min(budget // (2 * dimension), MAX_DRAWS)
    assert all(later >= 3 * sum(sizes[: i + 1]) for i, later in enumerate(sizes[1:-1]))
    assert rounds(1001, budget, dimension) == [500, 501]


@pytest.mark.parametrize("budget", range(20))
def test_the_least_budgets_have_rounds_too(budget):
    assert sum(rounds(None, budget, 2)) == budget // 4


@pytest.mark.usefixtures("short")
class TestError:
    """All bounds of an audit share the stated error."""

    @pytest.fixture
    def spent(self, monkeypatch):
        """Record the errors of the bounds of rows, of calls, and of curves."""
        spent = {"rows": [], "calls": [], "curves": []}

        def record(module, name, kind, position):
            function = getattr(module, name)

            def recorded(*arguments):
                spent[kind].append(arguments[position])
                return function(*arguments)

            monkeypatch.setattr(module, name, recorded)

        record(auditing, "bound_from_counts", "rows", 4)
        record(auditing, "audit_calls", "calls", 4)
        record(curve, "trade_off_bound", "curves", 3)
        return spent

    @pytest.mark.parametrize("calls", [0, 40])
    def test_it_is_shared_by_rounds_and_calls(self, spent, calls):
        audit(HalvedOutput(9.0), PAIRS, rng(), confidence=0.9, budget=40_000, calls=calls)
        assert len(spent["rows"]) > 1
        assert len(spent["calls"]) == (calls > 0)
        assert sum(spent["rows"]) + sum(spent["calls"]) == pytest.approx(0.1)

    def test_the_curve_is_of_one_round_and_holds_with_the_confidence_of_all(self, spent):
        bound = audit(HalvedOutput(9.0), PAIRS, rng(), confidence=0.9, budget=40_000)
        assert spent["curves"] == [pytest.approx(0.05)]  # the last round's half of the error
        assert bound.trade_off.joint_confidence == bound.confidence == 0.9

    def test_the_curve_of_an_early_round_has_the_share_of_that_round(self, spent):
        audit(Copy(1.0), PAIRS, rng(), confidence=0.9, budget=400_000)
        assert spent["curves"] == [pytest.approx(0.1 / 2 / 3)]

    def test_calls_keep_their_share_if_rows_refute_the_claim_alone(self, spent):
        audit(Copy(1.0), PAIRS, rng(), confidence=0.9, budget=40_000, calls=40)
        assert not spent["calls"]
        assert sum(spent["rows"]) < 0.08


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("control", "ends_early"), [(Copy, True), (HalvedOutput, False)])
def test_an_audit_ends_early_only_if_the_claim_is_refuted(control, ends_early):
    numbers = 0

    class Counting(control):
        def release(self, values, rng):
            nonlocal numbers
            numbers += values.size
            return super().release(values, rng)

    audit(Counting(1.0), PAIRS, rng(), budget=400_000)
    learned = 2 * 500
    assert numbers < 100_000 if ends_early else numbers == 400_000 + learned


@pytest.mark.slow
def test_more_draws_prove_more():
    """Two releases averaged in four dimensions: not caught by few draws, caught by more."""
    few, more = (audit(Averaged(1.0), corners(4)[:1], rng(), budget=budget).epsilon for budget in (20_000, 1_000_000))
    assert few <= 1 < more <= 2


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_audits_in_rounds_are_wrong_no_more_often_than_stated():
    """All rounds are drawn: the claim is 3, and the true epsilon is 1."""

    class Modest(HalvedOutput):
        def release(self, values, rng):
            return Laplace(epsilon=1.0, sensitivity=1.0).release(values, rng)

        def log_ratio(self, outputs, first, second):
            return None

    generator, audits = rng(5), 300
    bounds = [audit(Modest(3.0), PAIRS, generator, budget=40_000, confidence=0.8).epsilon for _ in range(audits)]
    assert sum(bound > 1 for bound in bounds) <= stats.binom(audits, 0.2).ppf(0.999)
    assert np.mean(bounds) > 0.8
