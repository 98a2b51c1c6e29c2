"""Name the rows of a suite's tables.

An entry has the name that its ``name`` gives. Without one it is its plugin with two kinds of options. The first are the
options that its grid varies. The second differ from their defaults, but not equally in all entries of the plugin.
`Names.common` lists the options that all entries of a plugin share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from leakboard.errors import RequestError
from leakboard.suite.cells import Choice, Source

T = TypeVar("T")

KINDS = ("dataset", "victim", "attack")
NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def natural(text: str) -> tuple[list[str | float], str]:
    """Return a sorting key for people: ``k=9`` comes before ``k=10``, and ``1e-05`` before ``0.1``.

    Published tables are sorted by letters instead, so that their bytes stay.
    """
    parts: list[str | float] = [*NUMBER.split(text)]
    parts[1::2] = map(float, parts[1::2])
    return parts, text


@dataclass(frozen=True)
class Names:
    """The displayed names of a suite's datasets, victims and attacks."""

    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By kind and label: a label is the plugin with all options that differ from their defaults or are always named."""
    common: Mapping[str, str] = field(default_factory=dict)
    """By plugin, the options that all of its entries share and that differ from the defaults."""

    def name(self, kind: str, label: str) -> str:
        """Return the displayed name of an entry, or its label where it has none."""
        return self.names.get((kind, label), label)

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with names instead of labels, in the columns of the three kinds."""
        return {**row, **{kind: self.name(kind, str(row[kind])) for kind in KINDS if row.get(kind)}}


def display_names(
    sources: Sequence[Source], victims: Sequence[Choice], attacks: Sequence[Choice], location: str
) -> Names:
    """Return the names of a suite's entries.

    Raises:
        RequestError: two entries of a kind would have one name.
    """
    names: dict[tuple[str, str], str] = {}
    common: dict[str, str] = {}
    kinds: dict[str, Sequence[Source | Choice]] = {"dataset": sources, "victim": victims, "attack": attacks}
    for kind, entries in kinds.items():
        for plugin in dict.fromkeys(entry.name for entry in entries):
            of_plugin = [entry for entry in entries if entry.name == plugin]
            shared = set.intersection(*(set(entry.changed.items()) for entry in of_plugin))
            of_plugin.sort(key=lambda entry: bool(entry.title))  # a given name replaces another of the same label
            names |= {(kind, entry.label): _name(entry, shared) for entry in of_plugin}
            if shared:
                common[plugin] = _listed(shared)
        if twice := repeated(name for (of_kind, _), name in names.items() if of_kind == kind):
            raise RequestError(f"{location} {kind}s: two entries are called {twice[0]!r}")
    return Names(names, common)


def _name(entry: Source | Choice, shared: set[tuple[str, str]]) -> str:
    """Return an entry's name, given the options that it shares with all entries of its plugin."""
    shown = {} if entry.title else dict(entry.changed.items() - shared)
    options = _listed((shown | entry.varied).items())
    return f"{entry.title or entry.name} ({options})" if options else entry.title or entry.name


def _listed(options: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(options))


def repeated(names: Iterable[T]) -> list[T]:
    """Return what occurs more than once."""
    return [name for name, count in Counter(names).items() if count > 1]
