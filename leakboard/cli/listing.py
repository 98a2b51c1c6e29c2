"""Print plugins and suites (``list``), which attacks apply to which victims, and one plugin (``show``).

An attack needs documents, words, texts or releases; a victim publishes some of these.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakboard.store import file_checksum
from leakboard.suite import options
from leakboard.suite.registry import BrokenPlugin, Registry


def print_list(console: Console, registry: Registry, kind: str) -> None:
    """Print the suites or the plugins of a kind, a line each."""
    table = Table("name", "what it is", title=kind, title_justify="left", box=None, pad_edge=False)
    table.add_column("availability", overflow="fold")  # an address must stay whole
    plugins = registry.listings(kind) if kind != "suites" else ()
    rows = [(item.name, _plain(item.summary), registry.availability(item)) for item in plugins]
    for row in rows if kind != "suites" else _suites():
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()


def _plain(text: str) -> str:
    """Return a docstring without the double backticks around code."""
    return text.replace("``", "`")


def _suites() -> list[tuple[str, str, str]]:
    from leakboard.suite.suites import find_suite, suite_names
    from leakboard.suite.yaml_files import read_yaml

    rows = []
    for name in suite_names():
        path = find_suite(name)
        try:
            rows.append((name, str(read_yaml(path)["description"]), _published(path)))
        except (ValueError, TypeError, KeyError) as error:
            rows.append((name, "", f"broken: {' '.join(str(error).removeprefix(f'{path}: ').split())[:100]}"))
    return rows


def _published(suite: Path) -> str:
    meta = suite.with_name("meta.json")
    if not meta.is_file():
        return "to be computed"
    same = json.loads(meta.read_text("utf-8"))["suite_sha256"] == file_checksum(suite)
    return "published" if same else "published before the suite was changed"


def publications(registry: Registry, kind: str) -> dict[str, tuple[str, ...]]:
    """Return the publications of every victim, or the one that each attack needs.

    Plugins are imported; a broken plugin has no entry.
    """
    result = {}
    for listing in registry.listings(kind):
        try:
            cls = registry.load_whole(kind, listing.name)
        except BrokenPlugin:  # the list has the reason
            continue
        result[listing.name] = cls.publishes if kind == "victims" else (cls.threat.needs,)
    return result


def print_meetings(console: Console, registry: Registry) -> None:
    """Print for each attack the publication that it needs, and the victims that publish it."""
    victims, attacks = (publications(registry, kind) for kind in ("victims", "attacks"))
    table = Table("attack", "needs", "victims that publish it", title="which attacks meet which victims")
    table.title_justify, table.box, table.pad_edge = "left", None, False
    for name, (needed,) in sorted(attacks.items(), key=lambda item: (item[1], item[0])):
        met = [victim for victim, published in victims.items() if needed in published]
        table.add_row(Text(name), Text(needed), Text(", ".join(met) or "none"))
    console.print(table)


def what_meets(registry: Registry, kind: str, name: str) -> str:
    """Return in one line which victims an attack applies to, or which attacks apply to a victim.

    Args:
        registry: all plugins.
        kind: ``victims`` or ``attacks``.
        name: of a plugin of this kind.
    """
    publication = set(publications(registry, kind).get(name, ()))
    opposite = "attacks" if kind == "victims" else "victims"
    met = [plugin for plugin, names in publications(registry, opposite).items() if publication & set(names)]
    verb = "publishes" if kind == "victims" else "needs"
    return f"{verb} {', '.join(sorted(publication)) or 'nothing'}; meets the {opposite} {', '.join(met) or 'none'}"


def print_plugin(console: Console, name: str, plugin: type) -> None:
    """Print a plugin's description and its options."""
    module = inspect.getmodule(plugin)
    console.print(f"{name}: {_plain(inspect.getdoc(module) or '')}", markup=False, highlight=False)
    console.print()
    table = Table("option", "allowed", "default", "what it does", box=None, pad_edge=False)
    for option in options.describe(plugin):
        table.add_row(*(Text(part) for part in (option.name, option.allowed, option.default, _plain(option.text))))
    console.print(table)
