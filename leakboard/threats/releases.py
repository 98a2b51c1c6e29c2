"""Audit a release mechanism by telling two neighbouring inputs apart.

The attacker may run the mechanism, and publish texts, as often as it likes. It answers with two neighbouring inputs and
an event that is likelier for the first input. Then LeakBoard releases both inputs afresh, and counts how often the
event happens. The headline is the lower bound on epsilon at 95 % confidence (`leakboard.metrics.audits`). A low bound
proves nothing: this attack failed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakboard.claims import ReleaseClaim, ReleaseUnit, TrainingClaim
from leakboard.errors import NotApplicable, RequestError
from leakboard.interfaces import Attack, Corpus, Texts
from leakboard.mechanism import ReleaseMechanism
from leakboard.metrics.audits import ERROR, bound_metrics, canary_metrics, curve_metrics, sanity_metric
from leakboard.metrics.measures import Metric
from leakboard.privacy.auditing.calls import CallsStatistic, run_calls
from leakboard.privacy.auditing.curve import ThresholdedScore
from leakboard.privacy.auditing.distances import DISTANCES, differing_words
from leakboard.privacy.auditing.trials import Release, one_score_each, scores_by_input
from leakboard.threats.oracle import Oracle
from leakboard.threats.published import Publications, Publisher, why_no_releases
from leakboard.threats.threat import AttackResult, Audited, AuditThreat, VictimSide, attacker_corpus, expect


@dataclass(frozen=True)
class ReleasesView:
    """The view of an auditor of releases before the draws that count."""

    claim: ReleaseClaim
    auxiliary: Corpus
    """The auditor's own texts: train and dev."""
    oracle: Oracle

    @property
    def mechanism(self) -> ReleaseMechanism:
        """Return the victim's last step, which the auditor may run as often as it likes."""
        return self.oracle.mechanism


@dataclass(frozen=True)
class Distinguisher:
    """An event of a release that is likelier for the first of two neighbouring inputs.

    LeakBoard then releases twice ``draws`` rows; a fair coin decides the input of each row. LeakBoard counts how often
    the event holds. If the claim's delta is above 0, the bound assumes independent calls.
    """

    first: NDArray[Any] | str
    """A vector of the unit cube, float (d,), for the mechanism, or a text for the victim to publish."""
    second: NDArray[Any] | str
    holds: Callable[[NDArray[Any]], NDArray[np.bool_]]
    """Maps releases (n, d) to whether the event holds, bool (n,)."""
    draws: int
    repeats: int = 0
    """Number of releases of all zeros, and of all ones, for the sanity check of Habernal (2022); 0: no check."""
    details: str = ""
    curve: ThresholdedScore | None = None
    """Tests for the trade-off curve, on the same draws; they assume independent rows."""


@dataclass(frozen=True)
class CallsDistinguisher:
    """A test of calls that release several rows at once (`leakboard.privacy.auditing.calls`).

    In each call a coin decides which of two inputs one row has. The test guesses the coin from the output of all rows.
    LeakBoard makes the calls, and counts the right guesses.
    """

    test: CallsStatistic
    """Test with a pair of vectors of the unit cube, float (d,)."""
    calls: int
    details: str = ""
    repeats: int = 0
    """Number of releases of all zeros, and of all ones, for the sanity check of Habernal (2022); 0: no check."""


class ReleasesThreat(AuditThreat["ReleaseAudit"]):
    """Audit of releases."""

    name: ClassVar = "releases"
    sees: ClassVar = "the noise mechanism, to try at will, and the claim"
    needs: ClassVar = "releases"
    revision: ClassVar = 2

    def why_not_applicable(self, attack: ReleaseAudit, corpus: Corpus, published: Publications | None) -> str:
        """Return the reason: no claim, or a claim that is not about publications; else empty."""
        if published is None:
            return ""
        if published.claim is None:
            return "the victim claims no privacy"
        if isinstance(published.claim, TrainingClaim):
            return "the claim is about training data, not about what is published"
        return ""

    def evaluate(self, attack: ReleaseAudit, side: VictimSide) -> AttackResult:
        """Release both inputs afresh, and return the bound that the frequencies of the event prove.

        Raises:
            NotApplicable: the victim publishes no releases.
            RequestError: the inputs are not neighbours, or the victim's documents are not releases of its mechanism.
            ValueError: the event is not one bool for each release, or a release is not finite.
        """
        claim = side.published.claim
        assert isinstance(claim, ReleaseClaim), "audits of releases meet only victims with a claim about releases"
        if side.fitted().mechanism is None:
            raise NotApplicable("the noisy vectors that the claim is about are not published")
        _require_releases(side)
        auxiliary = attacker_corpus(side)
        oracle = Oracle(side, auxiliary)
        distinguisher = attack.fit(ReleasesView(claim, auxiliary, oracle), side.streams.seed_for("attack"))
        rng = side.streams.stream(f"audit {side.streams.label}")
        if isinstance(distinguisher, CallsDistinguisher):
            metrics, tested = _of_calls(distinguisher, oracle, claim, rng), distinguisher.calls
        else:
            expect(distinguisher, Distinguisher, "releases")
            inputs, release = _released(distinguisher, oracle.mechanism, side.new_publisher(), claim.unit)
            distance = _distance(distinguisher.first, distinguisher.second, claim, oracle)
            metrics = _of_rows(distinguisher, inputs, release, claim, distance, rng)
            tested = distinguisher.draws
        return AttackResult(
            secrets=("claim",),
            test_size=tested,
            metrics=metrics + _sanity(distinguisher.repeats, oracle, claim, rng),
            details=distinguisher.details,
            claim=claim,
            audited=Audited(claim.unit, claim.delta),
        )


CHECKED_TEXTS = 100
"""Largest number of test texts whose documents are compared with releases of the mechanism."""


def _require_releases(side: VictimSide) -> None:
    if "documents" not in side.victim.publishes:
        return
    rng, texts = side.streams.stream("releases"), side.corpus.texts("test")
    chosen = rng.permutation(len(texts))[:CHECKED_TEXTS]
    if reason := why_no_releases(side.fitted(), Texts([texts[i] for i in chosen]), int(rng.integers(2**32))):
        raise RequestError(f"the victim publishes no releases of its mechanism: {reason}")


def _of_rows(
    event: Distinguisher,
    inputs: tuple[NDArray[Any], NDArray[Any]],
    release: Release,
    claim: ReleaseClaim,
    distance: float | None,
    rng: np.random.Generator,
) -> list[Metric]:
    questions = {"event": one_score_each(event.holds, bool)} | (
        {"curve": one_score_each(event.curve.score, float)} if event.curve else {}
    )
    answers = scores_by_input(release, inputs, questions, 2 * event.draws, claim.delta, rng)
    first, second = answers["event"]
    held = int(np.count_nonzero(first)), int(np.count_nonzero(second))
    metrics = bound_metrics(*held, (len(first), len(second)), claim.delta, distance)
    return metrics + (curve_metrics(event.curve.bound(*answers["curve"], ERROR), len(first)) if event.curve else [])


def _of_calls(
    distinguisher: CallsDistinguisher, oracle: Oracle, claim: ReleaseClaim, rng: np.random.Generator
) -> list[Metric]:
    mechanism, pair = oracle.mechanism, distinguisher.test.pair
    _checked_vectors(pair.first, pair.second, mechanism.dimension, claim.unit)
    distance = _distance(pair.first, pair.second, claim, oracle)
    calls, coins = run_calls(mechanism, pair, distinguisher.calls, rng)
    # a call counts like a canary in an audit of training
    return canary_metrics(distinguisher.test.score(calls), coins, claim.delta, group=1, distance=distance)


def _distance(
    first: NDArray[Any] | str, second: NDArray[Any] | str, claim: ReleaseClaim, oracle: Oracle
) -> float | None:
    """Return the distance of two inputs, if epsilon is claimed for each unit of it.

    Raises:
        RequestError: the vectors of two texts are random, or two inputs have no distance, or the distance 0.
    """
    if claim.distance is None:
        return None
    if isinstance(first, str) and isinstance(second, str):
        vectors = oracle.inputs(Texts([first, second]))
        if vectors is None:
            raise RequestError(
                f"the vectors of the audited texts are random, so their {claim.distance} distance is unknown"
            )
        first, second = vectors
    try:
        distance = DISTANCES[claim.distance](first, second)
    except ValueError as error:
        raise RequestError(f"the audited inputs have no {claim.distance} distance: {error}") from None
    if distance == 0:
        claimed = "equal releases are claimed, which this audit does not test"
        raise RequestError(f"the audited inputs are at {claim.distance} distance 0: {claimed}")
    return distance


def _sanity(repeats: int, oracle: Oracle, claim: ReleaseClaim, rng: np.random.Generator) -> list[Metric]:
    # the check compares all zeros with all ones; for a claim about one coordinate these are not neighbours
    # nor has it a bound to compare with if epsilon is for each unit of a distance
    if not repeats or claim.unit == "coordinate" or claim.distance:
        return []
    return [sanity_metric(oracle.mechanism, repeats, rng)]


class ReleaseAudit(Attack):
    """An audit of a victim's claim about its publications."""

    threat: ClassVar = ReleasesThreat()

    @abstractmethod
    def fit(self, view: ReleasesView, seed: int) -> Distinguisher | CallsDistinguisher:
        """Choose neighbouring inputs and an event that tells them apart."""


def _released(
    event: Distinguisher, mechanism: ReleaseMechanism, publish: Publisher, unit: ReleaseUnit
) -> tuple[tuple[NDArray[Any], NDArray[Any]], Release]:
    if not (isinstance(event.first, str) and isinstance(event.second, str)):
        return _checked_vectors(event.first, event.second, mechanism.dimension, unit), mechanism.release
    _check_texts(event.first, event.second, unit)

    def release(values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        return publish(Texts(values[:, 0].tolist()), generator)

    return (np.array([event.first], object), np.array([event.second], object)), release


def _check_texts(first: str, second: str, unit: ReleaseUnit) -> None:
    if unit == "document":
        return
    differing = differing_words(first, second)
    if unit != "word" or differing != 1:
        raise RequestError(f"the audited texts differ in {differing} words; the claim is about one {unit}")


def _checked_vectors(
    one: NDArray[Any] | str, other: NDArray[Any] | str, dimension: int, unit: ReleaseUnit
) -> tuple[NDArray[Any], NDArray[Any]]:
    first, second = np.array(one), np.array(other)
    for vector in (first, second):
        if vector.shape != (dimension,) or not ((vector >= 0) & (vector <= 1)).all():
            raise RequestError(f"an audited vector of shape {vector.shape} is not one of [0, 1]^{dimension}")
    if unit == "coordinate" and np.count_nonzero(first != second) > 1:
        raise RequestError("the audited vectors differ in more than the one coordinate that the claim is about")
    return first, second
