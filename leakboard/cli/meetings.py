"""Which attacks meet which victims: an attack needs documents, words or releases, and victims publish some of these."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakboard.suite.registry import BrokenPlugin, Registry


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
