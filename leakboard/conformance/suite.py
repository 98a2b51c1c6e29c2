"""Check the promises of a plugin in turn, and report the outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from leakboard.conformance import of_attacks, of_datasets, of_victims, presentation
from leakboard.conformance.promises import Broken, NotChecked, Promise
from leakboard.conformance.subjects import Subject
from leakboard.errors import one_line, plugin_line
from leakboard.suite.form import line_of
from leakboard.suite.registry import BrokenPlugin

PROMISES = [
    value
    for module in (presentation, of_datasets, of_victims, of_attacks)
    for value in vars(module).values()
    if isinstance(value, Promise)
]
"""All promises, in the order in which they are checked."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of checking one promise of one plugin."""

    promise: Promise
    status: Literal["passed", "failed", "skipped"]
    reason: str = ""
    """Why it failed or was skipped, or a remark on a promise that is kept."""
    location: str = ""
    """File and line of the plugin, if a check failed."""


def promises_of(kind: str) -> list[Promise]:
    """Return the promises of plugins of a kind."""
    return [promise for promise in PROMISES if kind in promise.kinds]


def outcomes(subject: Subject) -> Iterator[Outcome]:
    """Check a plugin's promises in turn; if a required promise is not kept, skip the promises after it."""
    missing = ""
    for promise in promises_of(subject.listing.kind):
        outcome = Outcome(promise, "skipped", f"requires: {missing}") if missing else examine(promise, subject)
        yield outcome
        if promise.is_required and outcome.status != "passed":
            missing = missing or promise.name


def examine(promise: Promise, subject: Subject) -> Outcome:
    """Check one promise of one plugin; any error that the plugin raises is a failure."""
    try:
        return Outcome(promise, "passed", promise.check(subject) or "")
    except NotChecked as error:
        return Outcome(promise, "skipped", str(error))
    except Broken as error:
        location = (line_of(error.part) if error.part else "") or subject.line
        return Outcome(promise, "failed", str(error), location)
    except BrokenPlugin as error:
        return Outcome(promise, "failed", str(error))  # the message has the location
    except (Exception, SystemExit) as error:  # a plugin that ends its process fails its own check
        return Outcome(promise, "failed", one_line(error), plugin_line(error) or subject.line)
