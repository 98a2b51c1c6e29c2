"""Audit of a claimed epsilon: tell two neighbouring inputs apart from what is published, better than the claim allows.

Two ways, both by trying the running mechanism. The *bound* holds at its stated confidence whatever it was chosen from:
the event is fixed on draws of its own and tested on fresh ones (`leakboard.privacy.auditing.bound`). A fair coin
decides of every row which input it is, and the bound holds whatever rows of a call share where the claim's delta is 0;
where it is not, rows are taken to be independent. The *sanity check* of Habernal (2022, section 3) is a point estimate
without confidence (`leakboard.privacy.auditing.sanity`).

Neighbours are what the claim's unit says: corners of the cube that the mechanism's input lies in, and sentences of the
corpus with one word replaced, those searched for whose vectors lie furthest apart. A low bound proves nothing: only
this attack failed. From n tested releases of either input no bound exceeds about ln(n / 3), at delta 0, and from calls
of several rows none exceeds 6.6.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from leakboard.claims import ReleaseUnit
from leakboard.errors import RequestError
from leakboard.interfaces import Texts
from leakboard.logs import log_progress
from leakboard.mechanism import MechanismDefaults
from leakboard.metrics.audits import ERROR, verdict_error
from leakboard.privacy.auditing.audit import BUDGET, rounds
from leakboard.privacy.auditing.calls import CALLS, ROWS, choose_test, run_test
from leakboard.privacy.auditing.choosing import Chosen, confirmed, refined_event
from leakboard.privacy.auditing.events import FEWEST, Pair, corners, normalised_corners
from leakboard.privacy.auditing.sanity import published_repeats
from leakboard.suite.options import ALWAYS_NAMED, Count, attack
from leakboard.threats.releases import CallsDistinguisher, Distinguisher, ReleaseAudit, ReleasesView

SENTENCE_DRAWS = 100_000
"""Most releases of either of two sentences: half to choose the event on, half to test it."""
RANDOM_DRAWS = 4_000
"""Likewise, where a text is not one release of a fixed vector, but encoded by itself each time."""


def _one_coordinate(dimension: int, dtype: Any) -> list[Pair]:
    return [corners(dimension, dtype)[-1]]


PAIRS: Mapping[ReleaseUnit, Callable[[int, Any], list[Pair]]] = {
    "vector": corners,
    "word": normalised_corners,
    "document": normalised_corners,
    "coordinate": _one_coordinate,
}
"""Corners of the cube that are neighbours by the unit of a claim; what is made of texts is normalised."""


@attack(revision=1)
class DpAudit(ReleaseAudit):
    pairs: Literal["corners", "sentences", "both"] = "both"
    """Neighbours: corners of the mechanism's domain, sentences that differ in one word, or whichever tells more."""
    budget: Annotated[int, Field(ge=100_000), ALWAYS_NAMED] = BUDGET
    """Numbers drawn to audit corners, all coordinates of all releases, and to audit sentences at most.

    Where events are compared, each is tried once more on as many releases as will test it, beside calls twice.
    """
    batches: Annotated[bool, ALWAYS_NAMED] = True
    """Audit corners also as one row among others in calls of the mechanism, whose rows may give each other away."""
    sentences: Count = 1000
    """Sentences with one word replaced among which the worst pairs are searched for (texts)."""
    worst: Annotated[int, Field(ge=1, le=SENTENCE_DRAWS // (2 * FEWEST))] = 3
    """Pairs of sentences that are audited (of those furthest apart)."""
    repeats: Annotated[int, Field(ge=0)] | Literal["published"] = 0
    """Releases of either input for the sanity check; 0 leaves it out, ``published`` is Habernal's number."""

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return an audit by few draws."""
        return cls(budget=100_000, sentences=20)

    def fit(self, view: ReleasesView, seed: int) -> Distinguisher | CallsDistinguisher:
        """Choose the event that promises most, on draws of its own.

        Raises:
            RequestError: the budget is too small for this width, or the pairs are no neighbours by the claim's unit.
        """
        rng = np.random.default_rng(seed)
        mechanism, claim = view.mechanism, view.claim
        neighbours = PAIRS[claim.unit](mechanism.dimension, np.float32)
        of_corners = self.pairs != "sentences"
        of_sentences = self.pairs != "corners" and claim.unit in ("word", "document")
        pairs = max(of_corners * len(neighbours), of_sentences * self.worst)
        least = 4 * mechanism.dimension * FEWEST * pairs
        if self.budget < least:
            allowed = f"at least {least} numbers for {pairs} pairs in {mechanism.dimension} dimensions"
            raise RequestError(f"dp_audit: budget: {self.budget} is not allowed: {allowed}")
        events: list[Chosen] = []
        if of_corners:
            log_progress("corners of the domain")
            events.append(self._of_corners(view, neighbours, rng))
        if of_sentences:
            events.append(self._of_sentences(view, rng))
        if not events:
            raise RequestError(f"dp_audit: pairs: {self.pairs!r} are no neighbours for a claim about one {claim.unit}")
        chosen = _best(view, events, rng)
        repeats = published_repeats(mechanism.dimension) if self.repeats == "published" else self.repeats
        if self.batches and of_corners:
            log_progress("calls of several rows")
            test = choose_test(mechanism, neighbours, rng, CALLS)
            promise = run_test(mechanism, test, CALLS, rng, verdict_error(claim.delta))[0].epsilon
            # Rows have to tell more twice: once they may by luck, where noise that they share has rare events.
            if promise > mechanism.epsilon and any(promise > _confirmed(view, chosen, rng) for _ in range(2)):
                details = f"{test.pair.name}, one row of {ROWS} in a call: {test.name}"
                return CallsDistinguisher(test, CALLS, details, repeats)
        event = chosen.event
        first, second = (_plain(values) for values in (event.pair.first, event.pair.second))
        details = f"{event.pair.name}: {event.description}"
        return Distinguisher(first, second, event.holds, chosen.draws, repeats, details, chosen.curve)

    def _of_corners(self, view: ReleasesView, neighbours: list[Pair], rng: np.random.Generator) -> Chosen:
        """Return the best event of corners."""
        sizes = rounds(None, self.budget, view.mechanism.dimension)
        return refined_event(view.mechanism, neighbours, rng, sizes, ERROR)

    def _of_sentences(self, view: ReleasesView, rng: np.random.Generator) -> Chosen:
        """Return the best event of the worst neighbouring sentences, and how many draws test it.

        Where a document is not one release of a fixed vector there is no telling which are worst: the first is taken.
        """
        texts, mechanism = list(view.auxiliary.texts("train")), _TextMechanism(view)
        log_progress(f"searching {self.sentences} neighbouring sentences")
        pairs = _neighbours(texts, self.sentences, rng)
        vectors = mechanism.vectors([text for pair in pairs for text in pair])
        if vectors is None:
            chosen, most = pairs[:1], RANDOM_DRAWS
        else:
            order = np.argsort(-np.abs(vectors[::2] - vectors[1::2]).sum(1), kind="stable")
            chosen, most = [pairs[i] for i in order[: self.worst]], SENTENCE_DRAWS
        description = "sentences that differ in one word"
        candidates = [Pair(description, *(np.array([text], object) for text in pair)) for pair in chosen]
        sizes = rounds(min(most, self.budget // (2 * view.mechanism.dimension)), self.budget, view.mechanism.dimension)
        return refined_event(mechanism, candidates, rng, sizes, ERROR)


def _best(view: ReleasesView, events: list[Chosen], rng: np.random.Generator) -> Chosen:
    """Return the event with the largest bound on fresh tosses, of each as many as will test it."""
    if len(events) == 1:
        return events[0]
    return max(events, key=lambda chosen: _confirmed(view, chosen, rng))


def _confirmed(view: ReleasesView, chosen: Chosen, rng: np.random.Generator) -> float:
    """Return the bound of an event on fresh tosses, at the confidence of a verdict.

    An event that was chosen on rows which depend on each other may promise more.
    """
    mechanism = _TextMechanism(view) if chosen.event.pair.first.dtype == object else view.mechanism
    return confirmed(mechanism, chosen.event, chosen.draws, rng, verdict_error(view.claim.delta))


def _neighbours(texts: Sequence[str], count: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return sentences beside themselves with one word replaced by another word of the corpus, at random."""
    words = sorted({word for text in texts for word in text.split()})
    usable = [text for text in texts if text.split()] or [words[0]]
    pairs = []
    for i in rng.integers(len(usable), size=count):
        parts = usable[i].split()
        parts[rng.integers(len(parts))] = words[rng.integers(len(words))]
        pairs.append((usable[i], " ".join(parts)))
    return [pair for pair in pairs if pair[0].split() != pair[1].split()] or pairs[:1]


def _plain(values: NDArray[Any]) -> NDArray[Any] | str:
    return str(values[0]) if values.dtype == object else values


class _TextMechanism(MechanismDefaults):
    """The whole victim, texts to publications, as a mechanism to choose events on."""

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
        """Return what the victim's mechanism is given, float (n, d), or None where that is random."""
        return self.oracle.inputs(Texts(texts))

    def vector_of(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return what the victim's mechanism is given for one text, object (1,), float (d,)."""
        vectors = self.vectors([str(values[0])])
        return None if vectors is None else vectors[0]
