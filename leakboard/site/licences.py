"""List the licence of every package that an installation of LeakBoard needs, from what the packages say themselves.

A package says its licence in ``License-Expression`` (SPDX), in classifiers, or in ``License``; the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import NamedTuple

from packaging.requirements import Requirement

UNKNOWN = "unknown"
MOST_LETTERS = 120
"""A longer text in ``License`` is the licence itself."""


class Licence(NamedTuple):
    """A package with its licence."""

    package: str
    version: str
    licence: str
    direct: bool
    """Whether LeakBoard names the package itself."""


def licences(package: str = "leakboard", find: Callable[[str], Distribution] = distribution) -> list[Licence]:
    """Return every installed package that a package needs, and those that these need; extras are left out.

    Args:
        package: it is not in the list itself.
        find: returns an installed package, as `importlib.metadata.distribution` does.

    Raises:
        PackageNotFoundError: the package is not installed. Needed ones that are not are left out: they belong to other
            systems.
    """
    direct = set(_needs(find(package), frozenset()))
    found: dict[str, Distribution] = {}
    waiting, seen = list(direct), set[tuple[str, frozenset[str]]]()
    while waiting:
        need = waiting.pop()
        if need in seen:
            continue
        seen.add(need)
        try:
            found[need[0]] = find(need[0])
        except PackageNotFoundError:
            continue
        waiting += _needs(found[need[0]], need[1])
    names = {name for name, _ in direct}
    return [Licence(name, made.version, licence_of(made), name in names) for name, made in sorted(found.items())]


def licence_of(made: Distribution) -> str:
    """Return the licence that a package says it has; `UNKNOWN`: it says none."""
    metadata = made.metadata
    classifiers: Iterable[str] = metadata.get_all("Classifier") or ()
    classified = [name.split(" :: ")[-1] for name in classifiers if name.startswith("License :: ")]
    expressions, texts = (metadata.get_all(name) or () for name in ("License-Expression", "License"))
    named = (*expressions, "; ".join(classified), *texts)
    return next((" ".join(text.split())[:MOST_LETTERS] for text in named if text.strip()), UNKNOWN)


def _needs(made: Distribution, extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """Return the names of packages that a package needs here, each with the extras that it asks for."""
    needs = []
    for text in made.requires or ():
        need = Requirement(text)
        environments: list[Mapping[str, str]] = [{"extra": extra} for extra in ("", *extras)]
        if need.marker is None or any(need.marker.evaluate(dict(environment)) for environment in environments):
            needs.append((re.sub(r"[-_.]+", "-", need.name).lower(), frozenset(need.extras)))
    return needs
