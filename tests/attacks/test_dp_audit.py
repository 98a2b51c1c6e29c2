"""Audits of releases as attacks: false alarms, power, and the verdict."""

import dataclasses
import math

import numpy as np
import pytest
from marks import with_slow
from scipy import stats

from leakboard.attacks import dp_audit
from leakboard.attacks.dp_audit import PAIRS, DpAudit, _neighbours
from leakboard.claims import RELEASE_UNITS, ReleaseClaim
from leakboard.datasets.zeros_and_ones import ZerosAndOnes
from leakboard.errors import RequestError
from leakboard.interfaces import FittedVictim, Victim
from leakboard.mechanism import MechanismDefaults
from leakboard.metrics.audits import corrected_bound, verdict, verdict_error
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.pipeline.publications import fit, publish
from leakboard.privacy.auditing.audit import BUDGET, audit
from leakboard.privacy.auditing.calls import CALLS, run_calls
from leakboard.privacy.auditing.events import corners
from leakboard.privacy.auditing.rounding import Rounded
from leakboard.privacy.mechanisms.cube import CubeRelease
from leakboard.randomness import Streams
from leakboard.threats.oracle import Oracle
from leakboard.threats.releases import ReleasesView
from leakboard.threats.threat import VictimSide
from leakboard.victims.dpnr import Dpnr
from leakboard.victims.mechanism import NAMES, FittedMechanism, Mechanism

OF_CALLS = {"shared_by_rows", "few_seeds", "scaled_by_rows", "shared_and_own"}
SOUND = {"laplace", "discrete_laplace", "gaussian", "random", "halved_output"}
FEW_CALLS = 1_000
"""These prove 5.2."""


def dpnr(epsilon=1.0, **options):
    return Dpnr(
        encoder={"embedding_bag": {"dimension": 16, "epochs": 1}}, epsilon=epsilon, training="standard", **options
    )


def side_of(victim, corpus, seed=0):
    streams = Streams(seed, corpus.name, "victim", "dp_audit")
    fitted = fit(victim, corpus, streams)
    published = publish(victim, lambda: fitted, corpus, streams)
    return VictimSide(corpus, corpus, victim, lambda: fitted, published, streams)


def audited(victim, corpus, seed=0, **options):
    """Return the metrics of an audit by name, and its result."""
    result = evaluate_attack(DpAudit(**options), side_of(victim, corpus, seed))
    return {m.name: m for m in result.metrics if not m.variable}, result


def of_mechanism(name, epsilon=1.0, dimension=2, seed=0, **options):
    """Return the metrics of an audit of corners by name."""
    corpus = ZerosAndOnes(dimension=dimension).load()
    options = {"pairs": "corners", "budget": 100_000, "calls": 0} | options
    return audited(Mechanism(name=name, epsilon=epsilon), corpus, seed, **options)[0]


def bound_of(name, **options):
    return of_mechanism(name, **options)["attack_score"].value


def of_calls(name, calls=FEW_CALLS, **options):
    return of_mechanism(name, calls=calls, **options)


class TestControls:
    """A small budget catches every mechanism with broken single rows, and no sound one."""

    @pytest.mark.parametrize("name", with_slow(sorted(set(NAMES) - OF_CALLS), *SOUND - {"laplace"}))
    def test_in_two_dimensions(self, name):
        assert (bound_of(name) > 1.0) == (name not in SOUND)

    def test_a_copy_exceeds_any_claim_that_the_draws_can_refute(self):
        assert bound_of("copy", epsilon=9.0, dimension=1) > 9.0

    @pytest.mark.slow
    def test_a_correct_laplace_reaches_four_fifths_of_its_epsilon(self):
        assert bound_of("laplace", dimension=1) >= 0.8

    @pytest.mark.parametrize(
        ("name", "proved"), [("adept", 4.0), ("half_scale", 1.0), ("random", 0.0), ("copy", math.inf), ("laplace", 0.5)]
    )
    def test_claims_and_proofs(self, name, proved):
        claim = Mechanism(name=name, epsilon=0.5).fit(ZerosAndOnes(dimension=8).load(), 0).claim
        assert (claim.epsilon, claim.proved) == (0.5, proved)


@pytest.mark.parametrize("dimension", [1, 2])
def test_rounding_errors_of_noise_on_a_grid_are_no_leak(monkeypatch, dimension):
    """In single precision 0.1 + 0.3 and 0.4 differ in the last bit; trees and counted decimals would see it."""

    def release(self, values, generator):
        keeps = np.exp(-0.1 / dimension)
        steps = generator.geometric(1 - keeps, values.shape) - generator.geometric(1 - keeps, values.shape)
        tenth = np.float32(0.1)
        return tenth * np.rint(10 * values).astype(np.float32) + tenth * steps.astype(np.float32)

    monkeypatch.setattr(FittedMechanism, "release", release)
    assert 0.1 < bound_of("laplace", dimension=dimension, budget=400_000) <= 1.0


def test_rounding_errors_of_clipped_noise_on_a_grid_are_no_leak(monkeypatch):
    """Most numbers are 0 and 1, so few differ in their last bits alone."""

    def release(self, values, generator):
        keeps = np.exp(-0.1 / 8)
        steps = generator.geometric(1 - keeps, values.shape) - generator.geometric(1 - keeps, values.shape)
        return np.clip(0.1 * np.rint(10 * values.astype(float)) + 0.1 * steps, 0, 1)

    monkeypatch.setattr(FittedMechanism, "release", release)
    assert 0.1 < bound_of("laplace", dimension=8, budget=4_000_000) <= 1.0


@pytest.mark.parametrize("name", ["laplace", "shared_by_rows"])
def test_the_chosen_test_sees_rounded_releases_alone(name, monkeypatch):
    """If rounding gives 0 for everything, the test of rows, its curve and the test of calls answer as for zeros."""
    side = side_of(Mechanism(name=name, epsilon=1.0), ZerosAndOnes(dimension=2).load())
    view = ReleasesView(side.published.claim, side.auxiliary, Oracle(side, side.auxiliary))
    chosen = DpAudit(pairs="corners", budget=100_000, calls=FEW_CALLS).fit(view, 0)
    rng = np.random.default_rng(0)
    if name == "laplace":
        given, answers = rng.laplace(0, 2, (1000, 2)), (chosen.holds, chosen.curve.score)
    else:
        given, answers = run_calls(view.mechanism, chosen.test.pair, 100, rng)[0], (chosen.test.function,)
    assert all(len(np.unique(answer(given))) > 1 for answer in answers)
    monkeypatch.setattr(Rounded, "rounded", lambda self, released: np.zeros(released.shape))
    assert all(len(np.unique(answer(given)[1::3])) == 1 for answer in answers)  # calls of one decided position


@pytest.mark.slow
def test_false_alarms_end_to_end():
    """Of 300 audits of correct mechanisms, no more than 5 % exceed epsilon up to chance; the bounds are not empty."""
    corpus, epsilon = ZerosAndOnes(dimension=1).load(), 1.0
    bounds = []
    for name in ("laplace", "halved_output", "discrete_laplace"):
        side = side_of(Mechanism(name=name, epsilon=epsilon), corpus)
        for seed in range(100):
            drawn = dataclasses.replace(side, streams=Streams(seed, corpus.name, name, "dp_audit"))
            result = evaluate_attack(DpAudit(pairs="corners", budget=100_000, calls=0), drawn)
            bounds.append(next(m.value for m in result.metrics if m.name == "attack_score"))
    alarms = sum(value > epsilon for value in bounds)
    assert stats.binomtest(alarms, len(bounds), 0.05, alternative="greater").pvalue > 1e-3
    assert np.mean(bounds) > 0.2 * epsilon


class TestSanityCheck:
    """Habernal's estimate next to the bound."""

    @pytest.mark.slow
    def test_both_are_counted(self):
        metrics = of_mechanism("laplace", repeats=50_000)
        assert metrics["plug_in_loss"].low < 0.8997 < metrics["plug_in_loss"].high  # the exact value for two dimensions
        assert metrics["plug_in_loss"].n == 50_000

    def test_it_may_be_infinite_and_the_bound_never_is(self):
        metrics = of_mechanism("copy", repeats=1000)
        assert metrics["plug_in_loss"].value == math.inf
        assert "never seen" in metrics["plug_in_loss"].status
        assert metrics["attack_score"].value < math.inf

    @pytest.mark.parametrize(("dimension", "repeats"), [(16, 10_000_000), (32, 1_000_000)])
    def test_the_published_number_of_repeats(self, dimension, repeats):
        corpus = ZerosAndOnes(dimension=dimension).load()
        side, auxiliary = side_of(Mechanism(name="copy", epsilon=1.0), corpus), corpus.only("train", "dev")
        view = ReleasesView(side.published.claim, auxiliary, Oracle(side, auxiliary))
        attack = DpAudit(pairs="corners", budget=100_000, calls=0, repeats="published")
        assert attack.fit(view, 0).repeats == repeats


class TestDpnr:
    """The released code and the paper's variant are violated; the correctly calibrated one holds."""

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"sampling": "shared"}, "violated"),
            ({"calibration": "l1", "mu": 0.5}, "holds"),
            pytest.param({"mechanism": "gaussian"}, "violated", marks=pytest.mark.slow),
            pytest.param({}, "violated", marks=pytest.mark.slow),
            pytest.param({"calibration": "l1"}, "holds", marks=pytest.mark.slow),
            pytest.param({"mechanism": "gaussian", "calibration": "l2"}, "holds", marks=pytest.mark.slow),
        ],
    )
    def test_verdicts(self, options, expected, reviews):
        metrics, result = audited(dpnr(**options), reviews, pairs="corners", budget=320_000)
        assert verdict(result.claim.epsilon, result.claim.proved, metrics["attack_score"].value) == expected

    @pytest.mark.slow
    def test_sentences_that_differ_in_one_word(self, reviews):
        options = {"pairs": "sentences", "budget": 100_000, "sentences": 30}
        released, result = audited(dpnr(0.05, sampling="shared"), reviews, **options)
        assert released["attack_score"].value > 1
        assert result.details.startswith("sentences that differ in one word")
        assert audited(dpnr(0.05, calibration="l1"), reviews, **options)[0]["attack_score"].value < 0.05

    @pytest.mark.parametrize(
        ("options", "budget", "tosses"),
        [
            # 100,000 numbers are 6,250 releases in 16 dimensions, half to choose and half to test.
            ({"calibration": "l1"}, 100_000, 2 * 1563),
            # Under word dropout, texts are released one by one.
            pytest.param(
                {"sampling": "shared", "mu": 0.5}, 400_000, dp_audit.RANDOM_SENTENCE_DRAWS, marks=pytest.mark.slow
            ),
        ],
        ids=["fixed vectors", "random vectors"],
    )
    def test_number_of_tested_sentences(self, options, budget, tosses, reviews):
        metrics, _ = audited(dpnr(**options), reviews, pairs="sentences", budget=budget, sentences=5)
        assert metrics["audit_tosses"].value == tosses


class TestUnits:
    """Neighbours follow the unit of the claim."""

    @pytest.mark.slow
    def test_a_claim_about_one_coordinate_is_not_audited_on_whole_vectors(self):
        """Lap(1/epsilon) a coordinate is epsilon-private for changing one of them."""
        pairs = PAIRS["coordinate"](8, np.float32)
        assert [np.count_nonzero(pair.first != pair.second) for pair in pairs] == [1]
        bounds = [audit(CubeRelease(8, 1.0), p, np.random.default_rng(0), 20_000).epsilon for p in (pairs, corners(8))]
        assert 0.5 < bounds[0] <= 1.0 < bounds[1]

    @pytest.mark.parametrize("dimension", [2, 3, 8])
    def test_texts_are_audited_on_corners_that_normalising_can_give(self, dimension):
        for pair in PAIRS["word"](dimension, np.float32):
            for vector in (pair.first, pair.second):
                assert (vector.min(), vector.max()) == (0, 1)

    def test_every_unit_of_a_claim_has_neighbours(self):
        assert set(PAIRS) == set(RELEASE_UNITS)


class MetricVictim(Victim):
    """Laplace noise on vectors of the unit cube, which claims epsilon 1 for each unit of L1 distance."""

    publishes = ("releases",)

    def __init__(self, scale, unit="vector"):
        self.scale, self.unit = scale, unit

    def fit(self, corpus, seed):
        return FittedMetricVictim(self.scale, self.unit)


@dataclasses.dataclass(frozen=True)
class FittedMetricVictim(MechanismDefaults, FittedVictim):
    scale: float
    unit: str
    epsilon = 1.0
    delta = 0.0
    dimension = 3

    @property
    def mechanism(self):
        return self

    @property
    def claim(self):
        return ReleaseClaim(1.0, 0.0, self.unit, "Laplace", "L1", 1 / self.scale, distance="l1")

    def inputs(self, texts):
        return np.array([[(len(text) * k) % 97 / 97 for k in (1, 7, 31)] for text in texts], np.float32)

    def release(self, values, generator):
        return values + generator.laplace(0, self.scale, values.shape)

    def publish_documents(self, texts, rng):
        return self.release(self.inputs(texts), rng).astype(np.float32)


class TestDistance:
    """A claim for each unit of a distance: noise that suffices is not accused, half of it is."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("scale", "expected"), [(1.0, "holds"), (0.5, "violated")])
    @pytest.mark.parametrize("pairs", ["corners", "sentences"])
    def test_verdicts(self, scale, expected, pairs, reviews):
        unit = "vector" if pairs == "corners" else "document"
        metrics, result = audited(MetricVictim(scale, unit), reviews, pairs=pairs, budget=600_000, calls=0)
        bound = corrected_bound([list(metrics.values())], verdict_error(0.0))
        assert verdict(result.claim.epsilon, result.claim.proved, bound) == expected
        assert 0 < metrics["audit_distance"].value <= 3
        assert bound <= 1 / scale


def test_neighbours_differ_in_one_word():
    texts = [f"{a} b c {a} d" for a in "xyzuvw"]
    pairs = _neighbours(texts, 200, np.random.default_rng(0))
    assert len(pairs) > 100
    for first, second in pairs:
        assert sum(a != b for a, b in zip(first.split(), second.split(), strict=True)) == 1
        assert first in texts


class TestBudget:
    """More draws prove more."""

    @pytest.mark.slow
    def test_two_averaged_releases_get_a_larger_bound(self):
        bound = bound_of("averaged", dimension=4, budget=16_000_000)
        assert bound_of("averaged", dimension=4) < bound <= 2
        assert bound > 1

    @pytest.mark.slow
    def test_it_is_the_number_of_drawn_numbers(self):
        metrics = of_mechanism("laplace", dimension=4, budget=400_000)
        assert metrics["audit_tosses"].value == 2 * 25_000
        assert metrics["true_positives"].n + metrics["false_positives"].n == 2 * 25_000
        assert corrected_bound([list(metrics.values())]) == pytest.approx(metrics["attack_score"].value)

    def test_a_budget_too_small_for_the_width_is_refused(self):
        allowed = "at least 2000000 numbers for 5 pairs in 2000 dimensions"
        with pytest.raises(RequestError, match=f"dp_audit: budget: 100000 is not allowed: {allowed}"):
            of_mechanism("laplace", dimension=2000, budget=100_000)

    def test_a_budget_too_small_for_the_sentences_is_refused(self, reviews):
        with pytest.raises(RequestError, match="at least 160000 numbers for 50 pairs in 16 dimensions"):
            audited(dpnr(), reviews, budget=100_000, worst=50)
        assert "audit_tosses" in audited(dpnr(), reviews, pairs="corners", budget=100_000, worst=50, calls=0)[0]

    @pytest.mark.slow
    def test_dependent_rows_raise_no_false_alarm(self):
        runs = 40
        bounds = [bound_of("shared_and_own", dimension=1, seed=seed, budget=100_000) for seed in range(runs)]
        assert sum(bound > 1 for bound in bounds) <= stats.binom(runs, 0.05).ppf(0.999)


class TestCalls:
    """An audit with calls catches rows of one call that reveal each other."""

    @pytest.mark.parametrize(
        "name", with_slow(sorted(OF_CALLS - {"shared_and_own"}), "scaled_by_rows", "shared_by_rows")
    )
    def test_the_flaws_of_calls(self, name):
        metrics = of_calls(name)
        assert metrics["attack_score"].value > 1.0
        if name == "few_seeds":  # single rows refute it: some of them are equal
            assert "canaries" not in metrics
        else:
            assert metrics["canaries"].n == FEW_CALLS
        assert corrected_bound([list(metrics.values())]) == pytest.approx(metrics["attack_score"].value)

    @pytest.mark.slow
    def test_a_claim_near_the_limit_of_calls_is_refuted(self):
        """4,000 calls prove 6.62. The 1,000 that choose the statistic prove 5.2; rows of this budget prove less."""
        assert of_calls("few_seeds", CALLS, epsilon=5.5, dimension=32)["attack_score"].value > 5.5

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
    @pytest.mark.parametrize("name", ["averaged", "laplace"])
    def test_single_rows_test_a_claim_that_calls_do_not_refute(self, name, seed):
        """Only millions of releases show the rare events of single rows."""
        assert "audit_tosses" in of_calls(name, CALLS, dimension=8, seed=seed)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["laplace", "shared_and_own"])
    def test_sound_ones_are_left_alone(self, name):
        corpus, victim = ZerosAndOnes(dimension=2).load(), Mechanism(name=name, epsilon=1.0)
        metrics, result = audited(victim, corpus, pairs="corners", budget=100_000, calls=FEW_CALLS)
        assert metrics["attack_score"].value <= 1.0
        assert (result.claim.epsilon, result.audited.unit) == (1.0, "vector")

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [3, 4])
    def test_noise_that_rows_share_is_found_though_rows_of_a_call_refute_the_claim_by_luck(self, seed):
        """Single rows promised 8.5 three times, and then proved 4."""
        metrics = of_calls("shared_by_rows", CALLS, epsilon=5.0, seed=seed, budget=BUDGET)
        assert metrics["attack_score"].value > 5

    @pytest.mark.slow
    def test_the_sanity_check_is_next_to_the_bound_of_calls(self):
        metrics = of_calls("shared_by_rows", repeats=500)
        assert metrics["plug_in_loss"].n == 500
        assert "canaries" in metrics

    @pytest.mark.slow
    def test_with_a_delta_calls_refute_at_the_confidence_of_a_verdict(self, monkeypatch):
        """Two audits leave each number of guesses an error of 8e-5, which is more than delta, not one of 8e-6."""
        monkeypatch.setattr(FittedMechanism, "delta", 3e-5)
        metrics = list(of_calls("shared_by_rows").values())
        assert "canaries" in {metric.name for metric in metrics}
        assert corrected_bound([metrics, metrics], verdict_error(3e-5)) > 1
        assert corrected_bound([metrics, metrics], verdict_error(0.0)) == 0

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("rows", "by_calls"),
        [([0.5], True), ([2.0], True), ([7.0, 7.0, 2.0], False), ([7.0, 7.0, 0.5], True), ([9.0, 3.0], True)],
    )
    def test_the_larger_bound_is_tested(self, rows, by_calls, monkeypatch):
        """Calls prove 5.2 for noise that rows share. Rows of the same calls may exceed that by luck, rows alone not."""
        bounds = iter(rows)
        monkeypatch.setattr(dp_audit, "bound_on_fresh_draws", lambda *arguments: next(bounds))
        assert ("canaries" in of_calls("shared_by_rows")) == by_calls
        assert next(bounds, None) is None

    @pytest.mark.slow
    def test_rows_are_tested_where_calls_refute_the_claim_by_little(self, monkeypatch):
        """Rows show a rare leak of 2.6; calls show the noise, of 1.75, and prove hardly more than the claim."""

        def release(self, values, generator):
            noisy = values + generator.laplace(0, values.shape[1] / 1.75, values.shape)
            return np.where(generator.random((len(values), 1)) < 1e-3, values, noisy)

        monkeypatch.setattr(FittedMechanism, "release", release)
        for seed in (1, 2):
            metrics = of_calls("laplace", CALLS, budget=20_000_000, seed=seed)
            assert corrected_bound([list(metrics.values())], verdict_error(0.0)) > 2

    def test_the_choice_goes_on_if_fresh_rows_do_not_confirm_a_certain_event(self, monkeypatch):
        errors, choose = [], dp_audit.choose_event

        def spy(*arguments, certain_error, **options):
            errors.append(certain_error)
            return choose(*arguments, certain_error=0.0, **options)._replace(is_certain=certain_error > 0)

        monkeypatch.setattr(dp_audit, "choose_event", spy)
        assert "canaries" in of_calls("shared_by_rows")
        assert len(errors) == 2
        assert errors[0] > errors[1] == 0

    def test_a_claim_that_single_rows_refute_has_their_metrics(self):
        assert "true_positives" in of_calls("copy")


class TestCornersAndSentences:
    """The better of corners and sentences is tested."""

    @pytest.mark.slow
    @pytest.mark.parametrize("calls", [0, FEW_CALLS])
    def test_corners_are_further_apart_than_any_sentences(self, calls, reviews):
        metrics, result = audited(dpnr(calibration="l1"), reviews, budget=400_000, calls=calls, sentences=20)
        assert "audit_tosses" in metrics
        assert "sentences" not in result.details

    @pytest.mark.parametrize(("corners", "by_sentences"), [(0.5, True), (2.0, False)])
    def test_each_is_confirmed_on_as_many_releases_as_test_it(self, corners, by_sentences, reviews, monkeypatch):
        bounds, confirmed = iter([corners, 1.0]), []
        monkeypatch.setattr(
            dp_audit, "bound_on_fresh_draws", lambda *given: confirmed.append(given[2::2]) or next(bounds)
        )
        monkeypatch.setattr(dp_audit, "SENTENCE_DRAWS", 4_000)
        metrics, result = audited(dpnr(calibration="l1"), reviews, budget=400_000, calls=0, sentences=20)
        draws = [6_250, 2_000]
        assert confirmed == [(size, verdict_error(0.0)) for size in draws]
        assert ("sentences" in result.details) == by_sentences
        assert metrics["audit_tosses"].value == 2 * draws[by_sentences]
