"""What the rows of a suite's tables are called.

An entry is called what its ``name`` says. Without one it is its plugin with those options that tell it from the suite's
other entries of that plugin: what a grid varies, and what differs from the defaults but is not the same in all of them.
Options that are the same in all are told once. The full options stand in a column of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leakboard.errors import RequestError
from leakboard.suite.cells import Choice, Source

KINDS = ("dataset", "victim", "attack")

NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def natural(text: str) -> tuple[list[str | float], str]:
    """Return the key by which names are sorted for people: ``k=9`` before ``k=10``, and ``1e-05`` before ``0.1``.

    Published tables are sorted by the names' letters: their bytes stay.
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
        """Return what an entry is called; without a name of its own, its label."""
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
            alike = [entry for entry in entries if entry.name == plugin]
            same = set.intersection(*(set(entry.changed.items()) for entry in alike))
            names |= {(kind, entry.label): _name(entry, same) for entry in sorted(alike, key=lambda e: bool(e.title))}
            if same:
                common[plugin] = ", ".join(f"{key}={value}" for key, value in sorted(same))
        _refuse_twice([name for (of_kind, _), name in names.items() if of_kind == kind], f"{location} {kind}s")
    return Names(names, common)


def _name(entry: Source | Choice, same: set[tuple[str, str]]) -> str:
    """Return what an entry is called, given the options that it shares with all entries of its plugin."""
    told = {key: value for key, value in entry.changed.items() if (key, value) not in same and not entry.title}
    told |= entry.varied
    options = ", ".join(f"{key}={value}" for key, value in sorted(told.items()))
    return f"{entry.title or entry.name} ({options})" if options else entry.title or entry.name


def _refuse_twice(names: Iterable[str], location: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise RequestError(f"{location}: two entries are called {name!r}")
        seen.add(name)
