"""A promise of the contract, how a check says that it is broken, and what came of a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leakboard.conformance.expect import Broken, NotChecked
from leakboard.errors import one_line, plugin_line
from leakboard.suite.form import line_of
from leakboard.suite.registry import BrokenPlugin

if TYPE_CHECKING:
    from leakboard.conformance.subjects import Subject

Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Promise:
    """One thing that plugins of some kinds promise, and the function that checks it."""

    name: str
    kinds: tuple[str, ...]
    text: str
    """What is promised, in a sentence."""
    check: Callable[[Subject], str | None]
    """Raises `Broken` where the promise is broken; may return a remark."""
    opens: bool = False
    """Whether the promises after it cannot be checked where this one is broken."""


def promise(*kinds: str, opens: bool = False) -> Callable[[Callable[[Subject], str | None]], Promise]:
    """Make a function the check of a promise: its name and its docstring are the promise's."""

    def decorate(function: Callable[[Subject], str | None]) -> Promise:
        text = " ".join((function.__doc__ or "").split())
        return Promise(function.__name__.replace("_", " "), kinds, text, function, opens)

    return decorate


@dataclass(frozen=True)
class Outcome:
    """What came of checking one promise of one plugin."""

    promise: Promise
    status: Status
    reason: str = ""
    """Why it failed or was skipped, or a remark on what passed."""
    place: str = ""
    """File and line of the plugin, of a failure alone."""


def examine(promise: Promise, subject: Subject) -> Outcome:
    """Check one promise of one plugin; whatever the plugin raises is a failure."""
    try:
        return Outcome(promise, "passed", promise.check(subject) or "")
    except NotChecked as error:
        return Outcome(promise, "skipped", str(error))
    except Broken as error:
        place = (line_of(error.part) if error.part else "") or subject.line
        return Outcome(promise, "failed", str(error), place)
    except BrokenPlugin as error:
        return Outcome(promise, "failed", str(error))  # which names the place
    except (Exception, SystemExit) as error:  # a plugin that ends its process fails its own check
        return Outcome(promise, "failed", one_line(error), plugin_line(error) or subject.line)
