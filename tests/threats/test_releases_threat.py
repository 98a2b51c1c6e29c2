"""Test the releases threat: LeakBoard draws fresh releases of neighbouring inputs and counts the attacker's event."""

import dataclasses
import math

import numpy as np
import pytest
from answers import answering, values_of
from majority_vote import exact_loss, laplace_chances
from scipy import stats

from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import FittedVictim, PublishedWords, Victim
from leakboard.metrics.audits import bound_metrics, corrected_bound
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.privacy.auditing.calls import CallsStatistic
from leakboard.privacy.auditing.curve import ThresholdedScore
from leakboard.privacy.auditing.events import Pair
from leakboard.privacy.mechanisms.cube import CubeRelease
from leakboard.randomness import Streams
from leakboard.threats.published import Publications
from leakboard.threats.releases import CallsDistinguisher, Distinguisher, ReleaseAudit
from leakboard.threats.threat import Audited, VictimSide

CLAIM = ReleaseClaim(1.0, 0.0, "vector", "made", "1 in L1")


class Releasing(Victim, FittedVictim):
    """A victim with a mechanism that publishes the length of a text."""

    publishes = ("releases",)
    mechanism = None

    def __init__(self, mechanism):
        self.mechanism, self.texts = mechanism, []

    def fit(self, corpus, seed):
        return self

    def publish_documents(self, texts, rng):
        self.texts += texts
        return np.array([[len(text)] for text in texts], np.float32)


class GaussianRelease(CubeRelease):
    """A mechanism that adds noise of standard deviation 1."""

    def __init__(self):
        super().__init__(1, 1.0)

    def release(self, values, generator):
        return values + generator.normal(size=values.shape)


@pytest.fixture
def evaluated(corpus):
    """Return a function that evaluates a distinguisher: the result, and the victim."""

    def evaluate(distinguisher, mechanism, claim=CLAIM):
        victim, streams = Releasing(mechanism), Streams(0, "made", "releasing", "audit", "cell")
        side = VictimSide(corpus, corpus, victim, lambda: victim, Publications({}, None, None, claim), streams)
        return evaluate_attack(answering(ReleaseAudit, prepared=lambda view: distinguisher), side), victim

    return evaluate


def event_on(size, holds=lambda outputs: outputs[:, 0] < 0.5, draws=100, **options):
    """Return an event on releases of zeros and of ones."""
    return Distinguisher(np.zeros(size), np.ones(size), holds, draws, **options)


def test_an_event_that_always_holds_proves_nothing(evaluated):
    result, _ = evaluated(event_on(2, lambda outputs: np.ones(len(outputs), bool), 500), CubeRelease(2, 1.0))
    counts = [m for m in result.metrics if m.name in ("true_positives", "false_positives")]
    assert [m.value for m in counts] == [m.n for m in counts]
    assert values_of(result)["attack_score"] == 0.0


def test_the_order_of_the_releases_reveals_nothing(evaluated):
    """An event that depends on its calls, or on the position of a row, finds no loss where there is none."""
    calls = []

    def halves(outputs):
        calls.append(len(outputs))
        return np.arange(len(outputs)) < len(outputs) / 2

    result, _ = evaluated(event_on(2, halves, 5000), CubeRelease(2, 1e-6))
    assert sum(calls) == 10_000
    assert values_of(result)["attack_score"] < 0.1


@pytest.mark.parametrize(
    "event", [lambda o: o > 0, lambda o: np.ones(len(o)), lambda o: np.ones(3, bool), lambda o: True]
)
def test_an_event_is_one_bool_for_each_release(event, evaluated):
    with pytest.raises(ValueError, match="an event is one bool for each release"):
        evaluated(event_on(2, event), CubeRelease(2, 1.0))


@pytest.mark.parametrize("score", [lambda o: o, lambda o: np.ones(3), lambda o: o[:, 0] / 0])
def test_a_score_is_one_finite_number_for_each_release(score, evaluated):
    event = event_on(1, curve=ThresholdedScore(score, np.zeros(1)))
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="a score is one finite number for each release"):
        evaluated(event, GaussianRelease())


def test_the_trade_off_of_a_gaussian_release_is_recorded(evaluated):
    """Noise of deviation 1 on a distance of 1 is Gaussian differential privacy with mu = 1."""
    curve = ThresholdedScore(lambda outputs: -outputs[:, 0].astype(float), np.linspace(-2, 1, 13))
    event = event_on(1, draws=50_000, curve=curve)
    result, _ = evaluated(event, GaussianRelease())
    mu, renyi, points = ([m for m in result.metrics if m.name == f"audit_{n}"] for n in ("mu", "renyi", "trade_off"))
    assert 0.95 < mu[0].value <= 1
    assert all(m.value <= float(m.variable.removeprefix("order=")) / 2 for m in renyi)
    rates = [(float(m.variable.removeprefix("fpr=")), m.value) for m in points]
    assert (rates[0], rates[-1]) == ((0, 1), (1, 0))
    assert all(missed >= stats.norm.cdf(stats.norm.ppf(1 - alarms) - 1) - 1e-6 for alarms, missed in rates)
    without_curve, _ = evaluated(dataclasses.replace(event, curve=None), GaussianRelease())
    assert "audit_mu" not in values_of(without_curve)


def test_texts_are_published_whole(evaluated):
    claim = dataclasses.replace(CLAIM, unit="word")
    event = Distinguisher("aa", "b", lambda outputs: outputs[:, 0] > 1, 100, details="by length")
    result, victim = evaluated(event, CubeRelease(2, 1.0), claim)
    counts = values_of(result)
    assert (counts["true_positives"], counts["false_positives"]) == (victim.texts.count("aa"), 0)
    assert len(victim.texts) == counts["audit_tosses"] == 200
    assert set(victim.texts) == {"aa", "b"}
    assert (result.test_size, result.details, result.claim) == (100, "by length", claim)


@pytest.mark.parametrize(
    ("first", "second", "unit", "complaint"),
    [
        (np.full(2, 50.0), np.zeros(2), "vector", "is not one of"),
        (np.zeros(2), np.array([0.0, -1e-6]), "vector", "is not one of"),
        (np.zeros(3), np.ones(3), "vector", r"of shape \(3,\) is not one of \[0, 1\]\^2"),
        (np.array([0.0, math.nan]), np.zeros(2), "vector", "is not one of"),
        (np.zeros(2), "b", "vector", "is not one of"),
        (np.zeros(2), np.ones(2), "coordinate", "more than the one coordinate"),
        ("a b", "c d", "word", "differ in 2 words"),
        ("a b c", "a", "word", "differ in 2 words"),
        ("a", "a", "word", "differ in 0 words"),
        ("a", "b", "vector", "the claim is about one vector"),
        (np.zeros(2), np.ones(2), "vector", ""),
        (np.zeros(2), np.array([0.0, 1.0]), "coordinate", ""),
        ("a b", "a d", "word", ""),
        ("a b", "a", "word", ""),
        ("a b", "quite another text", "document", ""),
    ],
)
def test_only_neighbours_of_the_claims_unit_are_released(first, second, unit, complaint, evaluated):
    event, claim = Distinguisher(first, second, lambda o: o[:, 0] > 0, 100), dataclasses.replace(CLAIM, unit=unit)
    if complaint:
        with pytest.raises(RequestError, match=complaint):
            evaluated(event, CubeRelease(2, 1.0), claim)
    else:
        assert evaluated(event, CubeRelease(2, 1.0), claim)[0].audited == Audited(unit, 0.0)


def test_the_bound_follows_from_the_counts_and_the_claims_delta(evaluated):
    result, _ = evaluated(event_on(1, draws=1000), CubeRelease(1, 1.0), dataclasses.replace(CLAIM, delta=0.1))
    counts = {m.name: m for m in result.metrics}
    right, wrong = counts["true_positives"], counts["false_positives"]
    assert right.value > wrong.value > 0
    assert right.n + wrong.n == counts["audit_tosses"].value == 2000
    assert list(result.metrics) == bound_metrics(int(right.value), int(wrong.value), (right.n, wrong.n), 0.1)


def test_the_plug_in_estimate_is_reported_if_asked_for_and_if_zeros_and_ones_are_neighbours(evaluated):
    event = event_on(1)
    repeated = dataclasses.replace(event, repeats=20_000)
    metrics = {m.name: m for m in evaluated(repeated, CubeRelease(1, 1.0))[0].metrics}
    estimate = metrics["plug_in_loss"]
    assert estimate.low < exact_loss(laplace_chances(1.0), 1) < estimate.high
    assert estimate.n == 20_000
    for other, claim in ((event, CLAIM), (repeated, dataclasses.replace(CLAIM, unit="coordinate"))):
        assert "plug_in_loss" not in values_of(evaluated(other, CubeRelease(1, 1.0), claim)[0])


class TestDistance:
    """A bound is divided by the distance of the inputs, by the claim and not by the attack."""

    CLAIM = dataclasses.replace(CLAIM, distance="l1")

    def test_the_bound_is_divided_by_the_distance(self, evaluated):
        event = event_on(4, draws=1000)
        plain, metric = (evaluated(event, CubeRelease(4, 1.0), claim)[0] for claim in (CLAIM, self.CLAIM))
        assert values_of(metric)["attack_score"] == values_of(plain)["attack_score"] / 4
        assert values_of(metric)["audit_distance"] == 4
        assert "audit_distance" not in values_of(plain)
        assert corrected_bound([metric.metrics], 1e-4) == corrected_bound([plain.metrics], 1e-4) / 4

    def test_calls_are_divided_too(self, evaluated):
        pair = Pair("", np.zeros(2), np.ones(2), distance=100.0)  # what the attack says does not count
        test = CallsStatistic(pair, "row", lambda calls: -calls.decided.sum(1), 9)
        plain, metric = (
            evaluated(CallsDistinguisher(test, 200), CubeRelease(2, 9.0), claim)[0] for claim in (CLAIM, self.CLAIM)
        )
        for name in ("attack_score", "audit_largest_bound"):
            assert values_of(metric)[name] == values_of(plain)[name] / 2 > 0
        assert corrected_bound([metric.metrics]) == corrected_bound([plain.metrics]) / 2

    @pytest.mark.parametrize(
        ("claim", "first", "second", "reason"),
        [
            (
                {"distance": "l1"},
                np.ones(2),
                np.ones(2),
                "are at l1 distance 0: equal releases are claimed, which this audit does not test",
            ),
            ({"distance": "angular"}, np.zeros(2), np.ones(2), "have no angular distance: a vector of zeros"),
            ({"distance": "l1", "unit": "word"}, "a", "b", "are random, so their l1 distance is unknown"),
        ],
    )
    def test_inputs_without_a_distance_are_refused(self, claim, first, second, reason, evaluated):
        event = Distinguisher(first, second, lambda outputs: outputs[:, 0] > 0, 100)
        with pytest.raises(RequestError, match=reason):
            evaluated(event, CubeRelease(2, 1.0), dataclasses.replace(CLAIM, **claim))

    def test_there_is_no_sanity_check(self, evaluated):
        event = dataclasses.replace(event_on(1), repeats=1000)
        assert "plug_in_loss" not in values_of(evaluated(event, CubeRelease(1, 1.0), self.CLAIM)[0])


TRAINING = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [(None, "the victim claims no privacy"), (TRAINING, "the claim is about training data"), (CLAIM, "")],
)
def test_only_claims_about_releases_are_audited(claim, reason, evaluated):
    words = PublishedWords([], np.zeros((0, 1), np.float32)) if reason else None
    attack = answering(ReleaseAudit)
    answer = attack.threat.why_not_applicable(attack, None, Publications({}, None, words, claim))
    assert answer.startswith(reason) if reason else answer == ""
    if reason:
        with pytest.raises(NotApplicable, match=reason):
            evaluated(event_on(1), CubeRelease(1, 1.0), claim)


class TestDocumentsAreReleases:
    """A claim is about the mechanism; the vectors of texts must come from it."""

    @pytest.fixture
    def audit(self, corpus):
        def audit(inputs, published, unit="vector"):
            class Publishing(Releasing):
                publishes = ("documents", "releases")
                claim = dataclasses.replace(CLAIM, unit=unit)

                def zeros_and(self, texts, largest):
                    return np.array([[largest * (i % 2)] for i, _ in enumerate(texts)])

                def inputs(self, texts):
                    return None if inputs is None else self.zeros_and(texts, inputs)

                def publish_documents(self, texts, rng):
                    return self.mechanism.release(self.zeros_and(texts, published or inputs or 1.0), rng).astype("f4")

            victim, streams = Publishing(CubeRelease(1, 1.0)), Streams(0, "made", "publishing", "audit", "cell")
            side = VictimSide(
                corpus, corpus, victim, lambda: victim, Publications({}, None, None, victim.claim), streams
            )
            return evaluate_attack(answering(ReleaseAudit, prepared=lambda view: event_on(1)), side)

        return audit

    @pytest.mark.parametrize(
        ("inputs", "published", "reason"),
        [
            (None, None, "`inputs` returns None; a claim about one vector needs the inputs of its mechanism"),
            (800.0, None, "its inputs are from 0 to 800; allowed: 0 to 1"),
            (1.0, 0.5, "its documents are not the release of its inputs, bit for bit"),
        ],
    )
    def test_other_documents_are_refused(self, audit, inputs, published, reason):
        with pytest.raises(RequestError, match=reason):
            audit(inputs, published)

    def test_releases_of_the_inputs_are_audited(self, audit):
        assert audit(1.0, None).claim.unit == "vector"

    def test_inputs_of_a_claim_about_words_may_be_random(self, audit):
        assert audit(None, None, unit="word").claim.unit == "word"
