"""Say what published boards call victims, attacks and datasets, and which papers they come from (``sources.yaml``).

One thing has one name on all published boards, whatever the suites call it. Boards of users keep their own names.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leakboard.suite.labels import parse
from leakboard.suite.names import KINDS
from leakboard.suite.suites import suite_folder
from leakboard.suite.yaml_files import read_yaml

FILE = "sources.yaml"


@dataclass(frozen=True)
class Paper:
    """A paper, with the addresses of its page and, if there is any, of its authors' code."""

    title: str
    url: str
    code: str = ""


@dataclass(frozen=True)
class Source:
    """A victim, attack or dataset, by its plugin and some of its options."""

    plugin: str
    options: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    name: str = ""
    always: tuple[str, ...] = ()
    """Options that follow the name wherever a label has them."""
    paper: Paper | None = None
    about: str = ""
    """A sentence about the victim, for its page; empty: that of its plugin."""
    encoder: str = ""
    """Name of the undefended encoder across boards; empty: it is none."""
    control: bool = False
    """Whether the mechanism was planted to test audits."""
    repaired: bool = False
    """Whether LeakBoard changed the paper's mechanism: its claim is not the paper's."""

    def matches(self, label: str) -> bool:
        """Return whether a label is of this plugin, with these options."""
        plugin, options = parse(label)
        given = {name: (value, parse(value)[0]) for name, value in options.items()}
        return (
            plugin == self.plugin
            and all(value in given.get(name, ()) for name, value in self.options.items())
            and not any(name in options for name in self.without)
        )


@functools.cache
def sources() -> Mapping[str, tuple[Source, ...]]:
    """Return the entries of ``sources.yaml`` by kind; none if there is no such file."""
    path = suite_folder() / FILE
    content: dict[str, Any] = read_yaml(path) if path.is_file() else {}
    papers = {key: Paper(**entry) for key, entry in content.get("papers", {}).items()}

    def source(entry: dict[str, Any]) -> Source:
        lists = {name: tuple(entry[name]) for name in ("without", "always") if name in entry}
        fields: dict[str, Any] = entry | lists
        return Source(**{**fields, "paper": papers[entry["paper"]] if "paper" in entry else None})

    return {kind: tuple(map(source, content.get(kind, ()))) for kind in KINDS}


def source_of(kind: str, label: str) -> Source | None:
    """Return the first entry that matches a label; None if there is none."""
    return next((source for source in sources()[kind] if source.matches(label)), None)


def common_names(names: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """Return the names of one board's victims, attacks and datasets, as all published boards call them.

    Two labels never get the same name: options that differ are added, or else both keep the names that they have.

    Args:
        names: by kind and label, the names of the board's own tables.
    """
    common: dict[tuple[str, str], str] = {}
    for kind in KINDS:
        own = {label: name for (of, label), name in names.items() if of == kind}
        first = {label: _named(kind, label, ()) or name for label, name in own.items()}
        made = {label: _told_apart(kind, label, _same(first, label)) or own[label] for label in own}
        counts = Counter(made.values())
        common |= {(kind, label): name if counts[name] == 1 else own[label] for label, name in made.items()}
    return common


def _same(names: Mapping[str, str], label: str) -> list[str]:
    return [other for other, name in names.items() if name == names[label]]


def _told_apart(kind: str, label: str, same: Iterable[str]) -> str:
    """Return the name of a label with the options in which labels of the same name differ."""
    options = [parse(other)[1] for other in same]
    every = sorted({name for given in options for name in given})
    return _named(kind, label, [name for name in every if len({given.get(name) for given in options}) > 1])


def _named(kind: str, label: str, more: Iterable[str]) -> str:
    """Return the common name of a label, with these options behind it; empty if it has none."""
    source = source_of(kind, label)
    if source is None or not source.name:
        return ""
    options = parse(label)[1]
    shown = [name for name in dict.fromkeys((*source.always, *more)) if name in options]
    behind = ", ".join(f"{name}={options[name].removesuffix('.0')}" for name in shown)
    return f"{source.name} ({behind})" if behind else source.name
