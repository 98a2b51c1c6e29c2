"""Check how a plugin presents itself: its class, its documentation, its import and its example."""

from __future__ import annotations

import inspect

from leakboard.conformance.promises import NotChecked, expect, promise
from leakboard.conformance.subjects import Subject
from leakboard.conformance.values import digest
from leakboard.suite.code import revision
from leakboard.suite.form import complaint
from leakboard.suite.options import as_dict, describe
from leakboard.suite.registry import FOLDERS


@promise(*FOLDERS, is_required=True)
def is_complete(subject: Subject) -> None:
    """It can be imported, is of its kind, and declares its publications or its threat. No column is LeakBoard's."""
    if "not installed" in subject.listing.problem:
        raise NotChecked(subject.listing.problem)
    reason = complaint(subject.cls, subject.listing.kind)
    expect(not reason, reason)
    if subject.listing.kind == "attacks":
        threat = type(subject.cls.threat)
        taken = [column.name for column in threat.columns if column.name in subject.group.taken]
        expect(not taken, f"its threat adds the column {''.join(taken[:1])!r}, which LeakBoard has", threat)


@promise(*FOLDERS)
def is_documented(subject: Subject) -> None:
    """Its module begins with a docstring that describes it, and every option has a line of documentation below it."""
    first = (inspect.getdoc(inspect.getmodule(subject.cls)) or "").partition("\n")[0]
    expect(first.endswith((".", ":", ",")) or len(first) > 20, f"its module's docstring begins with {first!r}")
    undocumented = [option.name for option in describe(subject.cls) if not option.text]
    expect(not undocumented, f"options without a line beneath them: {', '.join(undocumented)}")


@promise(*FOLDERS)
def may_be_published_once_it_declares_a_revision(subject: Subject) -> str:
    """It declares the revision of its results. Without a revision it can be run, but not published."""
    return "" if revision(subject.cls) else "it declares no revision yet"


@promise(*FOLDERS)
def imports_without_side_effects(subject: Subject) -> None:
    """Importing it writes no file, makes no folder, sets no variable and uses no network."""
    effects, left = subject.group.subprocess_imports
    expect(not effects[subject.name], f"when it is imported: {'; '.join(effects[subject.name])}")
    expect(not left, f"after importing there are files in the home folder: {', '.join(left)}")


@promise(*FOLDERS, is_required=True)
def gives_an_example(subject: Subject) -> None:
    """Its example is of its own class, and the same each time."""
    first, second = subject.plugin, subject.example()
    expect(type(first) is subject.cls, f"its example is a {type(first).__name__}", subject.cls.example)
    expect(digest(as_dict(first)) == digest(as_dict(second)), "its example differs each time", subject.cls.example)
    if subject.listing.kind != "datasets":  # files of datasets may be missing
        same = first.fingerprint() == second.fingerprint()
        expect(same, "its fingerprint differs each time", subject.cls.fingerprint)
