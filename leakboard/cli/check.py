"""Run the conformance suite for the plugins that a user names (``check``)."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakboard.errors import RequestError, nearest
from leakboard.suite.registry import FOLDERS, Listing, Registry


def chosen_plugins(registry: Registry, kind: str, name: str) -> list[Listing]:
    """Return the plugins to check: the named one, or the files of ``--plugin``.

    Raises:
        RequestError: the kind or the name is unknown, or no plugin is named.
    """
    singular = [plural[:-1] for plural in FOLDERS]
    if kind and kind not in singular:
        raise RequestError(f"check: {kind!r} is not one of {', '.join(singular)}{nearest(kind, singular)}")
    if kind:
        names = ", ".join(listing.name for listing in registry.listings(f"{kind}s"))
        if not name:
            raise RequestError(f"check: which {kind}? There are: {names}")
        return [registry.find(f"{kind}s", name, "check")]
    files = {path.resolve() for path in registry.files}
    listings = [item for plural in FOLDERS for item in registry.listings(plural)]
    given = {item.origin: item for item in listings if Path(item.origin).resolve() in files}
    if not given:
        raise RequestError(
            "check: name a plugin, as in `check victim lstm`, or give its file, as in `--plugin mine.py`"
        )
    return list(given.values())


def check_plugins(console: Console, registry: Registry, listings: Sequence[Listing]) -> bool:
    """Check the plugins, print a table each, and return whether every checked promise is kept.

    A plugin that cannot be loaded, since a library is missing, has not passed.
    """
    from leakboard.board.schema import COLUMNS
    from leakboard.conformance.subjects import Group
    from leakboard.conformance.suite import outcomes
    from leakboard.execution.resources import silence_libraries

    silence_libraries()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        group = Group(registry, listings, Path(folder), taken={column.name for column in COLUMNS})
        for subject in group.subjects.values():
            table = Table("promise", "", "why, and where", box=None, pad_edge=False)
            table.title, table.title_justify = Text(f"{subject.name} ({subject.listing.origin})"), "left"
            counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
            first = None
            for outcome in outcomes(subject):
                first = first or outcome
                counts[outcome.status] += 1
                why = f"{outcome.reason} ({outcome.location})" if outcome.location else outcome.reason
                text = f"{why}\npromised: {outcome.promise.text}" if outcome.status == "failed" else why
                table.add_row(Text(outcome.promise.name), Text(outcome.status), Text(text))
            console.print(table)
            console.print(Text(", ".join(f"{count} {status}" for status, count in counts.items()) + "\n"))
            good = good and not counts["failed"] and first is not None and first.status == "passed"
    return good
