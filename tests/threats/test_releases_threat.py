"""Releases of a mechanism: LeakBoard draws for itself, between neighbours alone, and counts."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from leakboard.claims import ReleaseClaim, TrainingClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import FittedVictim, PublishedWords, Victim
from leakboard.pipeline.attacking import evaluate_attack
from leakboard.privacy.auditing.bound import bound_from_counts
from leakboard.privacy.auditing.curve import ScoreCurve
from leakboard.privacy.auditing.sanity import exact_loss, laplace_chances, sampling_error
from leakboard.privacy.mechanisms.cube import CubeRelease
from leakboard.randomness import Streams
from leakboard.threats.published import Publications
from leakboard.threats.releases import Distinguisher, ReleaseAudit, _published_label
from leakboard.threats.threat import Audited, VictimSide

CLAIM = ReleaseClaim(1.0, 0.0, "vector", "made", "1 in L1")


class Releasing(Victim, FittedVictim):
    """A victim with a mechanism that publishes of a text how long it is."""

    publishes = ("releases",)
    mechanism = None

    def __init__(self, mechanism):
        self.mechanism, self.asked = mechanism, []

    def fit(self, corpus, seed):
        return self

    def publish_documents(self, texts, rng):
        self.asked += texts
        return np.array([[len(text)] for text in texts], np.float32)


class Fixed(ReleaseAudit):
    def __init__(self, answer):
        self.answer = answer

    def fit(self, view, seed):
        return self.answer


@pytest.fixture
def evaluated(corpus):
    """Return a function that evaluates an audit's answer: the result, and the victim."""

    def evaluate(answer, mechanism, claim=CLAIM):
        victim, streams = Releasing(mechanism), Streams(0, "made", "releasing", "audit", "cell")
        side = VictimSide(corpus, corpus, victim, lambda: victim, Publications({}, None, None, claim), streams)
        return evaluate_attack(Fixed(answer), side), victim

    return evaluate


@pytest.fixture
def metrics(evaluated):
    """Return a function that evaluates an audit's answer: the metrics by name, in order."""

    def evaluate(*given, **options):
        own = evaluated(*given, **options)[0].metrics
        return {m.name: m for m in own if not m.variable}

    return evaluate


def below_half(outputs):
    return outputs[:, 0] < 0.5


def test_the_draws_are_fresh_whatever_the_attack_says_of_them(metrics):
    """An event of which the attack says it always holds proves nothing, whatever the attack saw."""
    always = Distinguisher(np.zeros(2), np.ones(2), lambda outputs: np.ones(len(outputs), bool), 500)
    found = metrics(always, CubeRelease(2, 1.0, calibration="l1"))
    assert all(found[name].value == found[name].n for name in ("true_positives", "false_positives"))
    assert found["attack_score"].value == 0.0


def test_the_order_of_the_releases_tells_nothing(metrics):
    """An event that counts its calls, or the place of a row, finds nothing in a mechanism without any loss."""
    calls = []

    def halves(outputs):
        calls.append(len(outputs))
        return np.arange(len(outputs)) < len(outputs) / 2

    found = metrics(Distinguisher(np.zeros(2), np.ones(2), halves, 5000), CubeRelease(2, 1e-6))
    assert sum(calls) == 10_000
    assert found["attack_score"].value < 0.1


@pytest.mark.parametrize(
    "answer",
    [
        lambda outputs: outputs > 0,
        lambda outputs: np.ones(len(outputs)),
        lambda outputs: np.ones(3, bool),
        lambda outputs: True,
    ],
)
def test_an_event_is_one_bool_a_release(answer, evaluated):
    with pytest.raises(ValueError, match="an event is one bool for each release"):
        evaluated(Distinguisher(np.zeros(2), np.ones(2), answer, 100), CubeRelease(2, 1.0))


def test_the_trade_off_of_a_gaussian_release_is_recorded(evaluated):
    """Noise of deviation 1 on a distance of 1 is Gaussian differential privacy with mu = 1."""
    curve = ScoreCurve(lambda outputs: -outputs[:, 0].astype(float), np.linspace(-2, 1, 13))
    event = Distinguisher(np.zeros(1), np.ones(1), below_half, 50_000, curve=curve)
    found, _ = evaluated(event, GaussianRelease())
    mu, renyi, points = ([m for m in found.metrics if m.name == f"audit_{n}"] for n in ("mu", "renyi", "trade_off"))
    assert 0.95 < mu[0].value <= 1
    assert all(m.value <= float(m.variable.removeprefix("order=")) / 2 for m in renyi)
    rates = [(float(m.variable.removeprefix("fpr=")), m.value) for m in points]
    assert (rates[0], rates[-1]) == ((0, 1), (1, 0))
    assert all(missed >= stats.norm.cdf(stats.norm.ppf(1 - alarms) - 1) - 1e-6 for alarms, missed in rates)
    assert not any(
        m.name == "audit_mu" for m in evaluated(dataclasses.replace(event, curve=None), GaussianRelease())[0].metrics
    )


class GaussianRelease(CubeRelease):
    """Adds noise of deviation 1."""

    def __init__(self):
        super().__init__(1, 1.0)

    def release(self, values, generator):
        return values + generator.normal(size=values.shape)


@pytest.mark.parametrize("score", [lambda o: o, lambda o: np.ones(3), lambda o: o[:, 0] / 0])
def test_a_score_is_one_number_a_release(score, evaluated):
    event = Distinguisher(np.zeros(1), np.ones(1), below_half, 100, curve=ScoreCurve(score, np.zeros(1)))
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="a score is one finite number for each release"):
        evaluated(event, GaussianRelease())


def test_texts_are_published_whole(evaluated):
    claim = dataclasses.replace(CLAIM, unit="word")
    event = Distinguisher("aa", "b", lambda outputs: outputs[:, 0] > 1, 100, details="by length")
    result, victim = evaluated(event, CubeRelease(2, 1.0), claim)
    found = {m.name: m.value for m in result.metrics}
    assert (found["true_positives"], found["false_positives"]) == (victim.asked.count("aa"), 0)
    assert len(victim.asked) == found["audit_tosses"] == 200
    assert set(victim.asked) == {"aa", "b"}
    assert (result.test_size, result.details, result.claim) == (100, "by length", claim)
    assert result.audited == Audited("word", 0.0)


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
    ],
)
def test_inputs_that_are_no_neighbours_are_refused(first, second, unit, complaint, evaluated):
    claim = dataclasses.replace(CLAIM, unit=unit)
    with pytest.raises(ValueError, match=complaint):
        evaluated(Distinguisher(first, second, lambda o: o[:, 0] > 0, 100), CubeRelease(2, 1.0), claim)


@pytest.mark.parametrize(
    ("first", "second", "unit"),
    [
        (np.zeros(2), np.ones(2), "vector"),
        (np.zeros(2), np.array([0.0, 1.0]), "coordinate"),
        ("a b", "a d", "word"),
        ("a b", "a", "word"),
        ("a b", "quite another text", "document"),
    ],
)
def test_inputs_that_the_claim_calls_neighbours_are_released(first, second, unit, evaluated):
    claim = dataclasses.replace(CLAIM, unit=unit)
    result, _ = evaluated(Distinguisher(first, second, lambda o: o[:, 0] > 0, 100), CubeRelease(2, 1.0), claim)
    assert result.audited == Audited(unit, 0.0)


def test_delta_and_the_counts_are_told_and_enter_the_bound(metrics):
    event = Distinguisher(np.zeros(1), np.ones(1), below_half, 1000)
    found = metrics(event, CubeRelease(1, 1.0), dataclasses.replace(CLAIM, delta=0.1))
    assert list(found) == ["attack_score", "true_positives", "false_positives", "audit_tosses", "audit_delta"]
    tosses = found["true_positives"].n, found["false_positives"].n
    assert sum(tosses) == found["audit_tosses"].value == 2000
    right, wrong = int(found["true_positives"].value), int(found["false_positives"].value)
    assert right > wrong > 0
    assert found["audit_delta"].value == 0.1
    assert found["attack_score"].value == bound_from_counts(right, wrong, tosses, 0.1, 0.05)
    assert found["attack_score"].value < bound_from_counts(right, wrong, tosses, 0.0, 0.05)


def test_the_plug_in_estimate_stands_beside_the_bound_where_it_is_asked_for(metrics):
    event = Distinguisher(np.zeros(1), np.ones(1), below_half, 100)
    asked = dataclasses.replace(event, repeats=20_000)
    found = metrics(asked, CubeRelease(1, 1.0))["plug_in_loss"]
    chances = laplace_chances(1.0)
    assert found.low < exact_loss(chances, 1) < found.high
    width = 2 * stats.norm.isf(0.025) * sampling_error(chances, 1, 20_000)
    assert found.high - found.low == pytest.approx(width, rel=0.05)
    assert found.value == pytest.approx((found.low + found.high) / 2)
    assert found.n == 20_000
    assert "plug_in_loss" not in metrics(event, CubeRelease(1, 1.0))
    one = dataclasses.replace(CLAIM, unit="coordinate")  # zeros and ones would be no neighbours
    assert "plug_in_loss" not in metrics(asked, CubeRelease(1, 1.0), one)


def test_a_plug_in_estimate_without_errors_is_infinite_and_says_so(metrics):
    copy = SimpleNamespace(dimension=1, release=lambda values, rng: values)
    found = metrics(Distinguisher(np.zeros(1), np.ones(1), below_half, 100, 50), copy)["plug_in_loss"]
    assert (found.value, found.n) == (math.inf, 50)
    assert found.low is found.high is None
    assert "never seen" in found.status


def test_an_answer_of_another_type_is_refused(evaluated):
    with pytest.raises(RequestError, match="an attack on releases returns Distinguisher, not tuple"):
        evaluated((np.zeros(2), np.ones(2)), CubeRelease(2, 1.0))


def test_only_claims_about_what_is_published_are_audited(evaluated):
    event = Distinguisher(np.zeros(1), np.ones(1), below_half, 100)
    training = TrainingClaim(1.0, 1e-6, "user", 10, "poisson", 5, 100, 1.0, 0.1, "is public")
    for claim, reason in ((None, "the victim claims no privacy"), (training, "the claim is about training data")):
        published = Publications({}, None, PublishedWords([], np.zeros((0, 1), np.float32)), claim)
        assert Fixed.threat.why_not_applicable(Fixed(event), None, published).startswith(reason)
        with pytest.raises(NotApplicable, match=reason):
            evaluated(event, CubeRelease(1, 1.0), claim)
    assert Fixed.threat.why_not_applicable(Fixed(event), None, Publications({}, None, None, CLAIM)) == ""


def test_audits_draw_as_those_of_the_published_boards_did():
    assert _published_label("a / dp_audit(budget=100000000, calls=4000, pairs=corners) / seed 0") == (
        "a / dp_audit(batches=true, budget=100000000, pairs=corners) / seed 0"
    )
