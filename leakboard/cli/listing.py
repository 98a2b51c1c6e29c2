"""``list``: what there is, whether it can be used, and which attacks meet which victims. ``show``: one plugin.

An attack needs documents, words or releases, and a victim publishes some of these.
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
    """Print the suites, or the plugins of a kind, with a line each."""
    table = Table("name", "what it is", title=kind, title_justify="left", box=None, pad_edge=False)
    table.add_column("availability", overflow="fold")  # an address is of use only when it is whole
    plugins = registry.listings(kind) if kind != "suites" else ()
    rows = [(item.name, item.summary, registry.availability(item)) for item in plugins]
    for row in rows if kind != "suites" else _suites():
        table.add_row(*map(Text, row))
    console.print(table)
    console.print()


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
    """Return for every victim what it publishes, or for every attack the one publication that it needs.

    Plugins are imported; those that cannot be used as they are have no entry.
    """
    found = {}
    for listing in registry.listings(kind):
        try:
            cls = registry.load_whole(kind, listing.name)
        except BrokenPlugin:  # whose reason stands in the list itself
            continue
        found[listing.name] = cls.publishes if kind == "victims" else (cls.threat.needs,)
    return found


def print_meetings(console: Console, registry: Registry) -> None:
    """Print a row an attack: what it needs, and the victims that publish it."""
    victims, attacks = (publications(registry, kind) for kind in ("victims", "attacks"))
    table = Table("attack", "needs", "victims that publish it", title="which attacks meet which victims")
    table.title_justify, table.box, table.pad_edge = "left", None, False
    for name, (needed,) in sorted(attacks.items(), key=lambda item: (item[1], item[0])):
        met = [victim for victim, published in victims.items() if needed in published]
        table.add_row(Text(name), Text(needed), Text(", ".join(met) or "none"))
    console.print(table)


def what_meets(registry: Registry, kind: str, name: str) -> str:
    """Return in one line which victims an attack meets, or which attacks a victim.

    Args:
        registry: all plugins.
        kind: ``victims`` or ``attacks``.
        name: of a plugin of this kind.
    """
    own = set(publications(registry, kind).get(name, ()))
    other = "attacks" if kind == "victims" else "victims"
    met = [found for found, theirs in publications(registry, other).items() if own & set(theirs)]
    verb = "publishes" if kind == "victims" else "needs"
    return f"{verb} {', '.join(sorted(own)) or 'nothing'}; meets the {other} {', '.join(met) or 'none'}"


def print_plugin(console: Console, name: str, plugin: type) -> None:
    """Print a plugin's description and its options."""
    module = inspect.getmodule(plugin)
    console.print(f"{name}: {inspect.getdoc(module) or ''}", markup=False, highlight=False)
    console.print()
    table = Table("option", "allowed", "default", "what it does", box=None, pad_edge=False)
    for option in options.describe(plugin):
        table.add_row(*(Text(part) for part in (option.name, option.allowed, option.default, option.text)))
    console.print(table)
