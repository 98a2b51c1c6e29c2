"""Audit a claimed epsilon: tell two neighbouring inputs apart by their releases, better than the claim allows.

The audit runs the mechanism, and returns one or two numbers:

- The *bound* holds at its stated confidence for any choice of the event. One set of draws chooses the event, and a
  fresh set tests it (`leakboard.privacy.auditing.bound`). A fair coin decides the input of each row. If delta is 0, the
  bound holds even if all rows depend on each other. If delta is above 0, it assumes independent calls.
- The *sanity check* of Habernal (2022, section 3) is a point estimate without confidence
  (`leakboard.privacy.auditing.point_estimate`).

The claim's unit decides the neighbours. They are corners and inner points of the cube that contains the mechanism's
input, and sentences of the corpus with one word replaced. The audit uses the pairs of sentences whose vectors are
farthest apart. If epsilon is claimed for each unit of a distance, the pairs are near and far, and the bound of a pair
is divided by its distance (`leakboard.privacy.auditing.distances`).

If the draws that choose an event already refute the claim beyond doubt, the choice ends. The test is then smaller, and
so is its bound.

A low bound proves nothing: only this attack failed. At delta 0, n tested releases of each input prove at most about
ln(n / 3), and calls of several rows less than 6.63.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from leakboard.claims import ReleaseUnit
from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.logs import log_progress
from leakboard.mechanism import Mechanism, MechanismDefaults
from leakboard.metrics.audits import ERROR, verdict_error
from leakboard.privacy.auditing.audit import BUDGET, rounds
from leakboard.privacy.auditing.bound import Finding
from leakboard.privacy.auditing.calls import CALLS, ROWS, StatisticFunction, choose_statistic, run_statistic
from leakboard.privacy.auditing.choosing import MIN_DRAWS, ChosenEvent, bound_on_fresh_draws, choose_event
from leakboard.privacy.auditing.distances import DISTANCES, pairs_at_distances
from leakboard.privacy.auditing.events import Pair, corners, interior, normalised_corners, normalised_interior
from leakboard.privacy.auditing.point_estimate import published_repeats
from leakboard.privacy.auditing.rounding import Rounded, round_releases
from leakboard.suite.options import ALWAYS_NAMED, Count, attack
from leakboard.threats.releases import CallsDistinguisher, Distinguisher, ReleaseAudit, ReleasesView

SENTENCE_DRAWS = 100_000
"""Largest number of releases of each of two sentences: half choose the event, half test it."""
RANDOM_SENTENCE_DRAWS = 4_000
"""The same number for victims that encode the text again for each release, since its vector is random."""


def _one_coordinate(dimension: int, dtype: Any) -> list[Pair]:
    return [corners(dimension, dtype)[-1]]


PAIRS: Mapping[ReleaseUnit, Callable[[int, Any], list[Pair]]] = {
    "vector": corners,
    "word": normalised_corners,
    "document": normalised_corners,
    "coordinate": _one_coordinate,
}
"""Neighbouring corners of the cube, by the unit of the claim; vectors of texts are normalised."""


def _inner_coordinate(dimension: int, rng: np.random.Generator, dtype: Any) -> list[Pair]:
    pair = interior(dimension, rng, dtype)[0]
    second = pair.first.copy()
    second[0] = pair.second[0]
    return [Pair("middle and one random coordinate", pair.first, second)]


INNER_PAIRS: Mapping[ReleaseUnit, Callable[[int, np.random.Generator, Any], list[Pair]]] = {
    "vector": interior,
    "word": normalised_interior,
    "document": normalised_interior,
    "coordinate": _inner_coordinate,
}
"""Neighbours inside the cube, by the unit of the claim."""
CERTAIN_SHARE = 1e-4
"""Share of a verdict's error at which a refuted claim ends the choice: a fresh test then hardly ever disagrees."""
ALONE_DRAWS = 10_000
"""Number of releases of each input that check single rows. Each is a call of its own."""


@attack(revision=8)
class DpAudit(ReleaseAudit):
    pairs: Literal["corners", "sentences", "both"] = "both"
    """Neighbours: vectors of the mechanism's domain, sentences that differ in one word, or the better of the two."""
    budget: Annotated[int, Field(ge=100_000), ALWAYS_NAMED] = BUDGET
    """Numbers (coordinates of releases) drawn to audit corners; also the largest number drawn to audit sentences.

    Comparing events draws the releases of a test once more for each event; comparing with calls, up to twice, and
    20,000 releases more.
    """
    calls: Annotated[Annotated[int, Field(ge=100)] | Literal[0], ALWAYS_NAMED] = CALLS
    """Number of calls that audit a corner as one of several rows, since rows may reveal each other; 0: no calls."""
    sentences: Count = 1000
    """Number of pairs of a sentence and the sentence with one word replaced, from which the worst pairs are taken."""
    worst: Annotated[int, Field(ge=1, le=SENTENCE_DRAWS // (2 * MIN_DRAWS))] = 3
    """Number of audited pairs of sentences: the pairs whose vectors are farthest apart."""
    repeats: Annotated[int, Field(ge=0)] | Literal["published"] = 0
    """Releases of each input for the sanity check; 0: no check; ``published``: Habernal's number."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an audit with few draws."""
        return cls(budget=100_000, sentences=20)

    def fit(self, view: ReleasesView, seed: int) -> Distinguisher | CallsDistinguisher:
        """Choose the event with the largest bound on draws that do not count.

        Raises:
            RequestError: the budget is too small for this width, or the pairs are no neighbours by the claim's unit.
        """
        rng = np.random.default_rng(seed)
        claim, dimension = view.claim, view.mechanism.dimension
        if claim.distance:
            distance = DISTANCES[claim.distance]
            neighbours, inner = pairs_at_distances(dimension, claim.epsilon, distance, rng, np.float32)
        else:
            neighbours = PAIRS[claim.unit](dimension, np.float32)
            inner = INNER_PAIRS[claim.unit](dimension, rng, np.float32)
        with_corners = self.pairs != "sentences"
        with_sentences = self.pairs != "corners" and claim.unit in ("word", "document") and _can_compare(view)
        self._check_budget(dimension, max(with_corners * len(neighbours + inner), with_sentences * self.worst))
        mechanism = round_releases(view.mechanism, neighbours + inner, rng)
        events: list[ChosenEvent] = []
        if with_corners:
            log_progress("corners of the domain")
            sizes = rounds(None, self.budget, dimension)
            choose = partial(choose_event, mechanism, neighbours, rng, sizes, ERROR, more_pairs=inner)
            chosen = choose(certain_error=CERTAIN_SHARE * verdict_error(claim.delta))
            # It may be luck, if noise that rows share has rare events.
            if chosen.is_certain and _confirm(view, chosen, mechanism, rng) <= mechanism.epsilon:
                chosen = choose(certain_error=0.0)
            events.append(chosen)
        is_certain = any(event.is_certain for event in events)
        if with_sentences and not is_certain:
            events.append(self._choose_sentences(view, mechanism, rng))
        if not events:
            raise RequestError(f"dp_audit: pairs: {self.pairs!r} are no neighbours for a claim about one {claim.unit}")
        # Take the event with the largest bound on fresh releases, as many as the test will draw.
        best = events[0] if len(events) == 1 else max(events, key=lambda chosen: _confirm(view, chosen, mechanism, rng))
        repeats = published_repeats(dimension) if self.repeats == "published" else self.repeats
        if self.calls and with_corners:
            log_progress("calls of several rows")
            statistic = choose_statistic(mechanism, neighbours, rng, self.calls)
            of_calls = partial(run_statistic, mechanism, statistic, self.calls, rng)
            if _calls_are_better(view, best, mechanism, rng, of_calls):
                details = f"{statistic.pair.name}, one row of {ROWS} in a call: {statistic.name}"
                statistic = replace(statistic, function=_on_rounded_calls(statistic.function, mechanism))
                return CallsDistinguisher(statistic, self.calls, details, repeats)
        event = best.event
        first, second = (
            str(values[0]) if values.dtype == object else values for values in (event.pair.first, event.pair.second)
        )
        details = f"{event.pair.name}: {event.description}"
        holds = mechanism.before(event.holds)
        curve = replace(best.thresholded, score=mechanism.before(best.thresholded.score))
        return Distinguisher(first, second, holds, best.draws, repeats, details, curve)

    def _check_budget(self, dimension: int, pairs: int) -> None:
        least = 4 * dimension * MIN_DRAWS * pairs
        if self.budget < least:
            allowed = f"at least {least} numbers for {pairs} pairs in {dimension} dimensions"
            raise RequestError(f"dp_audit: budget: {self.budget} is not allowed: {allowed}")

    def _choose_sentences(self, view: ReleasesView, mechanism: Rounded, rng: np.random.Generator) -> ChosenEvent:
        """Choose the best event of the worst neighbouring sentences.

        If the vector of a text is random, the distances are not known, and the first pair is taken. If epsilon is
        claimed for each unit of a distance, the pairs are from the nearest to the farthest.
        """
        texts, victim = list(view.auxiliary.texts("train")), _TextMechanism(view)
        log_progress(f"searching {self.sentences} neighbouring sentences")
        pairs = _neighbours(texts, self.sentences, rng)
        vectors = victim.vectors([text for pair in pairs for text in pair])
        name, distances = "sentences that differ in one word", np.ones(len(pairs))
        if vectors is None:
            worst, draws = np.arange(1), RANDOM_SENTENCE_DRAWS
        elif view.claim.distance:
            of_two = DISTANCES[view.claim.distance]
            distances = np.array([of_two(*two) for two in zip(vectors[::2], vectors[1::2], strict=True)])
            apart = np.argsort(distances, kind="stable")[np.count_nonzero(distances == 0) :]
            if not len(apart):
                raise RequestError("dp_audit: pairs: no two neighbouring sentences have different vectors; use corners")
            worst, draws = apart[np.linspace(0, len(apart) - 1, self.worst).astype(int)], SENTENCE_DRAWS
        else:
            order = np.argsort(-np.abs(vectors[::2] - vectors[1::2]).sum(1), kind="stable")
            worst, draws = order[: self.worst], SENTENCE_DRAWS
        inputs = [tuple(np.array([text], object) for text in pair) for pair in pairs]
        candidates = [Pair(name, inputs[i][0], inputs[i][1], float(distances[i])) for i in worst]
        dimension = view.mechanism.dimension
        sizes = rounds(min(draws, self.budget // (2 * dimension)), self.budget, dimension)
        return choose_event(replace(mechanism, mechanism=victim), candidates, rng, sizes, ERROR)


def _on_rounded_calls(function: StatisticFunction, mechanism: Rounded) -> StatisticFunction:
    return lambda calls: function(replace(calls, released=mechanism.rounded(calls.released)))


def _can_compare(view: ReleasesView) -> bool:
    """Return whether sentences can be audited: random vectors have no distance, if the claim needs one."""
    return view.claim.distance is None or view.oracle.inputs(view.auxiliary.texts("train").take([0])) is not None


def _confirm(view: ReleasesView, chosen: ChosenEvent, mechanism: Rounded, rng: np.random.Generator) -> float:
    """Return the bound of an event on fresh releases, at the confidence of a verdict."""
    if chosen.event.pair.first.dtype == object:
        mechanism = replace(mechanism, mechanism=_TextMechanism(view))
    return bound_on_fresh_draws(mechanism, chosen.event, chosen.draws, rng, verdict_error(view.claim.delta))


def _calls_are_better(
    view: ReleasesView,
    chosen: ChosenEvent,
    mechanism: Rounded,
    rng: np.random.Generator,
    of_calls: Callable[[float], Finding],
) -> bool:
    """Return whether to test calls, which refute the claim, instead of single rows.

    ``of_calls`` tests fresh calls at an error. Calls are better if fresh rows prove less. They are also better if they
    refute the claim beyond doubt, and rows that are called alone do not: rows that share noise may do so by luck.
    """
    error = verdict_error(view.claim.delta)
    promise = of_calls(error).epsilon
    if promise <= mechanism.epsilon:
        return False
    if any(_confirm(view, chosen, mechanism, rng) < promise for _ in range(2)):
        return True
    if chosen.event.pair.first.dtype == object:  # encoding texts one at a time takes too long
        return False
    alone = replace(mechanism, mechanism=_RowByRow(mechanism.mechanism))
    if bound_on_fresh_draws(alone, chosen.event, ALONE_DRAWS, rng, error) > mechanism.epsilon:
        return False
    return of_calls(CERTAIN_SHARE * error).epsilon > mechanism.epsilon


def _neighbours(texts: Sequence[str], count: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return pairs of a random sentence and the same sentence with one word replaced by a random word of the corpus."""
    words = sorted({word for text in texts for word in text.split()})
    usable = [text for text in texts if text.split()] or [words[0]]
    pairs = []
    for i in rng.integers(len(usable), size=count):
        parts = usable[i].split()
        parts[rng.integers(len(parts))] = words[rng.integers(len(words))]
        pairs.append((usable[i], " ".join(parts)))
    return [pair for pair in pairs if pair[0].split() != pair[1].split()] or pairs[:1]


class _RowByRow(MechanismDefaults):
    """A mechanism that is called for each row."""

    def __init__(self, mechanism: Mechanism):
        self.mechanism, self.epsilon, self.delta = mechanism, mechanism.epsilon, mechanism.delta

    def release(self, values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Release rows, float (n, d)."""
        return np.concatenate([self.mechanism.release(row, generator) for row in values[:, None]])


class _TextMechanism(MechanismDefaults):
    """The whole victim as a mechanism: texts in, published vectors out."""

    def __init__(self, view: ReleasesView):
        self.oracle, self.inner = view.oracle, view.mechanism
        self.epsilon, self.delta = self.inner.epsilon, self.inner.delta

    def release(self, values: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Publish texts, object (n, 1); the victim draws its own noise."""
        return self.oracle.encode(Texts(values[:, 0].tolist()))

    def log_ratio(self, outputs: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any] | None:
        """Return the inner mechanism's log ratio."""
        return self.inner.log_ratio(outputs, first, second)

    def vectors(self, texts: Sequence[str]) -> NDArray[Any] | None:
        """Return the vectors of texts before noise, float (n, d), or None if they are random."""
        return self.oracle.inputs(Texts(texts))

    def vector_of(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return the vector of one text, object (1,), before noise, float (d,), or None if it is random."""
        vectors = self.vectors([str(values[0])])
        return None if vectors is None else vectors[0]
