"""How a plugin presents itself."""

from __future__ import annotations

import inspect

from leakboard.conformance.expect import NotChecked, expect
from leakboard.conformance.promises import promise
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import digest
from leakboard.suite.code import revision
from leakboard.suite.form import complaint
from leakboard.suite.options import as_dict, describe
from leakboard.suite.registry import KINDS


@promise(*KINDS, opens=True)
def is_whole(subject: Subject) -> None:
    """It can be imported, is of its kind, and says what it publishes or which threat it is an attack of."""
    if "not installed" in subject.listing.problem:
        raise NotChecked(subject.listing.problem)
    reason = complaint(subject.cls, subject.listing.kind)
    expect(not reason, reason)


@promise(*KINDS)
def is_documented(subject: Subject) -> None:
    """Its module starts with a line that says what it is, and every option has a line beneath it."""
    module = inspect.getmodule(subject.cls)
    first = (inspect.getdoc(module) or "").partition("\n")[0]
    expect(first.endswith((".", ":", ",")) or len(first) > 20, f"its module's docstring begins with {first!r}")
    undocumented = [option.name for option in describe(subject.cls) if not option.text]
    expect(not undocumented, f"options without a line beneath them: {', '.join(undocumented)}")


@promise(*KINDS)
def declares_a_revision(subject: Subject) -> str:
    """It declares the revision of its results; without one it may be run, not published."""
    return "" if revision(subject.cls) else "no revision: it may be run, not published"


@promise(*KINDS)
def importing_it_is_free(subject: Subject) -> None:
    """Importing it writes nothing, makes no folder, sets no variable and asks no network."""
    done, left = subject.group.imported
    expect(not done[subject.name], f"when it is imported: {'; '.join(done[subject.name])}")
    expect(not left, f"after importing there are files in the home folder: {', '.join(left)}")


@promise(*KINDS, opens=True)
def gives_an_example_of_itself(subject: Subject) -> None:
    """Its example is of its own class, and the same each time."""
    first, again = subject.plugin, subject.example()
    expect(type(first) is subject.cls, f"its example is a {type(first).__name__}", subject.cls.example)
    expect(digest(as_dict(first)) == digest(as_dict(again)), "its example differs each time", subject.cls.example)
    if subject.listing.kind != "datasets":  # their files may not be here
        same = first.fingerprint() == again.fingerprint()
        expect(same, "its fingerprint differs each time", subject.cls.fingerprint)


def same_elsewhere(subject: Subject, made: str, part: object) -> None:
    """Refuse what is otherwise in another process, whose hashes of text are salted otherwise.

    Args:
        subject: the plugin.
        made: the digest of what it made here.
        part: of the plugin, that made it.

    Raises:
        Broken: another process makes something else, or nothing.
    """
    answer = subject.group.elsewhere[subject.name]
    expect(not answer.failure, f"in another process: {answer.failure}", part)
    expect(answer.digest == made, "another process makes something else of the same seed", part)
