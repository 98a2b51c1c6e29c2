"""Read suites: YAML files that name datasets, victims and attacks, and so ask for cells."""

from __future__ import annotations

import itertools
import json
import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

import leakboard
from leakboard.errors import RequestError, nearest, one_line
from leakboard.store import digest, file_checksum
from leakboard.suite import options
from leakboard.suite.cells import Cell, Choice, Conditions, Source
from leakboard.suite.files import FOLDER, relative_to
from leakboard.suite.form import PUBLICATIONS
from leakboard.suite.instances import as_entries
from leakboard.suite.names import Names, display_names, repeated
from leakboard.suite.registry import BrokenPlugin, Registry
from leakboard.suite.suite_file import DEVICES, REGIMES, Entries, Seeds, SuiteFile, VictimNames
from leakboard.suite.yaml_files import read_yaml

MAX_CELLS = 50_000
FOLDER_NAME = re.compile(r"\w[\w .-]*")
KEPT = ".evaluate.txt"
"""File of a folder in which an evaluation keeps its suite, called ``suite``. The next evaluation may overwrite it."""


@dataclass(frozen=True)
class Suite:
    """A validated suite."""

    name: str
    path: Path
    """The YAML file; ``suite`` for a mapping."""
    checksum: str
    """SHA-256 of the file's bytes, or of the mapping's canonical JSON."""
    file: SuiteFile
    sources: tuple[Source, ...]
    victims: tuple[Choice, ...]
    attacks: tuple[Choice, ...]
    conditions: Conditions
    names: Names

    @property
    def home(self) -> Path:
        """The folder that it is published in."""
        return home_of(self.path)

    def on(self, device: str | None) -> Suite:
        """Return the suite with another device; None keeps the suite's.

        Raises:
            RequestError: it is not ``auto``, ``cpu`` or ``cuda``.
        """
        if device is None:
            return self
        if device not in DEVICES:
            raise RequestError(f"device: {device!r} is not one of {', '.join(DEVICES)}{nearest(device, DEVICES)}")
        return replace(self, file=self.file.model_copy(update={"device": device}))

    def cells(self, seeds: Sequence[int] | None = None, only: Mapping[str, Sequence[str]] | None = None) -> list[Cell]:
        """Return the cells in order; cells of one fitted victim follow each other.

        Args:
            seeds: instead of all seeds of the suite and of its victims.
            only: keep cells whose ``dataset``, ``victim`` or ``attack`` is one of these: plugins, labels or names.

        Raises:
            RequestError: a seed is listed twice, or ``only`` keeps nothing.
        """
        _refuse_seeds_twice(seeds or (), "seeds")
        cells = [
            Cell(source, victim, attack, seed)
            for source, victim in itertools.product(self.sources, self.victims)
            if not source.victims or self.names.name("victim", victim.label) in source.victims
            for seed, attack in itertools.product(
                seeds or victim.seeds or self.file.seeds, source.attacks or victim.attacks or self.attacks
            )
        ]
        for key, wanted in (only or {}).items():
            names = sorted({name for cell in cells for name in self._names_of(cell, key)})
            for name in wanted:
                if name not in names:
                    raise RequestError(
                        f"--only {key}={name}: no such cell (there are: {', '.join(names)}){nearest(name, names)}"
                    )
            cells = [cell for cell in cells if set(wanted) & set(self._names_of(cell, key))]
        return cells

    def _names_of(self, cell: Cell, kind: str) -> tuple[str, str, str]:
        entries: dict[str, Source | Choice] = {"dataset": cell.source, "victim": cell.victim, "attack": cell.attack}
        entry = entries[kind]
        return entry.name, entry.label, self.names.name(kind, entry.label)


def suite_folder() -> Path:
    """Return the folder of the suites that come with LeakBoard."""
    return next(
        Path(root) / "leaderboards" for root in reversed(leakboard.__path__) if (Path(root) / "leaderboards").is_dir()
    )


def suite_names() -> list[str]:
    """Return the names under ``leaderboards/``."""
    return sorted(path.parent.name for path in suite_folder().glob("*/suite.yaml"))


def find_suite(name: str) -> Path:
    """Return the YAML file of a suite, by name or path.

    Raises:
        RequestError: there is none; the message offers the nearest name.
    """
    names = suite_names()
    if name in names:
        return suite_folder() / name / "suite.yaml"
    path = Path(name)
    if path.is_dir():
        path = path / "suite.yaml"
    if path.is_file():
        return path
    raise RequestError(f"no suite {name!r}: neither a file nor one of {', '.join(names)}{nearest(name, names)}")


def home_of(path: Path) -> Path:
    """Return the folder that a suite is published in: that of a ``suite.yaml``, else one named after the file."""
    return path.parent if path.name == "suite.yaml" else path.with_suffix("")


def load_suite(suite: str | Path | Mapping[str, Any], registry: Registry) -> Suite:
    """Read and validate a suite: a name under ``leaderboards/``, a path, or the content of a YAML file.

    A mapping may have plugin instances in place of entries.

    Raises:
        RequestError: one line with the file (``suite`` for a mapping), the path inside it, the value, the allowed
            values and the nearest name.
    """
    if not isinstance(suite, Mapping):
        path = find_suite(str(suite))
        return _validated(read_yaml(path), path, file_checksum(path), registry)
    content = as_entries(suite, registry, "suite")
    try:
        checksum = digest(content)
    except (TypeError, ValueError) as error:
        raise RequestError(f"suite: not what a YAML file can hold ({one_line(error)})") from None
    return _validated(content, Path("suite"), checksum, registry)


def _validated(content: Any, path: Path, checksum: str, registry: Registry) -> Suite:
    if not isinstance(content, dict):
        raise RequestError(f"{path}: {reprlib.repr(content)} is not a mapping of {', '.join(SuiteFile.model_fields)}")
    try:
        file = SuiteFile.model_validate(content)
    except ValidationError as error:
        raise RequestError(options.explain(error, f"{path}:", SuiteFile.model_fields).replace(":.", ": ", 1)) from None
    with relative_to(path.parent):
        return _built(file, path, checksum, registry)


def _built(file: SuiteFile, path: Path, checksum: str, registry: Registry) -> Suite:
    """Return a suite with its plugins built; file names in their options are relative to the suite's folder."""
    victims = _entries(registry, "victims", file.victims, f"{path}: victims")
    if file.attacks == "all":
        attacks: tuple[Choice, ...] = ()
        victims = tuple(replace(v, attacks=v.attacks or _all_attacks(registry, v, path)) for v in victims)
    else:
        attacks = _entries(registry, "attacks", file.attacks, f"{path}: attacks")
    sources = [_source(registry, entry, f"{path}: datasets[{i}]") for i, entry in enumerate(file.datasets)]
    _refuse_twice(sources, f"{path}: datasets")
    _refuse_seeds_twice(file.seeds, f"{path}: seeds")
    absolute = path.resolve()
    of_board = absolute.name == "suite.yaml" and not (absolute.parent / KEPT).is_file()
    name = absolute.parent.name if of_board else absolute.stem
    if not FOLDER_NAME.fullmatch(name):
        raise RequestError(
            f"{path}: {name!r} cannot be a suite's name, which names a folder: allowed are letters, digits, "
            "_, -, blanks and dots, the first a letter, digit or _"
        )
    if file.queries and not file.gold:
        raise RequestError(f"{path}: queries: without gold there is nothing to compare their neighbours with")
    location = f"{path}: gold"
    gold = _choice(registry, "victims", *_split_entry(file.gold, location)[:2], location) if file.gold else None
    count = sum(
        len(victim.seeds or file.seeds) * len(source.attacks or victim.attacks or attacks)
        for source, victim in itertools.product(sources, victims)
    )
    if count > MAX_CELLS:
        raise RequestError(f"{path}: {count:,} cells; allowed: {MAX_CELLS:,}")
    conditions = Conditions(file.threads, file.text_classifier, gold, tuple(file.queries or ()))
    own_attacks = [*(source.attacks for source in sources), *(victim.attacks for victim in victims)]
    every_attack = [*attacks, *itertools.chain(*own_attacks)]
    names = display_names(sources, victims, every_attack, f"{path}:")
    shown = [names.name("victim", victim.label) for victim in victims]
    _require_victims(file.projected, shown, f"{path}: projected")
    _require_victims(file.undefended, shown, f"{path}: undefended")
    for i, source in enumerate(sources):
        _require_victims(source.victims, shown, f"{path}: datasets[{i}].{source.name}.victims")
    return Suite(name, path, checksum, file, tuple(sources), victims, attacks, conditions, names)


def _require_victims(names: Sequence[str], shown: Sequence[str], location: str) -> None:
    """Raise an error if a victim of these names is not among those of the suite."""
    for name in names:
        if name not in shown:
            raise RequestError(
                f"{location}: no victim is called {name!r} (there are: {'; '.join(shown)}){nearest(name, shown)}"
            )


def _split_entry(entry: str | dict[str, Any], location: str) -> tuple[str, dict[str, Any], str]:
    """Return an entry's plugin, its options, and the name that the entry gives, or an empty string."""
    if isinstance(entry, str):
        return entry, {}, ""
    plugins = {plugin: given for plugin, given in entry.items() if plugin != "name"}
    title = entry.get("name", "")
    if len(plugins) != 1:
        raise RequestError(
            f"{location}: {json.dumps(entry)} is not one plugin with its options; "
            "allowed: plugin, or plugin: {option: value}, with or without name: text next to it"
        )
    ((plugin, given),) = plugins.items()
    if given is not None and not isinstance(given, dict):
        raise RequestError(f"{location}.{plugin}: {reprlib.repr(given)} is not a mapping of options")
    is_line = isinstance(title, str) and title.isprintable() and title == title.strip()
    if "name" in entry and not (is_line and title):
        raise RequestError(f"{location}.name: {title!r} is not allowed: a line of text without blanks around it")
    return str(plugin), dict(given or {}), title


def _all_attacks(registry: Registry, victim: Choice, path: Path) -> tuple[Choice, ...]:
    """Return every attack that applies to a victim's publications, with default options; not those ``only_by_name``.

    The publications of a broken victim are unknown, so it gets every attack. Each of its cells fails with the reason.

    Raises:
        RequestError: a plugin file that the user names is broken: it may hold an attack.
    """
    publishes = PUBLICATIONS if victim.plugin is None else victim.plugin.publishes
    listings = registry.listings("attacks")
    for listing in listings:
        if listing.problem and Path(listing.origin) in registry.files:
            raise RequestError(f"{path}: attacks: all: --plugin {listing.origin} is broken: {listing.problem}")
    names = [listing.name for listing in listings]
    attacks = [_choice(registry, "attacks", name, {}, f"{path}: attacks: all") for name in names]
    plugins = [(choice, choice.plugin) for choice in attacks if choice.plugin is not None]
    return tuple(choice for choice, one in plugins if one.threat.needs in publishes and not one.only_by_name)


def _refuse_twice(choices: Sequence[Choice | Source], location: str) -> None:
    if twice := repeated(choice.label for choice in choices):
        raise RequestError(f"{location}: {twice[0]!r} is listed twice")


def _refuse_seeds_twice(seeds: Sequence[int], location: str) -> None:
    if twice := repeated(seeds):
        raise RequestError(f"{location}: {list(seeds)[:20]} lists a seed twice, {twice[0]}")


def _entries(registry: Registry, kind: str, entries: Sequence[Any], location: str) -> tuple[Choice, ...]:
    """Return the plugins of victims' or attacks' entries, one for each combination of an entry's grid."""
    choices: list[Choice] = []
    for i, entry in enumerate(entries):
        name, given, title = _split_entry(entry, f"{location}[{i}]")
        inside = f"{location}[{i}].{name}"
        seeds: tuple[int, ...] = ()
        attacks: tuple[Choice, ...] = ()
        if kind == "victims":
            seeds, attacks = tuple(_taken(given, "seeds", Seeds, inside)), _own_attacks(registry, given, inside)
            _refuse_seeds_twice(seeds, f"{inside}.seeds")
        grid = given.pop("grid", {})
        if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
            raise RequestError(f"{inside}.grid: {reprlib.repr(grid)} is not a mapping of options to lists of values")
        if both := [option for option in grid if option in given]:
            raise RequestError(f"{inside}.{both[0]}: given beside grid.{both[0]}; write it once")
        if (count := math.prod(map(len, grid.values()))) > MAX_CELLS:
            raise RequestError(f"{inside}.grid: {count:,} combinations; allowed: {MAX_CELLS:,}")
        for values in itertools.product(*grid.values()):
            choice = _choice(
                registry, kind, name, {**given, **dict(zip(grid, values, strict=True))}, f"{location}[{i}]"
            )
            choices.append(replace(choice, seeds=seeds, attacks=attacks, title=title, grid=tuple(grid)))
    _refuse_twice(choices, location)
    return tuple(choices)


def _own_attacks(registry: Registry, given: dict[str, Any], location: str) -> tuple[Choice, ...]:
    """Take the attacks out of the options of a victim or dataset."""
    return _entries(registry, "attacks", _taken(given, "attacks", Entries, location), f"{location}.attacks")


def _taken(given: dict[str, Any], name: str, kind: Any, location: str) -> Any:
    """Take a key out of an entry's options, validated; an empty tuple if it is missing."""
    if name not in given:
        return ()
    try:
        return TypeAdapter(kind, config=ConfigDict(strict=True)).validate_python(given.pop(name))
    except ValidationError as error:
        raise RequestError(options.explain(error, f"{location}.{name}", ())) from None


def _choice(registry: Registry, kind: str, name: str, given: dict[str, Any], location: str) -> Choice:
    registry.find(kind, name, location)
    try:
        plugin = options.build(registry.load_whole(kind, name), given, f"{location}.{name}")
    except BrokenPlugin as error:
        written = ", ".join(f"{key}={json.dumps(value, default=str)}" for key, value in given.items())
        return Choice(kind, name, given, f"{name}({written})" if written else name, str(error))
    return Choice(kind, name, given, options.label(name, plugin), folder=FOLDER.get(), plugin=plugin)


def _source(registry: Registry, entry: str | dict[str, Any], location: str) -> Source:
    name, given, title = _split_entry(entry, location)
    inside = f"{location}.{name}"
    victims = tuple(_taken(given, "victims", VictimNames, inside))
    attacks = _own_attacks(registry, given, inside)
    auxiliary = given.pop("auxiliary", "within")
    corpus = replace(_choice(registry, "datasets", name, given, location), title=title)
    if auxiliary in REGIMES:
        return Source(corpus, str(auxiliary), victims=victims, attacks=attacks)
    inside += ".auxiliary"
    names = [*REGIMES, *(listing.name for listing in registry.listings("datasets"))]
    if not isinstance(auxiliary, dict) and auxiliary not in names:
        allowed = f"{', '.join(REGIMES)}, or a dataset{nearest(auxiliary, names)}"
        raise RequestError(f"{inside}: {auxiliary!r} is not allowed: {allowed}")
    other = _choice(registry, "datasets", *_split_entry(auxiliary, inside)[:2], inside)
    return Source(corpus, None, other, victims, attacks)
