"""All promises, in the order in which they are checked, and the outcomes of a plugin."""

from __future__ import annotations

from collections.abc import Iterator

from leakboard.conformance import of_attacks, of_datasets, of_victims
from leakboard.conformance import presentation as form
from leakboard.conformance.promises import Outcome, Promise, examine
from leakboard.conformance.subjects import Subject

PROMISES = [
    value
    for module in (form, of_datasets, of_victims, of_attacks)
    for value in vars(module).values()
    if isinstance(value, Promise)
]


def promises_of(kind: str) -> list[Promise]:
    """Return what plugins of a kind promise."""
    return [promise for promise in PROMISES if kind in promise.kinds]


def outcomes(subject: Subject) -> Iterator[Outcome]:
    """Check a plugin's promises in turn; those after a broken one that they rest on are skipped."""
    closed = ""
    for promise in promises_of(subject.listing.kind):
        outcome = Outcome(promise, "skipped", f"rests on: {closed}") if closed else examine(promise, subject)
        yield outcome
        if promise.opens and outcome.status != "passed":
            closed = closed or promise.name
